"""
Outliers: mass that need not be moved
=====================================

Ordinary transport moves all mass. A few outliers then decide much of the cost, and they pull the
plan: some of X has to go to the outliers of Y, wherever these are.

With ``tau`` the marginals need not be kept: mass that is not kept costs ``tau`` a unit. There are
two ways to measure it. ``penalty="tv"`` leaves mass out as it is (partial transport): what would
cost more than the prices of both ends stays where it is. ``penalty="kl"`` shrinks and grows
weights smoothly.

Who knows how much has a partner asks for that with ``mass`` instead: the plan then has that mass,
and the points that are dearest to move stay behind.

``result.mass`` tells how much was moved, ``result.marginals`` which points kept their weight.
"""

import matplotlib.pyplot as plt
import numpy as np

import frot

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8A8A8A"

# %%
# Two clouds of 60 points in two groups: the position that is drawn, and noise. Eight points of Y
# are far away.

rng = np.random.default_rng(0)
X, Y = rng.normal(0.0, 0.5, size=(2, 60, 4))
X[:, 0] -= 1.2
Y[:, 0] += 1.2
Y[:8, :2] = rng.normal((5.0, 3.5), 0.3, size=(8, 2))
groups = {"position": [0, 1], "noise": [2, 3]}

# %%
# The price is the mean cost: at that the outliers are too far to be worth it. For the last it is
# known that 52 of 60 points of Y have a partner.

tau = frot.relative(1.0)
found = {
    "all mass": frot.solve(X, Y, groups),
    'tau, penalty="tv"': frot.solve(X, Y, groups, tau=tau, penalty="tv"),
    'tau, penalty="kl"': frot.solve(X, Y, groups, tau=tau, penalty="kl"),
    "mass=52/60": frot.solve(X, Y, groups, mass=52 / 60),
}
for name, result in found.items():
    reached = result.marginals[1][:8].sum() / (8 / 60)
    print(
        f"{name:18s} moves {result.mass:.0%} of the mass, to the outliers {reached:.0%} of theirs"
    )

# %%
# The area of a point is the weight that it keeps; a cross has lost nearly all of it. With all mass
# to be moved, the long lines lead to the outliers. With ``"tv"`` the outliers keep nothing, and as
# much of X stays behind. With ``"kl"`` all weights shrink, those far from the other cloud most.
# With ``mass`` no price has to be guessed: half of what the last bit of mass costs is the price at
# which ``"tv"`` would leave out as much, and the highest potential says it.

figure, panels = plt.subplots(
    2, 2, figsize=(8.0, 6.4), sharex=True, sharey=True, layout="constrained"
)
for axes, (name, result) in zip(panels.flat, found.items(), strict=True):
    i, j, mass = result.plan.arcs()
    for start, end, moved in zip(i, j, mass, strict=True):
        axes.plot(
            *np.stack([X[start, :2], Y[end, :2]]).T, color=GREY, linewidth=0.7,
            alpha=min(1.0, 60.0 * moved),
        )  # fmt: skip
    for cloud, kept, colour in zip((X, Y), result.marginals, (BLUE, ORANGE), strict=True):
        axes.scatter(*cloud[:, :2].T, s=1200 * kept, color=colour, zorder=2, linewidth=0)
        lost = kept < 1e-3
        axes.scatter(*cloud[lost, :2].T, marker="x", s=22, color=colour, linewidth=1.0, zorder=2)
    axes.set_title(f"{name}\n{result.mass:.0%} moved, value {result.value:.2f}", fontsize=11)
    axes.set(xticks=[], yticks=[])
plt.show()
assert found["all mass"].value > found['tau, penalty="tv"'].value

# %%
price = float(found["mass=52/60"].potentials[0].max())
print(f"mass=52/60 is tau={price:.3f} with the penalty 'tv'")
assert abs(found["mass=52/60"].mass - 52 / 60) < 1e-12
assert found["mass=52/60"].marginals[1][:8].sum() < 1e-12
