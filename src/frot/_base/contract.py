"""The contract at the door: the numbers that frot works with; `docs/contract.md` is the same page.

Every door asks the same few functions before any work. Inside the contract double precision has
digits to spare, so that nothing behind the door looks at overflow, underflow or weights of 1e-300.
"""

from __future__ import annotations

from math import isinf
from typing import Any

import numpy as np

from frot._base.arrays import Array
from frot._base.errors import DataWarning, InputError, warn_caller

# Weights below this share of the largest of their side count as zero: sums of the others do not see
# them in double precision.
LIGHTEST = 1e-15
# The largest cost in units of the mean cost: beyond it the typical ones are lost in its rounding.
LARGEST = 1e14
# Mean costs whose products with each other, and with weights, neither overflow nor underflow.
LEAST_MEAN, MOST_MEAN = 1e-100, 1e100
# An optimum below this share of the mean cost is as good as zero: gaps are relative to no less.
GAP_SHARE = 1e-6
# Whole numbers beyond this are not all floats.
LARGEST_INTEGER = 2**53


def refuse_masked(values: Any, name: str) -> None:
    """Refuse masked arrays, alone or in a list: most of NumPy reads what is under the mask.

    Examples
    --------
    >>> refuse_masked(np.ma.masked_less([1.0, -1.0], 0.0), "X")
    Traceback (most recent call last):
    ...
    frot.InputError: X: is a masked array; drop the masked entries, or fill them: X.filled(...)
    """
    parts = values if isinstance(values, list | tuple) else (values,)
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise InputError(
            f"{name}: is a masked array; drop the masked entries, or fill them: {name}.filled(...)"
        )


def refuse_large_integers(array: np.ndarray, name: str) -> None:
    """Refuse whole numbers that a double does not hold.

    Examples
    --------
    >>> refuse_large_integers(np.array([2**53 + 1]), "X")
    Traceback (most recent call last):
    ...
    frot.InputError: X: has integers beyond 2^53, which a float does not hold; subtract an offset...
    """
    if array.dtype.kind == "O":
        whole = [value for value in array.ravel().tolist() if type(value) is int]
        large = any(abs(value) > LARGEST_INTEGER for value in whole)
    elif array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        large = int(array.max()) > LARGEST_INTEGER or int(array.min()) < -LARGEST_INTEGER
    else:
        return
    if large:
        raise InputError(
            f"{name}: has integers beyond 2^53, which a float does not hold; subtract an offset, "
            f"or round them yourself: {name}.astype(float)"
        )


def refuse_unfit_table(table: Any, name: str) -> None:
    """Refuse a table, of whatever library, with masks or with integers that a double does not hold.

    Examples
    --------
    >>> refuse_unfit_table(np.array([[1.0, 2.0]]), "X")
    """
    refuse_masked(table, name)
    values = table
    if callable(getattr(table, "toarray", None)):
        # A sparse matrix.
        values = table.tocoo().data
    elif callable(getattr(table, "to_numpy", None)):
        values = table.to_numpy()
    if isinstance(values, np.ndarray):
        refuse_masked(values, name)
        refuse_large_integers(values, name)


def drop_light_weights(weights: np.ndarray, name: str) -> np.ndarray:
    """Return weights >= 0 of which those next to nothing are zero, with a `DataWarning`.

    The others are returned as they are.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as heard:
    ...     warnings.simplefilter("always")
    ...     drop_light_weights(np.array([1.0, 1e-20, 0.0]), "a")
    array([1., 0., 0.])
    >>> print(heard[0].message)
    a: 1 of 3 weights are below 1e-15 of the largest and count as zero; together they weigh 1e-20
    """
    light = (weights > 0.0) & (weights < LIGHTEST * weights.max())
    if not light.any():
        return weights
    warn_caller(
        f"{name}: {int(light.sum())} of {weights.size} weights are below {LIGHTEST:.0e} of the "
        f"largest and count as zero; together they weigh {weights[light].sum():.3g}",
        category=DataWarning,
    )
    return np.where(light, 0.0, weights)


def check_cost_range(mean: float, largest: float, who: str = "costs") -> None:
    """Refuse costs outside the contract, by their mean size and the largest one; all may be zero.

    Of factored costs the largest may be a bound: the squared range of the points.

    Examples
    --------
    >>> check_cost_range(0.0, 0.0)
    >>> check_cost_range(1.0, 1e9)
    >>> check_cost_range(1.0, 1e15)
    Traceback (most recent call last):
    ...
    frot.InputError: costs: the largest is 1e+15 times the mean, and 1e14 is the most; rescale it...
    """
    if not (np.isfinite(mean) and np.isfinite(largest)):
        raise InputError(
            f"{who}: some are infinite or NaN; rescale the points, or check the metric. A pair "
            "that must not be matched gets a cost larger than all others"
        )
    if mean == 0.0 and largest == 0.0:
        return
    if not LEAST_MEAN <= mean <= MOST_MEAN:
        raise InputError(
            f"{who}: are {mean:.3g} on average, which should be within {LEAST_MEAN:.0e} and "
            f"{MOST_MEAN:.0e}; rescale the points, or the costs"
        )
    if largest > LARGEST * mean:
        raise InputError(
            f"{who}: the largest is {largest / mean:.3g} times the mean, and 1e14 is the most; "
            "rescale it: a cost larger than all others, times ten, is large enough"
        )


