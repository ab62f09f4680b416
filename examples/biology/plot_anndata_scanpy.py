"""
AnnData, and scanpy's plots
===========================

``rank_genes(adata, groupby)`` ranks genes for every group of cells, and writes the answer to
``adata.uns["rank_genes_groups"]`` in the layout of ``scanpy.tl.rank_genes_groups``. All that scanpy
has for it works: ``scanpy.get.rank_genes_groups_df``, ``scanpy.pl.rank_genes_groups``, dot plots,
heat maps.

Genes are in the order of a moderated t. With few cells in a group it is steadier than the t-test: a
gene that none of ten cells expresses has no variance there, and a plain t that is huge.
``pvals_adj`` is there to filter by, and ``block="batch"`` adjusts everything for a batch.

The cells here are simulated counts of three types. Where anndata is not installed, a plain object
with the same fields takes its place, so that this page runs anywhere; the call is the same.
"""

from importlib.util import find_spec
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from frot.selection import rank_genes

# %%
# 300 cells, 60 genes, three types of very different sizes, five markers each. Counts are brought to
# the same total, and log1p is taken, as scanpy does.

rng = np.random.default_rng(0)
sizes = {"T cell": 200, "B cell": 85, "mast cell": 15}
kinds = np.repeat(list(sizes), list(sizes.values()))
genes = [f"{name[0]}{i + 1}" for name in ("Tc", "Bc", "Mc") for i in range(5)]
genes += [f"g{i}" for i in range(45)]
rate = rng.gamma(0.6, 1.0, size=60)[None, :].repeat(len(kinds), axis=0)
for number, name in enumerate(sizes):
    rate[np.ix_(kinds == name, np.arange(5 * number, 5 * number + 5))] += rng.uniform(0.6, 2.0, 5)
counts = rng.poisson(rate * rng.lognormal(0.0, 0.3, size=(len(kinds), 1)))
X = np.log1p(counts / counts.sum(axis=1, keepdims=True) * 100.0)
obs = pd.DataFrame({"kind": pd.Categorical(kinds)}, index=[f"cell{i}" for i in range(len(kinds))])

if find_spec("anndata"):
    from anndata import AnnData

    adata = AnnData(X, obs=obs, var=pd.DataFrame(index=genes))
else:
    adata = SimpleNamespace(X=X, obs=obs, var_names=genes, uns={}, layers={}, raw=None)

# %%
# One call. With ``n_permutations=`` the p-values are from permuted labels.

rank_genes(adata, "kind")
ranked = adata.uns["rank_genes_groups"]
for name in ranked["names"].dtype.names:
    many = (ranked["pvals_adj"][name] <= 0.05).sum()
    print(f"{name:10s} {many:2d} genes with q <= .05:", *ranked["names"][name][:6])

# %%
# With scanpy installed, these two lines draw the ranking and a dot plot::
#
#     sc.pl.rank_genes_groups(adata)
#     sc.pl.rank_genes_groups_dotplot(adata, n_genes=5)
#
# The same dot plot with matplotlib alone: the size is the share of cells that express a gene, the
# colour the mean. The genes T1 to T5, B1 to B5 and M1 to M5 are the markers that were planted.

shown = [gene for name in sizes for gene in ranked["names"][name][:5]]
columns = [genes.index(gene) for gene in shown]
share = np.stack([(X[kinds == name][:, columns] > 0).mean(axis=0) for name in sizes])
mean = np.stack([X[kinds == name][:, columns].mean(axis=0) for name in sizes])

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(8.4, 5.4), height_ratios=(3, 4), layout="constrained"
)
x, row = np.meshgrid(np.arange(len(shown)), np.arange(len(sizes)))
dots = top.scatter(x, row, s=220 * share, c=mean, cmap="Reds", edgecolor="#555555", linewidth=0.5)
top.set_xticks(range(len(shown)), shown)
top.set_yticks(range(len(sizes)), [f"{name} ({count})" for name, count in sizes.items()])
top.set(ylim=(2.6, -0.6), xlim=(-0.7, len(shown) - 0.3))
for edge in (4.5, 9.5):
    top.axvline(edge, color="#C9CDD2", linewidth=1.0)
figure.colorbar(dots, ax=top, label="mean of log1p")
top.set_title("five best genes of each type: size is the share of cells", fontsize=11)

# Scores by rank, as in ``sc.pl.rank_genes_groups``.
colours = ("#0072B2", "#D55E00", "#009E73")
for (number, name), colour in zip(enumerate(sizes), colours, strict=True):
    scores, names = ranked["scores"][name][:12], ranked["names"][name][:12]
    place = 14 * number + np.arange(12)
    bottom.plot(place, scores, ".", color=colour, markersize=4)
    for at, score, gene in zip(place, scores, names, strict=True):
        bottom.annotate(
            gene, (at, score), rotation=90, fontsize=8, color=colour, ha="center",
            xytext=(0, 4), textcoords="offset points",
        )  # fmt: skip
    top_score = max(float(ranked["scores"][name][0]) for name in sizes)
    bottom.annotate(
        name, (14 * number + 5.5, 1.3 * top_score), color=colour, ha="center", fontsize=11
    )
bottom.set(
    xticks=[],
    ylabel="moderated t",
    ylim=(-1, 1.45 * top_score),
    xlabel="genes in the order of their score",
)
plt.show()
