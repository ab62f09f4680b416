"""
A hidden subgroup
=================

A fifth of the patients have a gene far higher than the others, who have it a little lower: the
means of patients and controls are the same, and so are the variances. A t-test sees nothing, nor
does a test of variances, and Kolmogorov and Smirnov's test sees less.

``shape_test`` aligns both classes first, so that a difference of means is none of shape, tells
differences of **spread** from those of **form**, and names the samples of the subgroup. Only ranks
count, so that one bad array does not decide.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

from frot.selection import FROTSelector, plot_shapes, shape_test

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"

# %%
# 60 patients and 60 controls, 300 genes. In the first ten a fifth of the patients are a subgroup,
# with mean and variance made equal; the next ten have twice the spread in patients; the next ten
# are shifted. One array of a control is bad: all of its values are far off.

rng = np.random.default_rng(0)
names = [f"patient {i:02d}" for i in range(60)] + [f"control {i:02d}" for i in range(60)]
y = np.repeat(["patient", "control"], 60)
X = rng.normal(size=(120, 300))
X[:12, :10] += 8.0
X[:60, :10] = (X[:60, :10] - X[:60, :10].mean(axis=0)) / X[:60, :10].std(axis=0)
X[:60, 10:20] *= 2.0
X[:60, 20:30] += 1.2
X[100] += 15.0 * rng.choice([-1.0, 1.0], size=300)
genes = [f"sub{i}" for i in range(10)] + [f"wide{i}" for i in range(10)]
genes += [f"mean{i}" for i in range(10)] + [f"g{i}" for i in range(270)]
table = pd.DataFrame(X, index=names, columns=genes)

# %%
# The test takes the table as ``FROTSelector`` does; ``block=`` too.

test = shape_test(table, y)
print(test)
print("subgroup in sub0:", ", ".join(test.subgroup("sub0")))

# %%
# Each kind of gene is found by one test: the shift by t, the spread by the spread, the subgroup by
# the form.

ks = np.array([stats.ks_2samp(x[:60], x[60:]).pvalue for x in X.T])
found = {
    "moderated t": FROTSelector(plan=False).fit(table, y).p_values[0],
    "shape_test, spread": test.p_spread,
    "shape_test, form": test.p_form,
    "Levene": stats.levene(X[:60], X[60:]).pvalue,
    "Kolmogorov-Smirnov": ks,
}
kinds = {"subgroup": slice(0, 10), "spread": slice(10, 20), "mean": slice(20, 30)}
kinds["nothing"] = slice(30, 300)
figure, axes = plt.subplots(figsize=(8.2, 3.6), layout="constrained")
for offset, (name, p) in enumerate(found.items()):
    shares = [(p[of] <= 0.05).mean() for of in kinds.values()]
    place = np.arange(len(kinds)) + 0.16 * (offset - 2)
    colour = (BLUE, GREEN, ORANGE, GREY, "#C9CDD2")[offset]
    axes.bar(place, shares, width=0.15, color=colour, label=name)
axes.set_xticks(range(len(kinds)), [f"differ in the {kind}" for kind in list(kinds)[:3]] + ["same"])
axes.axhline(0.05, color="black", linewidth=0.8, linestyle=":")
axes.set(ylabel="share with p <= .05", ylim=(0.0, 1.05))
axes.legend(frameon=False, fontsize=9, loc="upper right")
plt.show()

# %%
# Three genes with a subgroup, centred by class. A ring is a sample that the test counts to it: the
# first twelve patients, nearly always.

strips = plot_shapes(test, table, y, ["sub0", "sub1", "sub2"])
hits = np.mean([len(set(test.subgroups[k].tolist()) & set(range(12))) for k in range(10)])
print(f"{hits:.1f} of the 12 are named, on average")
assert (test.p_form[:10] <= 0.01).all()
assert (ks[:10] <= 0.01).mean() < 0.9
