"""
The plan as a matching of patients
==================================

A transport plan between two cohorts says which patient corresponds to which: a matching, with parts
of patients where sizes differ. Which genes it should follow is the question, since most genes are
noise for it.

Here, 60 patients and 80 controls belong to three molecular subtypes, which nobody has labelled.
Each subtype has a pathway of 20 genes that is up. One pathway more is up in all patients: it is the
disease. Six pathways of noise and 1,800 genes in no pathway complete the table.

A good matching pairs patients and controls of the same subtype: then the disease is seen between
those who are otherwise alike.
"""

import matplotlib.pyplot as plt
import numpy as np

import frot

COLOURS = np.array(["#0072B2", "#009E73", "#CC79A7"])

rng = np.random.default_rng(0)


def cohort(count, sick):
    """Return a table of 2,000 genes, sorted by subtype, and the subtypes."""
    subtype = np.sort(rng.integers(0, 3, count))
    table = rng.normal(size=(count, 2000))
    for kind in range(3):
        table[np.ix_(subtype == kind, np.arange(20 * kind, 20 * kind + 20))] += 1.5
    if sick:
        table[:, 60:80] += 1.0
    return table, subtype


X, of_x = cohort(60, sick=True)
Y, of_y = cohort(80, sick=False)
pathways = {f"subtype {kind}": range(20 * kind, 20 * kind + 20) for kind in range(3)}
pathways["disease"] = range(60, 80)
pathways |= {f"other {i}": range(80 + 20 * i, 100 + 20 * i) for i in range(6)}

# %%
# Three plans. Ordinary transport looks at all 2,000 genes. FROT looks at the ten pathways. By
# itself it gives most of the weight to the disease, which costs most whatever the plan is, and so
# it says little of who is alike. ``CappedSimplex(3)`` lets no pathway have more than a third, and
# the rest of the weight goes where a better plan can help.

found = {
    "OT, all 2,000 genes": frot.wasserstein(X, Y),
    "FROT, 10 pathways": frot.solve(X, Y, pathways),
    "FROT, CappedSimplex(3)": frot.solve(X, Y, pathways, adversary=frot.CappedSimplex(3)),
}
alike = of_x[:, None] == of_y[None, :]
share = {name: (np.asarray(result.plan) * alike).sum() for name, result in found.items()}
# Subtypes are not as frequent among patients as among controls, so that not all can be matched.
shares_x, shares_y = (np.bincount(of, minlength=3) / len(of) for of in (of_x, of_y))
best = np.minimum(shares_x, shares_y).sum()
print(f"within the subtype: {alike.mean():.0%} by chance, {best:.0%} at best")
for name, value in share.items():
    print(f"{name:24s} {value:.0%}")

# %%
# Each plan as a picture: patients down, controls across, both sorted by subtype, which the method
# does not know. Mass off the three blocks pairs people of different subtypes.

figure = plt.figure(figsize=(9.0, 5.2), layout="constrained")
panels = figure.subplot_mosaic([list(found), ["alpha"] * 3], height_ratios=(3, 2))
for name, result in found.items():
    axes = panels[name]
    rows, columns, mass = result.plan.arcs()
    colour = np.where(alike[rows, columns], COLOURS[of_x[rows]], "#D55E00")
    axes.scatter(columns, rows, s=900 * mass, c=colour, marker="s", linewidth=0)
    for edge in np.flatnonzero(np.diff(of_x)) + 0.5:
        axes.axhline(edge, color="#C9CDD2", linewidth=1.0, zorder=0)
    for edge in np.flatnonzero(np.diff(of_y)) + 0.5:
        axes.axvline(edge, color="#C9CDD2", linewidth=1.0, zorder=0)
    axes.set(xlim=(-1, 80), ylim=(60, -1), xticks=[], yticks=[], xlabel="controls")
    axes.set_title(f"{name}\n{share[name]:.0%} within the subtype", fontsize=11)
panels["OT, all 2,000 genes"].set_ylabel("patients")

# The weights of the pathways, with the cap and without.
place = np.arange(len(pathways))
for offset, name, colour in (
    (-0.2, "FROT, 10 pathways", "#8A8A8A"), (0.2, "FROT, CappedSimplex(3)", "black"),
):  # fmt: skip
    panels["alpha"].bar(place + offset, found[name].alpha, width=0.38, color=colour, label=name)
panels["alpha"].set_xticks(place, list(pathways), rotation=20)
panels["alpha"].set(ylabel="weight")
panels["alpha"].legend(frameon=False)
plt.show()
assert share["FROT, CappedSimplex(3)"] > share["OT, all 2,000 genes"]
