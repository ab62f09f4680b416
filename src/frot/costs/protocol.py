"""`Costs`: the one protocol of group costs, and bounds on their rounding.

Costs are L matrices (n, m) of one problem, or of B problems of one shape, with a leading axis of
every array that goes in or comes out: below, "(..., L)" is (L,) or (B, L). Arrays are NumPy's or
PyTorch's, where the costs are (`Costs.home`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import Array, Home, blocks, summation, to_numpy, unit_of
from frot.plans.plan import Plan, is_sparse


class Rounding(NamedTuple):
    """Entry (i, j) of a mixed cost is right to ``relative * |entry| + rows[i] + cols[j]``.

    The part of a point is weighted in a bound on a plan's cost by the point's
    weight: a far point of little weight costs next to nothing. Numbers, or arrays of shape (n,)
    and (m,); of a batch (B,), (B, n) and (B, m). `relative` is zero unless no cost is negative.
    """

    relative: Array
    rows: Array = 0.0
    cols: Array = 0.0

    @property
    def sums(self) -> np.ndarray:
        """``rows[i] + cols[j]``, of the shape (n, m) or of one that broadcasts to it."""
        return np.add.outer(np.atleast_1d(self.rows), np.atleast_1d(self.cols))


class Line(NamedTuple):
    """Points on a line, whose cost is |x - y|^p with p >= 1: transport is sorting."""

    x: np.ndarray
    y: np.ndarray
    p: float


class Costs(ABC):
    """L cost matrices of shape (n, m), seen only through sums over groups or over entries.

    The objective depends on a plan through the L numbers ``inner(plan)`` and on the weights
    through the one matrix ``mix(alpha)``; nothing else has to know how costs are stored.

    A class of your own derives from this one and says `shape`, `mix` and `at`; where it does not
    live in NumPy, `home` too. The rest follows from these, and is there to be said again where
    more is known: that no cost is negative, how a plan is summed, what every plan pays at least.
    Entries of ``mix`` and ``at`` count as exact: where they are not, widen `rounding` and `doubt`.

    Attributes
    ----------
    nonnegative : bool
        Whether every entry of every cost is known to be >= 0.
    line : Line, optional
        The points on a line whose convex cost this is, where it is.

    Examples
    --------
    >>> import frot
    >>> class Ramp(frot.costs.Costs):
    ...     "Group l costs l + 1 times |i - j|."
    ...     shape, nonnegative = (2, 3, 3), True
    ...     def mix(self, alpha):
    ...         i = np.arange(3.0)
    ...         return (alpha @ [1.0, 2.0]) * np.abs(i[:, None] - i)
    ...     def at(self, rows, cols):
    ...         return np.outer([1.0, 2.0], np.abs(rows - cols))
    >>> a, b = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.5])
    >>> round(frot.Exact()(frot.Problem(Ramp(), a, b)).value, 12)
    3.0
    """

    nonnegative: bool = False
    line: Line | None = None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """(..., L, n, m)."""

    @abstractmethod
    def mix(self, alpha: Array) -> Array:
        """Return sum_l alpha_l C_l, (..., n, m), for any weights alpha >= 0; the caller's own."""

    @abstractmethod
    def at(self, rows: np.ndarray, cols: np.ndarray) -> Array:
        """Return C_l at the arcs (rows[k], cols[k]), (..., L, K); their ends are on the host."""

    @property
    def home(self) -> Home:
        """The library, device and precision of what goes in and comes out."""
        return HOST

    @property
    def given(self) -> Any:
        """The precision that they were given in: a search need have no better one."""
        return self.home.dtype

    def matrices(self) -> Iterator[tuple[int, slice, Array]]:
        """Yield the matrix of one group after the other, or blocks of its rows, (..., r, m).

        With each come the number of the group and the rows.
        """
        *_, count, n, _ = self.shape
        for group, alone in enumerate(np.eye(count)):
            # The same weights for every problem.
            alpha = np.broadcast_to(alone, self.shape[:-2])
            yield group, slice(0, n), self.mix(self.home.bring(alpha))

    def _folded(
        self, fold: Callable[[Array, Array], Array], number: Callable[[slice, Array], Array]
    ) -> Array:
        """Return a number of every group, (..., L): those of its blocks, folded."""
        totals: list[Array] = [None] * self.shape[-3]
        for group, part, block in self.matrices():
            mine = number(part, block)
            totals[group] = mine if totals[group] is None else fold(totals[group], mine)
        return self.home.xp.stack(totals, axis=-1)

    def inner(self, plan: Plan | Array) -> Array:
        """Return phi_l = <plan, C_l>, (..., L), of a `Plan` or of an array (..., n, m).

        A plan of few arcs costs these only.
        """
        home, count = self.home, self.shape[-3]
        on_host = home.library == "numpy"
        if not isinstance(plan, Plan):
            if not on_host or plan.ndim > 2:
                return self._dense_inner(plan)
            plan = Plan(plan, copy=False)
        if not on_host and not is_sparse(plan):
            return self.inner(home.bring(to_numpy(plan.dense())))
        rows, cols, mass = plan.arcs()
        if not on_host:
            # PyTorch warns of arrays that are read-only.
            rows, cols = rows.copy(), cols.copy()
        total = 0.0
        for part in blocks(len(mass), 16 * count):
            total = total + self.at(rows[part], cols[part]) @ home.bring(mass[part])
        return total

    def _dense_inner(self, plan: Array) -> Array:
        """Return <plan, C_l>, (..., L), of an array (..., n, m), one matrix after the other."""
        xp = self.home.xp
        return self._folded(
            xp.add, lambda part, block: xp.sum(plan[..., part, :] * block, axis=(-2, -1))
        )

    def product(self, u: Array, v: Array) -> Array:
        """Return <u v^T, C_l>, (..., L), of weights (..., n) and (..., m)."""
        return self._folded(
            self.home.xp.add,
            lambda part, block: ((block @ v[..., :, None])[..., 0] * u[..., part]).sum(-1),
        )

    def sizes(self, u: Array, v: Array) -> Array:
        """Return <u v^T, abs(C_l)>, (..., L): the unit of every group, zero if all costs are."""
        if self.nonnegative:
            return self.product(u, v)
        return self._folded(
            self.home.xp.add,
            lambda part, block: ((abs(block) @ v[..., :, None])[..., 0] * u[..., part]).sum(-1),
        )

    @cached_property
    def peaks(self) -> Array:
        """Bounds on the sizes of the entries of each group, (..., L)."""
        xp = self.home.xp
        return self._folded(xp.maximum, lambda _, block: xp.max(abs(block), axis=(-2, -1)))

    def stack(self) -> Array:
        """Return all costs, (..., L, n, m)."""
        home, shape = self.home, self.shape
        whole = home.xp.empty(shape, dtype=home.dtype, device=home.device)
        for group, part, block in self.matrices():
            whole[..., group, part, :] = block
        return whole

    def entries(self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray) -> Array:
        """Return the costs of some groups at the arcs, (number of groups, K), of one problem."""
        return self.at(rows, cols)[groups]

    def take(self, rows: np.ndarray, cols: np.ndarray) -> Costs:
        """Return the costs between some of the points, which may repeat: a stack."""
        # Not above: it is a kind of costs itself.
        from frot.costs.stack import part_of

        return part_of(self, np.asarray(rows), np.asarray(cols))

    def rows(self, part: slice) -> Costs:
        """Return the costs of some rows."""
        *_, n, m = self.shape
        start, stop, _ = part.indices(n)
        return self if stop - start == n else self.take(np.arange(start, stop), np.arange(m))

    def members(self, index: Array) -> Costs:
        """Return the costs of some problems of a batch."""
        return self

    def member(self, index: int) -> Costs:
        """Return the costs of one problem of a batch."""
        return self

    def batch(self) -> Costs:
        """Return the costs of one problem as those of a batch of one, which sweeps work on."""
        return Batch((self,))

    def to(self, home: Home) -> Costs:
        """Return the costs in another precision, where that is possible; elsewhere as a stack."""
        if home.library == self.home.library:
            return self
        # Not above: it is a kind of costs itself.
        from frot.costs.stack import stack_of

        return stack_of(self).to(home)

    def double(self) -> Costs:
        """Return the costs in double precision."""
        return self.to(self.home.double())

    def single(self) -> Costs:
        """Return the costs in single precision, where that is possible."""
        return self.to(replace(self.home, dtype=self.home.xp.float32))

    def rescaled(self, scale: np.ndarray, shift: np.ndarray | None = None) -> Costs:
        """Return the costs ``scale_l * (C_l - shift_l)``, for (L,) on the host."""
        # Not above: it is a kind of costs itself.
        from frot.costs.stack import stack_of

        return stack_of(self).rescaled(scale, shift)

    def rounding(self, alpha: Array) -> Rounding:
        """Return bounds on the rounding errors of the entries of ``mix(alpha)``.

        Those of a sum over groups: relative where no term is negative.
        """
        xp, unit = self.home.xp, unit_of(self.home)
        share = unit * (2.0 + xp.sum(xp.astype(alpha != 0.0, alpha.dtype), axis=-1))
        if self.nonnegative:
            return Rounding(share, 0.0 * share[..., None], 0.0 * share[..., None])
        size = share * xp.sum(xp.abs(alpha) * self.peaks, axis=-1)
        return Rounding(0.0 * share, size[..., None], 0.0 * share[..., None])

    def doubt(self, phi: Array, u: Array, v: Array, entries: int | None = None) -> Array:
        """Return bounds, (..., L), on the rounding errors of ``phi = inner(plan)``.

        Parameters
        ----------
        phi : array of shape (..., L)
        u, v : arrays of shape (..., n) and (..., m)
            The marginals of the plan.
        entries : int, optional
            Of a `Plan`, the number of entries it is kept as.
        """
        *_, n, m = self.shape
        xp, share = self.home.xp, summation(entries or n * m, unit_of(self.home))
        return share * (
            xp.abs(phi) if self.nonnegative else self.peaks * xp.sum(u, axis=-1)[..., None]
        )


