"""
Three classes: what marks each of them
======================================

With three or more classes, ``FROTSelector`` holds each class against the rest, or against a
``reference``. ``tables_`` has one ranked table for each comparison, ``table_`` one for all: it says
in which class a feature is up, and ranks by the root mean square of t.

The data are 178 wines of three growers with 13 chemical measurements each, from scikit-learn. Read
"gene" for "measurement" and "cell type" for "grower", and the code is the same.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from frot.selection import FROTSelector, plot_strips

X, y = load_wine(return_X_y=True, as_frame=True)
X = X.rename(columns={"od280/od315_of_diluted_wines": "od280/od315"})
y = np.array(["Barolo", "Grignolino", "Barbera"])[y]

# %%
# Three comparisons, each with its own transport plan between the class and the rest.

selector = FROTSelector(n_features_to_select=4, values="linear").fit(X, y)
for name, table in selector.tables_.items():
    best = table.iloc[0]
    print(f"{name:20s} {best['feature']}, higher in {best['up_in']}, t = {best['t']:.1f}")

# %%
# The signed t of every feature in every comparison. A row with one strong cell is a marker of that
# class. Flavanoids mark two: Barolo has most, Barbera least.

comparisons = selector.comparisons_
t = np.stack([one.t for one in comparisons], axis=1)
order = np.argsort(selector.ranking_)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(8.6, 5.2), width_ratios=(3, 4), layout="constrained"
)
shades = left.imshow(t[order], cmap="RdBu_r", vmin=-25, vmax=25, aspect="auto")
left.set_xticks(range(3), [str(one.first) for one in comparisons])
left.set_yticks(range(X.shape[1]), X.columns[order])
for row, at in enumerate(order):
    for column in range(3):
        strong = abs(t[at, column]) > 15
        left.text(
            column, row, str(round(t[at, column])), ha="center", va="center", fontsize=8,
            color="white" if strong else "black",
        )  # fmt: skip
left.set_title("moderated t, class against the rest", fontsize=11)

# The two best markers that are not of one class.
first, second = "flavanoids", "color_intensity"
for name, colour in zip(selector.classes_, ("#0072B2", "#D55E00", "#009E73"), strict=True):
    of = y == name
    right.scatter(X[first][of], X[second][of], s=18, color=colour, alpha=0.75, label=name)
right.set(xlabel=first, ylabel=second)
right.set_title("two of the markers", fontsize=11)
right.legend(frameon=False)
plt.show()

# %%
# The features of one comparison, sample by sample.

strips = plot_strips(selector, X, y, "Barolo vs rest")
