"""Lemma 1 of the paper: the best weights are a softmax, the value is a smooth maximum."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from scipy.special import logsumexp, softmax

from frot import Simplex

costs = hnp.arrays(float, st.integers(1, 6), elements=st.floats(-100.0, 100.0))
etas = st.floats(1e-3, 1e3)


@given(costs, etas)
def test_best_is_the_softmax(phi, eta):
    value, alpha = Simplex(eta).best(phi)
    assert value == pytest.approx(eta * logsumexp(phi / eta), rel=1e-12, abs=1e-12)
    assert alpha == pytest.approx(softmax(phi / eta), rel=1e-10, abs=1e-300)


@given(costs, etas, st.data())
def test_best_attains_its_value_and_nothing_is_better(phi, eta, data):
    adversary = Simplex(eta)
    value, alpha = adversary.best(phi)
    slack = 1e-10 * (np.abs(phi).max() + eta)
    assert alpha @ phi + adversary.reward(alpha) == pytest.approx(value, abs=slack)
    raw = data.draw(hnp.arrays(float, len(phi), elements=st.floats(0.0, 1.0)))
    other = (raw + 1e-9) / (raw + 1e-9).sum()
    assert other @ phi + adversary.reward(other) <= value + slack


@given(costs, etas)
def test_a_prior_takes_the_place_of_one(phi, eta):
    prior = np.arange(1.0, len(phi) + 1.0)
    prior /= prior.sum()
    adversary = Simplex(eta, np.log(prior))
    value, alpha = adversary.best(phi)
    assert value == pytest.approx(eta * logsumexp(phi / eta, b=prior), rel=1e-10, abs=1e-9)
    on = alpha > 0.0
    gain = alpha @ phi - eta * alpha[on] @ np.log(alpha[on] / prior[on])
    assert gain == pytest.approx(value, rel=1e-9, abs=1e-9 * eta)


@given(costs)
def test_without_entropy_it_is_the_maximum(phi):
    value, alpha = Simplex().best(phi)
    assert value == phi.max()
    assert alpha.sum() == 1.0
    assert phi[alpha.argmax()] == phi.max()
    assert Simplex().reward(alpha) == 0.0


def test_the_reward_of_uniform_weights_is_eta_log_of_their_number():
    assert Simplex(2.0).reward(np.full(8, 0.125)) == pytest.approx(2.0 * np.log(8.0), rel=1e-15)
    assert Simplex(2.0).reward(np.array([1.0, 0.0])) == 0.0


@pytest.mark.parametrize(
    "scale",
    [
        1e-310,
        *(1e-300, 1e-12, 1e12, 1e300),
    ],
)
def test_no_eta_is_too_small_or_too_large(scale):
    phi = np.array([1.0, 2.0, 2.0])
    value, alpha = Simplex(scale).best(phi)
    assert np.isfinite(value)
    assert alpha.sum() == pytest.approx(1.0)
    if scale < 1.0:
        assert value == pytest.approx(2.0, abs=1e-9)
        assert alpha == pytest.approx([0.0, 0.5, 0.5], abs=1e-12)
    else:
        assert alpha == pytest.approx([1 / 3] * 3, rel=1e-9)
