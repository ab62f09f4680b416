"""Costs of any metric: powers of distances, computed when they are needed and never stacked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import Any

import numpy as np

from frot._base.arrays import UNIT, Array, Home, blocks, summation, unit_of
from frot._base.errors import InputError, brief
from frot.costs.metrics import Mapped
from frot.costs.protocol import Costs, Line, Rounding
from frot.groups.groups import Groups
from frot.plans.plan import Plan, is_sparse

# Metrics by name that are norms of differences, and the p of each norm.
NORMS = {"euclidean": 2.0, "cityblock": 1.0, "chebyshev": float("inf")}
# On one feature all of these are |x - y|.
ONE_FEATURE_ABSOLUTE = frozenset({*NORMS, "minkowski"})


def norms(x: Array, y: Array, p: float) -> Array:
    """Return distances of tensors, (..., n, m), whose derivative is zero where points coincide.

    Examples
    --------
    >>> import torch
    >>> norms(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]), 2.0)
    tensor([[5.]])
    """
    # As products of matrices they would lose the digits of small ones.
    torch = Home.of(x).xp
    return torch.cdist(x, y, p=p, compute_mode="donot_use_mm_for_euclid_dist")


@dataclass(frozen=True, eq=False)
class Distances(Costs):
    r"""Costs :math:`[C_l]_{ij} = d(x_i^{(l)}, y_j^{(l)})^p`, one chunk of one group at a time.

    Distances of the metrics in `NORMS` are right to some units of themselves. Others are not
    assumed to be positive, and their digits are taken as exact, unless `error` says how far they
    are off.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d)
        NumPy's, or PyTorch's, whose metrics are `NORMS`.
    groups : Groups
    metric : str or callable
        A name that `scipy.spatial.distance.cdist` takes, or ``f(u, v) -> float``.
    p : float
        The power.
    chunk_bytes : int
        Size of the block of one cost matrix that is held at a time; larger than the cache, since
        the metric itself is the work.
    moments : tuple of dict, optional
        What "seuclidean" and "mahalanobis" need of all points of each group; computed if not given.
    error : arrays of shape (L, n) and (L, m), optional
        How far entry (i, j) may be from the cost it stands for: what its two points add.
    scale, shift : arrays of shape (L,), optional
        Costs are ``scale_l * (C_l - shift_l)``.

    Examples
    --------
    >>> X, Y = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])
    >>> Distances(X, Y, Groups.all(2), "euclidean").mix(np.array([1.0]))
    array([[5.]])
    """

    X: Array
    Y: Array
    groups: Groups
    metric: str | Callable[[np.ndarray, np.ndarray], float] = "euclidean"
    p: float = 1.0
    chunk_bytes: int = 64_000_000
    moments: tuple[dict[str, np.ndarray], ...] | None = None
    error: tuple[np.ndarray, np.ndarray] | None = None
    scale: np.ndarray | None = None
    shift: np.ndarray | None = None

    @classmethod
    def of_mapped(cls, mapped: Mapped, names: tuple[str, ...], p: float) -> Distances:
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
        >>> costs = Distances.of_mapped(mapped, ("all",), 0.5)
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
            moments = tuple(self._moments(features) for features in self.groups.indices)
            object.__setattr__(self, "moments", moments)

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

    @cached_property
    def home(self) -> Home:  # type: ignore[override]
        """Where the points are."""
        return Home.of(self.X)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return (len(self.groups), len(self.X), len(self.Y))

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """Whether these are powers of norms."""
        return self.metric in NORMS and self.shift is None

    @cached_property
    def _features(self) -> list[Array]:
        """The features of every group, as indices where the points are."""
        parts = self.groups.indices
        return list(parts) if self.home.library == "numpy" else list(map(self.home.indices, parts))

    def block(self, group: int, rows: slice = slice(None)) -> Array:
        """Return some rows of one group's cost matrix."""
        features = self._features[group]
        assert self.moments is not None
        X, Y = self.X[rows][:, features], self.Y[:, features]
        if self.home.library == "numpy":
            costs = _distances(X, Y, self.metric, **self.moments[group])
        else:
            costs = norms(X, Y, NORMS[str(self.metric)])
        costs = costs if self.p == 1.0 else costs**self.p
        if self.shift is not None:
            costs -= self.shift[group]
        return costs if self.scale is None else self.scale[group] * costs

    def _row_blocks(self) -> list[slice]:
        return blocks(self.shape[1], 8 * self.shape[2], self.chunk_bytes)

    def matrices(self) -> Iterator[tuple[int, slice, Array]]:
        """Yield chunks of one group after the other."""
        for group in range(self.shape[0]):
            for part in self._row_blocks():
                yield group, part, self.block(group, part)

    def mix(self, alpha: Array) -> Array:
        """Return sum_l alpha_l C_l, one block of one group at a time."""
        home = self.home
        mixed = home.xp.zeros(self.shape[1:], dtype=home.dtype, device=home.device)
        for group, weight in enumerate(alpha.tolist()):
            for part in self._row_blocks() if weight else ():
                mixed[part] += weight * self.block(group, part)
        return mixed

    def inner(self, plan: Plan | Array) -> Array:
        """Return the sums of plan times cost, of a sparse one along its arcs."""
        if isinstance(plan, Plan):
            if is_sparse(plan):
                rows, cols, mass = plan.arcs()
                return self.at(rows, cols) @ self.home.bring(mass)
            plan = self.home.bring(plan.dense())
        return self._dense_inner(plan)

    def at(self, rows: np.ndarray, cols: np.ndarray) -> Array:
        """Return the costs at the arcs."""
        return self.entries(rows, cols, np.arange(self.shape[0]))

    def entries(self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray) -> Array:
        """Return the costs of some groups at the arcs, from the chunks that these are in."""
        home = self.home
        costs = home.xp.empty((len(groups), len(rows)), dtype=home.dtype, device=home.device)
        for part in self._row_blocks():
            inside = np.flatnonzero((rows >= part.start) & (rows < part.stop))
            if len(inside):
                for k, group in enumerate(groups):
                    block = self.block(group, part)
                    costs[k, inside] = block[rows[inside] - part.start, cols[inside]]
        return costs

    def take(self, rows: np.ndarray, cols: np.ndarray) -> Distances:
        """Return the costs between some of the points."""
        error = self.error and (self.error[0][:, rows], self.error[1][:, cols])
        return replace(self, X=self.X[rows], Y=self.Y[cols], error=error)

    def to(self, home: Home) -> Costs:
        """Return the costs in another precision; in single of points around the origin."""
        if home.library != self.home.library or home.library == "numpy":
            return super().to(home)
        if home.dtype == self.home.dtype:
            return self
        xp, centre = home.xp, 0.0
        if home.dtype == xp.float32:
            centre = 0.5 * (xp.mean(self.X, axis=0) + xp.mean(self.Y, axis=0))
        X, Y = (home.bring(points - centre) for points in (self.X, self.Y))
        return replace(self, X=X, Y=Y)

    def rescaled(self, scale: np.ndarray, shift: np.ndarray | None = None) -> Distances:
        """Return the costs ``scale_l * (C_l - shift_l)``, once."""
        error = self.error and (scale[:, None] * self.error[0], scale[:, None] * self.error[1])
        return replace(self, scale=scale, shift=shift, error=error)

    @property
    def relative(self) -> float:
        """How far a norm may be off, as a share of itself: a unit for every feature."""
        size = float(self.groups.sizes.max())
        return self.p * (8.0 + size) * unit_of(self.home) if self.nonnegative else 0.0

    def rounding(self, alpha: Array) -> Rounding:
        """Bound the rounding of sums over groups, and what entries are off by."""
        relative, rows, cols = super().rounding(alpha)
        if self.shift is not None:
            # A difference may be small against its parts, and so may its relative accuracy.
            rows = rows + 4.0 * UNIT * float(alpha @ (self.peaks + self._shifts))
        if self.error is not None:
            rows, cols = rows + alpha @ self.error[0], cols + alpha @ self.error[1]
        return Rounding(relative + self.relative, rows, cols)

    def doubt(self, phi: Array, u: Array, v: Array, entries: int | None = None) -> Array:
        """Bound the error of sums over the plan, and of the entries themselves."""
        bound = super().doubt(phi, u, v, entries) + self.relative * abs(phi)
        if self.shift is not None:
            bound = bound + 4.0 * UNIT * (self.peaks + self._shifts) * u.sum()
        if self.error is not None:
            bound = bound + self.error[0] @ u + self.error[1] @ v
        return bound

    @property
    def _shifts(self) -> np.ndarray | float:
        """What the subtraction was of, (L,)."""
        if self.shift is None:
            return 0.0
        return np.abs(self.shift) * (1.0 if self.scale is None else self.scale)