HOST = Home.of(np.zeros(1))


@dataclass(frozen=True, eq=False)
class Batch(Costs):
    """Problems of one shape whose costs know of no batch axis, worked on one after the other."""

    problems: tuple[Costs, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """(B, L, n, m)."""
        return (len(self.problems), *self.problems[0].shape)

    @property
    def home(self) -> Home:
        """Where they are."""
        return self.problems[0].home

    @property
    def given(self) -> Any:
        """The precision that they were given in."""
        return self.problems[0].given

    @cached_property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """Whether no cost of any of them is known to be negative."""
        return all(costs.nonnegative for costs in self.problems)

    def _joined(self, parts: list[Array]) -> Array:
        """Return arrays of the problems as one, with a leading axis."""
        return parts[0][None, ...] if len(parts) == 1 else self.home.xp.stack(parts)

    def mix(self, alpha: Array) -> Array:
        """Return the mixed costs."""
        return self._joined([c.mix(alpha[k, :]) for k, c in enumerate(self.problems)])

    def at(self, rows: np.ndarray, cols: np.ndarray) -> Array:
        """Return the costs at the arcs."""
        return self._joined([costs.at(rows, cols) for costs in self.problems])

    def inner(self, plan: Array) -> Array:
        """Return the costs of plans."""
        return self._joined([c.inner(plan[k, ...]) for k, c in enumerate(self.problems)])

    def product(self, u: Array, v: Array) -> Array:
        """Return the costs of u v^T."""
        return self._joined([c.product(u[k, :], v[k, :]) for k, c in enumerate(self.problems)])

    def sizes(self, u: Array, v: Array) -> Array:
        """Return the mean sizes."""
        return self._joined([c.sizes(u[k, :], v[k, :]) for k, c in enumerate(self.problems)])

    @cached_property
    def peaks(self) -> Array:
        """The largest entries."""
        return self._joined([costs.peaks for costs in self.problems])

    def stack(self) -> Array:
        """Return all costs."""
        return self._joined([costs.stack() for costs in self.problems])

    def rounding(self, alpha: Array) -> Rounding:
        """Bound the rounding of the mixed costs as the problems do."""
        xp, (*_, n, m), parts = self.home.xp, self.shape, []
        for k, costs in enumerate(self.problems):
            nothing, (relative, rows, cols) = 0.0 * alpha[k, :1], costs.rounding(alpha[k, :])
            spread = xp.broadcast_to(nothing + rows, (n,)), xp.broadcast_to(nothing + cols, (m,))
            parts.append((nothing[0] + relative, *spread))
        return Rounding(*(self._joined(list(each)) for each in zip(*parts, strict=True)))

    def doubt(self, phi: Array, u: Array, v: Array, entries: int | None = None) -> Array:
        """Bound the rounding of plans' costs as the problems do."""
        each = enumerate(self.problems)
        return self._joined([c.doubt(phi[k, :], u[k, :], v[k, :], entries) for k, c in each])

    def take(self, rows: np.ndarray, cols: np.ndarray) -> Batch:
        """Return the costs between some points, the same ones of every problem."""
        return Batch(tuple(costs.take(rows, cols) for costs in self.problems))

    def rows(self, part: slice) -> Batch:
        """Return the costs of some rows."""
        return Batch(tuple(costs.rows(part) for costs in self.problems))

    def members(self, index: Array) -> Batch:
        """Return some of the problems."""
        return Batch(tuple(self.problems[k] for k in to_numpy(index).tolist()))

    def member(self, index: int) -> Costs:
        """Return one of the problems."""
        return self.problems[index]

    def to(self, home: Home) -> Batch:
        """Return the costs in another place or precision."""
        moved = tuple(costs.to(home) for costs in self.problems)
        same = all(new is old for new, old in zip(moved, self.problems, strict=True))
        return self if same else Batch(moved)
