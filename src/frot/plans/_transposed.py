"""The transposed of a lazy plan: the same blocks, read the other way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.arrays import namespace, read_only
from frot.plans._index import is_rows
from frot.plans.plan import Arcs, Plan, refuse

if TYPE_CHECKING:
    from frot.plans.lazy import LazyPlan

__all__ = ["TransposedPlan"]


class TransposedPlan(Plan):
    """``plan.T`` of a lazy plan, which computes what the plan computes.

    Its rows are the plan's columns, so that one of them takes a pass over the plan.

    Parameters
    ----------
    plan : LazyPlan of shape (m, n)

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
        self._dense, self._arcs, self._csr, self._merged = None, None, None, True
        n, m = plan.shape
        self._shape = (m, n)

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
    def is_sparse(self) -> bool:
        """It is not: next to no entry is zero."""
        return False

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
