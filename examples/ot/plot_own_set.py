r"""
A set of one's own: what the adversary may choose
=================================================

The weights of the groups come from a set. By default it is the simplex, all weights of sum one.
Any other convex set is as good, and says what you believe: ``frot.CappedSimplex(2)`` lets no group
have more than half, ``frot.Polytope`` is the hull of some weights, and ``frot.Ellipsoid`` is what
it is called.

A class with one method is a set, too: ``best(phi)`` returns the largest :math:`\langle \alpha,
\varphi \rangle` over the set, and the weights that attain it.

With three groups the simplex is a triangle and everything can be drawn. The colour is the cost of
ordinary transport at fixed weights, a concave function. The adversary takes its maximum over the
set.
"""

import matplotlib.pyplot as plt
import numpy as np

import frot

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Three groups of two features, shifted by 0.5, 0.6 and 0.7.

rng = np.random.default_rng(3)
X, Y = rng.normal(size=(2, 40, 6))
Y += [0.5, 0.5, 0.6, 0.6, 0.7, 0.7]
groups = {"A": [0, 1], "B": [2, 3], "C": [4, 5]}


class Ordered:
    """Weights of sum one that do not increase: A before B before C.

    Its corners are (1, 0, 0), (1/2, 1/2, 0) and (1/3, 1/3, 1/3).
    """

    corners = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]

    def best(self, phi):
        """Return the largest value and where it is: at a corner."""
        values = self.corners @ phi
        return values.max(), self.corners[values.argmax()]


circle = np.linspace(0.0, 2.0 * np.pi, 40, endpoint=False)
plane = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
disc = 1.0 / 3.0 + 0.2 * np.stack([np.cos(circle), np.sin(circle)], axis=1) @ plane

sets = {
    "Simplex(): all weights": (frot.Simplex(), np.eye(3)),
    "CappedSimplex(2): at most 1/2": (frot.CappedSimplex(2), (1.0 - np.eye(3)) / 2.0),
    "Polytope(disc): near uniform": (frot.Polytope(disc), disc),
    "Ordered(): A before B before C": (Ordered(), Ordered.corners),
}
found = {name: frot.solve(X, Y, groups, adversary=given) for name, (given, _) in sets.items()}
for name, result in found.items():
    print(f"{name:32s} value {result.value:.4f}  weights {result.alpha.round(3)}")

# %%
# The background: the cost of ordinary transport where the three groups have fixed weights.

steps = 18
grid = np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)])
grid = grid / steps
costs = [
    frot.wasserstein(X * np.sqrt(np.repeat(w, 2)), Y * np.sqrt(np.repeat(w, 2))).value for w in grid
]

# %%
# White is the outline of each set, the dot the weights that were chosen. A smaller set has a
# smaller value: the adversary has less to choose from.

CORNERS = np.array([[0.5, 0.866], [0.0, 0.0], [1.0, 0.0]])
figure, panels = plt.subplots(2, 2, figsize=(7.2, 6.6), layout="constrained")
for axes, (name, (_, outline)) in zip(panels.flat, sets.items(), strict=True):
    result = found[name]
    shades = axes.tricontourf(*(grid @ CORNERS).T, costs, levels=14, cmap="viridis")
    edge = np.vstack([outline, outline[:1]]) @ CORNERS
    axes.plot(*edge.T, color="white", linewidth=2.0)
    axes.plot(*(result.alpha @ CORNERS), "o", color=ORANGE, markersize=10, markeredgecolor="white")
    axes.set_title(f"{name}\nvalue {result.value:.3f}", fontsize=10)
    for letter, (x, y) in zip("ABC", CORNERS, strict=True):
        axes.annotate(
            letter, (x, y), xytext=(0, 5 if y else -14), textcoords="offset points", ha="center"
        )
    axes.set(aspect="equal", xlim=(-0.05, 1.05), ylim=(-0.12, 0.97))
    axes.axis("off")
figure.colorbar(shades, ax=panels, label="cost of transport at these weights", shrink=0.6)
plt.show()
assert all(result.lower <= found["Simplex(): all weights"].upper for result in found.values())
