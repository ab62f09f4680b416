"""Plans found on the host for points that live elsewhere: what comes out goes back there."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot._arrays import Home, is_foreign, to_numpy
from frot._plan import Plan

__all__ = ["PlanAt", "entrywise"]


def entrywise(home: Home, ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """Apply a ufunc to dense plans and arrays: in the library of the plans where it has one."""
    function = getattr(home.xp, ufunc.__name__, None)
    if method == "__call__" and not kwargs and function and any(map(is_foreign, inputs)):
        return function(*(x.dense() if isinstance(x, Plan) else x for x in inputs))
    host = [
        np.asarray(x) if isinstance(x, Plan) else to_numpy(x) if is_foreign(x) else x
        for x in inputs
    ]
    return getattr(ufunc, method)(*host, **kwargs)


class PlanAt(Plan):
    """A plan that takes and returns arrays of another library.

    Parameters
    ----------
    plan : Plan
    home : Home
        Where arrays that come out go.
    """

    __slots__ = ("home",)

    def __init__(self, plan: Plan, home: Home) -> None:
        for name in ("_arcs", "_csr", "_dense", "_merged", "_shape"):
            setattr(self, name, getattr(plan, name))
        self.home = home

    def _out(self, found: Any) -> Any:
        return self.home.bring(found)

    def dense(self) -> Any:
        """Return the plan as an array of shape (n, m)."""
        return self._out(super().dense())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(super().dense(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return entrywise(self.home, ufunc, method, inputs, kwargs)

    def __matmul__(self, other: Any) -> Any:
        return self._out(super().__matmul__(to_numpy(other)))

    def __rmatmul__(self, other: Any) -> Any:
        return self._out(super().__rmatmul__(to_numpy(other)))

    @property
    def T(self) -> PlanAt:  # noqa: N802 - NumPy's name
        """The transposed plan."""
        return PlanAt(super().T, self.home)

    def rows(self, index: Any) -> Any:
        """Return the given row or rows."""
        return self._out(super().rows(index))

    def sum(self, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        """Total mass, or the marginals."""
        found = super().sum(axis, dtype, out)
        return found if axis is None else self._out(found)

    def argmax(self, axis: int = 1, out: Any = None) -> Any:
        """Where most of each row's or column's mass goes."""
        return self.home.indices(super().argmax(axis, out))

    def __getitem__(self, key: Any) -> Any:
        return self._out(np.asarray(super().dense()[key]))
