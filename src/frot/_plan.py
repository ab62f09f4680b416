"""Transport plans: dense or sparse, behind one face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy import sparse

__all__ = ["Plan"]


class Plan(NDArrayOperatorsMixin):
    r"""A transport plan :math:`\Pi` of shape (n, m) that turns dense only when asked to.

    A vertex of the transport polytope has at most n + m - 1 entries, so exact solvers keep
    plans sparse. A `Plan` still goes wherever an array goes: ``np.asarray(plan)``, ``plan * C``,
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

    __slots__ = ("_matrix",)
    # Without this, ``ndarray @ plan`` would go through the dense ufunc path.
    __array_priority__ = 20

    def __init__(self, matrix: Any) -> None:
        if sparse.issparse(matrix):
            self._matrix: Any = sparse.csr_array(matrix)
        else:
            self._matrix = np.asarray(matrix, dtype=float)

    @classmethod
    def from_arcs(
        cls, rows: Any, cols: Any, mass: Any, shape: tuple[int, int], *, prune: float = 0.0
    ) -> Plan:
        """Build a sparse plan from arcs (i, j, mass); equal arcs add up, mass <= `prune` drops."""
        rows, cols, mass = np.asarray(rows), np.asarray(cols), np.asarray(mass, dtype=float)
        keep = mass > prune
        triple = (mass[keep], (rows[keep], cols[keep]))
        return cls(sparse.coo_array(triple, shape=shape).tocsr())

    @classmethod
    def combine(cls, plans: Sequence[Plan], weights: Any) -> Plan:
        """Return the weighted sum of plans: sparse if all are, dense otherwise."""
        weights = np.asarray(weights, dtype=float)
        used = [(plan, w) for plan, w in zip(plans, weights, strict=True) if w != 0.0]
        if not used:
            raise ValueError("Plan.combine needs at least one plan of non-zero weight")
        if all(plan.is_sparse for plan, _ in used):
            parts = [plan.arcs() for plan, _ in used]
            mass = np.concatenate([w * part[2] for part, (_, w) in zip(parts, used, strict=True)])
            rows = np.concatenate([part[0] for part in parts])
            cols = np.concatenate([part[1] for part in parts])
            return cls.from_arcs(rows, cols, mass, used[0][0].shape)
        total = np.zeros(used[0][0].shape)
        for plan, w in used:
            if plan.is_sparse:
                rows, cols, mass = plan.arcs()
                total[rows, cols] += w * mass
            else:
                total += w * plan._matrix
        return cls(total)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns (n, m)."""
        return self._matrix.shape

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

    @property
    def dtype(self) -> np.dtype:
        """Always float64: masses are certified in double precision."""
        return self._matrix.dtype

    @property
    def is_sparse(self) -> bool:
        """Whether the plan is kept as arcs."""
        return sparse.issparse(self._matrix)

    @property
    def nnz(self) -> int:
        """Number of entries that carry mass."""
        return int(self._matrix.nnz if self.is_sparse else np.count_nonzero(self._matrix))

    @property
    def T(self) -> Plan:  # noqa: N802 - NumPy's name
        """The transposed plan of shape (m, n)."""
        return Plan(self._matrix.T)

    def dense(self) -> np.ndarray:
        """Return the plan as an array of shape (n, m)."""
        return self._matrix.toarray() if self.is_sparse else self._matrix

    def arcs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, cols, mass) of the entries that carry mass."""
        if self.is_sparse:
            coo = self._matrix.tocoo()
            return coo.row, coo.col, coo.data
        rows, cols = np.nonzero(self._matrix)
        return rows, cols, self._matrix[rows, cols]

    def rows(self, index: Any) -> np.ndarray:
        """Return the given row or rows as a dense array."""
        picked = self._matrix[np.atleast_1d(np.asarray(index))]
        picked = picked.toarray() if sparse.issparse(picked) else picked
        return picked[0] if np.ndim(index) == 0 else picked

    def sum(self, axis: int | None = None) -> Any:
        """Total mass, or the marginals: ``axis=1`` gives a, ``axis=0`` gives b."""
        return self._matrix.sum(axis=axis)

    def argmax(self, axis: int = 1) -> np.ndarray:
        """Where most of each row's (``axis=1``) or column's mass goes."""
        return np.asarray(self._matrix.argmax(axis=axis)).ravel()

    def expand(self, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]) -> Plan:
        """Place this plan's rows and columns at the given indices of a larger plan of zeros."""
        if self.is_sparse:
            i, j, mass = self.arcs()
            return Plan.from_arcs(rows[i], cols[j], mass, shape)
        full = np.zeros(shape)
        full[np.ix_(rows, cols)] = self._matrix
        return Plan(full)

    def __matmul__(self, other: Any) -> Any:
        return self._matrix @ (other.dense() if isinstance(other, Plan) else np.asarray(other))

    def __rmatmul__(self, other: Any) -> Any:
        return np.asarray(other) @ self._matrix

    def __getitem__(self, key: Any) -> Any:
        return self.dense()[key]

    def __len__(self) -> int:
        return self.shape[0]

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
