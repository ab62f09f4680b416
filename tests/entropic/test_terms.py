"""What a problem has besides costs: the adversary's answers, precisions, columns without weight."""

from __future__ import annotations

import numpy as np
import pytest

from frot import Simplex
from frot._arrays import Home
from frot._entropic._terms import Terms

RNG = np.random.default_rng(0)
A, B = np.full((2, 4), 0.25), np.array([[0.2, 0.8, 0.0], [0.1, 0.2, 0.7]])
PHI = RNG.normal(size=(2, 3))
DOUBLE, SINGLE = Home.of(np.zeros(1)), Home.of(np.zeros(1, dtype=np.float32))


def terms(eta: float = 0.0, prior: np.ndarray | None = None, home: Home = DOUBLE) -> Terms:
    return Terms.of(home, A, B, Simplex(eta, prior), 0.1, 1.0)


@pytest.mark.parametrize("eta", [0.0, 1e-12, 0.3, 1e9])
@pytest.mark.parametrize("prior", [None, np.log([0.2, 0.3, 0.5])])
def test_the_adversary_is_that_of_the_core(eta, prior):
    found = terms(eta, prior)
    adversary = Simplex(eta, prior)
    alpha = np.array([[0.0, 0.4, 0.6], [1.0, 0.0, 0.0]])
    for row in range(2):
        assert found.worst(PHI)[row] == pytest.approx(adversary.best(PHI[row])[0], rel=1e-12)
        assert found.reward(alpha)[row] == pytest.approx(adversary.reward(alpha[row]), rel=1e-12)


def test_eta_may_differ_by_member():
    found = Terms.of(DOUBLE, A, B, Simplex(), 0.1, 1.0, eta=np.array([0.1, 2.0]))
    for row, eta in enumerate((0.1, 2.0)):
        assert found.worst(PHI)[row] == pytest.approx(Simplex(eta).best(PHI[row])[0])


def test_double_precision_is_what_was_given():
    given = terms(0.1, np.log([0.2, 0.3, 0.5]), SINGLE)
    assert given.b.dtype == given.eta.dtype == np.float32
    double = given.at(DOUBLE)
    assert np.array_equal(double.b, B)
    assert float(double.eps[0, 0]) == 0.1
    assert float(double.eta[0, 0]) == 0.1
    assert double.at(DOUBLE) is double
    assert np.array_equal(given.members(np.array([1])).at(DOUBLE).b, B[1:])


def test_columns_without_weight():
    found = terms()
    assert found.log_b[0] == pytest.approx([np.log(0.2), np.log(0.8), -np.inf])
    assert found.members(np.array([0])).holes is not None
    full = Terms.of(DOUBLE, A, B[1:], Simplex(), 0.1, 1.0)
    assert full.holes is None
    assert full.log_b[0] == pytest.approx(np.log(B[1]))


def test_softmax_and_logarithms_are_finite():
    found = terms()
    weights = found.softmax(np.array([[1e308, -1e308, 0.0], [0.0, 0.0, -np.inf]]))
    assert weights == pytest.approx(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]))
    assert np.isfinite(found.log(np.zeros((1, 2)))).all()
    picked = found.pick(np.array([True, False]), 2.0, 3.0)
    assert picked.tolist() == [[2.0], [3.0]]
