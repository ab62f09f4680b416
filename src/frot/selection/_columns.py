"""The two classes of a comparison, read a block of features at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["Sides"]


@dataclass(frozen=True, eq=False)
class Sides:
    """Samples of two classes with their weights.

    Features are handed out in blocks, as float64 and a row a feature, so that neither a sparse
    table nor one of another precision is ever copied whole.

    Parameters
    ----------
    table : array of shape (N, d), or sparse array of shape (N, d) in CSC order
    rows : pair of arrays of intp, of lengths n and m
        Which samples are in the first class and which in the second.
    weights : pair of arrays, of lengths n and m
        Positive, each summing to one.
    share : float
        The first class's part of the weight of both.

    Examples
    --------
    >>> table = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])
    >>> sides = Sides.of(table, np.array([0, 1]), np.array([2]))
    >>> sides.block(slice(0, 2))
    (array([[1., 2.],
           [5., 6.]]), array([[3.],
           [7.]]))
    """

    table: Any
    rows: tuple[np.ndarray, np.ndarray]
    weights: tuple[np.ndarray, np.ndarray]
    share: float

    @classmethod
    def of(
        cls, table: Any, first: np.ndarray, second: np.ndarray, weight: np.ndarray | None = None
    ) -> Sides:
        """Split by rows; samples of weight zero are left out."""
        if weight is None:
            sizes = len(first), len(second)
            weights = tuple(np.full(size, 1.0 / size) for size in sizes)
            return cls(table, (first, second), (weights[0], weights[1]), sizes[0] / sum(sizes))
        first, second = first[weight[first] > 0.0], second[weight[second] > 0.0]
        totals = float(weight[first].sum()), float(weight[second].sum())
        weights = weight[first] / totals[0], weight[second] / totals[1]
        return cls(table, (first, second), weights, totals[0] / sum(totals))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(d, n, m)."""
        return (self.table.shape[1], len(self.rows[0]), len(self.rows[1]))

    @property
    def is_sparse(self) -> bool:
        """Whether the table is."""
        return sparse.issparse(self.table)

    def block(self, columns: slice | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return both classes' values of some features, shapes (k, n) and (k, m), as copies."""
        if self.is_sparse:
            # A CSC table's transpose is the same arrays read as CSR: rows of it are features.
            dense = self.table.T[columns].toarray()
            first, second = (np.asarray(dense[:, rows], dtype=float) for rows in self.rows)
            return first, second
        picked = self.table[:, columns]
        if picked.flags.f_contiguous:
            first, second = (np.take(picked.T, rows, axis=1) for rows in self.rows)
        else:
            first, second = (picked[rows].T for rows in self.rows)
        return np.ascontiguousarray(first, dtype=float), np.ascontiguousarray(second, dtype=float)
