"""Distances between points, from the points themselves, without the rounding of double precision.

The rationals returned are exact, or within `STEP` of the distance, relatively.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from .numbers import DIGITS, exact, power, to_mp

__all__ = ["METRICS", "distance_power"]

Row = Sequence[Fraction]
HALF = Fraction(1, 2)


def distance_power(metric: Any, u: Row, v: Row, p: Fraction) -> Fraction:
    """Return d(u, v)^p for the name of a metric, or for a function of two arrays of floats.

    What a function returns is taken as it is.

    Examples
    --------
    >>> distance_power("euclidean", (Fraction(0), Fraction(0)), (Fraction(3), Fraction(4)), 2)
    Fraction(25, 1)
    """
    if callable(metric):
        floats = (np.array([float(x) for x in row]) for row in (u, v))
        return power(exact(metric(*floats)), Fraction(p))
    if metric in SQUARED:
        return power(_square(u, v), HALF * p)
    return power(METRICS[metric](u, v), Fraction(p))


def _square(u: Row, v: Row) -> Fraction:
    return sum(((x - y) ** 2 for x, y in zip(u, v, strict=True)), Fraction())


def _gaps(u: Row, v: Row) -> list[Fraction]:
    return [abs(x - y) for x, y in zip(u, v, strict=True)]


def _canberra(u: Row, v: Row) -> Fraction:
    parts = ((abs(x - y), abs(x) + abs(y)) for x, y in zip(u, v, strict=True))
    return sum((top / bottom for top, bottom in parts if bottom), Fraction())


def _braycurtis(u: Row, v: Row) -> Fraction:
    both = sum((abs(x + y) for x, y in zip(u, v, strict=True)), Fraction())
    return sum(_gaps(u, v), Fraction()) / both


def _hamming(u: Row, v: Row) -> Fraction:
    return Fraction(sum(x != y for x, y in zip(u, v, strict=True)), len(u))


def _cosine(u: Row, v: Row) -> Fraction:
    """1 - cos, as half the square of the difference of the unit vectors where that is small.

    With U = |u|, V = |v|: 1 - u.v / (U V) = ((U V)^2 - (u.v)^2) / (U V (U V + u.v)), and the
    numerator is rational.
    """
    inner = sum((x * y for x, y in zip(u, v, strict=True)), Fraction())
    squares = sum((x * x for x in u), Fraction()) * sum((y * y for y in v), Fraction())
    with mpmath.workdps(DIGITS + 20):
        norms = mpmath.sqrt(to_mp(squares))
        if inner <= 0:
            return exact(1 - to_mp(inner) / norms)
        return exact(to_mp(squares - inner**2) / (norms * (norms + to_mp(inner))))


def _correlation(u: Row, v: Row) -> Fraction:
    means = [sum(row, Fraction()) / len(row) for row in (u, v)]
    return _cosine([x - means[0] for x in u], [y - means[1] for y in v])


# Roots are taken with the power, so that even powers stay rational.
SQUARED = frozenset({"euclidean", "minkowski"})
METRICS: dict[str, Callable[[Row, Row], Fraction]] = {
    "sqeuclidean": _square,
    "cityblock": lambda u, v: sum(_gaps(u, v), Fraction()),
    "chebyshev": lambda u, v: max(_gaps(u, v)),
    "canberra": _canberra,
    "braycurtis": _braycurtis,
    "hamming": _hamming,
    "cosine": _cosine,
    "correlation": _correlation,
}