def check_eps_range(mean: float, eps: float, who: str = "costs") -> None:
    """Refuse an eps by which costs cannot be divided, or beside which they are rounding.

    Examples
    --------
    >>> check_eps_range(1.0, 1e-3)
    >>> check_eps_range(1.0, 1e-150)
    Traceback (most recent call last):
    ...
    frot.InputError: eps: 1e-150 is too small to divide the costs by, 1 on average; pass a larger...
    >>> check_eps_range(1.0, 1e308)
    Traceback (most recent call last):
    ...
    frot.InputError: eps: 1e+308 is too large to see costs of 1 on average beside...
    """
    most = LARGEST * (mean or 1.0)
    if eps > most:
        raise InputError(
            f"eps: {eps:.3g} is too large to see {who} of {mean:.3g} on average beside it; pass "
            f"at most {most:.3g}"
        )
    if 0.0 < eps < max(LEAST_MEAN * mean, LEAST_MEAN**2):
        raise InputError(
            f"eps: {eps:.3g} is too small to divide the {who} by, {mean:.3g} on average; pass a "
            "larger eps, or 0"
        )


def check_not_beyond(name: str, amounts: Array, means: Array, who: str = "costs") -> None:
    """Refuse an eta or a tau beside which costs are rounding; an infinite tau keeps all mass.

    Examples
    --------
    >>> check_not_beyond("tau", np.inf, 1.0)
    >>> check_not_beyond("eta", 1e15, 1.0)
    Traceback (most recent call last):
    ...
    frot.InputError: eta: 1e+15 is too large to see costs of 1 on average beside it; pass at most...
    """
    amounts, means = np.broadcast_arrays(np.atleast_1d(amounts), np.atleast_1d(means))
    most = LARGEST * np.where(means > 0.0, means, 1.0)
    for index in np.flatnonzero(np.isfinite(amounts) & (amounts > most))[:1].tolist():
        way = ", or leave it out to keep all mass" if name == "tau" else ""
        raise InputError(
            f"{name}: {amounts[index]:.3g} is too large to see {who.format(index=index)} of "
            f"{means[index]:.3g} on average beside it; pass at most {most[index]:.3g}{way}"
        )


def check_batch_range(means: np.ndarray, largest: np.ndarray, epss: np.ndarray, who: str) -> None:
    """Refuse the first member of a batch that is outside; `who` has an ``{index}``.

    Examples
    --------
    >>> check_batch_range(np.ones(2), np.array([1.0, 1e15]), np.ones(2), "X[{index}]")
    Traceback (most recent call last):
    ...
    frot.InputError: X[1]: the costs: the largest is 1e+15 times the mean, and 1e14 is the most; ...
    """
    within = (means >= LEAST_MEAN) & (means <= MOST_MEAN) & (largest <= LARGEST * means)
    within |= (means == 0.0) & (largest == 0.0)
    within &= (epss == 0.0) | (epss >= np.maximum(LEAST_MEAN * means, LEAST_MEAN**2))
    within &= epss <= LARGEST * np.where(means > 0.0, means, 1.0)
    for index in np.flatnonzero(~within)[:1].tolist():
        mean, member = float(means[index]), who.format(index=index)
        check_cost_range(mean, float(largest[index]), f"{member}: the costs")
        check_eps_range(mean, float(epss[index]), f"costs of {member}")


def gap_floor(mean_cost: float, *others: float) -> float:
    """Return what gaps are relative to at least: 1e-6 mean costs.

    Where nothing costs anything that is the largest other scale there is: eta, eps or tau.

    Examples
    --------
    >>> gap_floor(2.0, 0.1), gap_floor(0.0, 0.1, float("inf"))
    (2e-06, 0.1)
    """
    if mean_cost > 0.0:
        return GAP_SHARE * mean_cost
    return max((other for other in others if not isinf(other)), default=0.0)


def relative_gap(lower: float, upper: float, floor: float) -> float:
    """Return the width of an interval relative to the larger of its ends and the `floor`.

    Examples
    --------
    >>> relative_gap(0.75, 1.0, 1e-6)
    0.25
    >>> relative_gap(0.0, 1e-16, 1e-6), relative_gap(0.0, 0.0, 0.0)
    (1e-10, 0.0)
    """
    if upper <= lower:
        return 0.0
    # With an infinite bound the relative gap is one.
    if isinf(upper) or isinf(lower):
        return 1.0
    return float((upper - lower) / max(abs(upper), abs(lower), floor))
