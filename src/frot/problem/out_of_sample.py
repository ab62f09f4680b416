r"""Images of new source points, by the potentials or by the nearest source point.

With eps the plan is known everywhere by its potentials (Seguy et al. 2018; Pooladian and Niles-Weed
2021): the image of x is the mean of the target points under its own row of the plan,

.. math::
    T(x) = \sum_j p_j(x)\, y_j, \qquad
    p_j(x) \propto b_j\, e^{(g_j - c_\alpha(x, y_j)) / \varepsilon}, \qquad
    c_\alpha = \sum_l \alpha_l C_l .

Without, a new point moves as the source point nearest to it by the cost of the problem does
(Courty et al. 2017), whose image is the mean of its row:

.. math::
    T(x) = x + \bar y_i - x_i, \qquad \bar y_i = \frac{\sum_j \pi_{ij}\, y_j}{\sum_j \pi_{ij}},
    \qquad i = \arg\min_k c_\alpha(x, x_k) .
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.arrays import Array, adopt, blocks, find_home, to_numpy
from frot._base.errors import InputError
from frot._base.validate import METRICS as SCIPY_METRICS
from frot._base.validate import check_metric, check_points
from frot.costs import METRICS, build_costs
from frot.costs.build import factored_metric, mean_scales
from frot.costs.metrics import map_points
from frot.problem.marginals import unit_mass

if TYPE_CHECKING:
    from frot.problem.result import Result

# Bytes of costs between new points and old ones that are held at a time.
AT_ONCE = 64_000_000


def transported(result: Result, X_new: Any, metric: Any = None) -> Array:
    """Return the images of new source points: see `Result.transport`."""
    points = result.points
    if points is None or result.groups is None or result.weights is None or not result.metric:
        raise InputError(
            "transport: this result knows no points; it takes one of frot.solve, which has the "
            "points, their groups and the metric"
        )
    metric = _metric(result, metric)
    X_new = adopt(X_new, "X_new")
    home = find_home(X_new=X_new)
    new = to_numpy(check_points(X_new, "X_new")[0]).astype(float)
    X, Y = (to_numpy(part).astype(float) for part in points)
    if new.shape[1] != X.shape[1]:
        raise InputError(
            f"X_new: has {new.shape[1]} features, and the points that were transported have "
            f"{X.shape[1]}; they must be the same ones"
        )
    moved = _Map(result.numpy(), X, Y, metric)
    images = moved.by_potentials(new) if result.eps > 0.0 else moved.by_nearest(new)
    return images if home is None else home.bring(images)


def _metric(result: Result, metric: Any) -> Any:
    """The metric of a result, of which it has the name."""
    if metric is not None:
        return check_metric(metric, METRICS)
    if result.metric in METRICS or result.metric in SCIPY_METRICS:
        return result.metric
    raise InputError(
        f"metric: a result does not keep a function; pass the one it was solved with again, "
        f"metric={result.metric}"
    )


class _Map:
    """Costs between new points and those of a result, as its problem has them."""

    def __init__(self, result: Result, X: np.ndarray, Y: np.ndarray, metric: Any) -> None:
        assert result.weights is not None
        self.result, self.X, self.Y, self.metric = result, X, Y, metric
        self.a, self.b = (to_numpy(side).astype(float) for side in result.weights)
        self.scale = np.ones(len(result.alpha))
        if result.normalise == "mean":
            shares = unit_mass(self.a), unit_mass(self.b)
            self.scale = mean_scales(self._costs(X, self.a, Y, self.b), *shares)

    def _costs(self, left: np.ndarray, u: np.ndarray, right: np.ndarray, v: np.ndarray) -> Any:
        groups = self.result.groups
        assert groups is not None
        return build_costs(left, right, groups, self.metric, self.result.p, AT_ONCE, (u, v))

    def _mixed(
        self, new: np.ndarray, others: np.ndarray, weights: np.ndarray, ties: float = 0.0
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield blocks of new points, and their mixed costs with some of the old ones."""
        alpha = self.scale * (to_numpy(self.result.alpha) + ties)
        groups, factored = self.result.groups, factored_metric(self.metric, self.result.p)
        assert groups is not None
        ones = np.ones(len(new))
        if factored is not None:
            # Points that have no image are named.
            map_points(factored, new, others, groups, (ones, weights), ("X_new", "points"))
        for part in blocks(len(new), 24 * len(others), AT_ONCE):
            mixed = self._costs(new[part], ones[part], others, weights).mix(alpha)
            if not np.isfinite(mixed).all():
                raise InputError("metric: is infinite or NaN between new points and those known")
            yield part, mixed

    def by_potentials(self, new: np.ndarray) -> np.ndarray:
        """The mean of the target points under the row that the potentials give a new point."""
        some, g = self.b > 0.0, to_numpy(self.result.potentials[1]).astype(float)
        Y, b, g = self.Y[some], self.b[some], g[some]
        images = np.empty_like(new)
        for part, mixed in self._mixed(new, Y, b):
            scores = (g - mixed) / self.result.eps + np.log(b)
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            images[part] = (shares / shares.sum(axis=1, keepdims=True)) @ Y
        return images

    def by_nearest(self, new: np.ndarray) -> np.ndarray:
        """The way of the nearest source point that moves."""
        mass = to_numpy(self.result.plan.sum(axis=1))
        some = np.flatnonzero(mass > 0.0)
        X = self.X[some]
        way = (self.result.plan @ self.Y)[some] / mass[some, None] - X
        images = np.empty_like(new)
        # Weights are known to nine digits or so: where points are as near by them, all decide.
        for part, mixed in self._mixed(new, X, mass[some], 1e-9):
            images[part] = new[part] + way[mixed.argmin(axis=1)]
        return images
