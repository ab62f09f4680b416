"""
Entropy on the plan: eps, and what is known without it
======================================================

``eps`` adds an entropy to the plan. The problem then becomes smooth and is solved by Sinkhorn
sweeps, on any device and for many points. The plan spreads: every point of X sends a little mass
to many points of Y.

How much does that change the answer? ``result.lower`` and ``result.upper`` are about the problem
with ``eps``. ``result.unregularised`` is an interval for the problem *without* it, which the same
run proves from the same potentials and the same plan.

Here both are compared with the exact optimum, for ``eps`` from 30 % to 0.1 % of the mean cost.
"""

import matplotlib.pyplot as plt
import numpy as np

import frot

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8A8A8A"

# %%
# Two half moons, and three more groups of two features that are noise.

rng = np.random.default_rng(1)
angle = rng.uniform(0.0, np.pi, size=(2, 80))
moons = np.stack(
    [np.stack([np.cos(angle[0]), np.sin(angle[0])], 1),
     np.stack([1.0 - np.cos(angle[1]), 0.3 - np.sin(angle[1])], 1)]
)  # fmt: skip
X, Y = np.concatenate([moons, rng.normal(0.0, 0.1, size=(2, 80, 6))], axis=2)
groups = {"moon": [0, 1], "noise a": [2, 3], "noise b": [4, 5], "noise c": [6, 7]}

exact = frot.solve(X, Y, groups)
shares = np.geomspace(0.3, 1e-3, 9)
found = [frot.solve(X, Y, groups, eps=frot.relative(share)) for share in shares]

# %%
# The interval of ``unregularised`` always holds the exact optimum, and closes as ``eps`` goes to
# zero. The value with ``eps`` is above it: it includes the price of the entropy.

figure = plt.figure(figsize=(8.6, 5.6), layout="constrained")
panels = figure.subplot_mosaic([["large", "middle", "small"], ["curve"] * 3])
curve = panels["curve"]
low, high = np.array([result.unregularised for result in found]).T
curve.fill_between(
    shares, low, high, color=BLUE, alpha=0.25, label="unregularised: proven interval"
)
curve.plot(
    shares, [r.value for r in found], "o-", color=ORANGE, markersize=4, label="value with eps"
)
curve.axhline(exact.value, color="black", linewidth=1.0, linestyle="--", label="exact optimum")
curve.set(xscale="log", xlabel="eps, as a share of the mean cost", ylabel="squared cost")
curve.legend(frameon=False, loc="upper left")
for name, at in (("large", 0), ("middle", 4), ("small", 8)):
    axes, plan = panels[name], np.asarray(found[at].plan)
    rows, columns = np.nonzero(plan > 0.02 / len(X))
    for i, j in zip(rows, columns, strict=True):
        strength = min(1.0, plan[i, j] * len(X))
        axes.plot(*np.stack([X[i, :2], Y[j, :2]]).T, color=GREY, linewidth=0.7, alpha=strength)
    axes.scatter(*X[:, :2].T, s=10, color=BLUE, zorder=2)
    axes.scatter(*Y[:, :2].T, s=10, color=ORANGE, zorder=2)
    axes.set_title(f"eps = {shares[at]:.1%} of the mean cost", fontsize=10)
    axes.set(xticks=[], yticks=[])
plt.show()

# %%
# Each interval holds the optimum, and the last is narrow.

for share, result in zip(shares, found, strict=True):
    low, high = result.unregularised
    assert low <= exact.upper
    assert exact.lower <= high
    print(f"eps {share:6.1%}: [{low:.5f}, {high:.5f}], exact {exact.value:.5f}")
