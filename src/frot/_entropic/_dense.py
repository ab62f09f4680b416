"""Kernels kept whole: for problems whose (n, m) matrices fit, alone or in batches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from frot._entropic._engine import Point, make_point
from frot._entropic._geometry import Geometry
from frot._entropic._scaling import Scaling, settle, sweep_to
from frot._entropic._terms import Terms

__all__ = ["DenseEngine", "dense_bytes"]

# Sweeps between two steps on the weights at most.
SWEEPS = 2_000
# Matrices of n m entries that are held at a time.
MATRICES = 5


def dense_bytes(n: int, m: int) -> int:
    """Return what one problem of n by m points takes with its kernel kept.

    Examples
    --------
    >>> dense_bytes(1000, 1000)
    40000000
    """
    return 8 * MATRICES * n * m


@dataclass(frozen=True, eq=False)
class DenseEngine:
    """Mixed cost and kernel as matrices."""

    geometry: Geometry
    terms: Terms
    exact: Geometry | None = None

    @property
    def patience(self) -> float:
        """Sweeps on a kernel that is kept cost little next to forming it."""
        return 0.1

    def start(self, alpha: Any) -> Point:
        """Come down from a large eps, roughly."""
        mixed, terms = self.geometry.mix(alpha), self.terms
        found = settle(mixed, terms.a, terms.b, terms.eps, 1e-2, 200, terms.home)
        return self._point(alpha, mixed, found)

    def sweep(self, alpha: Any, g: Any, closeness: Any, limit: int | None = None) -> Point:
        """Sweep on a kernel formed at g."""
        mixed, terms = self.geometry.mix(alpha), self.terms
        limit = SWEEPS if limit is None else limit
        found = sweep_to(mixed, terms.a, terms.b, terms.eps, g, closeness, limit, terms.home)
        return self._point(alpha, mixed, found)

    def _point(self, alpha: Any, mixed: Any, found: Scaling) -> Point:
        phi = self.geometry.inner(found.plan)
        return make_point(
            self.terms, alpha, found.f, found.g, phi, found.columns, found.error,
            work=found.sweeps, mixed=mixed, plan=found.plan,
        )  # fmt: skip

    def transforms(self, at: Point) -> tuple[Any, Any]:
        """Take minima of the mixed cost."""
        xp, holes = self.terms.home.xp, self.terms.holes
        # Columns without weight bind nothing: they take what the others leave them.
        g = at.g if holes is None else at.g + holes
        f = xp.min(at.mixed - g[:, None, :], axis=2)
        return f, xp.min(at.mixed - f[:, :, None], axis=1)

    @cached_property
    def stack(self) -> Any:
        """All costs at once, (B, L, n, m), for second derivatives."""
        return self.geometry.stack()

    def double(self) -> DenseEngine:
        """The same in double precision, on the costs as they were given."""
        return self if self.terms.home.dtype == self.terms.home.xp.float64 else self._doubled

    @cached_property
    def _doubled(self) -> DenseEngine:
        geometry = self.exact or self.geometry.double()
        return DenseEngine(geometry, self.terms.at(geometry.home))

    def members(self, index: Any) -> DenseEngine:
        """Some problems of the batch only."""
        exact = None if self.exact is None else self.exact.members(index)
        return DenseEngine(self.geometry.members(index), self.terms.members(index), exact)
