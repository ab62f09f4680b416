"""Costs of the host, of any kind, as a batch of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._arrays import Home
from frot._costs._protocol import UNIT, Costs, blocks
from frot._plan import Plan

__all__ = ["CostsGeometry"]


@dataclass(frozen=True, eq=False)
class CostsGeometry:
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

    def mix(self, alpha: Any) -> Any:
        """Return the mixed cost."""
        return self.costs.mix(alpha[0])[None]

    def inner(self, plan: Any) -> Any:
        """Return the costs of a dense plan."""
        return self.costs.inner(Plan(plan[0], copy=False))[None]

    def product(self, u: Any, v: Any) -> Any:
        """Return the costs of u v^T."""
        return self.costs.independent(u[0], v[0])[None]

    def rows(self, part: slice) -> CostsGeometry:
        """The costs of some rows only."""
        _, _, n, m = self.shape
        if part.start in (None, 0) and part.stop in (None, n):
            return self
        return CostsGeometry(self.costs.take(np.arange(n)[part], np.arange(m)))

    def members(self, index: Any) -> CostsGeometry:
        """A batch of one has one member."""
        return self

    def stack(self) -> Any:
        """All costs, one group at a time."""
        eye = np.eye(self.shape[1])
        return np.stack([self.costs.mix(alone) for alone in eye])[None]

    def mix_error(self, alpha: Any) -> Any:
        """Bound the rounding of an entry of the mixed cost."""
        rounding = self.costs.rounding(alpha[0])
        relative, base = rounding.relative, rounding.absolute
        absolute = base
        if relative > 0.0:
            # Blocks of rows: a problem that is streamed has no room for the whole matrix.
            _, n, m = self.costs.shape
            for part in blocks(n, 16 * m):
                mixed = self.rows(part).mix(alpha)
                absolute = max(absolute, base + relative * float(np.abs(mixed).max()))
        return np.array([absolute])

    def inner_error(self, phi: Any) -> Any:
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
