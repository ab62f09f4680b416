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

`BlockPasses` are what a proof asks of such a plan; `potentials_at` has potentials of points without
weight. A point that carries nothing must not move anything: not the centre of the others, nor the
scale of a kernel, nor a bound on rounding. In a batch it therefore takes the place of the heaviest
point of its side, which keeps all shapes, and gets the potential of its true place afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from frot._base.arrays import Array, Home, quiet, read_only, safe_log, to_numpy, unit_of
from frot.costs.points import Points
from frot.costs.protocol import Costs, Rounding
from frot.costs.stack import Stack
from frot.solvers.entropic.entropic_problem import EntropicProblem

# Temporaries of a block, three or four of them: near the cache of a CPU.
BLOCK_BYTES_ON_HOST = 4_000_000


class Scores:
    """Blocks of rows at fixed weights: of any costs, mixed block by block."""

    def __init__(self, costs: Costs, problem: EntropicProblem, alpha: Array) -> None:
        self.costs = costs
        self.weights = alpha / problem.eps

    def block(self, part: slice, bias: Array) -> Array:
        """Return bias_j - M_ij / eps + offset_i, (B, r, m), for a bias of shape (B, m)."""
        return _less(bias[:, None, :], self.costs.rows(part).mix(self.weights))

    def reach(self) -> float:
        """Bound the size of scores without bias, by a look at the points alone."""
        return math.inf

    def offset(self, part: slice) -> Array:
        """Return what was left out of the rows, (B, r), or zero."""
        return 0.0

    def partial(self, part: slice, kernel: Array, left: Array, right: Array = None) -> Array:
        """Return what the rows ``left_i kernel_ij right_j`` of a plan add to the costs."""
        plan = kernel * left[:, :, None]
        if right is not None:
            plan *= right[:, None, :]
        return self.costs.rows(part).inner(plan)

    def total(self, partials: Array, rows: Array, cols: Array) -> Array:
        """Return phi, (B, L), from the sum of the partials and the plan's marginals."""
        return partials


class _PointScores(Scores):
    """A product of scaled points, and norms."""

    def __init__(self, points: Points, problem: EntropicProblem, alpha: Array) -> None:
        self.costs = self.points = points
        self.weights = points.feature_weights(alpha) / problem.eps

    @cached_property
    def across(self) -> Array:
        """The columns: to scale them once is less work than to scale every block of rows."""
        return self.points.home.xp.matrix_transpose(
            self.points.Y * (2.0 * self.weights[:, None, :])
        )

    def block(self, part: slice, bias: Array) -> Array:
        result = self.points.X[:, part, :] @ self.across
        result += (bias - self.norms[1])[:, None, :]
        return result

    @cached_property
    def norms(self) -> tuple[Array, Array]:
        return self.points.norms(self.weights)

    def reach(self) -> float:
        # A product of points is no more than the mean of their squares.
        return 2.0 * sum(float(self.points.home.xp.max(side)) for side in self.norms)

    def offset(self, part: slice) -> Array:
        return self.norms[0][:, part]

    def partial(self, part: slice, kernel: Array, left: Array, right: Array = None) -> Array:
        xp = self.points.home.xp
        Y = self.points.Y if right is None else self.points.Y * right[:, :, None]
        X = self.points.X[:, part, :] * left[:, :, None]
        # A few rows times the kernel take half the time that the kernel times a few columns does.
        return xp.sum((xp.matrix_transpose(X) @ kernel) * xp.matrix_transpose(Y), axis=2)

    def total(self, partials: Array, rows: Array, cols: Array) -> Array:
        return self.points.from_moments(rows, cols, partials)


def scores_at(costs: Costs, problem: EntropicProblem, alpha: Array) -> Scores:
    """Return the scores of the costs mixed by alpha."""
    if isinstance(costs, Points):
        return _PointScores(costs, problem, alpha)
    return Scores(costs, problem, alpha)


def row_blocks(costs: Costs, crowd: int = 0) -> list[slice]:
    """Cut the rows so that a block of the kernels of a batch stays within the bytes for it.

    What rounding leaves of a product of matrices depends on their shapes: members of a `crowd` cut
    their rows as all of it did, so that each has the same plan wherever it is formed.
    """
    batch, _, n, m = costs.shape
    home = costs.home
    return _cut((crowd or batch, n, m), _entries(home))


