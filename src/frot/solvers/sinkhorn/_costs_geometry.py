"""Costs of the host, of any kind, as a batch of one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot.costs.protocol import UNIT, Costs
from frot.plans.plan import Plan
from frot.solvers.sinkhorn.geometry import Rounding

__all__ = ["CostsGeometry"]


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
