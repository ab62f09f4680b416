"""`Points`: costs that factor over features, squared distances of which no matrix is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from frot._base.arrays import Array, Home, blocks, summation, to_numpy, unit_of
from frot.costs.metrics import FactoredMetric, map_points
from frot.costs.protocol import Costs, Rounding
from frot.groups.groups import Groups
from frot.plans.plan import Plan, n_entries

# Size of the cache of a core that blocks are made for.
CACHE_BYTES = 1_000_000
# Points of up to so many bytes are worked on whole: a centred copy takes no more than the
# temporaries of many points do.
WHOLE_BYTES = 4_000_000
# Plans of up to this many entries times features are costed by differences, which lose no digits.
PRECISE_UP_TO = 1_000_000


def is_identity(membership: Any) -> bool:
    """Whether every group pays for the one feature of its own number.

    Examples
    --------
    >>> is_identity(Groups.each(2).membership()), is_identity(Groups.all(2).membership())
    (True, False)
    """
    rows, columns = membership.shape
    index = np.arange(rows)
    ones = rows == columns == len(membership.indices) and np.array_equal(membership.indices, index)
    ends = np.array_equal(membership.indptr[:-1], index)
    return ones and ends and bool((membership.data == 1.0).all())


@dataclass(frozen=True, eq=False)
class Points(Costs):
    r"""Squared Euclidean costs of points, factored.

    .. math:: M_\alpha = (X^2 w) 1^\top + 1 (Y^2 w)^\top - 2 (X \circ w) Y^\top,
        \qquad w = W^\top \alpha

    Parameters
    ----------
    x, y : arrays of shape (..., n, d) and (..., m, d)
        The points. On the host they are kept as they were given, and centred a few features at a
        time where there are many: a second copy of them would be most of the memory that a problem
        of thousands of genes takes.
    membership : array or scipy.sparse array of shape (L, d), optional
        W, what a group pays for a feature; None is the identity.
    error : float
        What centred coordinates may be off by, in units in the last place of each: half a unit
        where they were centred, more where they were computed.
    centre : array of shape (d,), optional
        What is taken off points that are exact, before they are multiplied.
    given : optional
        The precision that the points were given in; their own if left out.

    Examples
    --------
    >>> X, Y = np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]])
    >>> costs = Points.of(X, Y, Groups.each(2))
    >>> costs.mix(np.array([0.5, 0.5]))
    array([[2.5]])
    """

    x: Array
    y: Array
    membership: Any = None
    error: float = 0.5
    centre: Array = None
    given: Any = None  # type: ignore[assignment]
    # Squares are not.
    nonnegative = True
    # Weights of features, and the norms of both sides in the last mix: one tuple, which other
    # threads may replace but never change.
    _last_norms: list[tuple[Array, Array, Array]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.given is None:
            object.__setattr__(self, "given", self.x.dtype)

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        Y: np.ndarray,
        groups: Groups,
        metric: str | FactoredMetric = "sqeuclidean",
        weights: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Points:
        """Costs of one problem on the host by a metric of the registry, `frot.costs.METRICS`.

        Points that are not mapped are centred, by their `weights` a and b, so that offsets cost no
        digits: a point far away that weighs little must not move the others from the origin.
        """
        x, y, membership, error = map_points(metric, X, Y, groups, weights)
        pays = None if is_identity(membership) else membership
        if error > 0.0:
            return cls(x, y, pays, error)
        a, b = weights or (np.full(len(x), 1.0 / len(x)), np.full(len(y), 1.0 / len(y)))
        return cls(x, y, pays, centre=0.5 * (a @ x + b @ y))

    @cached_property
    def home(self) -> Home:  # type: ignore[override]
        """Where the points live."""
        return Home.of(self.x)

    @cached_property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """(..., L, n, m)."""
        *batch, n, d = self.x.shape
        count = d if self.membership is None else self.membership.shape[0]
        return (*batch, count, n, self.y.shape[-2])

    @property
    def _alone(self) -> bool:
        """Whether this is one problem on the host, whose weights and plans may be sparse."""
        return self.x.ndim == 2 and self.home.library == "numpy"

    @cached_property
    def X(self) -> Array:  # noqa: N802
        """The centred points of the first side, (..., n, d)."""
        return self.x if self.centre is None else self.x - self.centre

    @cached_property
    def Y(self) -> Array:  # noqa: N802
        """Those of the second side, (..., m, d)."""
        return self.y if self.centre is None else self.y - self.centre

    def _pieces(self, columns: Any = None, room: int = 0) -> Iterator[tuple[Any, Array, Array]]:
        """Yield features, as an index, and the centred points of both sides in these, to be read.

        All features, or some `columns`: whole where a problem has few points, or on a device, and
        otherwise in blocks of an eighth of the points' bytes, or of `room` if that is more.
        """
        *batch, _, d = self.x.shape
        size = (self.x.nbytes + self.y.nbytes) // prod(batch)
        if size <= WHOLE_BYTES or not self.home.on_host:
            some = slice(None) if columns is None else columns
            yield some, self.X[..., some], self.Y[..., some]
            return
        budget = max(size // 8, CACHE_BYTES, room)
        parts = blocks(d if columns is None else len(columns), size // d, budget)
        # One piece of memory for all blocks: several would go back to the system after each.
        width = parts[0].stop if parts else 0
        scratch = np.empty((len(self.x) + len(self.y), width)) if self._alone else None
        for part in parts:
            some = part if columns is None else columns[part]
            X, Y = self.x[..., some], self.y[..., some]
            if self.centre is not None:
                centre = self.centre[some]
                if scratch is None:
                    X, Y = X - centre, Y - centre
                else:
                    both = scratch[:, : len(centre)]
                    X = np.subtract(X, centre, out=both[: len(X)])
                    Y = np.subtract(Y, centre, out=both[len(X) :])
            yield some, X, Y

    def _in_use(self, weights: Array) -> Any:
        """Return the features that have weight, None if that is all of them."""
        if not self._alone or weights.all():
            return None
        return np.flatnonzero(weights)

    def feature_weights(self, alpha: Array) -> Array:
        """Return w, (..., d)."""
        if sparse.issparse(self.membership):
            return (self.membership.T @ alpha.T).T
        return alpha if self.membership is None else alpha @ self.membership

    def pool(self, per_feature: Array) -> Array:
        """Return what groups pay, (..., L), for what features cost, (..., d)."""
        if sparse.issparse(self.membership):
            return (self.membership @ per_feature.T).T
        return per_feature if self.membership is None else per_feature @ self.membership.T

    def mix(self, alpha: Array) -> Array:
        """Return the weighted squared distances, (..., n, m), of the features that have weight."""
        xp, w, (*batch, _, n, m) = self.home.xp, self.feature_weights(alpha), self.shape
        mixed, x_norms, y_norms = None, xp.zeros(()), xp.zeros(())
        # Temporaries may be as large as what comes out: each block takes a pass over that.
        for columns, X, Y in self._pieces(self._in_use(w), room=8 * n * m):
            v = w[..., None, columns]
            scaled = X * v
            x_norms = x_norms + xp.sum(scaled * X, axis=-1)
            y_norms = y_norms + ((Y * Y) @ w[..., columns, None])[..., 0]
            scaled *= -2.0
            cross = scaled @ xp.matrix_transpose(Y)
            mixed = cross if mixed is None else xp.add(mixed, cross, out=mixed)
        if mixed is None:
            return xp.zeros((*batch, n, m), dtype=self.home.dtype, device=self.home.device)
        if self._alone:
            # `rounding` is asked for after every mix: the norms are kept for it.
            self._last_norms[:] = [(w.copy(), x_norms, y_norms)]
        # Rows that stay in the cache while norms are added and rounding is cut off at zero.
        large = self.home.on_host and mixed.nbytes > WHOLE_BYTES
        budget = CACHE_BYTES if large else mixed.nbytes
        for part in blocks(n, 8 * m * prod(batch), budget):
            rows = mixed[..., part, :]
            rows += x_norms[..., part, None]
            rows += y_norms[..., None, :]
            rows *= rows > 0.0
        return mixed

    @cached_property
    def _squared(self) -> tuple[Array, Array] | None:
        """The squares of the coordinates of few points, which are asked for them often."""
        few = prod(self.x.shape) + prod(self.y.shape) <= 100_000
        return (self.X * self.X, self.Y * self.Y) if few else None

    def norms(self, weights: Array) -> tuple[Array, Array]:
        """Return squared norms of the points, (..., n) and (..., m), for weights (..., d)."""
        if self._squared is not None:
            X, Y = self._squared
            return (X @ weights[..., :, None])[..., 0], (Y @ weights[..., :, None])[..., 0]
        for known, x, y in self._last_norms:
            if np.array_equal(known, weights):
                return x, y
        xp, (*batch, _, n, m), home = self.home.xp, self.shape, self.home
        x, y = (xp.zeros((*batch, k), dtype=home.dtype, device=home.device) for k in (n, m))
        for columns, X, Y in self._pieces(self._in_use(weights)):
            w = weights[..., columns, None]
            x, y = x + ((X * X) @ w)[..., 0], y + ((Y * Y) @ w)[..., 0]
        return x, y

    def _by_feature(self, number: Any) -> Array:
        """Return a number of every feature, (..., d), of the centred points of both sides."""
        *batch, _, d = self.x.shape
        total = self.home.xp.empty((*batch, d), dtype=self.home.dtype, device=self.home.device)
        for columns, X, Y in self._pieces():
            total[..., columns] = number(X, Y)
        return total

    def inner(self, plan: Plan | Array) -> Array:
        """Return phi from differences on few arcs, else from X, Y and plan @ Y."""
        if not isinstance(plan, Plan):
            xp = self.home.xp
            rows, cols = xp.sum(plan, axis=-1), xp.sum(plan, axis=-2)
        elif not self._alone:
            return super().inner(plan)
        elif self._by_differences(n_entries(plan)):
            rows, cols, mass = plan.arcs()
            total, d = 0.0, self.x.shape[-1]
            # Blocks of arcs, so that points are read whole and differences stay in the cache.
            for part in blocks(len(mass), 16 * d):
                total = total + mass[part] @ self._square_gaps(rows[part], cols[part])
            return self.pool(total)
        else:
            rows, cols = plan.sum(axis=1), plan.sum(axis=0)
        return self.from_moments(rows, cols, self._by_feature(lambda X, Y: _products(X, plan @ Y)))

    def _by_differences(self, entries: int) -> bool:
        """Whether a plan of so many entries is summed from differences."""
        *_, n, m = self.shape
        return self._alone and (entries < n * m or entries * self.x.shape[-1] <= PRECISE_UP_TO)

    def from_moments(self, rows: Array, cols: Array, cross: Array) -> Array:
        """Return phi from a plan's marginals and the sums of x_i * y_j over it, (..., d)."""
        return self.from_features(self.squares(rows, cols) - 2.0 * cross)

    def from_features(self, per_feature: Array) -> Array:
        """Return phi from what features cost, (..., d); rounding may have left less than zero."""
        return self.pool(per_feature * (per_feature > 0.0))

    def squares(self, rows: Array, cols: Array) -> Array:
        """Return the sums of x_i^2 and y_j^2 over a plan with these marginals, (..., d)."""
        u, v = rows[..., None, :], cols[..., None, :]
        if self._squared is not None:
            X, Y = self._squared
            return (u @ X + v @ Y)[..., 0, :]
        return self._by_feature(lambda X, Y: (u @ (X * X) + v @ (Y * Y))[..., 0, :])

    def product(self, u: Array, v: Array) -> Array:
        """Return phi of u v^T: both variances and the distance of the means, so nothing cancels."""
        return self.pool(self._by_feature(lambda X, Y: _independent(X, Y, u, v)))

    def at(self, rows: np.ndarray, cols: np.ndarray) -> Array:
        """Return the costs at the arcs, (..., L, K), from differences."""
        home, (*batch, count, _, _) = self.home, self.shape
        costs = home.xp.empty((*batch, count, len(rows)), dtype=home.dtype, device=home.device)
        for part in blocks(len(rows), 16 * self.x.shape[-1] * prod(batch)):
            gaps = self._square_gaps(rows[part], cols[part])
            costs[..., part] = home.xp.matrix_transpose(self.pool(gaps))
        return costs

    def _square_gaps(self, rows: np.ndarray, cols: np.ndarray) -> Array:
        """Squared differences of the points of arcs, (..., K, d)."""
        take, indices = self.home.xp.take, self.home.indices
        gaps = take(self.x, indices(rows), axis=-2)
        gaps -= take(self.y, indices(cols), axis=-2)
        gaps *= gaps
        return gaps

    def entries(self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray) -> Array:
        """Return the costs of some groups at the arcs, from their features alone."""
        if not self._alone:
            return super().entries(rows, cols, groups)
        used, member = groups, None
        if self.membership is not None:
            member = sparse.csr_array(self.membership[groups])
            used = np.unique(member.indices)
            member = sparse.csr_array(member[:, used])
        some = replace(self, x=self.x[:, used], y=self.y[:, used], membership=member, centre=None)
        return some.at(rows, cols)

    def take(self, rows: np.ndarray, cols: np.ndarray) -> Points:
        """Return the costs between some of the points, the same ones of every member."""
        take, indices = self.home.xp.take, self.home.indices
        x, y = take(self.x, indices(rows), axis=-2), take(self.y, indices(cols), axis=-2)
        return replace(self, x=x, y=y)

    def rows(self, part: slice) -> Points:
        """Return the costs of some rows only."""
        return replace(self, x=self.x[..., part, :])

    def members(self, index: Array) -> Points:
        """Return some problems of the batch only."""
        take = self.home.xp.take
        return replace(self, x=take(self.x, index, axis=0), y=take(self.y, index, axis=0))

    def member(self, index: int) -> Points:
        """Return the costs of one problem of the batch."""
        return replace(self, x=self.x[index, ...], y=self.y[index, ...])

    def batch(self) -> Points:
        """Return the points as a batch of one: a pass over them is one product and exponential."""
        member = self.membership
        # A dense matrix is faster as long as it is small.
        if sparse.issparse(member) and member.shape[0] * member.shape[1] <= 4_000_000:
            member = member.toarray()
        return Points(self.X[None, ...], self.Y[None, ...], member, self.error, given=self.given)

    def to(self, home: Home) -> Points:
        """Return the points in another place or precision, centred."""
        if home == self.home:
            return self

        def bring(array: Array) -> Array:
            if array is None or sparse.issparse(array):
                return array if array is None else array.astype(home.dtype)
            return home.bring(to_numpy(array) if home.library == "numpy" else array)

        x, y, member = map(bring, (self.X, self.Y, self.membership))
        if home.library != self.home.library and member is not None:
            member = sparse.csr_array(member)
        return Points(x, y, member, self.error, given=self.given)

    def rescaled(self, scale: np.ndarray, shift: np.ndarray | None = None) -> Costs:
        """Return the costs with what groups pay for features times their scale."""
        if shift is not None and bool(shift.any()):
            return super().rescaled(scale, shift)
        member, factor = self.membership, self.home.bring(scale)[:, None]
        if member is None:
            diagonal = sparse.csr_array(sparse.diags(scale))
            member = diagonal if self._alone else self.home.bring(diagonal.toarray())
        elif sparse.issparse(member):
            member = sparse.csr_array(member.multiply(factor))
        else:
            member = factor * member
        return replace(self, membership=member)

    @cached_property
    def peaks(self) -> Array:
        """The squares of the features' ranges, summed over each group: no cost is larger."""
        least, most = self._ends
        return self.pool((most - least) ** 2)

    @property
    def _ends(self) -> tuple[Array, Array]:
        """The smallest and the largest coordinate of every feature, (..., d)."""
        xp = self.home.xp
        least = xp.minimum(xp.min(self.x, axis=-2), xp.min(self.y, axis=-2))
        return least, xp.maximum(xp.max(self.x, axis=-2), xp.max(self.y, axis=-2))

    def rounding(self, alpha: Array) -> Rounding:
        r"""Bound the error of the expanded square by what the points are from the origin.

        A sum of d products errs by at most (d + 2) / 2 units of the sum of their sizes, and
        :math:`2 |x y| \le x^2 + y^2` lets each point answer for its own norm. Coordinates that are
        e units off move :math:`(x - y)^2` by :math:`4 e (x^2 + y^2)` units; the rest is for the
        three sums that are added up, and for scaling by weights and eps.
        """
        xp, w = self.home.xp, self.feature_weights(alpha)
        used = xp.sum(xp.astype(w != 0.0, w.dtype), axis=-1)
        share = (used + 12.0 + 4.0 * self.error) * unit_of(self.home)
        rows, cols = self.norms(w)
        return Rounding(0.0 * share, share[..., None] * rows, share[..., None] * cols)

    def doubt(self, phi: Array, u: Array, v: Array, entries: int | None = None) -> Array:
        """Bound the error of sums over the plan; more where the square is expanded.

        Where coordinates are e units u off, a gap is by 2 e u, and its square by 4 e u times the
        gap; Cauchy-Schwarz does the rest.
        """
        unit, (*_, n, m), d = unit_of(self.home), self.shape, self.x.shape[-1]
        if entries is None or not self._by_differences(entries):
            share = (n + m + d + 12.0 + 4.0 * self.error) * unit
            return share * self.pool(self.squares(u, v))
        error = (summation(entries, unit) + (self._sizes + 4.0) * unit) * phi
        if self.centre is None:
            least, most = self._ends
            off, reach = 2.0 * self.error * unit, u.sum() * np.maximum(most, -least) ** 2
            error = error + 2.0 * off * np.sqrt(self.pool(reach) * phi) + off**2 * self.pool(reach)
        return error

    @cached_property
    def _sizes(self) -> Array:
        """How many features are summed in each group, (L,)."""
        if sparse.issparse(self.membership):
            return np.diff(self.membership.indptr)
        return 1.0 if self.membership is None else (self.membership != 0.0).sum(axis=1)


