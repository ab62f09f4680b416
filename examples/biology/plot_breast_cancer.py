"""
Breast cancer: from a table to a report
=======================================

569 tumours, 30 measurements of the cell nuclei of each, benign or malignant: which measurements
tell the two apart, and how sure is that? The table ships with scikit-learn.

The steps are those for any table of genes: read a file, rank the columns, test the ranking by
permuting the labels, look at the pictures, write a report to send to a colleague.

``FROTSelector`` ranks by a moderated t. The transport plan between the two classes, which it finds
besides, takes the cost of each feature apart, and says which features the worst case weighs.
"""

# sphinx_gallery_thumbnail_number = 2
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from frot.selection import (
    FROTSelector,
    plot_heat_map,
    plot_strips,
    plot_volcano,
    read_samples,
    write_selection_report,
)

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#C9CDD2"

# %%
# A file as it may come from a laboratory: one row per sample, one column with the class.

folder = Path(tempfile.mkdtemp())
bunch = load_breast_cancer(as_frame=True)
table = bunch.data.assign(diagnosis=bunch.target.map(dict(enumerate(bunch.target_names))))
table.to_csv(folder / "tumours.csv", index=False)

samples = read_samples(folder / "tumours.csv", label="diagnosis")
X, y = samples.to_frame(), samples.y
print(X.shape, *sorted(set(y)))

# %%
# Rank, and test by 999 permutations of the labels. ``values="linear"`` says what fold changes are
# made of: these are measurements, not logarithms.

selector = FROTSelector(n_features_to_select=6, values="linear")
selector.fit(X, y)
test = selector.permutation_test(X, y, n_permutations=999)
print(test)
shown = ["feature", "up_in", "log2_fold_change", "t", "q"]
print(selector.table_[shown].head(6).to_string(index=False, float_format="%.3g"))

# %%
# The volcano: fold change against how surely a feature differs. Most measurements differ, nearly
# all of them higher in malignant tumours.

volcano = plot_volcano(selector)

# %%
# The six best features, each tumour a point.

strips = plot_strips(selector, X, y, features=selector.get_feature_names_out())

# %%
# All features by tumour, similar ones next to each other.

heat_map = plot_heat_map(selector, X, y)

# %%
# What the worst case of transport weighs, and what its costs are made of: the shift of the mean,
# the rest of the Wasserstein distance (shape), and what one plan for all features pays
# (misalignment). The optimum is proven to lie in an interval.

parts = selector.table_.set_index("feature")[["shift", "shape", "misalignment"]].head(12)[::-1]
figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
parts.plot.barh(stacked=True, ax=axes, color=[BLUE, ORANGE, GREY], width=0.75)
axes.set(xlabel="cost of the plan in the feature, in scaled units", ylabel="")
axes.legend(frameon=False)
plt.show()
print(f"{selector.result_.lower:.4f} <= optimum <= {selector.result_.upper:.4f}")

# %%
# One self-contained page with all of it: table, pictures, a sentence for the methods section.

page = write_selection_report(selector, X, y, folder / "tumours.html")
print(f"{page.name}: {page.stat().st_size / 1e6:.1f} MB")
