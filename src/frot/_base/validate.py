"""Validation of arguments: one clear error that names the argument and the fix.

Whatever a user passes for numbers comes out as float64, or stays in its own array library.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Set, Sized
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from itertools import islice
from math import fsum
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from frot._base.arrays import Array, adopt, is_foreign, namespace, refuse_odd_tensor, to_numpy
from frot._base.contract import drop_light_weights, refuse_large_integers, refuse_masked
from frot._base.errors import InputError, brief
from frot._base.names import first_repeated

# Masses this close to one are taken to be one: float32 weights sum no better.
MASS_TOLERANCE = 1e-5

# Weights with a smaller sum are refused: their quotients would underflow.
SMALLEST_MASS = 1e-100

# What scipy.spatial.distance.cdist takes by name, aliases aside.
METRICS = (
    *("braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "dice"),
    *("euclidean", "hamming", "jaccard", "jensenshannon", "mahalanobis", "minkowski"),
    *("rogerstanimoto", "russellrao", "seuclidean", "sokalsneath", "sqeuclidean", "yule"),
)


def frame_like(x: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Take the values and column names out of a DataFrame; pass anything else through.

    Frames are of pandas, polars or anything that has ``columns`` and ``to_numpy``.
    """
    # By shape, not by type: asking for the type would import libraries the user may not have.
    if hasattr(x, "columns") and callable(getattr(x, "to_numpy", None)):
        return x.to_numpy(), tuple(str(name) for name in x.columns)
    return x, None


def check_points(points: Any, name: str) -> tuple[Any, tuple[str, ...] | None]:
    """Return points as float64 of shape (n, d), and column names where they have any.

    Tensors stay where they are.
    """
    values, columns = frame_like(points)
    array: Any = _numbers_anywhere(values, name)
    if tuple(array.shape) == (0,):
        raise InputError(f"{name}: has no points; give an array of shape (points, features)")
    if array.ndim == 1:
        raise InputError(
            f"{name}: has shape {tuple(array.shape)}, but points are rows; "
            f"use {name}.reshape(-1, 1) for points of one feature"
        )
    if array.ndim != 2:
        raise InputError(f"{name}: has {array.ndim} dimensions, expected (points, features)")
    if 0 in array.shape:
        what = "points" if array.shape[0] == 0 else "features"
        raise InputError(f"{name}: has no {what} (shape {tuple(array.shape)})")
    check_finite(array, name)
    return array, columns


def check_two_clouds(X: Any, Y: Any) -> tuple[Any, Any, tuple[str, ...] | None]:
    """Return two sets of points of the same features, and the names of these where one has them."""
    X, x_names = check_points(X, "X")
    Y, y_names = check_points(Y, "Y")
    if X.shape[1] != Y.shape[1]:
        raise InputError(
            f"X, Y: have {X.shape[1]} and {Y.shape[1]} features; they must be the same ones"
        )
    if x_names is not None and y_names is not None and x_names != y_names:
        for side, names, others in (("X", x_names, set(y_names)), ("Y", y_names, set(x_names))):
            if lone := [name for name in names if name not in others]:
                raise InputError(
                    f"X, Y: have different columns; only {side} has {brief(lone[0])}, for one: "
                    "keep those that both have"
                )
        raise InputError("X, Y: have different columns; reorder one by the other, Y[X.columns]")
    return X, Y, x_names or y_names


def check_costs(costs: Any) -> Any:
    """Return a cost stack as float64 of shape (L, n, m)."""
    array: Any = _numbers_anywhere(costs, "C")
    if array.ndim == 2:
        raise InputError(
            f"C: has shape {tuple(array.shape)}, expected (groups, n, m); use C[None] for a "
            "single cost"
        )
    if array.ndim != 3:
        raise InputError(f"C: has {array.ndim} dimensions, expected (groups, n, m)")
    if 0 in array.shape:
        raise InputError(f"C: is empty (shape {tuple(array.shape)})")
    if not all_finite(array) and ((host := to_numpy(array)) == np.inf).any():
        raise InputError(
            f"C: has infinite costs, the first at {_first(host == np.inf, 'C')}; give a pair that "
            "must not be matched a cost larger than all others, such as ten times the largest"
        )
    check_finite(array, "C")
    return array if is_foreign(array) else np.ascontiguousarray(array)