def _entries(home: Home) -> int:
    # Large on a device, where every block costs a launch of each operation.
    budget = BLOCK_BYTES_ON_HOST if home.on_host else 1_000_000_000
    return budget // (4 if home.dtype == home.xp.float32 else 8)


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

    def add(self, part: slice, block: Array) -> None:
        """Take the block of the rows `part`; blocks come in order."""
        if self._room is None:
            self._blocks.append(block)
        else:
            self._room[:, part, :] = block

    def whole(self) -> Array:
        """All rows."""
        if self._room is not None:
            return self._room
        result = self._blocks
        return result[0] if len(result) == 1 else self._xp.concat(result, axis=1)


class RowBlock(NamedTuple):
    """Rows `part` of a plan: ``a_i kernel_ij / total_i``; f is (B, r), kernel (B, r, m)."""

    part: slice
    kernel: Array
    total: Array
    f: Array


def form_rows(
    scores: Scores, problem: EntropicProblem, g: Array, parts: Sequence[slice]
) -> Iterator[RowBlock]:
    """Yield blocks of rows of the plan that g makes.

    Where all columns weigh the same their weights are left out of the scores, (B, r, m): softmaxes
    do not see them, and with a large eps they would leave few digits to the costs.
    """
    xp, bias = problem.home.xp, g / problem.eps
    if not problem.even:
        bias = bias + problem.log_b
    for part in parts:
        block = scores.block(part, bias)
        with quiet():
            top = xp.max(block, axis=2)
            block -= top[:, :, None]
            kernel = exp_of(block)
            total = xp.sum(kernel, axis=2)
            level = top + xp.log(total * problem.b[:, :1] if problem.even else total)
            f = problem.eps * (scores.offset(part) - level)
            if problem.rows is not None:
                # Rows that need not be kept keep a part of a.
                f = problem.damped_rows(f)
                total = total * xp.exp(f / problem.tau_a)
        yield RowBlock(part, kernel, total, f)


def exp_of(array: Array) -> Array:
    """Return the exponentials of an array that is not needed any more, in its place if possible.

    Memory that is new to a process costs as much as a pass over it.
    """
    return np.exp(array, out=array) if isinstance(array, np.ndarray) else array.exp_()


def _less(bias: Array, array: Array) -> Array:
    """Return bias - array, in the same way."""
    if isinstance(array, np.ndarray) and array.dtype == bias.dtype and array.flags.writeable:
        return np.subtract(bias, array, out=array)
    return bias - array


def column_potentials(
    scores: Scores, problem: EntropicProblem, f: Array, parts: Sequence[slice]
) -> Array:
    r"""Return :math:`g_j = -\varepsilon \log \sum_i a_i e^{(f_i - M_{ij})/\varepsilon}`, (B, m).

    Where columns need not be kept, damped.
    """
    home = problem.home
    xp, (batch, _, _, m) = home.xp, scores.costs.shape
    log_a = xp.where(problem.a > 0.0, safe_log(problem.a), xp.zeros_like(problem.a) - xp.inf)
    level, total = None, None
    nothing = xp.zeros((batch, m), dtype=home.dtype, device=home.device)
    lowest = nothing + 0.25 * float(xp.finfo(home.dtype).min)
    with quiet():
        for part in parts:
            block = scores.block(part, nothing)
            block += (f[:, part] / problem.eps - scores.offset(part) + log_a[:, part])[:, :, None]
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
        return problem.damped_cols(-problem.eps * (level + xp.log(total)))


