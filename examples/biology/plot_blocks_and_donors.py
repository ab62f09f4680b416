"""
Batches, pairs, and cells of donors
===================================

Samples come in blocks: batches of a laboratory, patients that were measured twice, donors with many
cells each. Three designs, and what each asks for:

- **batches that hold both classes**: ``block=batch``. What differs between batches is neither
  signal nor noise: rank, t, fold changes, p-values, pictures and permutations are within batches;
- **pairs**, a patient before and after: ``block=patient``. This is the paired test;
- **donors of one class each**: no model can tell a difference of classes from one of donors, and
  ``block=donor`` is refused. *Leaving the block out is the error*: cells of one donor are no
  independent samples. Average the cells of a donor, and compare donors.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import frot
from frot.selection import FROTSelector

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8A8A8A"
rng = np.random.default_rng(0)

# %%
# **Batches.** 90 samples in three batches, in which the share of patients differs, and 600 genes,
# of which 30 differ between patients and controls. All genes differ between batches.

batch = np.repeat(["first", "second", "third"], 30)
shares = {"first": 22, "second": 15, "third": 8}
y = np.concatenate([np.repeat(["patient", "control"], [k, 30 - k]) for k in shares.values()])
X = rng.normal(size=(90, 600))
for name in shares:
    X[batch == name] += rng.normal(0.0, 0.8, size=600)
X[np.ix_(y == "patient", np.arange(30))] += 1.1
differs = np.arange(600) < 30

batches = {"ignored": None, "block=batch": batch}
p_of_batches = {}
for name, block in batches.items():
    p, q = FROTSelector(plan=False).fit(X, y, block).p_values
    p_of_batches[name] = p[~differs]
    found = q <= 0.05
    print(f"batches {name:12s} {found.sum():3d} genes with q <= .05, {found[~differs].sum()} wrong")

# %%
# **Pairs.** 20 patients before and after a treatment. Patients differ more than the treatment does.

patient = np.repeat(np.arange(20), 2)
when = np.tile(["before", "after"], 20)
Z = rng.normal(size=(40, 600)) + 2.0 * rng.normal(size=(20, 600))[patient]
Z[np.ix_(when == "after", np.arange(30))] += 1.2
for name, block in {"ignored": None, "block=patient": patient}.items():
    q = FROTSelector(plan=False).fit(Z, when, block).p_values[1]
    print(f"pairs {name:14s} {(q[:30] <= 0.05).sum():2d} of 30 genes found")

# %%
# **Donors.** Four healthy and four sick donors, 80 cells of each, and *nothing* differs between the
# healthy and the sick: donors differ, as people do. The cells taken for samples give hundreds of
# genes.

donor = np.repeat([f"D{i}" for i in range(8)], 80)
state = np.where(np.char.replace(donor, "D", "").astype(int) < 4, "healthy", "sick")
cells = pd.DataFrame(
    rng.normal(size=(640, 1000)) + 0.35 * rng.normal(size=(8, 1000)).repeat(80, axis=0),
    columns=[f"g{i}" for i in range(1000)],
)
p_cells, q_cells = FROTSelector(plan=False).fit(cells, state).p_values
print(f"cells as samples:  q <= .05 for {(q_cells <= 0.05).sum()} of 1,000 genes, all wrong")

# %%
# The block is refused, with the way out.

try:
    FROTSelector(plan=False).fit(cells, state, block=donor)
except frot.InputError as error:
    print(error)

# %%
# The three lines of pandas: means of each donor, and the state of each.

means = cells.groupby(donor).mean()
of_donor = pd.Series(state, index=donor).groupby(level=0).first()
p_donors, q_donors = FROTSelector(plan=False).fit(means, of_donor.loc[means.index]).p_values
print(f"donors as samples: q <= .05 for {(q_donors <= 0.05).sum()} of 1,000 genes")

# %%
# p-values of genes that do not differ should be uniform: a flat histogram at the dashed line.

panels = {
    "batches ignored": p_of_batches["ignored"],
    "block=batch": p_of_batches["block=batch"],
    "cells of donors\ntaken for samples": p_cells,
    "means of donors": p_donors,
}
figure, row = plt.subplots(1, 4, figsize=(10.0, 3.2), sharey=True, layout="constrained")
for axes, (name, p) in zip(row, panels.items(), strict=True):
    wrong = (p <= 0.05).mean()
    weights = np.full(len(p), 1.0 / len(p))
    colour = ORANGE if wrong > 0.1 else BLUE
    axes.hist(p, np.linspace(0.0, 1.0, 21), weights=weights, color=colour, rwidth=0.9)
    axes.axhline(0.05, color="black", linewidth=1.0, linestyle="--")
    axes.set_title(f"{name}\n{wrong:.0%} have p <= .05", fontsize=10)
    axes.set_xlabel("p of genes that do not differ")
row[0].set_ylabel("share of them")
plt.show()
assert (p_cells <= 0.05).mean() > 0.3 > 0.1 > (p_donors <= 0.05).mean()
