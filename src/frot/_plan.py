"""Transport plans: dense or sparse, behind one face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy import sparse

__all__ = ["Plan"]

Arcs = tuple[np.ndarray, np.ndarray, np.ndarray]


class Plan(NDArrayOperatorsMixin):
    r"""A transport plan :math:`\Pi` of shape (n, m) that turns dense only when asked to.

    A vertex of the transport polytope has at most n + m - 1 entries, so exact solvers keep
    plans as arcs. A `Plan` still goes wherever an array goes: ``np.asarray(plan)``, ``plan * C``,
    ``plan @ V`` and ``plan.T @ U`` all work, the products without making it dense.

    Parameters
    ----------
    matrix : array of shape (n, m) or scipy.sparse array of shape (n, m)
        The entries :math:`\pi_{ij} \ge 0`.

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
    # Without this, ``ndarray @ plan`` would go through the dense ufunc path.
    __array_priority__ = 20

    def __init__(self, matrix: Any) -> None:
        self._dense: np.ndarray | None = None
        self._arcs: Arcs | None = None
        self._csr: Any = None
        self._merged = True
        if sparse.issparse(matrix):
            coo = sparse.coo_array(sparse.csr_array(matrix))
            self._arcs = (coo.row, coo.col, np.asarray(coo.data, dtype=float))
        else:
            self._dense = matrix = np.asarray(matrix, dtype=float)
        self._shape: tuple[int, int] = tuple(matrix.shape)

    @classmethod
    def from_arcs(
        cls, rows: Any, cols: Any, mass: Any, shape: tuple[int, int], in_order: bool = False
    ) -> Plan:
        """Build a sparse plan from arcs (i, j, mass); equal arcs add up, empty ones drop.

        Arcs that are `in_order` are all different, and sorted by row, then by column.
        """
        plan = cls.__new__(cls)
        rows, cols, mass = np.asarray(rows), np.asarray(cols), np.asarray(mass, dtype=float)
        if not (mass > 0.0).all():
            keep = mass > 0.0
            rows, cols, mass = rows[keep], cols[keep], mass[keep]
        plan._dense, plan._csr, plan._shape = None, None, (int(shape[0]), int(shape[1]))
        plan._arcs, plan._merged = (rows, cols, mass), in_order
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
            if plan._dense is not None:
                total += w * plan._dense
            else:
                rows, cols, mass = plan.arcs()
                total[rows, cols] += w * mass
        return cls(total)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns (n, m)."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

    @property
    def dtype(self) -> np.dtype:
        """Always float64: masses are certified in double precision."""
        return np.dtype(float)

    @property
    def is_sparse(self) -> bool:
        """Whether the plan is kept as arcs."""
        return self._dense is None

    @property
    def nnz(self) -> int:
        """Number of entries that carry mass."""
        return len(self.arcs()[2]) if self._dense is None else int(np.count_nonzero(self._dense))

    @property
    def T(self) -> Plan:  # noqa: N802 - NumPy's name
        """The transposed plan of shape (m, n)."""
        if self._dense is not None:
            return Plan(self._dense.T)
        rows, cols, mass = self.arcs()
        return Plan.from_arcs(cols, rows, mass, (self._shape[1], self._shape[0]))

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
            rows, cols, mass = self.arcs()
            self._csr = sparse.csr_array((mass, (rows, cols)), shape=self._shape)
        return self._csr

    def dense(self) -> np.ndarray:
        """Return the plan as an array of shape (n, m)."""
        if self._dense is not None:
            return self._dense
        rows, cols, mass = self.arcs()
        full = np.zeros(self._shape)
        full[rows, cols] = mass
        return full

    def arcs(self) -> Arcs:
        """Return (rows, cols, mass) of the entries that carry mass, by row then column."""
        if self._dense is not None:
            rows, cols = np.nonzero(self._dense)
            return rows, cols, self._dense[rows, cols]
        merged = self._merge()._arcs
        assert merged is not None
        return merged

    def rows(self, index: Any) -> np.ndarray:
        """Return the given row or rows as a dense array."""
        picked = self._matrix()[np.atleast_1d(np.asarray(index))]
        picked = picked.toarray() if sparse.issparse(picked) else picked
        return picked[0] if np.ndim(index) == 0 else picked

    @property
    def count(self) -> int:
        """Number of entries that sums run over: the arcs as they are kept, or n m."""
        if self._dense is not None:
            return self._dense.size
        return 0 if self._arcs is None else len(self._arcs[2])

    def sum(self, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        """Total mass, or the marginals: ``axis=1`` gives a, ``axis=0`` gives b.

        `dtype` and `out` are there for ``np.sum(plan)`` and have to be left out.
        """
        if dtype is not None or out is not None:
            raise TypeError("a plan's sum takes no dtype and no out; use np.asarray(plan)")
        if self._dense is not None:
            return self._dense.sum(axis=axis)
        assert self._arcs is not None
        rows, cols, mass = self._arcs
        if axis is None:
            return float(mass.sum())
        ends, size = (rows, self._shape[0]) if axis in (1, -1) else (cols, self._shape[1])
        return np.bincount(ends, mass, size)

    def argmax(self, axis: int = 1, out: Any = None) -> np.ndarray:
        """Where most of each row's (``axis=1``) or column's mass goes."""
        if out is not None:
            raise TypeError("a plan's argmax takes no out; use np.asarray(plan)")
        return np.asarray(self._matrix().argmax(axis=axis)).ravel()

    def expand(self, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]) -> Plan:
        """Place this plan's rows and columns at the given indices of a larger plan of zeros."""
        if self._dense is None:
            i, j, mass = self.arcs()
            return Plan.from_arcs(rows[i], cols[j], mass, shape)
        full = np.zeros(shape)
        full[np.ix_(rows, cols)] = self._dense
        return Plan(full)

    def __matmul__(self, other: Any) -> Any:
        return self._matrix() @ (other.dense() if isinstance(other, Plan) else np.asarray(other))

    def __rmatmul__(self, other: Any) -> Any:
        return np.asarray(other) @ self._matrix()

    def __getitem__(self, key: Any) -> Any:
        return self.dense()[key]

    def __len__(self) -> int:
        return self._shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        dense = self.dense()
        if copy or dtype not in (None, dense.dtype):
            return np.array(dense, dtype=dtype)
        return dense

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        dense = [x.dense() if isinstance(x, Plan) else x for x in inputs]
        return getattr(ufunc, method)(*dense, **kwargs)

    def __repr__(self) -> str:
        n, m = self.shape
        kind = f"{self.nnz} arcs" if self.is_sparse else "dense"
        return f"Plan({n} x {m}, {kind}, mass {self.sum():.6g})"