@dataclass(frozen=True, eq=False)
class Gibbs:
    """One entropic plan: rows made right from g, columns times `thin`.

    Everything in double precision, with a batch axis of one; rows are cut into blocks as for a
    `crowd` of members, which the plan was proven among.
    """

    costs: Costs
    problem: EntropicProblem
    alpha: Array
    g: Array
    thin: Array
    crowd: int = 0

    def __post_init__(self) -> None:
        for name in ("alpha", "g", "thin"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def home(self) -> Home:
        """Where the entries are computed."""
        return self.costs.home

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        *_, n, m = self.costs.shape
        return n, m

    @property
    def parts(self) -> list[slice]:
        """Blocks of rows that stay small."""
        return row_blocks(self.costs, self.crowd)

    @cached_property
    def _scores(self) -> Scores:
        return scores_at(self.costs, self.problem, self.alpha)

    def batches(self, parts: Sequence[slice]) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows of all members, each of shape (B, r, m)."""
        for part, kernel, total, _ in form_rows(self._scores, self.problem, self.g, parts):
            kernel *= (self.problem.a[:, part] / total)[:, :, None]
            kernel *= self.thin[:, None, :]
            yield part, kernel

    def blocks(self, parts: Sequence[slice]) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows, each of shape (r, m)."""
        for part, kernel in self.batches(parts):
            yield part, kernel[0, :, :]

    def dense(self) -> Array:
        """Return the plans of a whole batch, (B, n, m)."""
        parts = self.parts
        joined = JoinedRows(self.home, (*self.problem.a.shape, self.shape[1]), parts)
        for part, kernel in self.batches(parts):
            joined.add(part, kernel)
        return joined.whole()

    def detached(self) -> Gibbs:
        """The same plan from its mixed costs: a stack is the user's, who may write to it."""
        if not isinstance(self.costs, Stack):
            return self
        weights = self.alpha / self.problem.eps
        joined = JoinedRows(self.home, (*self.problem.a.shape, self.shape[1]), self.parts)
        for part in self.parts:
            joined.add(part, self.costs.rows(part).mix(weights))
        mixed = Stack(joined.whole()[:, None, :, :])
        return replace(self, costs=mixed, alpha=self.problem.eps)


class FirstPass(NamedTuple):
    """What is known once the plan has been formed.

    Attributes
    ----------
    g, f : arrays of shape (B, m) and (B, n)
        Potentials; rows are exact.
    masses : array of shape (B, m)
        What the columns weigh.
    kept : list of RowBlock
        The plan over a, where there is room for it, but for a factor of its columns.
    across : array of shape (B, m), optional
        That factor, where it is not one.
    """

    g: Array
    f: Array
    masses: Array
    kept: list[RowBlock]
    across: Array = None

    def columns(self, thin: Array) -> Array:
        """Return what columns of `kept` are times for those of the plan to be times `thin`."""
        return thin if self.across is None else thin * self.across


class Passes(Protocol):
    """What a proof asks of the plan at some weights, and how far off the answers may be."""

    @property
    def unit(self) -> float:
        """What a score is off by, relative to its parts."""
        ...

    @property
    def sums(self) -> float:
        """What a sum over points is off by, relative to that of the sizes."""
        ...

    def rounding(self) -> Rounding:
        """Bound the rounding of the mixed costs."""
        ...

    def doubt(self, phi: Array, u: Array, v: Array) -> Array:
        """Bound the rounding of group costs, (B, L), of a plan with marginals u and v."""
        ...

    def first(self, g: Array) -> FirstPass:
        """Form the plan of g."""
        ...

    def second(self, first: FirstPass, thin: Array) -> tuple[Array, Array]:
        """Return row sums over a and group costs of that plan with its columns times `thin`."""
        ...


class BlockPasses:
    """Passes over blocks of rows of the plan at the weights alpha, (B, L).

    The blocks of the first are kept for the second where there is room.
    """

    def __init__(
        self,
        costs: Costs,
        problem: EntropicProblem,
        alpha: Array,
        parts: list[slice],
        keeps: bool,
    ) -> None:
        self.problem, self.alpha, self.parts, self.keeps = problem, alpha, parts, keeps
        self.costs = costs
        self.scores: Scores = scores_at(costs, problem, alpha)

    @property
    def unit(self) -> float:
        """What a number is off by, of itself."""
        return unit_of(self.problem.home)

    @property
    def sums(self) -> float:
        """What a sum over points is off by: k terms err by k / 2 units at most, in any order."""
        _, _, n, m = self.costs.shape
        return (8.0 + 0.5 * (n + m)) * self.unit

    def rounding(self) -> Rounding:
        """Bound the rounding of the mixed costs."""
        return self.costs.rounding(self.alpha)

    def doubt(self, phi: Array, u: Array, v: Array) -> Array:
        """Bound the rounding of group costs, (B, L), of a plan with marginals u and v."""
        return self.costs.doubt(phi, u, v)

    def first(self, g: Array) -> FirstPass:
        """Form the plan once."""
        problem = self.problem
        kept, potentials, masses = [], [], 0.0
        for formed in form_rows(self.scores, problem, g, self.parts):
            potentials.append(formed.f)
            left = problem.a[:, formed.part] / formed.total
            masses = masses + (left[:, None, :] @ formed.kernel)[:, 0, :]
            if self.keeps:
                kept.append(formed)
        return FirstPass(g, problem.home.xp.concat(potentials, axis=1), masses, kept)

    def second(self, first: FirstPass, thin: Array) -> tuple[Array, Array]:
        """Return row sums over a and group costs of the plan with its columns times `thin`."""
        problem, scores = self.problem, self.scores
        sums, partials, right = [], 0.0, first.columns(thin)
        for block in first.kept or form_rows(scores, problem, first.g, self.parts):
            sums.append((block.kernel @ right[:, :, None])[:, :, 0] / block.total)
            left = problem.a[:, block.part] / block.total
            partials = partials + scores.partial(block.part, block.kernel, left, right)
        rows = problem.home.xp.concat(sums, axis=1)
        return rows, scores.total(partials, problem.a * rows, first.masses * thin)


def potentials_at(
    costs: Costs, problem: EntropicProblem, alpha: Array, f: Array, g: Array
) -> tuple[Array, Array]:
    r"""Return f and g with those of points without weight at their true places.

    .. math::
        f_i = -\varepsilon \log \sum_j b_j e^{(g_j - M_{ij})/\varepsilon}, \qquad
        g_j = -\varepsilon \log \sum_i a_i e^{(f_i - M_{ij})/\varepsilon}

    are what these would have with the least weight there is: the derivatives of the optimum by
    their weights.

    Parameters
    ----------
    costs : Costs
        The costs between the true places.
    f, g : arrays of shape (B, n) and (B, m)
        Right for points with weight.
    """
    absent_rows = np.flatnonzero((to_numpy(problem.a) == 0.0).any(axis=0))
    absent_cols = np.flatnonzero((to_numpy(problem.b) == 0.0).any(axis=0))
    _, _, n, m = costs.shape
    heavy = g
    if len(absent_cols):
        part = costs.take(np.arange(n), absent_cols)
        with quiet():
            scores = scores_at(part, problem, alpha)
            result = column_potentials(scores, problem, f, row_blocks(part))
        g = _put(problem, g, problem.b, result, absent_cols, m)
    if len(absent_rows):
        part = costs.take(absent_rows, np.arange(m))
        few = replace(problem, a=_take(problem, problem.a, absent_rows))
        result = _softmins(part, few, alpha, heavy)
        f = _put(problem, f, problem.a, result, absent_rows, n)
    return f, g


def _softmins(part: Costs, problem: EntropicProblem, alpha: Array, g: Array) -> Array:
    with quiet():
        blocks = form_rows(scores_at(part, problem, alpha), problem, g, row_blocks(part))
        return problem.home.xp.concat([block.f for block in blocks], axis=1)


def _take(problem: EntropicProblem, array: Array, index: np.ndarray) -> Array:
    return problem.home.xp.take(array, problem.home.indices(index), axis=1)


def _put(
    problem: EntropicProblem,
    old: Array,
    weights: Array,
    result: Array,
    index: np.ndarray,
    size: int,
) -> Array:
    """Return `old` with what was found for some points where they have no weight."""
    xp = problem.home.xp
    result = xp.where(xp.isfinite(result), result, xp.zeros_like(result))
    spread = np.zeros(size, dtype=np.int64)
    spread[index] = np.arange(len(index))
    return xp.where(weights > 0.0, old, _take(problem, result, spread))
