"""Plans found on the host for points that live elsewhere: what comes out goes back there."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot._base.arrays import Home, is_foreign, to_numpy
from frot._base.errors import InputError
from frot.plans.plan import Plan

__all__ = ["PlanAt", "entrywise", "factor_type"]

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
    """Return the precision a product with `other` comes back in; None is that of the plan.

    Examples
    --------
    >>> factor_type(Home.of(np.zeros(1)), [1, 2]) is None
    True
    """
    if not is_foreign(other):
        return None
    its = Home.of(other)
    if (its.library, its.device) != (user.library, user.device):
        raise InputError(
            f"plan: is of {user.library} on {user.device}, and its factor of {its.library} on "
            f"{its.device}; convert the factor"
        )
    return its.dtype if user.xp.isdtype(other.dtype, "real floating") else None


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
        for name in Plan.__slots__:
            setattr(self, name, getattr(plan, name))
        self.home = home

    def numpy(self) -> Plan:
        """The same plan for NumPy's arrays."""
        plan = Plan.__new__(Plan)
        for name in Plan.__slots__:
            setattr(plan, name, getattr(self, name))
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
