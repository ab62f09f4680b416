"""`DenseEngine`: kernels kept whole, for (n, m) matrices that fit, alone or in batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from frot._base.arrays import quiet
from frot.solvers.sinkhorn._scaling import Scaling, sweep_to
from frot.solvers.sinkhorn.engine import BlockPasses, Engine, Point, make_point
from frot.solvers.sinkhorn.kernel import row_blocks, scores_at
from frot.solvers.sinkhorn.terms import BatchTerms

# Sweeps between two steps on the weights at most, and in the first solution.
SWEEPS = 2_000
FIRST_SWEEPS = 200
# Matrices of n m entries that are held at a time.
MATRICES = 5
# Bytes that streaming was seen to take: of blocks, and for a coordinate of a point.
STREAMED, COORDINATES = 600_000_000, 16
# An eps below the first share of the problem's scale is reached from the second share of it by
# this factor, each solved no better than roughly. Above, forming kernels costs more than it saves.
DIRECT_FROM, FIRST_EPS, EPS_FACTOR = 1 / 25, 1 / 8, 4.0
ROUGH, NEARLY = 1e-2, 2.0
# Beyond these a Newton step costs more than the mirror steps and sweeps it saves.
MOST_POINTS = 1_500
MOST_GROUPS = 100
MOST_BYTES = 1_500_000_000


def dense_bytes(n: int, m: int) -> int:
    """Return what one problem of n by m points takes with its kernel kept.

    Examples
    --------
    >>> dense_bytes(1000, 1000)
    40000000
    """
    return 8 * MATRICES * n * m


def stream_bytes(n: int, m: int, d: int) -> int:
    """Return about what one problem of n by m points of d features takes with its kernel streamed.

    Examples
    --------
    >>> stream_bytes(100_000, 100_000, 64)
    804800000
    """
    return STREAMED + COORDINATES * (n + m) * d


@dataclass(frozen=True, eq=False)
class DenseEngine(Engine):
    """Kernels as matrices.

    `crowd` is the number of members that these were once among, zero if they are all.
    """

    crowd: int = 0

    @property
    def patience(self) -> float:
        """Sweeps on a kernel that is kept cost little next to forming it."""
        return 0.1

    @property
    def newton_pays(self) -> bool:
        """Whether second derivatives are cheap enough to be formed."""
        batch, count, n, m = self.geometry.shape
        few = count <= MOST_GROUPS and m + count <= MOST_POINTS
        return few and 16 * batch * count * n * m <= MOST_BYTES

    def passes(self, alpha: Any) -> BlockPasses:
        """Passes that keep the plan."""
        return BlockPasses(self.geometry, self.terms, alpha, self.parts, keeps=True)

    def start(self, alpha: Any, closeness: Any = 1e-2, limit: int = FIRST_SWEEPS) -> Point:
        """Come down from a large eps; every problem of a batch has its own and comes down to it."""
        xp, terms = self.terms.home.xp, self.terms
        eps, scale = terms.eps, terms.scale
        level = xp.where(eps >= DIRECT_FROM * scale, eps, xp.maximum(eps, FIRST_EPS * scale))
        g, left = xp.zeros_like(terms.b), limit
        while left > 0 and bool(xp.any(level > eps)):
            found = self._sweeps(replace(terms, eps=level), alpha, g, ROUGH, left)
            g, left = found.g, left - found.sweeps
            level = level / EPS_FACTOR
            # A kernel for the last bit of the way would cost more than it saves.
            level = xp.where(level < NEARLY * eps, eps, level)
        return self.sweep(alpha, g, closeness, max(left, 1))

    def sweep(self, alpha: Any, g: Any, closeness: Any, limit: int | None = None) -> Point:
        """Sweep on a kernel formed at g."""
        limit = SWEEPS if limit is None else limit
        return self._point(alpha, self._sweeps(self.terms, alpha, g, closeness, limit))

    @property
    def parts(self) -> list[slice]:
        """Blocks of rows that kernels are formed in."""
        return self._parts

    @cached_property
    def _parts(self) -> list[slice]:
        return row_blocks(self.geometry, self.crowd)

    def _sweeps(self, terms: BatchTerms, alpha: Any, g: Any, closeness: Any, limit: int) -> Scaling:
        scores = scores_at(self.geometry, terms, alpha)
        return sweep_to(scores, terms, g, closeness, limit, self._parts)

    def _point(self, alpha: Any, found: Scaling) -> Point:
        terms = self.terms
        if self.geometry.shape[1] == 1:
            phi = terms.home.xp.zeros_like(alpha)
        else:
            scores, whole = scores_at(self.geometry, terms, alpha), slice(0, terms.a.shape[1])
            # Scalings that ran out of range make group costs that are no numbers: looked for later.
            with quiet():
                partial = scores.partial(whole, found.kernel, found.left, found.right)
                rows = terms.row_masses(found.f)
                phi = scores.total(partial, rows, terms.b * found.columns)
        return make_point(
            terms, alpha, found.f, found.g, phi, found.columns, found.error, work=found.sweeps,
            kernel=found.kernel, left=found.left, right=found.right, base=found.base,
        )  # fmt: skip

    @cached_property
    def stack(self) -> Any:
        """All costs at once, (B, L, n, m), for second derivatives."""
        return self.geometry.stack()

    def members(self, index: Any) -> DenseEngine:
        """Some problems of the batch only."""
        exact = None if self.exact is None else self.exact.members(index)
        crowd = self.crowd or self.geometry.shape[0]
        return DenseEngine(self.geometry.members(index), self.terms.members(index), exact, crowd)
