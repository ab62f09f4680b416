"""
Breast cancer: from a table to a report
=======================================

569 tumours, 30 measurements of the cell nuclei of each, benign or malignant: which measurements
tell the two apart, and how sure is that? The table ships with scikit-learn.

The steps are those for any table of genes: read a file, rank the columns, test the ranking by
permuting the labels, look at the pictures, write a report to send to a colleague.

``FROTSelector`` ranks by a moderated t by default, and finds the transport plan between the two
classes besides. The plan is not needed for the ranking; it serves to take the cost of each feature
apart, and to say which tumour corresponds to which.
"""

# sphinx_gallery_thumbnail_number = 2
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from frot.selection import (
    FROTSelector,
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

columns = selector.get_support(indices=True)
strips = plot_strips(selector, X, y, features=columns)

# %%
# The plan: which malignant tumour corresponds to which benign one, in two of the best features. It
# is best against the worst weights on the features, and comes with a proven interval.

first, second = "worst perimeter", "worst concave points"
rows, columns = selector.comparisons_[0].rows
i, j, mass = selector.plan_.arcs()
figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
for start, end in zip(rows[i[mass > 2e-3]], columns[j[mass > 2e-3]], strict=True):
    axes.plot(X[first].iloc[[start, end]], X[second].iloc[[start, end]], color=GREY, linewidth=0.4)
for name, colour in (("benign", BLUE), ("malignant", ORANGE)):
    axes.scatter(
        X[first][y == name], X[second][y == name], s=10, color=colour, label=name, zorder=2
    )
axes.set(xlabel=first, ylabel=second)
axes.legend(frameon=False, loc="lower right")
plt.show()
print(f"{selector.result_.lower:.4f} <= optimum <= {selector.result_.upper:.4f}")

# %%
# One self-contained page with all of it: table, pictures, plan, and how to get it again.

page = write_selection_report(selector, X, y, folder / "tumours.html")
print(f"{page.name}: {page.stat().st_size / 1e6:.1f} MB")
