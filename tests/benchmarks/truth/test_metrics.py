from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from benchmarks._fuzz.truth.metrics import METRICS, SQUARED, distance_power
from benchmarks._fuzz.truth.numbers import exactly, to_mp


@pytest.mark.parametrize("metric", sorted([*METRICS, *SQUARED]))
@pytest.mark.parametrize("p", [1.0, 2.0, 0.5, 3.0])
def test_scipy_computes_the_same(metric, p):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(4, 5)), rng.normal(size=(3, 5))
    # Some entries are equal, which hamming is about.
    Y[0, 2:] = X[1, 2:]
    expected = cdist(X, Y, metric) ** p
    found = [[distance_power(metric, exactly(x), exactly(y), Fraction(p)) for y in Y] for x in X]
    assert np.array(found, dtype=float) == pytest.approx(expected, rel=1e-12)


def test_squares_are_exact():
    one, other = (Fraction(1e8), Fraction(0.1)), (Fraction(1e8 + 1), Fraction(0.2))
    expected = 1 + (Fraction(0.2) - Fraction(0.1)) ** 2
    assert distance_power("sqeuclidean", one, other, Fraction(1)) == expected
    assert distance_power("euclidean", one, other, Fraction(2)) == expected


def test_cosines_of_close_points_keep_their_digits():
    one = exactly(np.array([1.0, 2.0, 3.0]))
    other = exactly(np.array([1.0, 2.0, 3.0 + 1e-12]))
    with mpmath.workdps(100):
        inner = sum(to_mp(x) * to_mp(y) for x, y in zip(one, other, strict=True))
        norms = mpmath.sqrt(sum(to_mp(x) ** 2 for x in one) * sum(to_mp(y) ** 2 for y in other))
        expected = 1 - inner / norms
        found = to_mp(distance_power("cosine", one, other, Fraction(1)))
        assert abs(found / expected - 1) < 1e-55


def test_what_a_function_returns_is_taken_as_it_is():
    found = distance_power(lambda u, v: 0.1, (Fraction(1),), (Fraction(2),), Fraction(2))
    assert found == Fraction(0.1) ** 2
