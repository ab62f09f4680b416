r"""Lazy plans: kept as potentials and weights, multiplied in blocks.

.. math::
    \Pi = \sum_t w_t \, \mathrm{diag}(a)\, e^{(f_t \oplus g_t - M_{\alpha_t}) / \varepsilon}\,
    \mathrm{diag}(b) + \sum_s u_s v_s^\top
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from frot._base.arrays import Array, Home, is_foreign, read_only, to_numpy
from frot.plans.plan import Arcs, Plan, check_axis, factor_type, positions, transposed


class PlanRows(Protocol):
    """What makes the rows of one plan, a block at a time, in double precision."""

    @property
    def home(self) -> Home:
        """Where the entries are computed."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        ...

    @property
    def parts(self) -> Sequence[slice]:
        """The blocks of rows to ask for, so that each stays small."""
        ...

    def blocks(self, parts: Sequence[slice]) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows, each of shape (r, m)."""
        ...

    def detached(self) -> PlanRows:
        """The same rows, made from nothing that a user may write to."""
        return self


class LazyPlan(Plan):
    """A plan whose entries are computed when they are used, a block of rows at a time.

    Products (``plan @ V``, ``plan.T @ U``), ``rows(i)``, ``argmax()`` and sums take no more memory
    than a block; ``dense()``, ``arcs()`` and ``np.asarray(plan)`` form the whole. A row of the
    transposed plan is a column, so that it takes a pass over the plan.

    Parameters
    ----------
    components : sequence of (weight, PlanRows)
    rank_one : sequence of (array of shape (n,), array of shape (m,))
        Products u v^T to be added: what the rounding to the marginals put in.

    Examples
    --------
    >>> import frot
    >>> X, Y = [[0.0, 0.0], [1.0, 1.0]], [[1.0, 3.0], [0.0, 2.0]]
    >>> plan = frot.solve(X, Y, eta=0.1, eps=0.1).plan
    >>> plan.sum(axis=1).round(12), (plan @ np.ones(2)).round(12)
    (array([0.5, 0.5]), array([0.5, 0.5]))
    """

    # Plans of a device of up to so many entries are formed for whoever wants them on the host.
    form_up_to = 4_000_000
    __slots__ = ("_components", "_is_transposed", "_rank_one")

    def __init__(
        self, components: Sequence[tuple[float, PlanRows]], rank_one: Sequence[tuple[Any, Any]] = ()
    ) -> None:
        self._components, self._rank_one = tuple(components), tuple(rank_one)
        self._keep(self._components[0][1].shape)
        # Arrays that come out go to where they are computed, unless the user's are elsewhere.
        self._home = self._work
        # Of the transposed plan, rows are the columns of what the components make.
        self._is_transposed = False

    @property
    def _work(self) -> Home:
        """Where the entries are computed."""
        return self._components[0][1].home

    @property
    def T(self) -> LazyPlan:  # noqa: N802 - NumPy's name
        """The transposed plan, computed in blocks too."""
        plan = copy(self)
        plan._is_transposed, plan._shape = not self._is_transposed, (self._shape[1], self._shape[0])
        return plan

    def _at(self, home: Home | None) -> Plan:
        """The same plan for a user elsewhere; a large one stays where it is computed."""
        small = self._n_entries <= self.form_up_to
        if home is None and self._work.library != "numpy" and small:
            return Plan(self._whole(), copy=False)
        plan = copy(self)
        plan._components = tuple((weight, rows.detached()) for weight, rows in self._components)
        plan._home = Home.of(np.zeros(1)) if home is None else home
        return plan

    @property
    def _n_entries(self) -> int:
        """Number of entries that sums run over."""
        return self._shape[0] * self._shape[1] * len(self._components)

    @property
    def _kind(self) -> str:
        """What it is kept as, in words."""
        return "lazy" if len(self._components) == 1 else f"{len(self._components)} lazy plans"

    def _out(self, array: Array, dtype: Any = None) -> Array:
        home = self._home or self._work
        if is_foreign(array) and home.library != self._work.library:
            array = to_numpy(array)
        return home.bring(array, dtype)

    def _out_index(self, index: Array) -> Array:
        home = self._home or self._work
        if is_foreign(index) and home.library == self._work.library:
            return index
        host = to_numpy(index)
        return host if home.library == "numpy" else home.indices(host)

    def _blocks(self, parts: Sequence[slice] | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows as arrays of shape (r, m), of the plan before it was transposed."""
        for part in self._components[0][1].parts if parts is None else parts:
            total = None
            for weight, rows in self._components:
                for _, block in rows.blocks([part]):
                    if weight != 1.0:
                        block *= weight
                    total = block if total is None else total + block
            for left, right in self._rank_one:
                total = total + left[part][:, None] * right[None, :]
            yield part, total

    def _native(self) -> Array:
        """The whole plan in the library that computes it."""
        whole = self._work.xp.concat([block for _, block in self._blocks()], axis=0)
        return transposed(whole) if self._is_transposed else whole

    def _whole(self) -> np.ndarray:
        return to_numpy(self._native())

    def _matrix(self) -> np.ndarray:
        return self._whole()

    def _host_arcs(self) -> Arcs:
        parts = []
        for part, block in self._blocks():
            host = to_numpy(block)
            rows, cols = np.nonzero(host)
            parts.append((rows + part.start, cols, host[rows, cols]))
        rows, cols, mass = (np.concatenate(each) for each in zip(*parts, strict=True))
        if not self._is_transposed:
            return rows, cols, mass
        order = np.argsort(cols, kind="stable")
        return cols[order], rows[order], mass[order]

    def dense(self) -> Array:
        """Return the plan as an array of shape (n, m): NumPy's, or that of the points' library."""
        return read_only(self._out(self._native()))

    def rows(self, index: Array) -> Array:
        """Return rows by number, slice, mask or list of numbers: (m,) or (r, m)."""
        index, xp = positions(index, self._shape[0]), self._work.xp
        shape = (*index.shape, self._shape[1])
        if index.size == 0:
            return self._out(np.zeros(shape))
        if self._is_transposed:
            flat = self._work.indices(index.ravel())
            columns = [xp.take(block, flat, axis=1) for _, block in self._blocks()]
            picked = transposed(xp.concat(columns, axis=0))
        else:
            parts = _runs(index.ravel(), self._components[0][1].parts[0].stop)
            picked = xp.concat([block for _, block in self._blocks(parts)], axis=0)
        return self._out(xp.reshape(picked, shape))

    def sum(self, axis: int | None = None) -> Array:
        """Total mass, or the marginals."""
        check_axis(axis)
        xp = self._work.xp
        if (axis == 1) != self._is_transposed:
            result = xp.concat([xp.sum(block, axis=1) for _, block in self._blocks()], axis=0)
        else:
            result = reduce(add, (xp.sum(block, axis=0) for _, block in self._blocks()))
        return float(xp.sum(result)) if axis is None else self._out(result)

    def argmax(self, axis: int = 1) -> Array:
        """Where most of each row's (``axis=1``) or column's mass goes, the first of equals."""
        check_axis(axis)
        xp = self._work.xp
        if (axis == 1) != self._is_transposed:
            rows = [xp.argmax(block, axis=1) for _, block in self._blocks()]
            return self._out_index(xp.concat(rows, axis=0))
        best, where = None, None
        for part, block in self._blocks():
            top, row = xp.max(block, axis=0), xp.argmax(block, axis=0) + part.start
            if best is not None:
                row = xp.where(top > best, row, where)
                top = xp.maximum(top, best)
            best, where = top, row
        return self._out_index(where)

    def __matmul__(self, other: Array) -> Array:
        work = self._work
        dtype = factor_type(self._home or work, other)
        if is_foreign(other) and Home.of(other).library == work.library:
            other = work.xp.astype(other, work.xp.float64)
        else:
            other = work.bring(np.asarray(to_numpy(other), dtype=float), work.xp.float64)
        if self._is_transposed:
            products = (transposed(block) @ other[part, ...] for part, block in self._blocks())
            result = reduce(add, products)
        else:
            result = work.xp.concat([block @ other for _, block in self._blocks()], axis=0)
        return self._out(result, dtype)

    def __rmatmul__(self, other: Array) -> Array:
        return transposed(self.T @ transposed(other))


def _runs(index: np.ndarray, most: int) -> list[slice]:
    """Cut row numbers where they do not ascend by one, and after at most `most`.

    Examples
    --------
    >>> _runs(np.array([4, 5, 6, 2]), 2)
    [slice(4, 6, None), slice(6, 7, None), slice(2, 3, None)]
    """
    ends = np.flatnonzero(np.diff(index) != 1) + 1
    return [
        slice(int(run[start]), int(run[min(start + most, len(run)) - 1]) + 1)
        for run in np.split(index, ends)
        for start in range(0, len(run), most)
    ]
