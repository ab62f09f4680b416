r"""Kernels and plans by their rows: scores, their softmaxes, and the plan that is handed out.

A block of rows of the scores :math:`g_j / \varepsilon - [M_\alpha]_{ij} / \varepsilon` may leave
out what is added to a row, which softmaxes do not see: of squared Euclidean costs only a product of
matrices is left, which is as fast as a kernel gets.

A plan with exact rows is given by the potential g of its columns,

.. math::
    \pi_{ij} = a_i \frac{b_j\, e^{(g_j - M_{ij}) / \varepsilon}}
                        {\sum_k b_k\, e^{(g_k - M_{ik}) / \varepsilon}}, \qquad
    f_i = -\varepsilon \log \sum_k b_k\, e^{(g_k - M_{ik}) / \varepsilon} ,

and its rows sum to a whatever rounding did to the scores. With a small eps these are large before
they cancel, and what rounding leaves of them depends on the order of the operations: plans that
are proven to be feasible and plans that are handed out therefore both come from here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import Home, quiet, read_only
from frot._base.stopping import check_deadline
from frot.costs.geometry import Geometry
from frot.costs.points import PointGeometry
from frot.solvers.sinkhorn.terms import BatchTerms

# Temporaries of a block, three or four of them: near the cache of a CPU, and large on a device,
# where every block costs a launch of each operation.
BLOCK_BYTES_ON_HOST = 4_000_000
BLOCK_BYTES_ON_DEVICE = 1_000_000_000


class Scores:
    """Blocks of rows at fixed weights: of any costs, mixed block by block."""

    def __init__(self, geometry: Geometry, terms: BatchTerms, alpha: Any) -> None:
        self.geometry = geometry
        self.weights = alpha / terms.eps

    def block(self, part: slice, bias: Any) -> Any:
        """Return bias_j - M_ij / eps + offset_i, (B, r, m), for a bias of shape (B, m)."""
        return _less(bias[:, None, :], self.geometry.rows(part).mix(self.weights))

    def reach(self) -> float:
        """Bound the size of scores without bias, by a look at the points alone."""
        return math.inf

    def offset(self, part: slice) -> Any:
        """Return what was left out of the rows, (B, r), or zero."""
        return 0.0

    def partial(self, part: slice, kernel: Any, left: Any, right: Any = None) -> Any:
        """Return what the rows ``left_i kernel_ij right_j`` of a plan add to the costs."""
        plan = kernel * left[:, :, None]
        if right is not None:
            plan *= right[:, None, :]
        return self.geometry.rows(part).inner(plan)

    def total(self, partials: Any, rows: Any, cols: Any) -> Any:
        """Return phi, (B, L), from the sum of the partials and the plan's marginals."""
        return partials


class _PointScores(Scores):
    """A product of scaled points, and norms."""

    def __init__(self, points: PointGeometry, terms: BatchTerms, alpha: Any) -> None:
        self.geometry = self.points = points
        self.weights = points.feature_weights(alpha)[:, None, :] / terms.eps[:, :, None]

    @cached_property
    def across(self) -> Any:
        """The columns: to scale them once is less work than to scale every block of rows."""
        return self.points.home.xp.matrix_transpose(self.points.Y * (2.0 * self.weights))

    def block(self, part: slice, bias: Any) -> Any:
        found = self.points.X[:, part, :] @ self.across
        found += (bias - self.norms[1])[:, None, :]
        return found

    @cached_property
    def norms(self) -> tuple[Any, Any]:
        return self.points.norms(self.weights)

    def reach(self) -> float:
        # A product of points is no more than the mean of their squares.
        return 2.0 * sum(float(self.points.home.xp.max(side)) for side in self.norms)

    def offset(self, part: slice) -> Any:
        return self.norms[0][:, part]

    def partial(self, part: slice, kernel: Any, left: Any, right: Any = None) -> Any:
        xp = self.points.home.xp
        Y = self.points.Y if right is None else self.points.Y * right[:, :, None]
        X = self.points.X[:, part, :] * left[:, :, None]
        # A few rows times the kernel take half the time that the kernel times a few columns does.
        return xp.sum((xp.matrix_transpose(X) @ kernel) * xp.matrix_transpose(Y), axis=2)

    def total(self, partials: Any, rows: Any, cols: Any) -> Any:
        return self.points.from_moments(rows, cols, partials)


def scores_at(geometry: Geometry, terms: BatchTerms, alpha: Any) -> Scores:
    """Return the scores of the costs mixed by alpha."""
    if isinstance(geometry, PointGeometry):
        return _PointScores(geometry, terms, alpha)
    return Scores(geometry, terms, alpha)


def row_blocks(geometry: Geometry, crowd: int = 0) -> list[slice]:
    """Cut the rows so that a block of the kernels of a batch stays within the bytes for it.

    What rounding leaves of a product of matrices depends on their shapes: members of a `crowd` cut
    their rows as all of it did, so that each has the same plan wherever it is formed.
    """
    batch, _, n, m = geometry.shape
    home = geometry.home
    return _cut((crowd or batch, n, m), _entries(home))


