"""Whatever a user passes for an array of numbers, as float64; or one sentence on why not."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from frot._base.arrays import is_foreign, namespace, refuse_odd_tensor, to_numpy
from frot._base.errors import InputError, brief

__all__ = ["all_finite", "check_finite", "read_numbers"]

# Kinds of NumPy's that are no numbers, and what to do about them.
OTHER_KINDS = {
    "c": "is complex; pass its real part or its modulus",
    "M": "holds dates; pass numbers, such as the days since the first",
    "m": "holds spans of time; divide them by a unit, such as np.timedelta64(1, 'D')",
    "V": "has fields; pass its columns as one table of numbers",
}


def read_numbers(values: Any, name: str) -> np.ndarray:
    """Convert to float64, refusing by name whatever is not an array of real numbers.

    Examples
    --------
    >>> read_numbers([[1, 2]], "X")
    array([[1., 2.]])
    >>> read_numbers([1.0, "2"], "a")
    Traceback (most recent call last):
    ...
    frot.InputError: a: holds <U32, not numbers; use a.astype(float)
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        # What nearly all are; small problems would wait for the questions below.
        return values
    _refuse_containers(values, name)
    array = _as_array(values, name)
    kind = array.dtype.kind
    if kind in OTHER_KINDS:
        raise InputError(f"{name}: {OTHER_KINDS[kind]}")
    if kind == "O":
        _refuse_objects(array, name)
    elif kind not in "fiub":
        raise InputError(f"{name}: holds {array.dtype}, not numbers; use {name}.astype(float)")
    try:
        # Numbers beyond float64 become infinite, which whoever asked for finite ones refuses.
        with np.errstate(over="ignore"):
            return np.asarray(array, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: holds objects that are not numbers ({error})") from None


def all_finite(array: Any) -> bool:
    """Whether no entry is NaN or infinite, wherever the array is.

    Examples
    --------
    >>> all_finite(np.array([1.0, np.inf]))
    False
    """
    if isinstance(array, np.ndarray):
        return bool(np.isfinite(array).all())
    xp = namespace(array) if is_foreign(array) else np
    return bool(xp.all(xp.isfinite(array)))


def check_finite(array: Any, name: str, infinite: bool = False) -> None:
    """Refuse NaN and infinity, and say where the first is; arrays may be of any library.

    Where `infinite`, plus infinity may stand for an arc that is forbidden.

    Examples
    --------
    >>> check_finite(np.array([1.0, np.nan]), "a")
    Traceback (most recent call last):
    ...
    frot.InputError: a: 1 of 2 entries are NaN or infinite, the first at a[1]; drop or ...
    """
    if all_finite(array):
        return
    array = to_numpy(array)
    wrong = ~np.isfinite(array) & ~(infinite & (array == np.inf))
    if not wrong.any():
        return
    what = "NaN or minus infinity" if infinite else "NaN or infinite"
    raise InputError(
        f"{name}: {int(wrong.sum())} of {array.size} entries are {what}, the first at "
        f"{_first(wrong, name)}; drop or impute them"
    )


def _refuse_containers(values: Any, name: str) -> None:
    """Refuse what holds numbers, but not as an array."""
    # By what they have, not by type: asking for the type would import libraries.
    if callable(getattr(values, "toarray", None)):
        raise InputError(f"{name}: is a sparse matrix; use {name}.toarray()")
    if all(hasattr(values, part) for part in ("X", "obs", "var")):
        raise InputError(
            f"{name}: is a {type(values).__name__}; use {name}.X, or {name}.X.toarray() where that "
            "is sparse"
        )
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{name}: has masked entries; drop or fill them, {name}.filled(...)")


def _as_array(values: Any, name: str) -> np.ndarray:
    if is_foreign(values):
        refuse_odd_tensor(values, name)
        if getattr(values, "requires_grad", False):
            raise InputError(f"{name}: requires grad, but gets no gradient; pass {name}.detach()")
        return to_numpy(values)
    try:
        return np.asarray(values)
    except MemoryError:
        raise
    except ValueError as error:
        raise InputError(f"{name}: is not a rectangular array ({brief(error, 200)})") from None
    except Exception as error:
        # Objects of other libraries may raise anything when they are asked for their numbers.
        reason = f"{type(error).__name__}: {brief(error, 200)}"
        raise InputError(f"{name}: cannot be read as an array ({reason})") from None


def _refuse_objects(array: np.ndarray, name: str) -> None:
    """Refuse objects that are not numbers; text is none, even if it reads like one."""
    wrong = np.array([not isinstance(x, Real | Decimal) for x in array.ravel().tolist()])
    if not wrong.any():
        return
    wrong = wrong.reshape(array.shape)
    if array.ndim == 0:
        raise InputError(f"{name}: is of type {type(array.item()).__name__}, not numbers")
    first = array[wrong][0]
    if first is None or type(first).__name__ in ("NAType", "NaTType"):
        raise InputError(
            f"{name}: has missing entries, the first at {_first(wrong, name)}; drop or impute them"
        )
    raise InputError(
        f"{name}: holds objects that are not numbers, the first at {_first(wrong, name)} "
        f"({brief(first)})"
    )


def _first(wrong: np.ndarray, name: str) -> str:
    where = ", ".join(str(int(at)) for at in np.argwhere(wrong)[0])
    return f"{name}[{where}]" if where else name
