r"""
From POT to frot
================

If you know `POT <https://pythonot.github.io>`_, this page has the same problems in both libraries,
and where the conventions differ.

================================  =============================================
POT                               frot
================================  =============================================
``ot.emd(a, b, M)``               ``frot.solve_costs([M], a, b).plan``
``ot.emd2(a, b, M)``              ``frot.solve_costs([M], a, b).value``
``ot.solve_sample(X, Y)``         ``frot.wasserstein(X, Y)``
``ot.sinkhorn(a, b, M, reg)``     ``frot.solve_costs([M], a, b, eps=reg).plan``
(several costs at once)           ``frot.solve_costs([M1, M2, ...], a, b)``
================================  =============================================

One cost is one group, and its weight is one: that is ordinary transport. Plans are the same.
*Values* with entropy are not: POT's ``sinkhorn2`` returns the cost alone, frot the objective,
with :math:`\varepsilon\,\mathrm{KL}(\Pi \mid ab^\top)`. A plan of frot is sparse, or never formed
at all; ``np.asarray(plan)`` makes it an array.
"""

import matplotlib.pyplot as plt
import numpy as np
import ot

import frot

# %%
# The classical picture of POT: two histograms on a line, and the squared distance.

n = 60
x = np.linspace(0.0, 1.0, n)
a = np.exp(-((x - 0.25) ** 2) / 0.008)
b = 0.6 * np.exp(-((x - 0.55) ** 2) / 0.004) + np.exp(-((x - 0.8) ** 2) / 0.004)
# Weights below 1e-15 of the largest would count as zero, with a warning.
a, b = (np.maximum(weights, 1e-12) for weights in (a, b))
a, b = a / a.sum(), b / b.sum()
M = ot.dist(x[:, None], x[:, None])
reg = 0.005

pot_exact, pot_sinkhorn = ot.emd(a, b, M), ot.sinkhorn(a, b, M, reg, stopThr=1e-10)
exact = frot.solve_costs([M], a, b)
sinkhorn = frot.solve_costs([M], a, b, eps=reg, tol=1e-8)
print(f"emd2      POT {ot.emd2(a, b, M):.10f}  frot {exact.value:.10f}  gap {exact.gap:.0e}")
print(f"sinkhorn  POT {(pot_sinkhorn * M).sum():.10f}  frot {sinkhorn.phi[0]:.10f}  (cost alone)")
difference = np.abs(np.asarray(sinkhorn.plan) - pot_sinkhorn).max()
print(f"largest difference of the two entropic plans: {difference:.1e}")

# %%
# What frot adds is several costs at once. Here the second cost is the squared distance on a circle,
# where 0 and 1 are neighbours. The plan that is best against the worse of the two is not that of
# either.

circle = (0.5 - np.abs(0.5 - np.abs(x[:, None] - x))) ** 2
robust = frot.solve_costs([M, 1.5 * circle], a, b, names=["line", "circle"])
print(robust.summary())

# %%
# Plans as heat maps, with the histograms along their sides.

shown = {
    "ot.emd": pot_exact,
    "frot, one cost": np.asarray(exact.plan),
    "ot.sinkhorn": pot_sinkhorn,
    "frot, one cost, eps": np.asarray(sinkhorn.plan),
    "frot, two costs": np.asarray(robust.plan),
    "frot, the second alone": np.asarray(frot.solve_costs([circle], a, b).plan),
}
figure, panels = plt.subplots(2, 3, figsize=(8.4, 5.9), layout="constrained")
for axes, (title, plan) in zip(panels.T.flat, shown.items(), strict=True):
    axes.imshow(np.sqrt(plan), cmap="Blues", extent=(0, 1, 1, 0), vmax=np.sqrt(plan.max()))
    axes.plot(x, -0.02 - 0.2 * b / b.max(), color="#D55E00", clip_on=False)
    axes.plot(-0.02 - 0.2 * a / a.max(), x, color="#0072B2", clip_on=False)
    axes.set(xlim=(-0.24, 1), ylim=(1, -0.24), xticks=[], yticks=[])
    axes.set_title(title, fontsize=10)
    axes.spines[:].set_visible(False)
plt.show()
assert abs(ot.emd2(a, b, M) - exact.value) < 1e-12