def _distances(X: np.ndarray, Y: np.ndarray, metric: Any, **more: Any) -> np.ndarray:
    """Return SciPy's distances; a function of the user's may raise anything."""
    # Imported here: it loads more of SciPy than most calls need.
    from scipy.spatial.distance import cdist

    try:
        return cdist(X, Y, metric, **more)
    except Exception as error:
        if not callable(metric) or isinstance(error, InputError | MemoryError):
            raise
        reason = f"{type(error).__name__}: {brief(error, 200)}"
        raise InputError(f"metric: could not be computed ({reason})") from error


@dataclass(frozen=True, eq=False)
class Powers(Costs):
    r"""Costs :math:`[C_l]_{ij} = s_l |x_{il} - y_{jl}|^p`, one feature per group.

    A mix of them is one Minkowski distance, and of one feature transport is sorting.

    Examples
    --------
    >>> costs = Powers(np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]]), p=1.0)
    >>> costs.mix(np.array([0.5, 0.5]))
    array([[1.5]])
    """

    X: np.ndarray
    Y: np.ndarray
    p: float = 1.0
    scale: np.ndarray | None = None
    # Powers of absolute values are not negative.
    nonnegative = True

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return (self.X.shape[1], len(self.X), len(self.Y))

    def _power(self, gaps: np.ndarray) -> np.ndarray:
        """Return what gaps cost, in their place: (..., L)."""
        np.abs(gaps, out=gaps)
        costs = gaps if self.p == 1.0 else np.power(gaps, self.p, out=gaps)
        return costs if self.scale is None else np.multiply(costs, self.scale, out=costs)

    @property
    def line(self) -> Line | None:  # type: ignore[override]
        """The points, where there is one feature and the power is convex."""
        if self.shape[0] > 1 or self.p < 1.0 or self.scale is not None:
            return None
        return Line(self.X[:, 0], self.Y[:, 0], self.p)

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the weighted sum of the costs as one distance matrix."""
        on = np.flatnonzero(alpha)
        X, Y, weights = self.X[:, on], self.Y[:, on], alpha[on]
        if self.scale is not None:
            weights = weights * self.scale[on]
        # Differences of points as they are have all their digits, wherever other points lie.
        if self.p == 1.0:
            return _distances(X, Y, "cityblock", w=weights)
        if self.p == 2.0:
            return _distances(X, Y, "sqeuclidean", w=weights)
        return _distances(X, Y, "minkowski", p=self.p, w=weights) ** self.p

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Return the costs at the arcs."""
        return np.ascontiguousarray(self._power(self.X[rows] - self.Y[cols]).T)

    def entries(self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return the costs of some groups at the arcs."""
        scale = None if self.scale is None else self.scale[groups]
        return Powers(self.X[:, groups], self.Y[:, groups], self.p, scale).at(rows, cols)

    def product(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return phi of u v^T: by sorting for whole powers, else a row of points at a time."""
        # In 20 features 100 by 100 points take .6 ms by cumulated moments and .5 ms pair by pair,
        # 1,000 by 1,000 points 2.9 ms and 47.
        if self.p in (1.0, 2.0, 3.0, 4.0) and len(u) * len(v) > 10_000:
            centre = (self.X.sum(axis=0) + self.Y.sum(axis=0)) / (len(self.X) + len(self.Y))
            X, Y, columns = self.X - centre, self.Y - centre, range(self.shape[0])
            means = [_mean_power(X[:, k], Y[:, k], u, v, int(self.p)) for k in columns]
            return np.array(means) * (1.0 if self.scale is None else self.scale)
        total = np.zeros(self.shape[0])
        for weight, x in zip(u, self.X, strict=True):
            total += weight * (v @ self._power(self.Y - x))
        return total

    @cached_property
    def peaks(self) -> np.ndarray:
        """The largest cost of every group: between the ends of the two sides."""
        ahead = self.X.max(axis=0) - self.Y.min(axis=0)
        behind = self.Y.max(axis=0) - self.X.min(axis=0)
        return self._power(np.maximum(ahead, behind))

    def take(self, rows: np.ndarray, cols: np.ndarray) -> Powers:
        """Return the costs between some of the points."""
        return replace(self, X=self.X[rows], Y=self.Y[cols])

    def rescaled(self, scale: np.ndarray, shift: np.ndarray | None = None) -> Costs:
        """Return the costs ``scale_l * (C_l - shift_l)``."""
        if shift is not None and bool(shift.any()):
            return super().rescaled(scale, shift)
        return replace(self, scale=scale if self.scale is None else scale * self.scale)

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the error of a sum of powers of differences, which is relative."""
        return Rounding((np.count_nonzero(alpha) + 8.0 * (self.p + 1.0)) * UNIT)

    def doubt(self, phi: Array, u: Array, v: Array, entries: int | None = None) -> np.ndarray:
        """Bound the error of sums over the plan of powers of differences."""
        count = entries or len(self.X) * len(self.Y)
        return (summation(count) + 8.0 * (self.p + 1.0) * UNIT) * phi


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
