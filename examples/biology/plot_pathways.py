"""
Pathways from a .gmt file
=========================

A gene set is tested against two questions. Does anything in it differ between the classes
(self-contained)? Does more of it differ than of other genes (competitive)? Where half of the genes
differ, every set answers yes to the first. The second is what most people mean.

``pathway_test`` answers both by permuting the labels, which keeps the correlation of genes: sets of
genes that go up and down together are not found more often by chance. It also says in which class a
set is higher, and by which members (the leading edge). ``block=`` is for batches and pairs, and
probes of one gene count once.

The table is simulated: 60 samples, 1,000 genes, 40 sets. Three sets differ, and a tenth of all
other genes does as well.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from frot.selection import pathway_test, plot_pathways

rng = np.random.default_rng(0)
genes = [f"GENE{i:04d}" for i in range(1000)]
y = np.repeat(["tumour", "normal"], 30)
X = pd.DataFrame(rng.normal(size=(60, 1000)), columns=genes)
sick = y == "tumour"

# %%
# The sets, written as a .gmt file: name, description and genes, separated by tabs. Members of
# ``CYTOSKELETON`` are correlated but do not differ.

names = ["GLYCOLYSIS", "DNA_REPAIR", "INTERFERON", "CYTOSKELETON"]
names += [f"SET_{i:02d}" for i in range(4, 40)]
sets = {name: [genes[25 * i + j] for j in range(25)] for i, name in enumerate(names)}
X.loc[sick, sets["GLYCOLYSIS"][:15]] += 1.0
X.loc[sick, sets["DNA_REPAIR"][:10]] -= 1.1
X.loc[sick, sets["INTERFERON"][:8]] += 0.9
X.loc[sick, sets["INTERFERON"][8:16]] -= 0.9
X[sets["CYTOSKELETON"]] += 1.2 * rng.normal(size=(60, 1))
elsewhere = rng.choice(genes[100:], size=90, replace=False)
X.loc[sick, elsewhere] += 0.7

path = Path(tempfile.mkdtemp()) / "sets.gmt"
lines = [f"{name}\tsimulated\t" + "\t".join(of) for name, of in sets.items()]
_ = path.write_text("\n".join(lines))

# %%
# The test reads the file itself. ``INTERFERON`` is "mixed": half of its members go up, half down.

test = pathway_test(X, y, path, n_permutations=999)
shown = test.table[["pathway", "score", "up_in", "p_competitive", "q_competitive"]]
print(shown.head(6).to_string(index=False, float_format="%.3g"))
print("leading edge of DNA_REPAIR:", ", ".join(test.leading_edge("DNA_REPAIR")[:5]), "...")

# %%
# The picture that comes with the library: the sets by their score, coloured by direction.

bars = plot_pathways(test, rows=10)

# %%
# The two p-values of all sets. The self-contained one is small for many sets, since genes differ
# everywhere; the competitive one for the three that were planted.

figure, axes = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
planted = np.isin(test.names, names[:3])
for at, colour, label in (
    (~planted, "#8A8A8A", "no more than other genes"),
    (planted, "#D55E00", "planted: GLYCOLYSIS, DNA_REPAIR, INTERFERON"),
):
    axes.scatter(test.p_self_contained[at], test.p_competitive[at], s=34, color=colour, label=label)
at = test.names.index("CYTOSKELETON")
axes.annotate(
    "CYTOSKELETON", (test.p_self_contained[at], test.p_competitive[at]), xytext=(0, -30),
    textcoords="offset points", fontsize=9, ha="center", arrowprops={"arrowstyle": "-"},
)  # fmt: skip
axes.axhline(0.05, color="black", linewidth=0.8, linestyle=":")
axes.axvline(0.05, color="black", linewidth=0.8, linestyle=":")
axes.set(
    xscale="log", yscale="log", xlabel="p, self-contained: does anything differ?",
    ylabel="p, competitive: more than other genes?",
)  # fmt: skip
axes.set_xlim(None, 2.0)
axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 0.15))
plt.show()
