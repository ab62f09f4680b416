"""
Permutation tests with batches
==============================

Samples were measured in three batches, and the share of patients differs between them. Whatever
differs between the batches then looks like a difference between patients and controls.

``permutation_test(..., block=batch)`` permutes labels within batches only, and centres each feature
within them. So a difference between batches cannot be taken for one between classes.

The table is simulated: 90 samples, 600 genes, of which 30 differ between patients and controls. All
genes differ between batches. What should one see? P-values of the other 570 genes that are uniform,
and 30 genes that are found.
"""

import matplotlib.pyplot as plt
import numpy as np

from frot.selection import permutation_test

BLUE, ORANGE = "#0072B2", "#D55E00"

rng = np.random.default_rng(0)
batch = np.repeat(["first", "second", "third"], 30)
patients = {"first": 22, "second": 15, "third": 8}
y = np.concatenate([np.repeat(["patient", "control"], [k, 30 - k]) for k in patients.values()])
X = rng.normal(size=(90, 600))
for name in patients:
    X[batch == name] += rng.normal(0.0, 0.8, size=600)
X[np.ix_(y == "patient", np.arange(30))] += 1.1

# %%
# The same test twice, without and with the batches.

tests = {
    "batches ignored": permutation_test(X, y, n_permutations=499),
    "block=batch": permutation_test(X, y, n_permutations=499, block=batch),
}
differs = np.arange(600) < 30
for name, test in tests.items():
    found = test.q <= 0.1
    print(
        f"{name:16s} {found.sum():3d} genes with q <= 0.1, of which {found[~differs].sum()} false"
    )

# %%
# Above, the p-values of the genes that do not differ: with the batches ignored, far too many are
# small. Below, the q-values of all genes in the order of their rank: orange ones are genes that do
# differ.

figure, panels = plt.subplots(2, 2, figsize=(8.4, 5.6), sharey="row", layout="constrained")
for (top, bottom), (name, test) in zip(panels.T, tests.items(), strict=True):
    top.hist(test.p[~differs], bins=np.linspace(0.0, 1.0, 21), color=BLUE, rwidth=0.9)
    top.axhline((~differs).sum() / 20, color="black", linewidth=1.0, linestyle="--")
    top.set_xlabel("p of genes that do not differ")
    top.set_title(name, fontsize=12)
    order = np.argsort(test.q, kind="stable")[:120]
    rank = np.arange(1, 121)
    for of, colour, label in ((~differs, BLUE, "does not differ"), (differs, ORANGE, "differs")):
        at = of[order]
        bottom.scatter(rank[at], test.q[order][at], s=16, color=colour, label=label)
    bottom.axhline(0.1, color="black", linewidth=0.8, linestyle=":")
    bottom.set(xlabel="rank of the gene", ylim=(-0.02, 0.6))
panels[0, 0].set_ylabel("genes")
panels[1, 0].set_ylabel("q")
panels[1, 1].legend(frameon=False, loc="upper left")
plt.show()

# %%
# About one in twenty of the genes that do not differ may have p <= 0.05.

share = (tests["block=batch"].p[~differs] <= 0.05).mean()
print(f"with batches {share:.1%} of the genes that do not differ have p <= 0.05")
