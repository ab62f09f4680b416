r"""
The path over eta: from the worst group to all of them
======================================================

With ``eta`` the adversary pays for putting its weight on few groups: the weights are
:math:`\alpha_l \propto e^{\varphi_l / \eta}`, where :math:`\varphi_l` is what the plan costs in
group l. At ``eta = 0`` they solve the minimax problem itself; for large ``eta`` all groups weigh
the same and FROT becomes ordinary transport of the mean cost.

What ``eta`` means depends on the units of the cost. ``frot.relative(0.1)`` is a tenth of the mean
cost, whatever the units.

The path tells which groups the answer depends on: those that keep their weight as ``eta`` goes
down.
"""

import matplotlib.pyplot as plt
import numpy as np

import frot

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"

# %%
# Twelve groups of two features. In three of them Y is shifted, by 1.3, 1.2 and 1.1.

rng = np.random.default_rng(2)
X, Y = rng.normal(size=(2, 120, 24))
for group, shift in enumerate((1.3, 1.2, 1.1)):
    Y[:, 2 * group : 2 * group + 2] += shift

# %%
# Solve along a path from large to small. ``start=`` begins at the last answer.

shares = np.geomspace(3.0, 3e-3, 22)
path, result = [], None
for share in shares:
    result = frot.solve(X, Y, [2] * 12, eta=frot.relative(share), start=result)
    path.append(result)
alpha = np.array([result.alpha for result in path])

# %%
# On the right of the picture all groups weigh 1/12. On the left only those groups are left that
# the best plan cannot make cheaper than the others. ``result.perplexity`` is the effective number
# of groups, the exponential of the entropy of the weights.

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(7.2, 5.0), sharex=True, height_ratios=(2, 1), layout="constrained"
)
top.semilogx(shares, alpha[:, 3:], color=GREY, linewidth=0.9, alpha=0.7)
for group, colour, shift in zip(range(3), (BLUE, ORANGE, GREEN), (1.3, 1.2, 1.1), strict=True):
    top.semilogx(shares, alpha[:, group], color=colour, linewidth=2.2)
    top.annotate(
        f" shift {shift}", (shares[-1], alpha[-1, group]), xytext=(-4, 0), color=colour,
        textcoords="offset points", ha="right", va="center",
    )  # fmt: skip
top.annotate("nine groups without shift", (0.02, 0.02), color=GREY, ha="center")
top.set(ylabel="weight of the group", ylim=(-0.02, 0.85), xlim=(1.1e-3, 3.2))
bottom.semilogx(shares, [result.perplexity for result in path], color="black", linewidth=1.5)
bottom.set(xlabel="eta, as a share of the mean cost", ylabel="groups in effect", ylim=(0, 13))
plt.show()
