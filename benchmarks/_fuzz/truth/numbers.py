"""Numbers between floats and the truth: rationals, and rationals for what is none."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

__all__ = ["DIGITS", "STEP", "exact", "exactly", "power", "rounded", "to_long", "to_mp"]

# Digits that logarithms, exponentials and roots are computed to, and the relative error, with
# some to spare, that is reckoned with.
DIGITS = 60
STEP = Fraction(1, 10**55)
# Bits that quotients are cut to, which keeps numbers from growing: far more than DIGITS.
BITS = 260


def exact(value: Any) -> Fraction:
    """Return a float, of any size or kind, as the rational number it is.

    Examples
    --------
    >>> exact(0.5), exact(np.float32(0.1))
    (Fraction(1, 2), Fraction(13421773, 134217728))
    """
    if type(value) is np.longdouble:
        mantissa, exponent = np.frexp(value)
        return Fraction(int(np.ldexp(mantissa, 64))) * Fraction(2) ** (int(exponent) - 64)
    if isinstance(value, mpmath.mpf):
        sign, mantissa, exponent, _ = value._mpf_  # type: ignore[attr-defined]
        size = Fraction(int(mantissa)) * Fraction(2) ** exponent
        return -size if sign else size
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def exactly(values: Any) -> tuple[Fraction, ...]:
    """Return the entries of a vector as rationals."""
    return tuple(exact(value) for value in values)


def to_mp(value: Fraction) -> Any:
    """Return a rational in mpmath's present precision."""
    return mpmath.mpf(value.numerator) / value.denominator


def to_long(value: Fraction) -> np.longdouble:
    """Return a rational as a long double, right to about its last place.

    Examples
    --------
    >>> bool(to_long(Fraction(3, 4)) == 0.75)
    True
    """
    top, bottom = value.numerator, value.denominator
    shift = 66 + bottom.bit_length() - top.bit_length()
    cut = (top << shift) // bottom if shift >= 0 else top // (bottom << -shift)
    # Halves that fit a double each; long doubles have no way in for larger whole numbers.
    high, low = divmod(cut, 2**34)
    mantissa = np.longdouble(high) * 2**34 + np.longdouble(low)
    return np.ldexp(mantissa, -shift)


def rounded(value: Fraction) -> Fraction:
    """Return a rational with few bits that is within `STEP`, relatively.

    Examples
    --------
    >>> abs(rounded(Fraction(1, 3)) * 3 - 1) < STEP
    True
    """
    top, bottom = value.numerator, value.denominator
    shift = BITS - top.bit_length() + bottom.bit_length()
    if bottom.bit_count() == 1 and top.bit_length() <= BITS:
        return value
    cut = (top << shift) // bottom if shift >= 0 else top // (bottom << -shift)
    return Fraction(cut) / Fraction(2) ** shift


def power(value: Fraction, exponent: Fraction) -> Fraction:
    """Return a power of a number >= 0, exact where it is rational for sure, else within `STEP`.

    Examples
    --------
    >>> power(Fraction(9, 4), Fraction(2)), float(power(Fraction(2), Fraction(1, 2)))
    (Fraction(81, 16), 1.4142135623730951)
    """
    if value == 0:
        return Fraction(0)
    if exponent.denominator == 1:
        return value**exponent.numerator
    with mpmath.workdps(DIGITS + 10):
        return exact(mpmath.power(to_mp(value), to_mp(exponent)))
