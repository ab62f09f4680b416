"""`Geometry`: group costs of a batch in NumPy or PyTorch, mixed by weights, summed over plans.

Arrays have a leading axis of B problems of the same shape; one problem is a batch of one. This is
how sweeps see costs; how a `Problem` and exact solvers do, without a batch, with plans, on the
host, is `frot.costs.protocol.Costs`. Either can be seen as the other: `CostsGeometry` is a batch of
one around costs that only the host has, of a user's own class for one, and `DeviceCosts` are costs
that live elsewhere, whose answers come back to the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.costs.protocol import UNIT, Costs, Rounding, constant_potentials
from frot.plans.plan import Plan, is_sparse


class Geometry(Protocol):
    """B times L cost matrices of shape (n, m); methods with a body are defaults to override."""

    @property
    def home(self) -> Home:
        """Where the arrays live, and their precision."""
        ...

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, L, n, m)."""
        ...

    @property
    def nonnegative(self) -> bool:
        """Whether no cost is known to be negative."""
        ...

    def mix(self, alpha: Any) -> Any:
        """Return sum_l alpha_l C_l: (B, L) to (B, n, m); the caller's own, to be written to."""
        ...

    def inner(self, plan: Any) -> Any:
        """Return <plan, C_l>: (B, n, m) to (B, L)."""
        ...

    def product(self, u: Any, v: Any) -> Any:
        """Return <u v^T, C_l>: (B, n) and (B, m) to (B, L)."""
        ...

    def least(self, u: Any, v: Any) -> Any:
        """Return what every plan with the marginals u and v pays at least, (B, L), roughly."""
        ...

    def least_potentials(self, alpha: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Return f and g, (B, n) and (B, m), that prove `least` of the mixed cost, or nothing."""
        return constant_potentials(alpha, self.least(u, v), u, v)

    def rows(self, part: slice) -> Geometry:
        """The costs of some rows only."""
        ...

    def take(self, rows: Any, cols: Any) -> Geometry:
        """The costs between some points, (n',) and (m',) on the host; they may repeat."""
        ...

    def members(self, index: Any) -> Geometry:
        """Some problems of the batch only."""
        ...

    def stack(self) -> Any:
        """All costs, (B, L, n, m)."""
        home, (batch, count, _, _) = self.home, self.shape
        eye = home.xp.eye(count, dtype=home.dtype, device=home.device)
        ones = home.xp.ones((batch, 1), dtype=home.dtype, device=home.device)
        return home.xp.stack([self.mix(ones * eye[None, k, :]) for k in range(count)], axis=1)

    def mix_error(self, alpha: Any) -> Rounding:
        """Bound the rounding of the entries of ``mix(alpha)``."""
        ...

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the rounding of ``phi = inner(plan)``, (B, L), of a plan with marginals u and v."""
        ...

    def double(self) -> Geometry:
        """The same costs in double precision."""
        ...

    def single(self) -> Geometry:
        """The same costs in single precision, where that is possible."""
        ...

    def sizes(self, u: Any, v: Any) -> Any:
        """Return ``<u v^T, |C_l|>``: (B, n) and (B, m) to (B, L); here of costs >= 0."""
        return self.product(u, v)

    def peaks(self) -> Any:
        """Return bounds on the sizes of the costs of every group, (B, L)."""
        ...

    def rescaled(self, factor: Any) -> Geometry:
        """The costs times a factor each, (L,) on the host."""
        ...

    def at(self, rows: Any, cols: Any) -> Any:
        """Return the costs of the first problem at K arcs, (L, K)."""
        ...


def unit_of(home: Home) -> float:
    """One unit in the last place of a number near one."""
    return float(home.xp.finfo(home.dtype).eps)


def take_members(home: Home, points: Any, index: Any) -> Any:
    """Return ``points[b, index[b, i], :]``, (B, n', d), for an index (B, n') on the host."""
    batch, count, width = points.shape
    flat = index + count * np.arange(batch)[:, None]
    found = home.xp.take(
        home.xp.reshape(points, (batch * count, width)), home.indices(flat.reshape(-1)), axis=0
    )
    return home.xp.reshape(found, (batch, index.shape[1], width))


def stand_ins(weights: Any) -> np.ndarray | None:
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


@dataclass(frozen=True, eq=False)
class CostsGeometry(Geometry):
    """A batch of one around NumPy `Costs` of any kind."""

    costs: Costs

    @property
    def home(self) -> Home:
        """NumPy, in double precision."""
        return Home.of(np.zeros(1))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(1, L, n, m)."""
        return (1, *self.costs.shape)

    @property
    def nonnegative(self) -> bool:
        """Whether no cost is known to be negative."""
        return self.costs.nonnegative

    def mix(self, alpha: Any) -> Any:
        """Return the mixed cost."""
        return self.costs.mix(alpha[0])[None]

    def inner(self, plan: Any) -> Any:
        """Return the costs of a dense plan."""
        return self.costs.inner(Plan(plan[0], copy=False))[None]

    def product(self, u: Any, v: Any) -> Any:
        """Return the costs of u v^T."""
        return self.costs.independent(u[0], v[0])[None]

    def least(self, u: Any, v: Any) -> Any:
        """Return what every plan pays at least."""
        return self.costs.least(u[0], v[0])[None]

    def least_potentials(self, alpha: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Return what the costs have."""
        f, g = self.costs.least_potentials(alpha[0], u[0], v[0])
        return f[None], g[None]

    def rows(self, part: slice) -> CostsGeometry:
        """The costs of some rows only."""
        _, _, n, m = self.shape
        if part.start in (None, 0) and part.stop in (None, n):
            return self
        return self.take(np.arange(n)[part], np.arange(m))

    def take(self, rows: Any, cols: Any) -> CostsGeometry:
        """The costs between some points."""
        return CostsGeometry(self.costs.take(rows, cols))

    def members(self, index: Any) -> CostsGeometry:
        """A batch of one has one member."""
        return self

    def mix_error(self, alpha: Any) -> Rounding:
        """Bound the rounding of the mixed cost as the costs do."""
        relative, rows, cols = self.costs.rounding(alpha[0])
        _, _, n, m = self.shape
        return Rounding(
            np.array([relative]), np.broadcast_to(rows, (1, n)), np.broadcast_to(cols, (1, m))
        )

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the rounding of a plan's costs, for which only the number of entries matters."""
        n, m = self.shape[2:]
        any_dense = Plan(np.broadcast_to(1.0 / (n * m), (n, m)), copy=False)
        return (self.costs.doubt(phi[0], any_dense) + 4.0 * UNIT * np.abs(phi[0]))[None]

    def sizes(self, u: Any, v: Any) -> Any:
        """Return the mean sizes."""
        return self.costs.magnitudes(u[0], v[0])[None]

    def peaks(self) -> Any:
        """Return what the costs have."""
        return self.costs.peaks[None]

    def rescaled(self, factor: Any) -> CostsGeometry:
        """The costs times a factor each."""
        return CostsGeometry(self.costs.rescaled(np.asarray(factor)))

    def at(self, rows: Any, cols: Any) -> Any:
        """Return the costs at the arcs."""
        return self.costs.at(rows, cols)

    def double(self) -> CostsGeometry:
        """It is."""
        return self

    def single(self) -> CostsGeometry:
        """It stays double."""
        return self


@dataclass(frozen=True, eq=False)
class DeviceCosts(Costs):
    """What a `Problem` asks of its costs, and the geometry that `Entropic` works on.

    Parameters
    ----------
    base : Geometry
        A batch of one, in double precision.
    place : Home
        Where the user's arrays live, and the precision to search in.
    """

    base: Geometry
    place: Home

    @property
    def home(self) -> Home:
        """Where the user's arrays live."""
        return self.place

    def geometry(self) -> Geometry:
        """What they are a view of."""
        return self.base

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        _, count, n, m = self.base.shape
        return (count, n, m)

    @property
    def nonnegative(self) -> bool:
        """Whether no cost is known to be negative."""
        return self.base.nonnegative

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of the product plan, on the host."""
        return to_numpy(self.base.product(*self._bring(a, b)))[0]

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean size of every group's costs, on the host."""
        return to_numpy(self.base.sizes(*self._bring(a, b)))[0]

    @cached_property
    def peaks(self) -> np.ndarray:
        """Bounds on the sizes of the costs of every group, on the host."""
        return to_numpy(self.base.peaks())[0]

    def rescaled(self, scale: np.ndarray, shift: np.ndarray | None = None) -> Costs:
        """Return them where they are, unless something is subtracted."""
        if shift is None:
            return DeviceCosts(self.base.rescaled(scale), self.home)
        return super().rescaled(scale, shift)

    def _bring(self, *arrays: np.ndarray) -> list[Any]:
        """Arrays of the host as a batch of one, in double precision."""
        bring = self.home.double().bring
        return [bring(array[None]) for array in arrays]

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the mixed cost, on the host."""
        return to_numpy(self.base.mix(*self._bring(alpha)))[0]

    def inner(self, plan: Plan) -> np.ndarray:
        """Return the costs of a plan, on the host."""
        if is_sparse(plan):
            rows, cols, mass = plan.arcs()
            return self.at(rows, cols) @ mass
        return to_numpy(self.base.inner(*self._bring(plan.dense())))[0]

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at a few arcs, on the host."""
        found = to_numpy(self.base.at(self.home.indices(rows), self.home.indices(cols)))
        return found if groups is None else found[groups]

    def take(self, rows: np.ndarray, cols: np.ndarray) -> DeviceCosts:
        """Return the costs between some of the points."""
        return DeviceCosts(self.base.take(rows, cols), self.home)

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return what every plan pays at least in each group, on the host."""
        return to_numpy(self.base.least(*self._bring(a, b)))[0]

    def least_potentials(
        self, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the potentials that prove `least`, on the host."""
        f, g = self.base.least_potentials(*self._bring(alpha, a, b))
        return to_numpy(f)[0], to_numpy(g)[0]

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the rounding of the mixed cost, on the host."""
        off = self.base.mix_error(*self._bring(alpha))
        rows, cols = to_numpy(off.rows)[0], to_numpy(off.cols)[0]
        return Rounding(float(to_numpy(off.relative)[0]), rows, cols)

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the rounding of a plan's costs, on the host."""
        marginals = (to_numpy(plan.sum(axis=axis)) for axis in (1, 0))
        return to_numpy(self.base.inner_error(*self._bring(phi, *marginals)))[0]
