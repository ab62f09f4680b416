r"""Lazy plans: kept as potentials and weights, multiplied in blocks.

.. math::
    \Pi = \sum_t w_t \, \mathrm{diag}(a)\, e^{(f_t \oplus g_t - M_{\alpha_t}) / \varepsilon}\,
    \mathrm{diag}(b) + \sum_s u_s v_s^\top
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from frot._base.arrays import UNIT, Home, is_foreign, namespace, read_only, to_numpy
from frot.plans.plan import Arcs, Plan, entrywise, factor_type, is_rows, refuse, runs

# Plans of up to this many entries are kept once they have been formed.
KEEP_UP_TO = 4_000_000


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


class LazyPlan(Plan):
    """A plan whose entries are computed when they are used, a block of rows at a time.

    Products (``plan @ V``, ``plan.T @ U``), ``rows(i)``, ``plan[i, j]``, ``argmax()`` and sums take
    no more memory than a block; ``dense()`` forms the whole. Arrays that go in and come out are of
    the library and on the device that the points were on.

    Parameters
    ----------
    terms : sequence of (weight, PlanRows)
    ranks : sequence of (array of shape (n,), array of shape (m,))
        Products u v^T to be added: what the rounding to the marginals put in.
    phi : array of shape (L,), optional
        The plan's group costs, where they are known.
    out : Home, optional
        Where arrays that come out go, and their precision: to where they are computed, in double
        precision, if left out.

    Examples
    --------
    >>> import frot
    >>> X, Y = [[0.0, 0.0], [1.0, 1.0]], [[1.0, 3.0], [0.0, 2.0]]
    >>> plan = frot.solve(X, Y, eta=0.1, eps=0.1).plan
    >>> plan.sum(axis=1).round(12), (plan @ np.ones(2)).round(12)
    (array([0.5, 0.5]), array([0.5, 0.5]))
    """

    __slots__ = ("_formed", "_nnz", "out", "phi", "ranks", "terms")
    proven_marginals = 16.0 * UNIT

    def __init__(
        self,
        terms: Sequence[tuple[float, PlanRows]],
        ranks: Sequence[tuple[Any, Any]] = (),
        phi: Any = None,
        out: Home | None = None,
    ) -> None:
        self.terms, self.phi, self.out = tuple(terms), read_only(phi), out
        self.ranks = tuple((read_only(left), read_only(right)) for left, right in ranks)
        self._keep(self.terms[0][1].shape)
        # Once they were asked for: the whole of a small plan, and its entries that carry mass.
        self._formed: Any = None
        self._nnz: int | None = None

    @property
    def home(self) -> Home:
        """Where the entries are computed."""
        return self.terms[0][1].home

    def at(self, home: Home) -> LazyPlan:
        """The same plan for a user whose arrays live elsewhere or are of another precision."""
        return LazyPlan(self.terms, self.ranks, self.phi, home)

    def numpy(self) -> Plan:
        """The same plan for NumPy's arrays.

        A large one is not formed: it stays on the device that computes it, and blocks are copied.
        """
        if self.home.library == "numpy":
            return self if self.out is None else LazyPlan(self.terms, self.ranks, self.phi)
        if self._shape[0] * self._shape[1] <= KEEP_UP_TO:
            return Plan(self._whole(), copy=False)
        return self.at(Home.of(np.zeros(1)))

    @property
    def dtype(self) -> Any:
        """The kind of number that `dense` returns."""
        return (self.out or self.home).dtype

    def _give(self, found: Any, dtype: Any = None) -> Any:
        home, out = self.home, self.out or self.home
        if is_foreign(found) and out.library != home.library:
            found = to_numpy(found)
        found = out.bring(found, dtype)
        # [()] makes a number of an array that holds one.
        return found[()] if isinstance(found, np.ndarray) else found

    def _indices(self, found: Any) -> Any:
        out = self.out or self.home
        if is_foreign(found) and out.library == self.home.library:
            return found
        host = to_numpy(found)
        return host if out.library == "numpy" else out.indices(host)

    @property
    def count(self) -> int:
        """Number of entries that sums run over."""
        return self._shape[0] * self._shape[1] * len(self.terms)

    @property
    def nnz(self) -> int:
        """Number of entries that carry mass: all but those that are too small for a float."""
        if self._nnz is None:
            xp = self.home.xp
            found = (xp.sum(xp.astype(block != 0.0, xp.int64)) for _, block in self._blocks())
            self._nnz = sum(map(int, found))
        return self._nnz

    def _blocks(self, parts: Sequence[slice] | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows as arrays of shape (r, m), which may be parts of what is kept."""
        for part in self.terms[0][1].parts if parts is None else parts:
            yield part, self._block(part) if self._formed is None else self._formed[part, :]

    def _block(self, part: slice) -> Any:
        total = None
        for weight, rows in self.terms:
            for _, block in rows.blocks([part]):
                if weight != 1.0:
                    block *= weight
                total = block if total is None else total + block
        for left, right in self.ranks:
            total = total + left[part][:, None] * right[None, :]
        return total

    def _runs(self, rows: np.ndarray) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of the given rows, in their order and no larger than others."""
        return self._blocks(runs(rows, self.terms[0][1].parts[0].stop))

    def _form(self) -> Any:
        return self.home.xp.concat([block for _, block in self._blocks()], axis=0)

    def _native(self) -> Any:
        """The whole plan in the points' library; a small one is kept, and is not to be changed."""
        if self._formed is not None:
            return read_only(self._formed)
        formed = self._form()
        if self._shape[0] * self._shape[1] > KEEP_UP_TO:
            return formed
        self._formed = formed
        return read_only(formed)

    def _whole(self) -> np.ndarray:
        host = to_numpy(self._native())
        return host if self._formed is None else read_only(host)

    def _apart(self, dtype: Any) -> Any:
        """The whole plan in the points' library, with nothing that is kept in reach."""
        whole = self._native()
        kept = self._formed is not None and is_foreign(whole)
        return self._give(self.home.xp.asarray(whole, copy=True) if kept else whole, dtype)

    def dense(self) -> Any:
        """Return the plan as an array of shape (n, m): NumPy's, or that of the points' library."""
        return read_only(self._apart(None))

    def astype(self, dtype: Any) -> Any:
        """Return the plan as a fresh array of shape (n, m) of another kind of number."""
        found = self._apart(dtype)
        return np.array(found) if isinstance(found, np.ndarray) else found

    def _host_arcs(self) -> Arcs:
        found = [(part.start, to_numpy(block)) for part, block in self._blocks()]
        rows, cols = zip(*(np.nonzero(block) for _, block in found), strict=True)
        mass = [block[i, j] for (_, block), i, j in zip(found, rows, cols, strict=True)]
        rows = [start + i for (start, _), i in zip(found, rows, strict=True)]
        return np.concatenate(rows), np.concatenate(cols), np.concatenate(mass)

    def _cross(self, rows: np.ndarray, cols: np.ndarray | None) -> Any:
        home = self.home
        shape = rows.shape + ((self._shape[1],) if cols is None else cols.shape)
        if 0 in shape:
            return home.bring(np.zeros(shape))
        flat = None if cols is None else home.indices(cols.ravel())
        parts = [
            block if flat is None else home.xp.take(block, flat, axis=1)
            for _, block in self._runs(rows.ravel())
        ]
        return home.xp.reshape(home.xp.concat(parts, axis=0), shape)

    def _entries(self, rows: np.ndarray, cols: np.ndarray) -> Any:
        home, m = self.home, self._shape[1]
        if rows.size == 0:
            return home.bring(np.zeros(rows.shape))
        # By rows, so that each is computed once, and back again.
        order = np.argsort(rows, axis=None, kind="stable")
        i, j = rows.ravel()[order], cols.ravel()[order]
        parts = []
        for part, block in self._runs(np.unique(i)):
            here = slice(*np.searchsorted(i, (part.start, part.stop)))
            flat = home.indices((i[here] - part.start) * m + j[here])
            parts.append(home.xp.take(home.xp.reshape(block, (-1,)), flat, axis=0))
        found = home.xp.concat(parts, axis=0)
        found = home.xp.take(found, home.indices(np.argsort(order)), axis=0)
        return home.xp.reshape(found, rows.shape)

    def _entrywise(self, ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
        return entrywise(self.out or self.home, ufunc, method, inputs, kwargs)

    def _factor(self, other: Any) -> tuple[Any, Any]:
        """Bring a factor here; return it and the precision that the product goes back in."""
        home = self.home
        dtype = factor_type(self.out or home, other)
        if not is_foreign(other) or home.library != Home.of(other).library:
            host = np.asarray(to_numpy(other), dtype=float)
            return home.bring(host, home.xp.float64), dtype
        return home.xp.astype(other, home.xp.float64), dtype

    def __matmul__(self, other: Any) -> Any:
        other, dtype = self._factor(other)
        parts = [block @ other for _, block in self._blocks()]
        return self._give(self.home.xp.concat(parts, axis=max(0, other.ndim - 2)), dtype)

    def __rmatmul__(self, other: Any) -> Any:
        other, dtype = self._factor(other)
        products = (other[..., part] @ block for part, block in self._blocks())
        return self._give(reduce(add, products), dtype)

    def transposed_product(self, other: Any) -> Any:
        """Return ``plan.T @ other``."""
        other, dtype = self._factor(other)
        turn = self.home.xp.matrix_transpose
        vector = other.ndim == 1
        products = (
            turn(block) @ (other[part] if vector else other[..., part, :])
            for part, block in self._blocks()
        )
        return self._give(reduce(add, products), dtype)

    @property
    def T(self) -> TransposedPlan:  # noqa: N802 - NumPy's name
        """The transposed plan, computed in blocks too."""
        return TransposedPlan(self)

    def sum(self, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        """Total mass, or the marginals."""
        refuse("sum", dtype, out)
        xp = self.home.xp
        if is_rows(axis):
            return self._give(self._each_row(xp.sum))
        total = reduce(add, (xp.sum(block, axis=0) for _, block in self._blocks()))
        return float(xp.sum(total)) if axis is None else self._give(total)

    def max(self, axis: int | None = None, out: Any = None) -> Any:
        """Return the largest entry, or that of each row (``axis=1``) or column."""
        refuse("max", out)
        xp = self.home.xp
        if axis is None:
            return max(float(xp.max(block)) for _, block in self._blocks())
        if is_rows(axis):
            return self._give(self._each_row(xp.max))
        return self._give(self._column_tops()[0])

    def argmax(self, axis: int | None = 1, out: Any = None) -> Any:
        """Where most of each row's (``axis=1``) or column's mass goes; None: the largest entry."""
        refuse("argmax", out)
        xp = self.home.xp
        if axis is None:
            tops = [
                (float(xp.max(block)), -part.start * self._shape[1] - int(xp.argmax(block)))
                for part, block in self._blocks()
            ]
            return -max(tops)[1]
        if is_rows(axis):
            return self._indices(self._each_row(xp.argmax))
        return self._indices(self._column_tops()[1])

    def _each_row(self, reduced: Any) -> Any:
        rows = [reduced(block, axis=1) for _, block in self._blocks()]
        return self.home.xp.concat(rows, axis=0)

    def _column_tops(self) -> tuple[Any, Any]:
        """The largest entry of each column, and the first row that has it."""
        xp = self.home.xp
        best, where = None, None
        for part, block in self._blocks():
            top, at = xp.max(block, axis=0), xp.argmax(block, axis=0) + part.start
            if best is None:
                best, where = top, at
            else:
                where = xp.where(top > best, at, where)
                best = xp.maximum(best, top)
        return best, where

    def __repr__(self) -> str:
        n, m = self.shape
        return f"LazyPlan({n} x {m}, {self.kind})"

    @property
    def kind(self) -> str:
        """What it is kept as, in words."""
        return "lazy" if len(self.terms) == 1 else f"{len(self.terms)} lazy plans"

    def expand(self, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]) -> LazyPlan:
        """Place this plan's rows and columns, ascending, among those of a larger one of zeros."""
        terms = [(weight, SpreadRows(inner, rows, cols, shape)) for weight, inner in self.terms]
        ranks = [
            (
                _spread_vector(self.home, left, rows, shape[0]),
                _spread_vector(self.home, right, cols, shape[1]),
            )
            for left, right in self.ranks
        ]
        return LazyPlan(terms, ranks, self.phi, self.out)

    @classmethod
    def combine(cls, plans: Sequence[Plan], weights: Any) -> Plan:
        """Return the weighted sum: lazy where all plans are, each kept as it is."""
        used = [(plan, float(w)) for plan, w in zip(plans, weights, strict=True) if w != 0.0]
        if not used or not all(isinstance(plan, LazyPlan) for plan, _ in used):
            return Plan.combine(plans, weights)
        terms, ranks, phi = [], [], 0.0
        for plan, w in used:
            assert isinstance(plan, LazyPlan)
            terms += [(w * weight, rows) for weight, rows in plan.terms]
            ranks += [(w * left, right) for left, right in plan.ranks]
            phi = None if plan.phi is None or phi is None else phi + w * plan.phi
        return cls(terms, ranks, phi)


class SpreadRows(PlanRows):
    """Rows of a plan among more points than it has: the others carry nothing.

    Parameters
    ----------
    inner : PlanRows
    rows, cols : arrays of int, ascending
        Where its rows and columns are among all.
    shape : pair of int
        Number of all rows and columns.
    """

    def __init__(
        self, inner: PlanRows, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]
    ) -> None:
        self.inner, self.rows, self._shape = inner, rows, shape
        # The column that each one has in the inner plan; those that have none get one of zeros.
        self._columns = np.full(shape[1], len(cols))
        self._columns[cols] = np.arange(len(cols))

    @property
    def home(self) -> Home:
        """Where the entries are computed."""
        return self.inner.home

    @property
    def shape(self) -> tuple[int, int]:
        """Number of all rows and columns."""
        return self._shape

    @property
    def parts(self) -> Sequence[slice]:
        """Blocks of as many rows as the inner plan has in one."""
        (n, _), step = self._shape, self.inner.parts[0].stop
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def blocks(self, parts: Sequence[slice]) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows, each of shape (r, m)."""
        for part in parts:
            first, last = np.searchsorted(self.rows, (part.start, part.stop)).tolist()
            within = self.rows[first:last] - part.start
            found = [block for _, block in self.inner.blocks([slice(first, last)] * (last > first))]
            yield part, self._spread(found, within, part.stop - part.start)

    def _spread(self, blocks: list[Any], within: np.ndarray, count: int) -> Any:
        """Place rows of the inner plan, if there are any, among `count` rows of all columns."""
        home = self.home
        xp, m = home.xp, self._shape[1]
        if not blocks:
            return home.bring(np.zeros((count, m)), home.xp.float64)
        block = xp.concat([blocks[0], xp.zeros_like(blocks[0][:, :1])], axis=1)
        block = xp.take(block, home.indices(self._columns), axis=1)
        if len(within) == count:
            return block
        block = xp.concat([block, xp.zeros_like(block[:1, :])], axis=0)
        places = np.full(count, len(within))
        places[within] = np.arange(len(within))
        return xp.take(block, home.indices(places), axis=0)


def _spread_vector(home: Home, vector: Any, index: np.ndarray, size: int) -> Any:
    """Place the entries of a vector among zeros."""
    places = np.full(size, len(index))
    places[index] = np.arange(len(index))
    longer = home.xp.concat([vector, home.xp.zeros_like(vector[:1])], axis=0)
    return home.xp.take(longer, home.indices(places), axis=0)


class TransposedPlan(Plan):
    """``plan.T`` of a lazy plan, which computes what the plan computes.

    Its rows are the plan's columns, so that one of them takes a pass over the plan.

    Examples
    --------
    >>> import frot
    >>> X, Y = [[0.0, 0.0], [1.0, 1.0]], [[1.0, 3.0], [0.0, 2.0]]
    >>> turned = frot.solve(X, Y, eta=0.1, eps=0.1).plan.T
    >>> turned, turned.sum(axis=1).round(12), turned[0].round(3)
    (TransposedPlan(2 x 2, lazy), array([0.5, 0.5]), array([0. , 0.5]))
    """

    __slots__ = ("_plan",)

    def __init__(self, plan: LazyPlan) -> None:
        self._plan = plan
        self._keep(plan.shape[::-1])

    @property
    def T(self) -> LazyPlan:  # noqa: N802 - NumPy's name
        """The plan itself."""
        return self._plan

    def numpy(self) -> Plan:
        """The same plan for NumPy's arrays."""
        return self._plan.numpy().T

    @property
    def dtype(self) -> Any:
        """The kind of number that `dense` returns."""
        return self._plan.dtype

    @property
    def count(self) -> int:
        """Number of entries that sums run over."""
        return self._plan.count

    @property
    def nnz(self) -> int:
        """Number of entries that carry mass."""
        return self._plan.nnz

    def _give(self, found: Any, dtype: Any = None) -> Any:
        return self._plan._give(found, dtype)

    def _indices(self, found: Any) -> Any:
        return self._plan._indices(found)

    def _whole(self) -> np.ndarray:
        return self._plan._whole().T

    def _host_arcs(self) -> Arcs:
        cols, rows, mass = self._plan._host_arcs()
        order = np.argsort(rows, kind="stable")
        return rows[order], cols[order], mass[order]

    def _cross(self, rows: np.ndarray, cols: np.ndarray | None) -> Any:
        cols = np.arange(self._shape[1]) if cols is None else cols
        found = self._plan._cross(cols, rows)
        if rows.ndim == 0 or cols.ndim == 0:
            return found
        return _turned(found)

    def _entries(self, rows: np.ndarray, cols: np.ndarray) -> Any:
        return self._plan._entries(cols, rows)

    def _entrywise(self, ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
        return self._plan._entrywise(ufunc, method, inputs, kwargs)

    def dense(self) -> Any:
        """Return the plan as an array of shape (n, m): NumPy's, or that of the points' library."""
        return read_only(_turned(self._plan.dense()))

    def astype(self, dtype: Any) -> Any:
        """Return the plan as a fresh array of shape (n, m) of another kind of number."""
        return _turned(self._plan.astype(dtype))

    def sum(self, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        """Total mass, or the marginals."""
        return self._plan.sum(_other(axis), dtype, out)

    def max(self, axis: int | None = None, out: Any = None) -> Any:
        """Return the largest entry, or that of each row (``axis=1``) or column."""
        return self._plan.max(_other(axis), out)

    def argmax(self, axis: int | None = 1, out: Any = None) -> Any:
        """Where most of each row's (``axis=1``) or column's mass goes; None: the largest entry."""
        if axis is not None:
            return self._plan.argmax(_other(axis), out)
        refuse("argmax", out)
        # The first of equal entries is another one in this order.
        tops, where = self._plan._column_tops()
        row = int(namespace(tops).argmax(tops))
        return row * self._shape[1] + int(where[row])

    def __matmul__(self, other: Any) -> Any:
        return self._plan.transposed_product(other)

    def __rmatmul__(self, other: Any) -> Any:
        found = self._plan @ _turned(np.asarray(other) if isinstance(other, list) else other)
        return _turned(found)

    def __repr__(self) -> str:
        n, m = self.shape
        return f"TransposedPlan({n} x {m}, {self._plan.kind})"


def _other(axis: Any) -> int | None:
    rows = is_rows(axis)
    return None if axis is None else 0 if rows else 1


def _turned(array: Any) -> Any:
    """Transpose a matrix of any library; a vector is its own."""
    if array.ndim < 2:
        return array
    return namespace(array).matrix_transpose(array)
