"""What every transport plan can do, whatever it is kept as."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

__all__ = ["PlanLike"]


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
    >>> plan[0], plan[:, 1], plan[0, 0]
    (array([0.5, 0. ]), array([0. , 0.5]), np.float64(0.5))
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
