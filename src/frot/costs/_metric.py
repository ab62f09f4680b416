"""Costs of any metric: powers of distances, computed when they are needed and never stacked.

Any metric SciPy knows, or a callable, in chunks; of |x - y|^p with one feature per group a mix is
one Minkowski distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import Any

import numpy as np

from frot._base.errors import InputError, brief
from frot.costs.metrics import Mapped
from frot.costs.protocol import UNIT, Costs, Line, Rounding, blocks, summation
from frot.groups.groups import Groups
from frot.plans.plan import Plan, is_sparse

# A chunk of one group's costs; larger than the cache, since the metric itself is the work.
CHUNK_BYTES = 64_000_000
# Beyond so many pairs of points means of these powers come from cumulated moments.
SORT_FROM = 10_000
WHOLE_POWERS = frozenset({1.0, 2.0, 3.0, 4.0})


@dataclass(frozen=True, eq=False)
class MetricCosts(Costs):
    r"""Costs :math:`[C_l]_{ij} = d(x_i^{(l)}, y_j^{(l)})^p` recomputed whenever they are needed.

    These costs are not assumed to be positive, and their digits are taken as exact, unless `error`
    says how far they are off.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d)
    groups : Groups
    metric : str or callable
        A name that `scipy.spatial.distance.cdist` takes, or ``f(u, v) -> float``.
    p : float
        The power.
    chunk_bytes : int
        Size of the block of one cost matrix that is held at a time.
    moments : tuple of dict, optional
        What "seuclidean" and "mahalanobis" need of all points of each group; computed if not given.
    error : arrays of shape (L, n) and (L, m), optional
        How far entry (i, j) may be from the cost it stands for: what its two points add.

    Examples
    --------
    >>> X, Y = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])
    >>> MetricCosts(X, Y, Groups.all(2), "euclidean").mix(np.array([1.0]))
    array([[5.]])
    """

    X: np.ndarray
    Y: np.ndarray
    groups: Groups
    metric: str | Callable[[np.ndarray, np.ndarray], float] = "euclidean"
    p: float = 1.0
    chunk_bytes: int = CHUNK_BYTES
    moments: tuple[dict[str, np.ndarray], ...] | None = None
    error: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of_mapped(cls, mapped: Mapped, names: tuple[str, ...], p: float) -> MetricCosts:
        r"""Powers of a cost that is a squared distance of mapped points.

        Coordinates are off by some units e of themselves, and so is the distance
        :math:`\delta` of two points, by e times their lengths: next to nothing, but all of it where
        they should be the same. Of the power that is

        .. math::
            |(\delta + e)^{2p} - \delta^{2p}| \le
            \begin{cases} e^{2p} & 2 p \le 1, \\ 2 p (\delta + e)^{2p - 1} e & 2 p > 1. \end{cases}

        Examples
        --------
        >>> from frot.costs.metrics import map_points
        >>> points = np.array([[1.0, 2.0], [2.0, 4.0]])
        >>> mapped = map_points("cosine", points, points, Groups.all(2))
        >>> costs = MetricCosts.of_mapped(mapped, ("all",), 0.5)
        >>> bool(costs.mix(np.ones(1)).max() < 1e-15)
        True
        """
        groups = mapped.groups(names)
        # All columns count alike, by the metric's scale.
        root = float(np.sqrt(mapped.membership.data[0]))
        X, Y = mapped.X * root, mapped.Y * root
        costs = cls(X, Y, groups, "sqeuclidean", p)
        lengths = [
            np.sqrt(np.add.reduceat(points[:, groups.flat] ** 2, groups.offsets[:-1], axis=1)).T
            for points in (X, Y)
        ]
        most = lengths[0].max(axis=1) + lengths[1].max(axis=1)
        # The root of the share, the product with it, and what is lost in differences and sums.
        units = (mapped.error + 3.0 + 0.5 * float(groups.sizes.max())) * UNIT
        power = 2.0 * p
        steep = power * (1.01 * most[:, None]) ** (power - 1.0) if power > 1.0 else 1.0
        rows, cols = (
            steep * (units * length) ** min(power, 1.0) + 4.0 * UNIT * most[:, None] ** power
            for length in lengths
        )
        return replace(costs, error=(rows, cols))

    def __post_init__(self) -> None:
        if self.moments is None:
            found = tuple(self._moments(features) for features in self.groups.indices)
            object.__setattr__(self, "moments", found)

    def _moments(self, features: np.ndarray) -> dict[str, np.ndarray]:
        """Variances that SciPy would otherwise take from whatever block it is shown."""
        if self.metric not in ("seuclidean", "mahalanobis"):
            return {}
        points = np.concatenate([self.X[:, features], self.Y[:, features]])
        if self.metric == "seuclidean":
            return {"V": points.var(axis=0, ddof=1)}
        try:
            return {"VI": np.linalg.inv(np.atleast_2d(np.cov(points.T))).T.copy()}
        except np.linalg.LinAlgError:
            raise InputError(
                "metric: 'mahalanobis' needs a covariance that can be inverted in every group; "
                "drop features that are constant or follow from others, or use 'seuclidean'"
            ) from None

    @property
    def shape(self) -> tuple[int, int, int]:
        return (len(self.groups), len(self.X), len(self.Y))

    def block(self, group: int, rows: Any = slice(None)) -> np.ndarray:
        """Return some rows of one group's cost matrix."""
        features = self.groups.indices[group]
        assert self.moments is not None
        X, Y = self.X[rows][:, features], self.Y[:, features]
        distances = _distances(X, Y, self.metric, **self.moments[group])
        return distances if self.p == 1.0 else distances**self.p

    def _row_blocks(self) -> list[slice]:
        return blocks(self.shape[1], 8 * self.shape[2], self.chunk_bytes)

    def _over_blocks(
        self, fold: Callable[..., Any], number: Callable[[slice, np.ndarray], Any]
    ) -> np.ndarray:
        """Return one number of every group, (L,): those of its blocks of rows, folded."""
        parts = self._row_blocks()
        return np.array(
            [
                fold(number(part, self.block(group, part)) for part in parts)
                for group in range(self.shape[0])
            ]
        )

    def _entries(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield one group's costs at the arcs at a time."""
        for group in groups.tolist():
            found = np.empty(len(rows))
            for part in self._row_blocks():
                inside = np.flatnonzero((rows >= part.start) & (rows < part.stop))
                if len(inside):
                    block = self.block(group, part)
                    found[inside] = block[rows[inside] - part.start, cols[inside]]
            yield found

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return sum_l alpha_l C_l, one block of one group at a time."""
        mixed = np.zeros(self.shape[1:])
        for group in np.flatnonzero(alpha).tolist():
            for part in self._row_blocks():
                mixed[part] += alpha[group] * self.block(group, part)
        return mixed

    def inner(self, plan: Plan) -> np.ndarray:
        if is_sparse(plan):
            rows, cols, mass = plan.arcs()
            everything = np.arange(self.shape[0])
            return np.array([mass @ entries for entries in self._entries(rows, cols, everything)])
        dense = plan.dense()
        return self._over_blocks(sum, lambda part, block: np.vdot(dense[part], block))

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        wanted = np.arange(self.shape[0]) if groups is None else np.asarray(groups)
        return np.stack(list(self._entries(np.asarray(rows), np.asarray(cols), wanted)))

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._over_blocks(sum, lambda part, block: a[part] @ (block @ b))

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._over_blocks(sum, lambda part, block: a[part] @ (np.abs(block) @ b))

    def take(self, rows: np.ndarray, cols: np.ndarray) -> MetricCosts:
        error = self.error and (self.error[0][:, rows], self.error[1][:, cols])
        return replace(self, X=self.X[rows], Y=self.Y[cols], error=error)

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the rounding of sums over groups, and what entries are off by."""
        relative, rows, cols = super().rounding(alpha)
        if self.error is None:
            return Rounding(relative, rows, cols)
        return Rounding(relative, rows + alpha @ self.error[0], cols + alpha @ self.error[1])

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the error of sums over the plan, and of the entries themselves."""
        found = super().doubt(phi, plan)
        if self.error is None:
            return found
        return found + self.error[0] @ plan.sum(axis=1) + self.error[1] @ plan.sum(axis=0)

    @cached_property
    def peaks(self) -> np.ndarray:
        return self._over_blocks(max, lambda _, block: float(np.abs(block).max()))

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Distances are not negative up to rounding; those of a user's function are computed."""
        if not callable(self.metric):
            return np.full(self.shape[0], -8.0 * UNIT)
        return self._over_blocks(min, lambda _, block: float(block.min()))


def _distances(X: np.ndarray, Y: np.ndarray, metric: Any, **more: Any) -> np.ndarray:
    """Return SciPy's distances; a function of the user's may raise anything."""
    # Loads trees and hulls too: only those who need a distance pay for it.
    from scipy.spatial.distance import cdist

    try:
        return cdist(X, Y, metric, **more)
    except Exception as error:
        if not callable(metric) or isinstance(error, InputError | MemoryError):
            raise
        reason = f"{type(error).__name__}: {brief(error, 200)}"
        raise InputError(f"metric: could not be computed ({reason})") from error


@dataclass(frozen=True, eq=False)
class SeparableCosts(Costs):
    r"""Costs :math:`[C_l]_{ij} = |x_{il} - y_{jl}|^p`, one feature per group.

    .. math:: M_\alpha = \| \alpha^{1/p} \circ (x_i - y_j) \|_p^p

    Examples
    --------
    >>> costs = SeparableCosts(np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]]), p=1.0)
    >>> costs.mix(np.array([0.5, 0.5]))
    array([[1.5]])
    """

    X: np.ndarray
    Y: np.ndarray
    p: float = 1.0

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.X.shape[1], len(self.X), len(self.Y))

    @property
    def nonnegative(self) -> bool:
        """Powers of absolute values are not negative."""
        return True

    def _power(self, gaps: np.ndarray) -> np.ndarray:
        np.abs(gaps, out=gaps)
        return gaps if self.p == 1.0 else np.power(gaps, self.p, out=gaps)

    @property
    def line(self) -> Line | None:
        """The points, where there is one feature and the power is convex."""
        if self.shape[0] > 1 or self.p < 1.0:
            return None
        return Line(self.X[:, 0], self.Y[:, 0], self.p)

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the weighted sum of the costs as one distance matrix."""
        on = np.flatnonzero(alpha)
        X, Y, weights = self.X[:, on], self.Y[:, on], alpha[on]
        # Differences of points as they are have all their digits, wherever other points lie.
        if self.p == 1.0:
            return _distances(X, Y, "cityblock", w=weights)
        if self.p == 2.0:
            return _distances(X, Y, "sqeuclidean", w=weights)
        return _distances(X, Y, "minkowski", p=self.p, w=weights) ** self.p

    def inner(self, plan: Plan) -> np.ndarray:
        """Return phi from the arcs of the plan."""
        rows, cols, mass = plan.arcs()
        total = np.zeros(self.shape[0])
        for part in blocks(len(mass), 16 * self.shape[0]):
            total += mass[part] @ self._power(self.X[rows[part]] - self.Y[cols[part]])
        return total

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        X, Y = (self.X, self.Y) if groups is None else (self.X[:, groups], self.Y[:, groups])
        return np.ascontiguousarray(self._power(X[rows] - Y[cols]).T)

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of a b^T: by sorting for whole powers, else a row of points at a time."""
        if self.p in WHOLE_POWERS and len(a) * len(b) > SORT_FROM:
            X, Y = self.X - self._centre, self.Y - self._centre
            columns = range(self.shape[0])
            return np.array([_mean_power(X[:, k], Y[:, k], a, b, int(self.p)) for k in columns])
        total = np.zeros(self.shape[0])
        for weight, x in zip(a, self.X, strict=True):
            total += weight * (b @ self._power(self.Y - x))
        return total

    @cached_property
    def peaks(self) -> np.ndarray:
        """The largest cost of every group: between the ends of the two sides."""
        ahead = self.X.max(axis=0) - self.Y.min(axis=0)
        behind = self.Y.max(axis=0) - self.X.min(axis=0)
        return np.maximum(ahead, behind) ** self.p

    def take(self, rows: np.ndarray, cols: np.ndarray) -> SeparableCosts:
        return SeparableCosts(self.X[rows], self.Y[cols], self.p)

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        r"""Return :math:`|\bar x - \bar y|^p` for p >= 1 (Jensen), and zero otherwise."""
        if self.p < 1.0:
            return np.zeros(self.shape[0])
        gaps = np.abs(a @ self.X - b @ self.Y)
        gaps -= (len(a) + len(b) + 4.0) * UNIT * (a @ np.abs(self.X) + b @ np.abs(self.Y))
        return np.maximum(gaps, 0.0) ** self.p * (1.0 - 8.0 * self.p * UNIT)

    def least_potentials(
        self, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Return tangents: :math:`|t|^p \ge |\delta|^p + p |\delta|^{p-1} s (t - \delta)`."""
        if self.p < 1.0:
            return np.zeros(len(a)), np.zeros(len(b))
        x, y = a @ self.X, b @ self.Y
        gap = np.abs(x - y)
        slope = alpha * self.p * gap ** (self.p - 1.0) * np.sign(x - y)
        return (self.X - x) @ slope + float(alpha @ gap**self.p), (y - self.Y) @ slope

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the error of a sum of powers of differences, which is relative."""
        return Rounding((np.count_nonzero(alpha) + 8.0 * self.p) * UNIT)

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the error of sums over the plan of powers of differences."""
        return (summation(plan) + 8.0 * self.p * UNIT) * phi

    @cached_property
    def _centre(self) -> np.ndarray:
        return (self.X.sum(axis=0) + self.Y.sum(axis=0)) / (len(self.X) + len(self.Y))


def _mean_power(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray, p: int) -> float:
    r"""Return :math:`\sum_{ij} a_i b_j |x_i - y_j|^p` for a whole p, in O(n log n).

    On either side of :math:`x_i` the power is a polynomial, whose moments of y are cumulated.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> _mean_power(np.array([0.0, 1.0]), np.array([0.0, 3.0]), half, half, p=1)
    1.5
    """
    order = np.argsort(y)
    y, b = y[order], b[order]
    below = np.searchsorted(y, x)
    total = 0.0
    for k in range(p + 1):
        moments = np.append(0.0, np.cumsum(b * (-y) ** k))
        # (x - y)^p below x, and (-1)^p times it above.
        sides = moments[below] + (-1.0) ** p * (moments[-1] - moments[below])
        total += comb(p, k) * float(a @ (x ** (p - k) * sides))
    # Where all points are the same this is what rounding leaves.
    reach = float(max(np.abs(x).max(), np.abs(y).max())) ** p
    return total if total > (len(x) + len(y)) * UNIT * reach else 0.0