def _entries(home: Home) -> int:
    budget = BLOCK_BYTES_ON_HOST if home.on_host else BLOCK_BYTES_ON_DEVICE
    size = 4 if home.dtype == home.xp.float32 else 8
    return budget // size


def _cut(shape: tuple[int, ...], entries: int) -> list[slice]:
    batch, n, m = shape
    step = min(max(entries // (m * batch), 1), n)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


class JoinedRows:
    """Blocks of rows put together, (B, n, m).

    NumPy's are written to where they belong as they come, which keeps each in the cache, and a
    second copy of all of them out of memory.
    """

    def __init__(self, home: Home, shape: tuple[int, ...], parts: Sequence[slice]) -> None:
        self._xp, self._blocks = home.xp, []
        several = home.library == "numpy" and len(parts) > 1
        self._room = np.empty(shape, home.dtype) if several else None

    def add(self, part: slice, block: Any) -> None:
        """Take the block of the rows `part`; blocks come in order."""
        if self._room is None:
            self._blocks.append(block)
        else:
            self._room[:, part, :] = block

    def whole(self) -> Any:
        """All rows."""
        if self._room is not None:
            return self._room
        found = self._blocks
        return found[0] if len(found) == 1 else self._xp.concat(found, axis=1)


class RowBlock(NamedTuple):
    """Rows `part` of a plan: ``a_i kernel_ij / total_i``; f is (B, r), kernel (B, r, m)."""

    part: slice
    kernel: Any
    total: Any
    f: Any


def form_rows(
    scores: Scores, terms: BatchTerms, g: Any, parts: Sequence[slice]
) -> Iterator[RowBlock]:
    """Yield blocks of rows of the plan that g makes.

    Where all columns weigh the same their weights are left out of the scores, (B, r, m): softmaxes
    do not see them, and with a large eps they would leave few digits to the costs.
    """
    xp, bias = terms.home.xp, g / terms.eps
    if not terms.even:
        bias = bias + terms.log_b
    for part in parts:
        check_deadline()
        block = scores.block(part, bias)
        with quiet():
            top = xp.max(block, axis=2)
            block -= top[:, :, None]
            kernel = exp_of(block)
            total = xp.sum(kernel, axis=2)
            level = top + xp.log(total * terms.b[:, :1] if terms.even else total)
            f = terms.eps * (scores.offset(part) - level)
            if terms.rows is not None:
                # Rows that need not be kept keep a part of a.
                f = terms.damped_rows(f)
                total = total * xp.exp(f / terms.tau_a)
        yield RowBlock(part, kernel, total, f)


def exp_of(array: Any) -> Any:
    """Return the exponentials of an array that is not needed any more, in its place if possible.

    Memory that is new to a process costs as much as a pass over it.
    """
    return np.exp(array, out=array) if isinstance(array, np.ndarray) else array.exp_()


def _less(bias: Any, array: Any) -> Any:
    """Return bias - array, in the same way."""
    if isinstance(array, np.ndarray) and array.dtype == bias.dtype and array.flags.writeable:
        return np.subtract(bias, array, out=array)
    return bias - array


def column_potentials(scores: Scores, terms: BatchTerms, f: Any, parts: Sequence[slice]) -> Any:
    r"""Return :math:`g_j = -\varepsilon \log \sum_i a_i e^{(f_i - M_{ij})/\varepsilon}`, (B, m).

    Where columns need not be kept, damped.
    """
    home = terms.home
    xp, (batch, _, _, m) = home.xp, scores.geometry.shape
    log_a = xp.where(terms.a > 0.0, terms.log(terms.a), xp.zeros_like(terms.a) - xp.inf)
    level, total = None, None
    nothing = xp.zeros((batch, m), dtype=home.dtype, device=home.device)
    lowest = nothing + 0.25 * float(xp.finfo(home.dtype).min)
    with quiet():
        for part in parts:
            check_deadline()
            block = scores.block(part, nothing)
            block += (f[:, part] / terms.eps - scores.offset(part) + log_a[:, part])[:, :, None]
            top = xp.max(block, axis=1)
            # A block of rows without weight has nothing to say.
            top = xp.maximum(top, lowest)
            if level is not None:
                top = xp.maximum(top, level)
            block -= top[:, None, :]
            part_total = xp.sum(exp_of(block), axis=1)
            if level is not None:
                part_total = part_total + total * xp.exp(level - top)
            level, total = top, part_total
        return terms.damped_cols(-terms.eps * (level + xp.log(total)))


@dataclass(frozen=True, eq=False)
class Gibbs:
    """One entropic plan: rows made right from g, columns times `thin`.

    Everything in double precision, with a batch axis of one; rows are cut into blocks as for a
    `crowd` of members, which the plan was proven among.
    """

    geometry: Geometry
    terms: BatchTerms
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
        parts = self.parts
        joined = JoinedRows(self.home, (*self.terms.a.shape, self.shape[1]), parts)
        for part, kernel in self.batches(parts):
            joined.add(part, kernel)
        return joined.whole()
