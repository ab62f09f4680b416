"""`Plan`: a transport plan on the host, dense or as arcs, and what every plan can do."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from frot._base.arrays import Array, Home, is_foreign, namespace, read_only, to_numpy
from frot._base.errors import InputError
from frot._base.validate import check_entries

Arcs = tuple[np.ndarray, np.ndarray, np.ndarray]


class Plan:
    r"""A transport plan :math:`\Pi` of shape (n, m) that turns dense only when asked to.

    A vertex of the transport polytope has at most n + m - 1 entries, so exact solvers keep plans
    as arcs. Products, sums, rows and arcs need no dense matrix; ``np.asarray(plan)`` and
    ``plan.dense()`` form it. For arithmetic and items take these: ``np.asarray(plan) * C``.

    A plan does not change: NumPy's ``dense()``, ``arcs()`` and ``np.asarray(plan)`` are read-only,
    everything else is fresh, and ``np.array(plan)`` is a copy to work on. A plan of `frot.solve`
    returns arrays of the library, device and precision of the points.

    Parameters
    ----------
    matrix : array of shape (n, m)
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

    __slots__ = ("_arcs", "_csr", "_dense", "_home", "_shape")
    # NumPy leaves ``array @ plan`` to the plan, and refuses arithmetic that would form it unasked.
    __array_ufunc__ = None

    def __init__(self, matrix: Any, *, copy: bool = True) -> None:
        dense = check_entries(matrix, "matrix", ndim=2) if copy else np.asarray(matrix, dtype=float)
        self._keep(dense.shape, dense)

    def _keep(
        self, shape: tuple[int, ...], dense: np.ndarray | None = None, arcs: Arcs | None = None
    ) -> None:
        """Set what the plan is kept as; arcs are sorted and all different."""
        self._shape: tuple[int, int] = (int(shape[0]), int(shape[1]))
        self._dense, self._arcs = dense, arcs
        self._csr: Any = None
        # Where arrays that come out go: None is NumPy.
        self._home: Home | None = None

    @classmethod
    def from_arcs(cls, rows: Array, cols: Array, mass: Array, shape: tuple[int, int]) -> Plan:
        """Build a sparse plan from arcs (i, j, mass); equal arcs add up, empty ones drop."""
        plan = cls.__new__(cls)
        plan._keep(shape, arcs=_merged(rows, cols, mass, shape))
        return plan

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns (n, m)."""
        return self._shape

    @property
    def T(self) -> Plan:  # noqa: N802 - NumPy's name
        """The transposed plan of shape (m, n)."""
        if self._arcs is None:
            turned = Plan(self._whole().T, copy=False)
        else:
            rows, cols, mass = self._arcs
            turned = Plan.from_arcs(cols, rows, mass, (self._shape[1], self._shape[0]))
        turned._home = self._home
        return turned

    def _at(self, home: Home | None) -> Plan:
        """The same plan for a user whose arrays are elsewhere; None is NumPy."""
        plan = Plan.__new__(Plan)
        plan._keep(self._shape, self._dense, self._arcs)
        plan._home = home
        return plan

    def _out(self, array: np.ndarray) -> Array:
        """Hand an array out to where the user's are; there it shares no memory with the plan."""
        return array if self._home is None else self._home.bring(read_only(array))

    def _out_index(self, index: np.ndarray) -> Array:
        """Hand whole numbers out to where the user's arrays are."""
        return index if self._home is None else self._home.indices(index)

    @property
    def _n_entries(self) -> int:
        """Number of entries that sums run over."""
        return self._whole().size if self._arcs is None else len(self._arcs[2])

    @property
    def _kind(self) -> str:
        """What the plan is kept as, in words."""
        return "dense" if self._arcs is None else f"{len(self._arcs[2])} arcs"

    def _matrix(self) -> Any:
        """The plan as something that multiplies fast."""
        if self._arcs is None:
            return self._whole()
        if self._csr is None:
            rows, cols, mass = self._arcs
            self._csr = sparse.csr_array((mass, (rows, cols)), shape=self._shape)
        return self._csr

    def _whole(self) -> np.ndarray:
        """The plan on the host, (n, m)."""
        if self._dense is not None:
            return self._dense
        assert self._arcs is not None
        rows, cols, mass = self._arcs
        full = np.zeros(self._shape)
        full[rows, cols] = mass
        return full

    def _host_arcs(self) -> Arcs:
        if self._arcs is not None:
            return self._arcs
        whole = self._whole()
        rows, cols = np.nonzero(whole)
        return rows, cols, whole[rows, cols]

    def dense(self) -> Array:
        """Return the plan as an array of shape (n, m); NumPy's is read-only."""
        return read_only(self._out(self._whole()))

    def arcs(self) -> tuple[Array, Array, Array]:
        """Return (rows, cols, mass) of the entries that carry mass, by row then column."""
        rows, cols, mass = map(read_only, self._host_arcs())
        return self._out_index(rows), self._out_index(cols), self._out(mass)

    def rows(self, index: Array) -> Array:
        """Return rows by number, slice, mask or list of numbers: (m,) or (r, m)."""
        index = positions(index, self._shape[0])
        picked = self._matrix()[index.ravel()]
        picked = picked.toarray() if sparse.issparse(picked) else picked
        return self._out(picked.reshape((*index.shape, self._shape[1])))

    def sum(self, axis: int | None = None) -> Array:
        """Total mass, or the marginals: ``axis=1`` gives a, ``axis=0`` gives b."""
        check_axis(axis)
        if self._arcs is None:
            total = self._whole().sum(axis=axis)
            return float(total) if axis is None else self._out(total)
        rows, cols, mass = self._arcs
        if axis is None:
            return float(mass.sum())
        ends, size = (rows, self._shape[0]) if axis == 1 else (cols, self._shape[1])
        # Of no arcs at all, bincount makes integers.
        return self._out(np.bincount(ends, mass, size).astype(float, copy=False))

    def argmax(self, axis: int = 1) -> Array:
        """Where most of each row's (``axis=1``) or column's mass goes, the first of equals."""
        check_axis(axis)
        return self._out_index(np.ravel(self._matrix().argmax(axis=axis)))

    def __matmul__(self, other: Array) -> Array:
        home = self._home
        if home is None:
            return self._matrix() @ np.asarray(other)
        dtype = factor_type(home, other)
        if getattr(other, "requires_grad", False):
            # Gradients of the factor need a product that its library has seen.
            return home.bring(self._whole(), dtype) @ other
        return home.bring(self._matrix() @ to_numpy(other), dtype)

    def __rmatmul__(self, other: Array) -> Array:
        if self._home is None and self._arcs is None:
            return np.asarray(other) @ self._whole()
        return transposed(self.T @ transposed(other))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = read_only(self._whole())
        if copy is False and (self._dense is None or dtype not in (None, whole.dtype)):
            raise ValueError(
                "a plan is not stored as this array, so that a copy is needed; leave copy=False out"
            )
        return np.array(whole, dtype=dtype) if copy else np.asarray(whole, dtype=dtype)

    def __repr__(self) -> str:
        n, m = self.shape
        return f"{type(self).__name__}({n} x {m}, {self._kind})"


