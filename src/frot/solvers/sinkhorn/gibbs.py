"""The entropic plan at given potentials, formed a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from frot._base.arrays import Home, read_only
from frot.costs.geometry import Geometry
from frot.solvers.sinkhorn.blocks import row_blocks
from frot.solvers.sinkhorn.forming import form_rows
from frot.solvers.sinkhorn.scores import Scores, scores_at
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["Gibbs"]


@dataclass(frozen=True, eq=False)
class Gibbs:
    """One entropic plan: rows made right from g, columns times `thin`.

    Everything in double precision, with a batch axis of one; rows are cut into blocks as for a
    `crowd` of members, which the plan was proven among.
    """

    geometry: Geometry
    terms: Terms
    alpha: Any
    g: Any
    thin: Any
    crowd: int = 0

    def __post_init__(self) -> None:
        for name in ("alpha", "g", "thin"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def home(self) -> Home:
        """Where the entries are computed."""
        return self.geometry.home

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.geometry.shape[2:]

    @property
    def parts(self) -> list[slice]:
        """Blocks of rows that stay small."""
        return row_blocks(self.geometry, self.crowd)

    @cached_property
    def _scores(self) -> Scores:
        return scores_at(self.geometry, self.terms, self.alpha)

    def batches(self, parts: Sequence[slice]) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows of all members, each of shape (B, r, m)."""
        for part, kernel, total, _ in form_rows(self._scores, self.terms, self.g, parts):
            kernel *= (self.terms.a[:, part] / total)[:, :, None]
            kernel *= self.thin[:, None, :]
            yield part, kernel

    def blocks(self, parts: Sequence[slice]) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows, each of shape (r, m)."""
        for part, kernel in self.batches(parts):
            yield part, kernel[0, :, :]

    def dense(self) -> Any:
        """Return the plans of a whole batch, (B, n, m)."""
        blocks = [kernel for _, kernel in self.batches(self.parts)]
        return blocks[0] if len(blocks) == 1 else self.terms.home.xp.concat(blocks, axis=1)
