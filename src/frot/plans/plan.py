"""`Plan`: transport plans, dense or sparse, and what every plan can do.

Plans are found on the host; `PlanAt` is one whose user has arrays of another library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy import sparse

from frot._base.arrays import Home, is_foreign, read_only, to_numpy
from frot._base.errors import InputError
from frot._base.validate import check_entries

Arcs = tuple[np.ndarray, np.ndarray, np.ndarray]

# Of so many arcs it pays to count how many of them a point has.
COUNTED_FROM = 64


class Plan(NDArrayOperatorsMixin):
    r"""A transport plan :math:`\Pi` of shape (n, m) that turns dense only when asked to.

    A vertex of the transport polytope has at most n + m - 1 entries, so exact solvers keep
    plans as arcs. A `Plan` still goes wherever an array goes: ``np.asarray(plan)``, ``plan * C``,
    ``plan[i]``, ``plan @ V`` and ``plan.T @ U`` all work, the last three without making it dense.

    A plan does not change: ``dense()``, ``arcs()`` and ``np.asarray(plan)`` are read-only, and
    ``np.array(plan)`` is a copy to work on. `PlanLike` is all that plans of every kind can do.

    Parameters
    ----------
    matrix : array of shape (n, m) or scipy.sparse array of shape (n, m)
        The entries :math:`\pi_{ij} \ge 0`.
    copy : bool
        False takes `matrix` as it is, unchecked, and leaves it to the caller not to change it.

    Examples
    --------
    >>> plan = Plan.from_arcs([0, 1], [1, 0], [0.5, 0.5], (2, 2))
    >>> plan.sum(axis=1)
    array([0.5, 0.5])
    >>> plan @ np.array([10.0, 20.0])
    array([10.,  5.])
    >>> np.asarray(plan)
    array([[0. , 0.5],
           [0.5, 0. ]])
    """

    __slots__ = ("_arcs", "_csr", "_dense", "_merged", "_shape")
    # To which share marginals are known to be right, where they were proven and need no sums.
    proven_marginals: float | None = None

    def __init__(self, matrix: Any, *, copy: bool = True) -> None:
        if sparse.issparse(matrix):
            coo = sparse.coo_array(sparse.csr_array(matrix, copy=True))
            coo.eliminate_zeros()
            self._keep(matrix.shape, arcs=(coo.row, coo.col, check_entries(coo.data, "matrix")))
            return
        dense = check_entries(matrix, "matrix", ndim=2) if copy else np.asarray(matrix, dtype=float)
        self._keep(dense.shape, dense)

    def _keep(
        self,
        shape: tuple[int, ...],
        dense: np.ndarray | None = None,
        arcs: Arcs | None = None,
        merged: bool = False,
    ) -> None:
        """Set what the plan is kept as; arcs that are `merged` are sorted and all different."""
        self._shape: tuple[int, int] = (int(shape[0]), int(shape[1]))
        self._dense, self._arcs, self._merged = dense, arcs, merged
        self._csr: Any = None

    @classmethod
    def from_arcs(
        cls, rows: Any, cols: Any, mass: Any, shape: tuple[int, int], in_order: bool = False
    ) -> Plan:
        """Build a sparse plan from arcs (i, j, mass); equal arcs add up, empty ones drop.

        Arcs that are `in_order` are all different, sorted by row, then by column, none is empty,
        and their arrays are the plan's from now on.
        """
        plan = cls.__new__(cls)
        if not in_order:
            mass = np.asarray(mass, dtype=float)
            keep = np.flatnonzero(mass > 0.0)
            # Taking entries copies, so that the caller's arrays stay the caller's; an empty list is
            # one of floats to NumPy.
            rows, cols = (
                np.take(part, keep) if len(keep) else np.empty(0, np.intp) for part in (rows, cols)
            )
            mass = mass[keep]
        plan._keep(shape, arcs=(rows, cols, mass), merged=in_order)
        return plan

    @classmethod
    def combine(cls, plans: Sequence[Plan], weights: Any) -> Plan:
        """Return the weighted sum of plans: sparse if all are, dense otherwise."""
        used = [(plan, float(w)) for plan, w in zip(plans, weights, strict=True) if w != 0.0]
        if not used:
            raise ValueError("Plan.combine needs at least one plan of non-zero weight")
        shape = used[0][0].shape
        if all(plan.is_sparse for plan, _ in used):
            parts = [plan._arcs for plan, _ in used]
            rows, cols = (np.concatenate([part[i] for part in parts if part]) for i in (0, 1))
            mass = np.concatenate([w * plan._arcs[2] for plan, w in used if plan._arcs])
            combined = cls.from_arcs(rows, cols, mass, shape)
            # Merging now and then keeps long averages from piling up copies of the same arcs.
            return combined if len(mass) < 4 * sum(shape) else combined._merge()
        total = np.zeros(shape)
        for plan, w in used:
            if plan.is_sparse:
                rows, cols, mass = plan._host_arcs()
                total[rows, cols] += w * mass
            else:
                total += w * plan._whole()
        return Plan(total, copy=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns (n, m)."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

    @property
    def dtype(self) -> Any:
        """Always float64: masses are certified in double precision."""
        return np.dtype(float)

    @property
    def is_sparse(self) -> bool:
        """Whether the plan is kept as arcs."""
        return self._arcs is not None

    @property
    def nnz(self) -> int:
        """Number of entries that carry mass."""
        if self._dense is None:
            return len(self._host_arcs()[2])
        return int(np.count_nonzero(self._dense))

    @property
    def T(self) -> Plan:  # noqa: N802 - NumPy's name
        """The transposed plan of shape (m, n)."""
        if self._dense is not None:
            return Plan(self._dense.T, copy=False)
        rows, cols, mass = self._host_arcs()
        return Plan.from_arcs(cols, rows, mass, (self._shape[1], self._shape[0]))

    def numpy(self) -> Plan:
        """The same plan for NumPy's arrays: this one."""
        return self

    def _merge(self) -> Plan:
        """Add up equal arcs, once."""
        if not self._merged and self._arcs is not None:
            rows, cols, mass = self._arcs
            where = np.asarray(rows, dtype=np.intp) * self._shape[1] + cols
            order = np.argsort(where, kind="stable")
            where, mass = where[order], mass[order]
            first = np.ones(len(where), dtype=bool)
            first[1:] = where[1:] != where[:-1]
            if not first.all():
                mass = np.add.reduceat(mass, np.flatnonzero(first))
                where = where[first]
            self._arcs = (where // self._shape[1], where % self._shape[1], mass)
            self._merged = True
        return self

    def _matrix(self) -> Any:
        """The plan as something that multiplies fast."""
        if self._dense is not None:
            return self._dense
        if self._csr is None:
            rows, cols, mass = self._host_arcs()
            self._csr = sparse.csr_array((mass, (rows, cols)), shape=self._shape)
        return self._csr

    def _whole(self) -> np.ndarray:
        """The plan on the host, (n, m): read-only where it is kept, fresh where it is not."""
        if self._dense is not None:
            return read_only(self._dense)
        rows, cols, mass = self._host_arcs()
        full = np.zeros(self._shape)
        full[rows, cols] = mass
        return full

    def _host_arcs(self) -> Arcs:
        """The arcs on the host."""
        if self._dense is not None:
            rows, cols = np.nonzero(self._dense)
            return rows, cols, self._dense[rows, cols]
        merged = self._merge()._arcs
        assert merged is not None
        return merged

    def _give(self, found: Any, dtype: Any = None) -> Any:
        """Hand an array out to where the user's are."""
        return found if dtype is None else found.astype(dtype)

    def _indices(self, found: Any) -> Any:
        """Hand whole numbers out to where the user's arrays are."""
        return found

    def dense(self) -> Any:
        """Return the plan as an array of shape (n, m); NumPy's is read-only."""
        return read_only(self._give(self._whole()))

    def arcs(self) -> tuple[Any, Any, Any]:
        """Return (rows, cols, mass) of the entries that carry mass, by row then column."""
        rows, cols, mass = map(read_only, self._host_arcs())
        return self._indices(rows), self._indices(cols), self._give(mass)

    def astype(self, dtype: Any) -> Any:
        """Return the plan as a fresh array of shape (n, m) of another kind of number."""
        return self._give(self._whole(), dtype)

    def rows(self, index: Any) -> Any:
        """Return rows by number, slice, mask or list of numbers: (m,) or (r, m)."""
        return self._give(self._cross(positions(index, self.shape[0]), None))

    def __getitem__(self, key: Any) -> Any:
        if self._dense is not None:
            return self._give(self._dense[host_key(key)].copy())
        picked = pick(key, self.shape)
        if picked.cols is None or picked.crossed:
            return self._give(self._cross(picked.rows, picked.cols))
        return self._give(self._entries(picked.rows, picked.cols))

    def _cross(self, rows: np.ndarray, cols: np.ndarray | None) -> Any:
        """Return some rows, of all columns or some, as a fresh array."""
        if self._dense is not None:
            cols = np.arange(self._shape[1]) if cols is None else cols
            return self._dense[rows.reshape(rows.shape + (1,) * cols.ndim), cols]
        picked = self._matrix()[rows.ravel()]
        picked = picked if cols is None else picked[:, cols.ravel()]
        shape = rows.shape + ((self._shape[1],) if cols is None else cols.shape)
        # [()] makes a number of an array that holds one.
        return picked.toarray().reshape(shape)[()]

    def _entries(self, rows: np.ndarray, cols: np.ndarray) -> Any:
        """Return entries one by one, as a fresh array."""
        if self._dense is not None:
            return self._dense[rows, cols]
        i, j, mass = self._host_arcs()
        known, wanted = i * self._shape[1] + j, rows * self._shape[1] + cols
        at = np.minimum(np.searchsorted(known, wanted), max(0, len(known) - 1))
        there = known[at] == wanted if len(known) else np.zeros(rows.shape, dtype=bool)
        return np.where(there, mass[at] if len(known) else 0.0, 0.0)[()]

    @property
    def count(self) -> int:
        """Number of entries that sums run over: the arcs as they are kept, or n m."""
        if self._dense is not None:
            return self._dense.size
        return 0 if self._arcs is None else len(self._arcs[2])

    @property
    def longest(self) -> int:
        """Most entries that the sum of a row or a column runs over, or a bound on it."""
        # Equal arcs that are not added up yet may be more than there are places.
        if self._arcs is None or (self._merged and self.count <= COUNTED_FROM):
            return max(self._shape)
        return max(int(np.bincount(ends).max(initial=0)) for ends in self._arcs[:2])

    def sum(self, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        """Total mass, or the marginals: ``axis=1`` gives a, ``axis=0`` gives b.

        `dtype` and `out` are there for ``np.sum(plan)`` and have to be left out.
        """
        refuse("sum", dtype, out)
        by_rows = is_rows(axis)
        if self._dense is not None:
            found = self._dense.sum(axis=axis)
            return float(found) if axis is None else self._give(found)
        assert self._arcs is not None
        rows, cols, mass = self._arcs
        if axis is None:
            return float(mass.sum())
        ends, size = (rows, self._shape[0]) if by_rows else (cols, self._shape[1])
        # Of no arcs at all, bincount makes integers.
        return self._give(np.bincount(ends, mass, size).astype(float, copy=False))

    def max(self, axis: int | None = None, out: Any = None) -> Any:
        """Return the largest entry, or that of each row (``axis=1``) or column."""
        refuse("max", out)
        is_rows(axis)
        found = self._matrix().max(axis=axis)
        if axis is None:
            return float(found)
        return self._give(found.toarray().ravel() if sparse.issparse(found) else found)

    def argmax(self, axis: int | None = 1, out: Any = None) -> Any:
        """Where most of each row's (``axis=1``) or column's mass goes; None: the largest entry."""
        refuse("argmax", out)
        is_rows(axis)
        found = self._matrix().argmax(axis=axis)
        return int(found) if axis is None else self._indices(np.ravel(found))

    def expand(self, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]) -> Plan:
        """Place this plan's rows and columns at the given indices of a larger plan of zeros."""
        if self.is_sparse:
            i, j, mass = self._host_arcs()
            return Plan.from_arcs(rows[i], cols[j], mass, shape)
        full = np.zeros(shape)
        full[np.ix_(rows, cols)] = self._whole()
        return Plan(full, copy=False)

    def __matmul__(self, other: Any) -> Any:
        return self._matrix() @ np.asarray(other)

    def __rmatmul__(self, other: Any) -> Any:
        return np.asarray(other) @ self._matrix()

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = self._whole()
        kept = not whole.flags.writeable
        if dtype is not None and np.dtype(dtype) != whole.dtype:
            whole, kept = whole.astype(dtype), False
        if copy is False and not kept:
            raise ValueError(
                "a plan is not stored as an array, so that a copy is needed; leave copy=False out"
            )
        if copy:
            return whole.copy() if kept else whole
        return read_only(whole)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Plan) for x in kwargs.get("out", ())):
            raise TypeError("a plan cannot be changed; np.array(plan) is a copy that can")
        if ufunc is np.matmul and method == "__call__" and not kwargs:
            # NumPy asks here what ``array @ plan`` is, and a product needs no dense plan.
            left, right = inputs
            return left @ right if isinstance(left, Plan) else right.__rmatmul__(left)
        return self._entrywise(ufunc, method, inputs, kwargs)

    def _entrywise(self, ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
        host = [np.asarray(x) if isinstance(x, Plan) else x for x in inputs]
        return getattr(ufunc, method)(*host, **kwargs)

    def __repr__(self) -> str:
        n, m = self.shape
        kind = f"{self.nnz} arcs" if self.is_sparse else "dense"
        return f"Plan({n} x {m}, {kind}, mass {self.sum():.6g})"


def refuse(what: str, *given: Any) -> None:
    """Refuse the arguments that NumPy's functions pass on and plans have no use for."""
    for one in given:
        if one is not None:
            raise TypeError(f"a plan's {what} takes no dtype and no out; use np.asarray(plan)")


class PlanAt(Plan):
    """A plan that takes and returns arrays of another library.

    Arrays that come out go to `home`, in its precision.

    Examples
    --------
    >>> import torch
    >>> plan = Plan.from_arcs([0, 1], [1, 0], [0.5, 0.5], (2, 2))
    >>> PlanAt(plan, Home.of(torch.zeros(1))) @ torch.tensor([10.0, 20.0])
    tensor([10.,  5.])
    """

    __slots__ = ("home",)

    def __init__(self, plan: Plan, home: Home) -> None:
        self._keep(plan._shape, plan._dense, plan._arcs, plan._merged)
        self.home = home

    def numpy(self) -> Plan:
        """The same plan for NumPy's arrays."""
        plan = Plan.__new__(Plan)
        plan._keep(self._shape, self._dense, self._arcs, self._merged)
        return plan

    @property
    def dtype(self) -> Any:
        """The precision of the user's arrays; ``np.asarray(plan)`` is in double precision."""
        return self.home.dtype

    def _give(self, found: Any, dtype: Any = None) -> Any:
        return self.home.bring(np.asarray(found), dtype)

    def _indices(self, found: Any) -> Any:
        return self.home.indices(found)

    @property
    def T(self) -> PlanAt:  # noqa: N802 - NumPy's name
        """The transposed plan."""
        return PlanAt(super().T, self.home)

    def __matmul__(self, other: Any) -> Any:
        dtype = factor_type(self.home, other)
        if getattr(other, "requires_grad", False):
            # Gradients of the factor need a product that its library has seen.
            return self.astype(dtype) @ other
        return self._give(super().__matmul__(to_numpy(other)), dtype)

    def __rmatmul__(self, other: Any) -> Any:
        dtype = factor_type(self.home, other)
        if getattr(other, "requires_grad", False):
            return other @ self.astype(dtype)
        return self._give(super().__rmatmul__(to_numpy(other)), dtype)

    def _entrywise(self, ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
        return entrywise(self.home, ufunc, method, inputs, kwargs)


# The array API's names for ufuncs that it calls otherwise.
RENAMED = {"absolute": "abs", "power": "pow"}


def entrywise(home: Home, ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """Apply a ufunc to dense plans, arrays and numbers, in the library of the plans.

    With arrays of NumPy among them, it is NumPy's.
    """
    name: str = ufunc.__name__
    function = getattr(home.xp, RENAMED.get(name, name), None)
    ours = not any(isinstance(x, np.ndarray) for x in inputs)
    if ours and method == "__call__" and not kwargs and function:
        return function(*(_operand(home, x) for x in inputs))
    host = [
        np.asarray(x) if isinstance(x, Plan) else to_numpy(x) if is_foreign(x) else x
        for x in inputs
    ]
    return getattr(ufunc, method)(*host, **kwargs)


def _operand(home: Home, value: Any) -> Any:
    if isinstance(value, Plan):
        return value.dense()
    # Some libraries take arrays only.
    return value if is_foreign(value) else home.bring(value)


def factor_type(user: Home, other: Any) -> Any:
    """Return the precision a product with `other` comes back in; None is that of the plan."""
    if not is_foreign(other):
        return None
    its = Home.of(other)
    if (its.library, its.device) != (user.library, user.device):
        raise InputError(
            f"plan: is of {user.library} on {user.device}, and its factor of {its.library} on "
            f"{its.device}; convert the factor"
        )
    return its.dtype if user.xp.isdtype(other.dtype, "real floating") else None


@runtime_checkable
class PlanLike(Protocol):
    r"""A transport plan :math:`\Pi` of shape (n, m): dense, sparse, lazy, or the transposed of one.

    Arrays come in the library and on the device of the user's points. Nothing that comes out can
    change the plan: NumPy's `dense`, `arcs` and ``np.asarray(plan)`` are read-only, and everything
    else (rows, sums, items, products, arrays of other libraries) is fresh. ``np.array(plan)`` is a
    copy to work on. Lazy plans compute blocks of rows and form the whole matrix only for `dense`,
    `arcs`, `astype` and what NumPy does with whole arrays.

    Examples
    --------
    >>> import frot
    >>> plan = frot.solve([[0.0], [1.0]], [[1.0], [2.0]]).plan
    >>> isinstance(plan, PlanLike), isinstance(np.eye(2), PlanLike)
    (True, False)
    >>> plan[0], plan[:, 1], float(plan[0, 0])
    (array([0.5, 0. ]), array([0. , 0.5]), 0.5)
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns (n, m)."""
        ...

    @property
    def ndim(self) -> int:
        """Always 2."""
        ...

    @property
    def dtype(self) -> Any:
        """The kind of number that `dense` returns; NumPy's are always float64."""
        ...

    @property
    def nnz(self) -> int:
        """Number of entries that carry mass."""
        ...

    @property
    def is_sparse(self) -> bool:
        """Whether the plan is kept as arcs."""
        ...

    @property
    def T(self) -> PlanLike:  # noqa: N802 - NumPy's name
        """The transposed plan of shape (m, n)."""
        ...

    def numpy(self) -> PlanLike:
        """The same plan for NumPy's arrays, on the host."""
        ...

    def dense(self) -> Any:
        """Return the plan as an array of shape (n, m)."""
        ...

    def arcs(self) -> tuple[Any, Any, Any]:
        """Return (rows, cols, mass) of the entries that carry mass, by row then column."""
        ...

    def astype(self, dtype: Any) -> Any:
        """Return the plan as a fresh array of shape (n, m) of another kind of number."""
        ...

    def rows(self, index: Any) -> Any:
        """Return rows by number, slice, mask or list of numbers: (m,) or (r, m)."""
        ...

    def sum(self, axis: int | None = None) -> Any:
        """Total mass, a float, or the marginals: ``axis=1`` gives a, ``axis=0`` gives b."""
        ...

    def max(self, axis: int | None = None) -> Any:
        """Return the largest entry, a float, or that of each row (``axis=1``) or column."""
        ...

    def argmax(self, axis: int | None = 1) -> Any:
        """Where most of each row's or column's mass goes; None: the largest entry, as ``i m + j``.

        Of equal entries it is the first.
        """
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, key: Any) -> Any: ...

    def __matmul__(self, other: Any) -> Any: ...

    def __rmatmul__(self, other: Any) -> Any: ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any: ...


# What an index of a plan picks: the same as NumPy's for an array of its shape, known without one.


class Picked(NamedTuple):
    """Row and column numbers; `cols` is None for all columns.

    With `crossed`, every row meets every column, and the result has the shape of `rows` and then
    that of `cols`. Otherwise both have one shape, and are read in pairs.
    """

    rows: np.ndarray
    cols: np.ndarray | None
    crossed: bool


def pick(key: Any, shape: tuple[int, int]) -> Picked:
    """Return which entries of a matrix an index picks.

    Examples
    --------
    >>> pick(np.s_[1:, 2], (3, 4))
    Picked(rows=array([1, 2]), cols=array(2), crossed=True)
    >>> pick(([0, 2], [3, 1]), (3, 4))
    Picked(rows=array([0, 2]), cols=array([3, 1]), crossed=False)
    """
    key = host_key(key)
    parts = key if isinstance(key, tuple) else (key,)
    plain = all(map(_is_plain, parts))
    if plain and len(parts) == 1:
        return Picked(positions(parts[0], shape[0]), None, crossed=True)
    if plain and len(parts) == 2 and any(isinstance(part, slice | int) for part in parts):
        rows, cols = (positions(part, size) for part, size in zip(parts, shape, strict=True))
        every = isinstance(parts[1], slice) and cols.shape == (shape[1],) and parts[1].step is None
        return Picked(rows, None if every else cols, crossed=True)
    # Matrices that say where each of their entries is take no memory, and know every rule.
    n, m = shape
    rows = np.broadcast_to(np.arange(n)[:, None], shape)[key]
    cols = np.broadcast_to(np.arange(m), shape)[key]
    return Picked(np.asarray(rows), np.asarray(cols), crossed=False)


def positions(index: Any, size: int) -> np.ndarray:
    """Return the numbers that an index picks out of 0, 1, ..., size - 1, counted from the front."""
    return np.asarray(np.arange(size)[host_key(index)])


def host_key(key: Any) -> Any:
    """Return an index that NumPy takes: tensors and lists as its arrays."""
    if isinstance(key, tuple):
        return tuple(map(host_key, key))
    if is_foreign(key):
        return to_numpy(key)
    if isinstance(key, list):
        # An empty list is an array of floats to NumPy, except where it is an index.
        return np.asarray(key) if key else np.empty(0, dtype=np.intp)
    return int(key) if isinstance(key, np.integer) else key


def _is_plain(part: Any) -> bool:
    """Whether it picks along one axis: a number, a slice, a flat list or mask."""
    odd = part is None or part is Ellipsis or isinstance(part, bool | np.bool_)
    return not odd and getattr(part, "ndim", 0) < 2


def runs(index: np.ndarray, most: int) -> list[slice]:
    """Cut row numbers where they do not ascend by one, and after at most `most`.

    Examples
    --------
    >>> runs(np.array([4, 5, 6, 2]), 2)
    [slice(4, 6, None), slice(6, 7, None), slice(2, 3, None)]
    """
    ends = np.flatnonzero(np.diff(index) != 1) + 1
    return [
        slice(int(part[at]), int(part[min(at + most, len(part)) - 1]) + 1)
        for part in np.split(index, ends)
        for at in range(0, len(part), most)
    ]


def is_rows(axis: Any) -> bool:
    """Whether a sum or maximum is over each row; other axes than NumPy's two do not exist."""
    if axis not in (None, 0, 1, -1, -2):
        raise ValueError(f"axis {axis!r} of a plan, which has the axes 0 and 1")
    return axis in (1, -1)