def _numbers_anywhere(values: Any, name: str) -> Any:
    """Return numbers as float64, or as they are where they are a tensor."""
    if not is_foreign(values):
        return read_numbers(values, name)
    refuse_odd_tensor(values, name)
    return values


def check_entries(values: Any, name: str, ndim: int = 1) -> np.ndarray:
    """Return finite numbers as a float64 array of so many dimensions, always a copy."""
    array = np.array(read_numbers(values, name))
    if array.ndim != ndim:
        raise InputError(f"{name}: has {array.ndim} dimensions, expected {ndim}")
    check_finite(array, name)
    return array


def check_weights(
    weights: Any, size: int, name: str, normalise: bool, any_mass: bool = False
) -> np.ndarray:
    """Return weights of `size` points that sum to one, or to `any_mass`; None is uniform.

    Weights next to nothing are zero (`drop_light_weights`).

    Examples
    --------
    >>> check_weights(None, 2, "a", normalise=False)
    array([0.5, 0.5])
    >>> check_weights([3, 1], 2, "a", normalise=True)
    array([0.75, 0.25])
    """
    if weights is None:
        return np.full(size, 1.0 / size)
    array = read_numbers(weights, name)
    if array.shape != (size,):
        raise InputError(
            f"{name}: has shape {array.shape}, expected one weight per point ({size},)"
        )
    check_finite(array, name)
    if (array < 0.0).any():
        where = int(np.argmin(array))
        raise InputError(
            f"{name}: weights must be >= 0, but {name}[{where}] = {array[where]:.6g}; "
            "clip or drop the negative ones"
        )
    with np.errstate(over="ignore"):
        total = float(array.sum())
    if total == 0.0:
        raise InputError(f"{name}: all weights are zero; leave {name} out for uniform weights")
    if not np.isfinite(total) or total < SMALLEST_MASS:
        raise InputError(f"{name}: the weights sum to {total:.3g}; rescale them")
    array = drop_light_weights(array, name)
    if not normalise and abs(total - 1.0) > MASS_TOLERANCE:
        if any_mass:
            return array
        raise InputError(
            f"{name}: the weights sum to {total:.8g}, which is {total - 1.0:+.3g} off one; "
            "pass normalise_weights=True to divide by the sum"
        )
    # Both sides have to weigh the same: sums are rounded once.
    return array / fsum(array.tolist())


def check_masses(a: Any, b: Any, normalise: bool) -> None:
    """Say by how much the masses of the two sides differ, before either is compared with one."""
    if a is None or b is None or normalise:
        return
    left, right = read_numbers(a, "a"), read_numbers(b, "b")
    with np.errstate(all="ignore"):
        left, right = float(left.sum()), float(right.sum())
    difference = left - right
    if np.isfinite(difference) and abs(difference) > MASS_TOLERANCE * max(abs(left), abs(right)):
        raise InputError(
            f"a, b: the masses differ by {difference:+.6g} ({left:.6g} against "
            f"{right:.6g}); pass normalise_weights=True to make each sum to one, or tau=... "
            "or mass=... to let mass go"
        )


def check_prior(prior: Any, count: int) -> np.ndarray | None:
    """Return log q of a prior on the groups, normalised; None is the paper's entropy."""
    if prior is None:
        return None
    array = read_numbers(prior, "prior")
    if array.shape != (count,):
        raise InputError(
            f"prior: has shape {array.shape}, expected one weight per group ({count},)"
        )
    check_finite(array, "prior")
    if (array <= 0.0).any():
        where = int(np.argmin(array))
        raise InputError(
            f"prior: must be > 0, but prior[{where}] = {array[where]:.6g}; "
            "leave groups out of `groups` instead"
        )
    # Dividing by the largest first keeps huge priors finite.
    array = array / array.max()
    array = array / array.sum()
    if not array.all():
        raise InputError(
            f"prior: prior[{int(np.argmin(array))}] is zero next to the largest; leave such "
            "groups out of `groups` instead"
        )
    return np.log(array)


def check_names(names: Any, count: int) -> tuple[str, ...]:
    """Return one name per group, all different; None names them g0, g1, ..."""
    if names is None:
        return tuple(f"g{group}" for group in range(count))
    labels = _labels(names, count, "names", "groups")
    if (twice := first_repeated(labels)) is not None:
        raise InputError(f"names: two groups are named {brief(twice)}; give each its own name")
    return labels


