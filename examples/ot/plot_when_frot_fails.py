"""
When FROT fails
===============

FROT gives weight to the groups that *cost* most. That is not always the group that *differs* most.
This page shows two cases in which the weights mislead, and what helps.

**Loud noise.** A group of noise with a large scale costs more than a group that differs, whatever
the plan. The adversary takes it, the plan follows, and the group that differs gets nothing. The
remedies are to bring the groups to one scale (``normalise="mean"``), to forbid that one group takes
all of the weight (``CappedSimplex``), or to make the weight on a suspect group expensive
(``prior``).

**Rotations.** FROT looks at groups of features. If what differs lies in a plane across all
features, no group has it, and single features are the wrong thing to choose from.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import expm

import frot

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"
PURPLE, SKY = "#CC79A7", "#56B4E9"

# %%
# Loud noise
# ----------
# Five groups: ``signal`` is shifted by 1.5, three are noise of scale one, and ``loud`` is noise of
# four features whose scale grows. A plan is judged by what it costs in the signal, divided by the
# least possible.

groups = {
    "signal": [0, 1], "noise a": [2, 3], "noise b": [4, 5], "noise c": [6, 7],
    "loud": [8, 9, 10, 11],
}  # fmt: skip
prior = [0.2475, 0.2475, 0.2475, 0.2475, 0.01]
ways = {
    "as it is": {},
    'normalise="mean"': {"normalise": "mean"},
    'normalise="regret"': {"normalise": "regret"},
    "prior, 1 % on loud": {"prior": prior, "eta": frot.relative(0.3)},
    "CappedSimplex(2)": {"adversary": frot.CappedSimplex(2)},
}
colours = [ORANGE, BLUE, PURPLE, SKY, GREEN]


def excess(plan, X, Y):
    """Cost of the plan in the first two features, over the least possible."""
    rows, columns, mass = plan.arcs()
    cost = mass @ ((X[rows, :2] - Y[columns, :2]) ** 2).sum(axis=1)
    return cost / frot.wasserstein(X[:, :2], Y[:, :2]).value


rng = np.random.default_rng(0)
scales = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0])
clouds = rng.normal(size=(2, 80, 12))
clouds[1, :, :2] += 1.5
weight = {name: [] for name in ways}
loss = {name: [] for name in ways}
for scale in scales:
    X, Y = clouds * np.where(np.arange(12) >= 8, scale, 1.0)
    for name, options in ways.items():
        result = frot.solve(X, Y, groups, **options)
        weight[name].append(result.alpha)
        loss[name].append(excess(result.plan, X, Y))

# %%
# ``normalise="mean"`` does not depend on the scale at all, and is the remedy here. A cap keeps half
# of the weight on the signal, but the other half still goes to the noise, and the plan with it. A
# prior helps as long as the loud group is not too loud. ``"regret"`` answers another question:
# which group loses most compared with a plan of its own; no group stands out by that.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.8), layout="constrained")
for (name, alphas), colour in zip(weight.items(), colours, strict=True):
    left.plot(scales, np.array(alphas)[:, 0], "o-", color=colour, markersize=4, label=name)
    right.plot(scales, loss[name], "o-", color=colour, markersize=4)
left.set(xlabel="scale of the loud noise", ylabel="weight of the group that differs")
right.set(xlabel="scale of the loud noise", ylabel="cost in the signal / least possible")
figure.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()

# %%
# Rotations
# ---------
# A square breaks apart in two of twelve features, the other ten are noise. Then all features are
# rotated, a little more each time. Distances do not change, so OT and SRW do not either. FROT of
# single features ends worse than ordinary transport. Sharing the weight among more features softens
# that and does not cure it: where you expect directions, not features, use ``frot.srw``.

n, d = 100, 12
X, Y = rng.normal(size=(2, n, d))
X[:, :2], Y[:, :2] = rng.uniform(-1.0, 1.0, size=(2, n, 2))
Y[:, :2] += 2.0 * np.sign(Y[:, :2])
skew = rng.normal(size=(d, d))
skew = (skew - skew.T) / np.linalg.norm(skew - skew.T, 2)
angles = np.linspace(0.0, 90.0, 7)
methods = {
    "FROT, each feature": lambda U, V: frot.solve(U, V),
    "FROT, CappedSimplex(4)": lambda U, V: frot.solve(U, V, adversary=frot.CappedSimplex(4)),
    "OT": lambda U, V: frot.wasserstein(U, V),
    "SRW, k = 2": lambda U, V: frot.srw(U, V, k=2, tol=1e-2),
}
figure, axes = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
for (name, solve), colour in zip(methods.items(), (BLUE, GREEN, GREY, ORANGE), strict=True):
    found = []
    for angle in angles:
        rotation = expm(np.deg2rad(angle) * skew)
        plan = solve(X @ rotation.T, Y @ rotation.T).plan
        found.append(excess(plan, X, Y))
    axes.plot(angles, found, "o-", color=colour, markersize=4, label=name)
axes.set(
    xlabel="largest angle of the rotation, degrees",
    ylabel="cost in the true plane / least possible",
)
axes.set_xticks(angles)
axes.legend(frameon=False)
plt.show()
