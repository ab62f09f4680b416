from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from benchmarks._fuzz.truth.numbers import STEP, exact, power, rounded, to_long, to_mp

VALUES = [1.0, -0.1, 1e300, 1e-300, 5e-324, 123456789.123456789]


@pytest.mark.parametrize("value", VALUES)
def test_floats_are_what_they_are(value):
    assert exact(value) == Fraction(value)
    assert exact(np.float64(value)) == Fraction(value)
    assert exact(np.longdouble(value)) == Fraction(value)
    with mpmath.workdps(60):
        assert exact(mpmath.mpf(value)) == Fraction(value)


def test_long_doubles_keep_their_digits():
    third = np.longdouble(1) / 3
    assert abs(exact(third) - Fraction(1, 3)) < Fraction(1, 2**64)
    assert exact(third) != Fraction(1.0 / 3.0)


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-22, 7) * 10**400, Fraction(1, 7**900)])
def test_rationals_as_long_doubles(value):
    assert abs(exact(to_long(value)) / value - 1) < Fraction(1, 2**62)


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-22, 7), Fraction(10) ** 300 / 7])
def test_rounded_is_close_and_short(value):
    found = rounded(value)
    assert abs(found / value - 1) < STEP
    assert found.denominator.bit_count() == 1


def test_dyadic_numbers_are_not_rounded():
    assert rounded(Fraction(0.1)) == Fraction(0.1)
    assert rounded(Fraction(0)) == 0


@pytest.mark.parametrize("exponent", [Fraction(1, 2), Fraction(3, 2), Fraction(1, 3)])
def test_powers_that_are_not_rational(exponent):
    base = Fraction(0.7)
    found = power(base, exponent)
    assert abs(found**exponent.denominator / base**exponent.numerator - 1) < 10 * STEP


def test_to_mp_has_the_digits_asked_for():
    with mpmath.workdps(60):
        assert abs(exact(to_mp(Fraction(1, 3))) - Fraction(1, 3)) < Fraction(1, 10**60)