def check_feature_names(names: Any, count: int) -> tuple[str, ...] | None:
    """Return one name per feature, of which some may be equal; None is no names."""
    return None if names is None else _labels(names, count, "feature_names", "features")


def _labels(names: Any, count: int, name: str, of: str) -> tuple[str, ...]:
    given = [names] if isinstance(names, str) else names
    # Sets have no order.
    if isinstance(given, bytes | Mapping | Set) or not isinstance(given, Iterable):
        raise InputError(f"{name}: {brief(names)} is not a list of names")
    # One more than there should be is enough to tell.
    labels = tuple(islice(given, count + 1))
    if len(labels) != count:
        given_count = len(given) if isinstance(given, Sized) else "more or fewer"
        raise InputError(f"{name}: {given_count} names for {count} {of}; give one for each")
    if odd := [label for label in labels if not isinstance(label, str | Real | np.bool_)]:
        raise InputError(f"{name}: {brief(odd[0])} is not a name; use text")
    return tuple(map(str, labels))


def check_number(value: Any, name: str, *, least: float = 0.0, strict: bool = False) -> float:
    """Return a finite float that is >= `least` (> if `strict`).

    Text is no number, nor are True and False; fractions and decimals have to be floats exactly.

    Examples
    --------
    >>> check_number(1, "eta")
    1.0
    >>> check_number("1e-3", "tol")
    Traceback (most recent call last):
    ...
    frot.InputError: tol: '1e-3' is not a number
    """
    number = _single(value, name)
    bad = number <= least if strict else number < least
    if not math.isfinite(number) or bad:
        sign = ">" if strict else ">="
        raise InputError(f"{name}: must be finite and {sign} {least:g}, got {number:g}")
    return number


