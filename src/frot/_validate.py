"""Validation, once, at the door: one clear error that names the argument and the fix."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np

from frot._arrays import is_foreign, namespace, to_numpy
from frot._errors import InputError
from frot._tables import frame_like

__all__ = [
    "all_finite",
    "check_choice",
    "check_costs",
    "check_masses",
    "check_metric",
    "check_names",
    "check_number",
    "check_points",
    "check_prior",
    "check_weights",
]

# Masses this close to one are taken to be one: float32 weights sum no better.
MASS_TOLERANCE = 1e-5

# What scipy.spatial.distance.cdist takes by name, aliases aside.
METRICS = (
    *("braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "dice"),
    *("euclidean", "hamming", "jaccard", "jensenshannon", "mahalanobis", "minkowski"),
    *("rogerstanimoto", "russellrao", "seuclidean", "sokalsneath", "sqeuclidean", "yule"),
)


def check_points(points: Any, name: str) -> tuple[Any, tuple[str, ...] | None]:
    """Return points as float64 of shape (n, d), and column names where they have any.

    Arrays of another library stay where they are.

    Examples
    --------
    >>> check_points([[1, 2]], "X")
    (array([[1., 2.]]), None)
    """
    values, columns = frame_like(points)
    array: Any = values if is_foreign(values) else _numbers(values, name)
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
    _finite(array, name)
    return array, None if columns is None else tuple(str(column) for column in columns)


def check_costs(costs: Any, infinite: bool = False) -> Any:
    """Return a cost stack as float64 of shape (L, n, m); `infinite` costs are let through or not.

    Examples
    --------
    >>> check_costs([[[1.0]]]).shape
    (1, 1, 1)
    """
    array: Any = costs if is_foreign(costs) else _numbers(costs, "C")
    if array.ndim == 2:
        raise InputError(
            f"C: has shape {tuple(array.shape)}, expected (groups, n, m); use C[None] for a "
            "single cost"
        )
    if array.ndim != 3:
        raise InputError(f"C: has {array.ndim} dimensions, expected (groups, n, m)")
    if 0 in array.shape:
        raise InputError(f"C: is empty (shape {array.shape})")
    _finite(array, "C", infinite)
    return array if is_foreign(array) else np.ascontiguousarray(array)


def check_weights(weights: Any, size: int, name: str, normalise: bool) -> np.ndarray:
    """Return weights of `size` points that sum to one; None is uniform.

    Examples
    --------
    >>> check_weights(None, 2, "a", normalise=False)
    array([0.5, 0.5])
    >>> check_weights([3, 1], 2, "a", normalise=True)
    array([0.75, 0.25])
    """
    if weights is None:
        return np.full(size, 1.0 / size)
    array = _numbers(weights, name)
    if array.shape != (size,):
        raise InputError(f"{name}: has shape {array.shape}, expected one weight a point ({size},)")
    _finite(array, name)
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
    if not np.isfinite(total):
        raise InputError(f"{name}: the weights sum to infinity; scale them down")
    if not normalise and abs(total - 1.0) > MASS_TOLERANCE:
        raise InputError(
            f"{name}: the weights sum to {total:.8g}, which is {total - 1.0:+.3g} off one; "
            "pass normalise_weights=True to divide by the sum"
        )
    # Dividing by the largest first keeps subnormal weights from becoming zero or infinite.
    array = array / array.max()
    return array / array.sum()


def check_masses(a: Any, b: Any, normalise: bool) -> None:
    """Say by how much the masses of the two sides differ, before either is compared with one."""
    if a is None or b is None or normalise:
        return
    left, right = _numbers(a, "a"), _numbers(b, "b")
    with np.errstate(all="ignore"):
        left, right = float(left.sum()), float(right.sum())
    difference = left - right
    if np.isfinite(difference) and abs(difference) > MASS_TOLERANCE * max(abs(left), abs(right)):
        raise InputError(
            f"a, b: the masses differ by {difference:+.6g} ({left:.6g} against "
            f"{right:.6g}); pass normalise_weights=True to make each sum to one"
        )


def check_prior(prior: Any, count: int) -> np.ndarray | None:
    """Return log q of a prior on the groups, normalised; None is the paper's entropy.

    Examples
    --------
    >>> check_prior([1.0, 3.0], 2)
    array([-1.38629436, -0.28768207])
    """
    if prior is None:
        return None
    array = _numbers(prior, "prior")
    if array.shape != (count,):
        raise InputError(f"prior: has shape {array.shape}, expected one weight a group ({count},)")
    _finite(array, "prior")
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
    """Return one name a group; None names them g0, g1, ...

    Examples
    --------
    >>> check_names(None, 2)
    ('g0', 'g1')
    """
    if names is None:
        return tuple(f"g{group}" for group in range(count))
    try:
        labels = (names,) if isinstance(names, str) else tuple(map(str, names))
    except TypeError:
        raise InputError(f"names: {names!r} is not a list of names") from None
    if len(labels) != count:
        raise InputError(f"names: {len(labels)} names for {count} groups")
    return labels


def check_number(value: Any, name: str, *, least: float = 0.0, strict: bool = False) -> float:
    """Return a finite float that is >= `least` (> if `strict`).

    Examples
    --------
    >>> check_number(1, "eta")
    1.0
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}: {value!r} is not a number") from None
    bad = number <= least if strict else number < least
    if not np.isfinite(number) or bad:
        raise InputError(f"{name}: must be finite and {'>' if strict else '>='} {least:g}, "
                         f"got {number:g}")  # fmt: skip
    return number


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`.

    Examples
    --------
    >>> check_choice("mean", "normalise", ("none", "mean"))
    'mean'
    """
    if value not in choices:
        raise InputError(f"{name}: {value!r} is none of {', '.join(map(repr, choices))}")
    return value


def check_metric(metric: Any) -> Any:
    """Return a callable metric, or the name of one that SciPy knows.

    Examples
    --------
    >>> check_metric("euclidean")
    'euclidean'
    """
    if callable(metric) or (isinstance(metric, str) and metric in METRICS):
        return metric
    close = difflib.get_close_matches(str(metric), METRICS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(METRICS)}"
    raise InputError(f"metric: {metric!r} is neither a callable nor a metric SciPy knows; {hint}")


def _numbers(values: Any, name: str) -> np.ndarray:
    """Convert to float64, refusing text, complex numbers, masks and ragged lists by name."""
    values = to_numpy(values) if is_foreign(values) else values
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{name}: has masked entries; drop or fill them, {name}.filled(...)")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name}: is not a rectangular array ({error})") from None
    if array.dtype.kind == "c":
        raise InputError(f"{name}: is complex; pass its real part or its modulus")
    if array.dtype.kind not in "fiubO":
        raise InputError(f"{name}: holds {array.dtype}, not numbers; use {name}.astype(float)")
    try:
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
    xp = namespace(array) if is_foreign(array) else np
    return bool(xp.all(xp.isfinite(array)))


def _finite(array: Any, name: str, infinite: bool = False) -> None:
    """Refuse NaN and infinite entries; plus infinity may stand for an arc that is forbidden."""
    if all_finite(array):
        return
    array = to_numpy(array)
    bad = ~(np.isfinite(array) | (array == np.inf)) if infinite else ~np.isfinite(array)
    if not bad.any():
        return
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    what = "NaN or minus infinity" if infinite else "NaN or infinite"
    raise InputError(
        f"{name}: {int(bad.sum())} of {array.size} entries are {what}, the first at "
        f"{name}[{', '.join(map(str, where))}]; drop or impute them"
    )
