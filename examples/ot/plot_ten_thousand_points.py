"""
Ten thousand points
===================

10,000 points against 10,000 are a hundred million pairs: as a matrix of doubles 800 MB, and one
more for every group. frot forms none of them. With ``eps`` the costs are computed in blocks while
Sinkhorn sweeps over them, within ``memory_budget``, and the plan that comes back is *lazy*: it is
known by its potentials, and answers products, rows and sums.

The example moves a square onto a ring. Two groups: the position, and four features of noise. The
picture is the barycentric map ``plan @ Y`` (Courty et al. 2017): where each point of the square
goes on average. Of an entropic plan it is the map that potentials define everywhere (Seguy et al.
2018; Pooladian and Niles-Weed 2021).

It takes some seconds on one core of a CPU. With tensors on a CUDA device as X and Y the same call
runs there.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import frot

rng = np.random.default_rng(0)
n = 10_000
square = rng.uniform(-1.0, 1.0, size=(n, 2))
angle, radius = rng.uniform(0.0, 2.0 * np.pi, n), 2.0 + 0.4 * rng.uniform(-1.0, 1.0, n)
ring = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
X = np.hstack([square, rng.normal(0.0, 0.3, size=(n, 4))])
Y = np.hstack([ring, rng.normal(0.0, 0.3, size=(n, 4))])
groups = {"position": [0, 1], "noise": [2, 3, 4, 5]}

# %%
# ``eps`` is a tenth of the mean cost. Two per cent as tolerance are enough for a picture, and the
# interval says what is proven.

began = time.perf_counter()
result = frot.solve(X, Y, groups, eps=frot.relative(0.1), tol=2e-2, memory_budget=3e8)
image = result.plan @ Y[:, :2] * n
print(f"{time.perf_counter() - began:.1f} s")
print(result.summary())

# %%
# ``plan @ V`` is a product with the plan; times n it is the mean of the targets of each point. The
# colour is the direction of a point from the middle of the square, so that one sees where it went.

hue = np.arctan2(*square.T)
figure, panels = plt.subplots(1, 3, figsize=(9.0, 3.4), layout="constrained")
titles = ("X: 10,000 points", "plan @ Y", "Y: 10,000 points")
for axes, cloud, title in zip(panels, (square, image, ring), titles, strict=True):
    colour = {"color": "#C9CDD2"} if cloud is ring else {"c": hue, "cmap": "twilight_shifted"}
    axes.scatter(*cloud.T, s=1.0, **colour)
    axes.set(xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), aspect="equal", xticks=[], yticks=[])
    axes.set_title(title, fontsize=11)
plt.show()
assert result.lower <= result.value <= result.upper
