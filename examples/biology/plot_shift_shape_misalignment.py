"""
Reading shift, shape and misalignment
=====================================

The plan moves the samples of one class to those of the other. What it costs in one feature is the
sum of three parts, none of them negative:

- **shift**, the squared difference of the class means;
- **shape**, what is left of the squared Wasserstein distance of that feature alone: other spread,
  other tails, two peaks instead of one;
- **misalignment**, what the plan pays because it has to serve all features at once.

A ranking by the cost alone mixes the three. This page plants features of each kind and shows which
part finds which. The last two features have equal distributions in both classes, but are correlated
in one class and not in the other: no test of single features can see that.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from frot.selection import FROTSelector

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"

# %%
# 300 samples of each class.

rng = np.random.default_rng(0)
n = 300
normal = rng.normal(size=(2, n, 7))
patient, control = normal
patient[:, 0] += 1.0
patient[:, 1] *= 2.2
patient[:, 2] = np.where(rng.random(n) < 0.5, -1.0, 1.0) * 1.5 + 0.4 * patient[:, 2]
patient[:, 3] = rng.gamma(1.0, 1.4, n) - 1.4
patient[:, 6] = 0.95 * patient[:, 5] + np.sqrt(1 - 0.95**2) * patient[:, 6]
names = [
    "mean", "spread", "two peaks", "skew", "nothing", "correlated a", "correlated b",
]  # fmt: skip
X = pd.DataFrame(np.vstack([patient, control]), columns=names)
y = np.repeat(["patient", "control"], n)

# %%
# ``plan=True`` asks for the plan; ``shift_``, ``shape_`` and ``misalignment_`` are its parts, in
# units in which both class variances sum to two. Their sum is ``phi_``.

selector = FROTSelector(plan=True).fit(X, y)
parts = {name: getattr(selector, f"{name}_") for name in ("shift", "shape", "misalignment")}
assert np.allclose(sum(parts.values()), selector.phi_)
print(selector.table_[["feature", "t", "shift", "shape", "misalignment"]].round(2).to_string())

# %%
# Each feature in both classes, and its parts. All features cost about the same: the plan makes the
# largest costs as small as it can, and so it evens them out. The cost by itself therefore ranks
# nothing; its parts do. The shift finds the first feature, the shape the next three.
#
# The correlated features have misalignment only, and no more of it than the feature without any
# difference. The parts are of single features: to see a change of correlation, put both features
# into one group.

figure = plt.figure(figsize=(8.8, 5.8), layout="constrained")
panels = figure.subplot_mosaic(
    [[str(i) for i in range(7)], ["parts"] * 7], height_ratios=(2, 5)
)  # fmt: skip
edges = np.linspace(-4.5, 4.5, 28)
for number, name in enumerate(names):
    axes = panels[str(number)]
    axes.hist(control[:, number], edges, color=ORANGE, alpha=0.55, density=True)
    axes.hist(patient[:, number], edges, color=BLUE, alpha=0.55, density=True)
    axes.set(xticks=[], yticks=[], ylim=(0, 0.75))
    axes.set_title(name, fontsize=10)
    axes.spines[["top", "left", "right"]].set_visible(False)
panels["0"].set_ylabel("patients (blue),\ncontrols", fontsize=9)
bottom = np.zeros(7)
for (name, heights), colour in zip(parts.items(), (BLUE, GREEN, "#C9CDD2"), strict=True):
    panels["parts"].bar(range(7), heights, bottom=bottom, color=colour, label=name, width=0.6)
    bottom += heights
panels["parts"].set_xticks(range(7), names)
panels["parts"].set(ylabel="cost of the plan in the feature", xlim=(-0.5, 6.5))
figure.legend(*panels["parts"].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
