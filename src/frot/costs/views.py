"""From one view of costs to the other: any `Costs` as a batch of one, and such a batch as `Costs`.

The first is for costs that only the host has, of a user's own class for one; the second for those
that live elsewhere, whose answers come back to the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.costs.geometry import Geometry, standing_in
from frot.costs.protocol import UNIT, Costs, Rounding
from frot.plans.plan import Plan

__all__ = ["CostsGeometry", "DeviceCosts"]


@dataclass(frozen=True, eq=False)
class CostsGeometry:
    """A batch of one around NumPy `Costs` of any kind."""

    costs: Costs

    @property
    def home(self) -> Home:
        """NumPy, in double precision."""
        return self._home

    @cached_property
    def _home(self) -> Home:
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

    def stand_in(self, rows: Any, cols: Any) -> CostsGeometry:
        """The costs with points at the places of others."""
        return self.take(rows, cols)

    def members(self, index: Any) -> CostsGeometry:
        """A batch of one has one member."""
        return self

    def stack(self) -> Any:
        """All costs, one group at a time."""
        eye = np.eye(self.shape[1])
        return np.stack([self.costs.mix(alone) for alone in eye])[None]

    def mix_error(self, alpha: Any) -> Rounding:
        """Bound the rounding of the mixed cost as the costs do."""
        relative, rows, cols = self.costs.rounding(alpha[0])
        _, _, n, m = self.shape
        return Rounding(
            np.array([relative]), np.broadcast_to(rows, (1, n)), np.broadcast_to(cols, (1, m))
        )

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the rounding of a plan's costs."""
        n, m = self.shape[2:]
        return (self.costs.doubt(phi[0], _DensePlan((n, m))) + 4.0 * UNIT * np.abs(phi[0]))[None]

    def sizes(self, u: Any, v: Any) -> Any:
        """Return the mean sizes."""
        return self.costs.magnitudes(u[0], v[0])[None]

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


class _DensePlan(Plan):
    """Stands for any dense plan of a shape, where only the number of its entries matters."""

    __slots__ = ()

    def __init__(self, shape: tuple[int, int]) -> None:
        entry = np.float64(1.0 / (shape[0] * shape[1]))
        super().__init__(np.broadcast_to(entry, shape), copy=False)


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
        return to_numpy(self._present(a, b).product(*self._bring(a, b)))[0]

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean size of every group's costs, on the host."""
        return to_numpy(self._present(a, b).sizes(*self._bring(a, b)))[0]

    def _present(self, a: np.ndarray, b: np.ndarray) -> Geometry:
        """The costs with points of no weight where others are."""
        return standing_in(self.base, a[None], b[None])

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
        if plan.is_sparse:
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