def _merged(rows: Array, cols: Array, mass: Array, shape: tuple[int, int]) -> Arcs:
    """Return arcs with mass, by row then column; equal ones are added up. The caller's stay his."""
    mass = np.asarray(mass, dtype=float)
    keep = np.flatnonzero(mass > 0.0)
    # An empty list is one of floats to NumPy.
    rows, cols = (np.asarray(ends, dtype=np.intp)[keep] for ends in (rows, cols))
    mass, place = mass[keep], rows * shape[1] + cols
    if not (place[1:] > place[:-1]).all():
        order = np.argsort(place, kind="stable")
        place = place[order]
        first = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
        mass, place = np.add.reduceat(mass[order], first), place[first]
        rows, cols = place // shape[1], place % shape[1]
    return rows, cols, mass


# What rooms ask of a plan beside what users do.


def is_sparse(plan: Plan) -> bool:
    """Whether a plan is kept as arcs.

    Examples
    --------
    >>> is_sparse(Plan(np.eye(2))), is_sparse(Plan.from_arcs([0], [1], [1.0], (2, 2)))
    (False, True)
    """
    return plan._arcs is not None


def n_entries(plan: Plan) -> int:
    """Return the number of entries that sums over a plan run over: of rounding there is as much.

    Examples
    --------
    >>> n_entries(Plan(np.eye(2))), n_entries(Plan.from_arcs([0], [1], [1.0], (2, 2)))
    (4, 1)
    """
    return plan._n_entries


def plan_kind(plan: Plan) -> str:
    """Return what a plan is kept as, in words.

    Examples
    --------
    >>> plan_kind(Plan(np.eye(2))), plan_kind(Plan.from_arcs([0], [1], [1.0], (2, 2)))
    ('dense', '1 arcs')
    """
    return plan._kind


def bring_plan(plan: Plan, home: Home | None) -> Plan:
    """Return the same plan for a user whose arrays are elsewhere; None is NumPy.

    Examples
    --------
    >>> import torch
    >>> bring_plan(Plan(np.eye(2)), Home.of(torch.zeros(1))).sum(axis=0)
    tensor([1., 1.])
    """
    return plan._at(home)


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


def transposed(array: Array) -> Array:
    """Transpose a matrix of any library; a vector is its own."""
    array = array if is_foreign(array) else np.asarray(array)
    return array if array.ndim < 2 else namespace(array).matrix_transpose(array)


def check_axis(axis: Any) -> None:
    """Refuse other axes than the two, and None for both."""
    if axis not in (None, 0, 1):
        raise InputError(f"axis: {axis!r} of a plan, whose axes are 0 and 1")


def positions(index: Any, size: int) -> np.ndarray:
    """Return the numbers that an index picks out of 0, 1, ..., size - 1, counted from the front.

    Examples
    --------
    >>> positions(slice(-2, None), 5), positions([True, False], 2), positions([], 5)
    (array([3, 4]), array([0]), array([], dtype=int64))
    """
    if is_foreign(index):
        index = to_numpy(index)
    if isinstance(index, list):
        # An empty list is an array of floats to NumPy, except where it is an index.
        index = np.asarray(index) if index else np.empty(0, dtype=np.intp)
    return np.asarray(np.arange(size)[index])
