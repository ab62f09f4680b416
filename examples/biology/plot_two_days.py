"""
Cells of two days, and a gate against noise
===========================================

Measuring a cell destroys it, so the cells of two days are different cells. Transport couples them:
it says where the cells of the first day are expected to go. With pathways as groups a coupling has
to be good in every pathway, and the worst case goes to the pathways that couple worst.

That is a pathway of **noise**, since nothing couples noise well. A gate keeps it out without any
label: a pathway passes if it *predicts another one*, by a regression that is learnt on the cells of
the other day. Pathways that follow the differentiation have this in common on both days; a pathway
of its own noise has nothing to predict.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

import frot

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8A8A8A"

# %%
# 200 cells of either day on a tree: a trunk that forks, and both branches fork again, so that there
# are four fates. Of the second day more cells are in the last fates. 4 of 16 pathways of ten genes
# follow the tree; each of the other twelve follows something of its own, and more strongly.

rng = np.random.default_rng(0)
n, size, names = 200, 10, [f"signal {i}" for i in range(4)] + [f"noise {i}" for i in range(12)]
fate = np.concatenate([rng.choice(4, n), rng.choice(4, n, p=(0.15, 0.2, 0.3, 0.35))])
progress = np.concatenate([rng.uniform(0.3, 0.75, n), rng.uniform(0.65, 1.0, n)])
side, turn = np.where(fate < 2, -1.0, 1.0), np.where(fate % 2, 1.0, -1.0)
first, second = np.maximum(progress - 0.1, 0.0), np.maximum(progress - 0.2, 0.0)
tree = np.stack([progress, side * first, turn * second * (side < 0), turn * second * (side > 0)])
tree = tree.T + 0.18 * rng.normal(size=(2 * n, 4))
genes = []
for name in names:
    state = tree if name.startswith("signal") else 1.5 * rng.normal(size=(2 * n, 2))
    mixed = state @ rng.normal(size=(state.shape[1], size))
    genes.append(mixed + 0.25 * rng.normal(size=mixed.shape))

# %%
# Each pathway is reduced to its principal components. ``normalise="mean"`` will divide its squared
# distances by their mean, so that coupling at random costs one in every pathway.

genes = [(values - values.mean(axis=0)) / values.std(axis=0) for values in genes]
parts = [PCA(5).fit_transform(values) for values in genes]

# %%
# The gate. ``agreement`` is the inner product of predictions and truth, in units of its standard
# deviation under permutations of the cells. The smaller of both days counts, and a pathway has the
# score of the pathway that it predicts best. Four standard deviations are enough for 16 x 15 pairs.


def agreement(predicted, truth):
    """Return z of an inner product, both sides centred."""
    predicted, truth = predicted - predicted.mean(axis=0), truth - truth.mean(axis=0)
    spread = np.sum((predicted.T @ predicted) * (truth.T @ truth))
    return np.sum(predicted * truth) * np.sqrt((len(truth) - 1) / spread)


days = slice(0, n), slice(n, 2 * n)
z = np.full((len(parts), len(parts)), -np.inf)
for i, one in enumerate(parts):
    for j, other in enumerate(parts):
        if i != j:
            z[i, j] = min(
                agreement(Ridge().fit(one[there], other[there]).predict(one[here]), other[here])
                for here, there in (days, days[::-1])
            )
passed = np.flatnonzero(z.max(axis=1) > 4.0)
print("passed:", ", ".join(names[i] for i in passed))

# %%
# Couplings: transport on 30 components of all genes, as is usual; the worst mix of all pathways;
# and that of the pathways that passed. ``tau=(inf, 1)`` lets the second day's weights give way at a
# price, since fates grow at different rates: 1 is the cost of coupling at random. ``eps`` and
# ``eta`` smooth the plan and the weights of the pathways.


def couple(blocks):
    """Couple the cells of both days, with a block of coordinates for each group."""
    points = np.hstack(blocks)
    return frot.solve(
        points[days[0]], points[days[1]], frot.Groups.from_sizes([b.shape[1] for b in blocks]),
        normalise="mean", eps=0.02, eta=0.05, tau=(np.inf, 1.0),
    )  # fmt: skip


found = {
    "30 components": couple([PCA(30).fit_transform(np.hstack(genes))]),
    "all pathways": couple(parts),
    "passed the gate": couple([parts[i] for i in passed]),
}
same = fate[days[0], None] == fate[None, days[1]]
right = {}
for name, result in found.items():
    plan = np.asarray(result.plan)
    right[name] = np.sum(plan * same) / plan.sum()
    print(f"{name:16s} {right[name]:.0%} of the mass stays in its fate; {result.status.name}")

# %%
# Left, the scores of the gate. Middle, where the cells of each fate go by the last coupling. Right,
# the share of the mass that goes to cells of the right fate.

figure, (left, middle, last) = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
left.barh(names, z.max(axis=1), color=[BLUE if i in passed else GREY for i in range(len(names))])
left.axvline(4.0, color=ORANGE)
left.invert_yaxis()
left.tick_params(axis="y", labelsize=8)
left.set(xlabel="z of the best prediction", title="the gate")
member = np.eye(4)[fate]
flow = member[days[0]].T @ plan @ member[days[1]]
flow /= flow.sum(axis=1, keepdims=True)
middle.imshow(flow, cmap="Blues", vmin=0.0, vmax=1.0)
for (i, j), share in np.ndenumerate(flow):
    middle.text(j, i, f"{share:.0%}", ha="center", va="center", color="w" if share > 0.5 else "k")
middle.set(xticks=range(4), yticks=range(4), xlabel="fate, day 2", ylabel="fate, day 1")
middle.set_title("where cells go")
bars = last.bar(list(right), [100 * share for share in right.values()], color=[GREY, ORANGE, BLUE])
last.bar_label(bars, fmt="%.0f %%")
last.tick_params(axis="x", labelsize=8)
last.set(ylim=(0, 100), title="mass in the right fate")
plt.show()

# %%
# **On real cells it lost.** 700 blood cells (scanpy's pbmc) were split at random into two days, 20
# times, with the cell type as the truth and the Hallmark sets as pathways. Transport on 30
# components of all genes kept 64.4 ± .3 % of the mass in its type. The pathways that passed such a
# gate, which was all of them, kept 59.0 ± .3 %, although their distances were also denoised. The
# worst case looks at the sets that couple worst, and these are the least informative ones, whereas
# components follow what most genes agree on. The gate was ahead only where three in four sets had
# been made noise (56.2 against 51.4 %). So: components of all genes first, and pathways where whole
# ones of them may be nuisance, chosen for the question.