def _single(value: Any, name: str) -> float:
    """Return one real number as a float."""
    if type(value) is float:
        # The usual case, without the checks below, which take a small problem a noticeable time.
        return value
    if is_foreign(value):
        refuse_odd_tensor(value, name)
        if getattr(value, "requires_grad", False):
            raise InputError(f"{name}: requires grad, but is taken as a number; pass float({name})")
        value = to_numpy(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real | Decimal):
        raise InputError(f"{name}: {brief(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        raise InputError(f"{name}: {brief(value)} is beyond the largest float") from None
    exact: Any = int(value) if isinstance(value, Integral) else value
    if isinstance(exact, int | Fraction | Decimal) and number != exact and np.isfinite(number):
        raise InputError(f"{name}: {brief(value)} is between two floats; pass float({name})")
    return number


def check_count(
    value: Any, name: str, *, least: int = 1, most: int | None = None, of: str = ""
) -> int:
    """Return a whole number from `least` to `most`; 3.0 is one too.

    Examples
    --------
    >>> check_count(2, "k", most=3)
    2
    >>> check_count(2.5, "max_iter")
    Traceback (most recent call last):
    ...
    frot.InputError: max_iter: must be a whole number >= 1, got 2.5
    """
    # Integers may be beyond floats: they are compared as they are.
    whole = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    number: float = int(value) if whole else _single(value, name)
    if number % 1 != 0 or number < least or (most is not None and number > most):
        limit = f">= {least}" if most is None else f"from {least} to {most}{of}"
        raise InputError(f"{name}: must be a whole number {limit}, got {brief(value)}")
    return int(number)


def check_seed(value: Any, name: str) -> int:
    """Return a whole number >= 0 that begins a random sequence."""
    return check_count(value, name, least=0)


def check_flag(value: Any, name: str) -> bool:
    """Return True or False, which is all that a switch can be."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}: is {brief(value)}; use True or False")
    return bool(value)


def check_callable(value: Any, name: str) -> Any:
    """Return a function, or None where there is none."""
    if value is not None and not callable(value):
        raise InputError(f"{name}: {brief(value)} cannot be called; pass a function")
    return value


def check_text(value: Any, name: str) -> str:
    """Return text."""
    if not isinstance(value, str):
        raise InputError(f"{name}: is {brief(value)}; use text")
    return value


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name}: {brief(value)} is none of {', '.join(map(repr, choices))}")
    return value


def check_metric(metric: Any, more: Iterable[str] = ()) -> Any:
    """Return a callable metric, or the name of one that SciPy knows, or of one `more`."""
    known = (*METRICS, *(name for name in more if name not in METRICS))
    if callable(metric) or (isinstance(metric, str) and metric in known):
        return metric
    close = difflib.get_close_matches(metric[:50], known, n=1) if isinstance(metric, str) else ()
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
    raise InputError(
        f"metric: {brief(metric)} is neither a callable nor a metric SciPy knows; {hint}"
    )


def metric_name(metric: Any) -> str:
    """Return what a result calls a metric: a function by its name.

    Examples
    --------
    >>> metric_name("cosine"), metric_name(len)
    ('cosine', 'len')
    """
    return metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric))


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
        # The usual case, without the checks below, which take a small problem a noticeable time.
        return values
    _refuse_containers(values, name)
    array = _as_array(values, name)
    refuse_large_integers(array, name)
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


def all_finite(array: Array) -> bool:
    """Whether no entry is NaN or infinite, wherever the array is."""
    if isinstance(array, np.ndarray):
        return bool(np.isfinite(array).all())
    xp = namespace(array)
    if 0 in array.shape or not xp.isdtype(array.dtype, "real floating"):
        return bool(xp.all(xp.isfinite(array)))
    # A NaN makes minimum and maximum NaN: two reductions, and no array of flags.
    return all(bool(xp.isfinite(end)) for end in xp.ends(array))


def check_finite(array: Array, name: str) -> None:
    """Refuse NaN and infinity, and say where the first is; tensors may be on a device."""
    if all_finite(array):
        return
    array = to_numpy(array)
    wrong = ~np.isfinite(array)
    raise InputError(
        f"{name}: {int(wrong.sum())} of {array.size} entries are NaN or infinite, the first at "
        f"{_first(wrong, name)}; drop or impute them"
    )


def _refuse_containers(values: Any, name: str) -> None:
    """Refuse what holds numbers, but not as an array."""
    if isinstance(values, str):
        raise InputError(
            f"{name}: is the text {brief(values)}, not numbers; if that is a file, read it with "
            "frot.read_table first"
        )
    # By what they have, not by type: asking for the type would import libraries.
    if callable(getattr(values, "toarray", None)):
        raise InputError(f"{name}: is a sparse matrix; use {name}.toarray()")
    if all(hasattr(values, part) for part in ("X", "obs", "var")):
        raise InputError(
            f"{name}: is a {type(values).__name__}; use {name}.X, or {name}.X.toarray() where that "
            "is sparse"
        )
    refuse_masked(values, name)


def _as_array(values: Any, name: str) -> np.ndarray:
    values = adopt(values, name)
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
    where = ", ".join(str(int(index)) for index in np.argwhere(wrong)[0])
    return f"{name}[{where}]" if where else name


# American spellings of arguments that are spelt the British way.
SECOND_NAMES = {
    "normalise": "normalize",
    "normalise_weights": "normalize_weights",
    "colour": "color",
}

Call = TypeVar("Call", bound=Callable[..., Any])


def second_names(call: Call) -> Call:
    """Let a function take its arguments by their American spelling too.

    The signature that `inspect` and type checkers see keeps the first names.

    Examples
    --------
    >>> @second_names
    ... def draw(n, colour="red"):
    ...     return n, colour
    >>> draw(3, color="blue")
    (3, 'blue')
    >>> draw(3, colour="red", color="blue")
    Traceback (most recent call last):
    ...
    TypeError: draw() got colour and color, which are one argument
    """
    parameters = inspect.signature(call).parameters
    passes_on = any(side.kind is side.VAR_KEYWORD for side in parameters.values())
    second = {new: old for old, new in SECOND_NAMES.items() if passes_on or old in parameters}

    @wraps(call)
    def run(*args: Any, **given: Any) -> Any:
        for name in second.keys() & given.keys():
            if second[name] in given:
                raise TypeError(
                    f"{call.__name__}() got {second[name]} and {name}, which are one argument"
                )
            given[second[name]] = given.pop(name)
        return call(*args, **given)

    return run  # pyright: ignore[reportReturnType]