def _products(X: Array, Y: Array) -> Array:
    """Return the sums of x * y of every feature, (..., d), over points that lie side by side."""
    if isinstance(X, np.ndarray):
        return np.einsum("...ik,...ik->...k", X, Y)
    return (X * Y).sum(-2)


def _independent(X: Array, Y: Array, u: Array, v: Array) -> Array:
    """Return what every feature of points costs under u v^T, (..., d)."""
    xp = Home.of(X).xp
    total_u, total_v = xp.sum(u, axis=-1)[..., None], xp.sum(v, axis=-1)[..., None]
    # Relative to a point, a constant feature costs exactly zero, without round-off.
    first = X[..., :1, :]
    mean_x, around_x = _moments(X - first, u, total_u)
    mean_y, around_y = _moments(Y - first, v, total_v)
    around = around_x * total_v + around_y * total_u
    return around + total_u * total_v * (mean_x - mean_y) ** 2


def _moments(points: Array, weights: Array, total: Array) -> tuple[Array, Array]:
    """Return means, (..., d), and weighted sums of squares around these; overwrites the points."""
    mean = (weights[..., None, :] @ points)[..., 0, :] / (total + (total == 0.0))
    points -= mean[..., None, :]
    points *= points
    return mean, (weights[..., None, :] @ points)[..., 0, :]


def take_members(home: Home, points: Array, index: Array) -> Array:
    """Return ``points[b, index[b, i], :]``, (B, n', d), for an index (B, n') on the host."""
    batch, count, width = points.shape
    flat = index + count * np.arange(batch)[:, None]
    taken = home.xp.take(
        home.xp.reshape(points, (batch * count, width)), home.indices(flat.reshape(-1)), axis=0
    )
    return home.xp.reshape(taken, (batch, index.shape[1], width))


def stand_ins(weights: Array) -> np.ndarray | None:
    """Return at whose place every point stands, (B, n); None where all stand at their own.

    A point that carries nothing must not move anything: not the centre of the others, nor the
    scale of a kernel, nor a bound on rounding. It takes the place of the heaviest of its side.

    Examples
    --------
    >>> stand_ins(np.array([[0.0, 0.25, 0.75]]))
    array([[2, 1, 2]])
    >>> stand_ins(np.array([[0.5, 0.5]])) is None
    True
    """
    host = to_numpy(weights)
    if (host > 0.0).all():
        return None
    everyone = np.broadcast_to(np.arange(host.shape[1]), host.shape)
    return np.where(host > 0.0, everyone, host.argmax(axis=1)[:, None])
