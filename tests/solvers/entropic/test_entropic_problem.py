"""What a problem has besides costs: the adversary's answers, precisions, columns without weight."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from frot import Simplex
from frot._base.arrays import Home, safe_log
from frot.solvers.entropic.entropic_problem import EntropicProblem

RNG = np.random.default_rng(0)
A, B = np.full((2, 4), 0.25), np.array([[0.2, 0.8, 0.0], [0.1, 0.2, 0.7]])
PHI = RNG.normal(size=(2, 3))
DOUBLE, SINGLE = Home.of(np.zeros(1)), Home.of(np.zeros(1, dtype=np.float32))


def problem(
    eta: float = 0.0, prior: np.ndarray | None = None, home: Home = DOUBLE
) -> EntropicProblem:
    return EntropicProblem.of(home, A, B, Simplex(eta, prior), 0.1, np.ones((2, 3)))


def exact_worst(phi: np.ndarray, eta: float, prior: np.ndarray | None) -> float:
    """G_eta in fifty digits; a prior is one that sums to one to all of them."""
    with mpmath.workdps(50):
        q = [mpmath.mpf(1)] * len(phi) if prior is None else [mpmath.exp(x) for x in prior]
        total = mpmath.mpf(1) if prior is None else mpmath.fsum(q)
        problem = [w / total * mpmath.exp(mpmath.mpf(p) / eta) for w, p in zip(q, phi, strict=True)]
        return float(eta * mpmath.log(mpmath.fsum(problem)))


def exact_reward(alpha: np.ndarray, eta: float, prior: np.ndarray | None) -> float:
    with mpmath.workdps(50):
        q = [mpmath.mpf(1)] * len(alpha) if prior is None else [mpmath.exp(x) for x in prior]
        total = mpmath.mpf(1) if prior is None else mpmath.fsum(q)
        mass = mpmath.fsum(alpha)
        parts = [mpmath.mpf(x) / mass for x in alpha]
        pairs = zip(parts, q, strict=True)
        return float(-eta * mpmath.fsum(x * mpmath.log(x * total / w) for x, w in pairs if x > 0))


@pytest.mark.parametrize("eta", [1e-12, 0.3, 1e3, 1e9])
@pytest.mark.parametrize("prior", [None, np.log([0.2, 0.3, 0.5])])
def test_the_adversary_is_right_to_what_is_said(eta, prior):
    found = problem(eta, prior).adversary
    q = np.full(3, 1 / 3) if prior is None else np.exp(prior)
    near = q * np.exp((PHI[1] - PHI[1] @ q) / max(eta, 1.0))
    alpha = np.stack([[0.0, 0.4, 0.6], near / near.sum()])
    worst, off = found.value(PHI), found.value_error(PHI)
    reward, doubt = found.reward(alpha), found.reward_error(alpha)
    for row in range(2):
        assert abs(worst[row] - exact_worst(PHI[row], eta, prior)) <= off[row]
        assert abs(reward[row] - exact_reward(alpha[row], eta, prior)) <= doubt[row]
    # Nothing is lost to a large eta but what the paper's entropy is itself.
    bonus = 0.0 if prior is not None else eta * np.log(3.0)
    assert (off <= 1e-13 * (10.0 + bonus)).all()
    assert doubt[1] <= 1e-13 * (10.0 + bonus)


@pytest.mark.parametrize("prior", [None, np.log([0.2, 0.3, 0.5])])
def test_the_adversary_is_that_of_the_core(prior):
    for eta in (0.0, 0.3, 10.0):
        found, adversary = problem(eta, prior).adversary, Simplex(eta, prior)
        alpha = np.array([[0.0, 0.4, 0.6], [1.0, 0.0, 0.0]])
        for row in range(2):
            value, answer = adversary.best(PHI[row])
            assert found.value(PHI)[row] == pytest.approx(value, rel=1e-12)
            assert found.answer(PHI)[row] == pytest.approx(answer, abs=1e-12)
            wanted = adversary.reward(alpha[row])
            assert found.reward(alpha)[row] == pytest.approx(wanted, rel=1e-12, abs=1e-14)


def test_eta_may_differ_by_member():
    found = EntropicProblem.of(
        DOUBLE, A, B, Simplex(), 0.1, np.ones((2, 3)), eta=np.array([0.1, 2.0])
    )
    for row, eta in enumerate((0.1, 2.0)):
        assert found.adversary.value(PHI)[row] == pytest.approx(Simplex(eta).best(PHI[row])[0])


def test_double_precision_is_what_was_given():
    given = problem(0.1, np.log([0.2, 0.3, 0.5]), SINGLE)
    assert given.b.dtype == given.eta.dtype == np.float32
    double = given.to(DOUBLE)
    assert np.array_equal(double.b, B)
    assert float(double.eps[0, 0]) == 0.1
    assert float(double.eta[0, 0]) == 0.1
    assert double.to(DOUBLE) is double
    assert np.array_equal(given.members(np.array([1])).to(DOUBLE).b, B[1:])


def test_columns_without_weight():
    found = problem()
    assert found.log_b[0] == pytest.approx([np.log(0.2), np.log(0.8), -np.inf])
    assert found.over_b(2.0 * B)[0].tolist() == [2.0, 2.0, 1.0]
    full = EntropicProblem.of(DOUBLE, A[1:], B[1:], Simplex(), 0.1, np.ones((1, 3)))
    assert found.gaps
    assert not full.gaps
    assert full.log_b[0] == pytest.approx(np.log(B[1]))
    assert full.over_b(2.0 * B[1:]) == pytest.approx(np.full((1, 3), 2.0))


def test_what_weights_are_like():
    def of(b: list[float]) -> EntropicProblem:
        weights = np.array([b]) / np.sum(b)
        return EntropicProblem.of(DOUBLE, A[:1], weights, Simplex(), 0.1, np.ones((1, 3)))

    assert not of([1.0, 2.0, 900.0]).uneven
    assert of([1.0, 2.0, 2000.0]).uneven
    assert of([0.0, 1.0, 1.0]).uneven
    assert of([1e-20, 1.0, 1.0]).single_safe
    assert not of([1e-30, 1.0, 1.0]).single_safe


def test_softmax_and_logarithms_are_finite():
    found = problem()
    weights = found.softmax(np.array([[1e308, -1e308, 0.0], [0.0, 0.0, -np.inf]]))
    assert weights == pytest.approx(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]))
    assert np.isfinite(safe_log(np.zeros((1, 2)))).all()
    picked = found.pick(np.array([True, False]), 2.0, 3.0)
    assert picked.tolist() == [[2.0], [3.0]]
