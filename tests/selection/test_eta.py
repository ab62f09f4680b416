import numpy as np
import pytest

from frot.selection._eta import eta_for_perplexity, target_perplexity


def perplexity(phi, eta):
    weight = np.exp((phi - phi.max()) / eta)
    weight = weight[weight > 0.0] / weight.sum()
    return np.exp(-(weight @ np.log(weight)))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("target", [1.01, 5.0, 150.0, 990.0])
@pytest.mark.parametrize("start", [None, 1e-8, 1e8])
def test_perplexity_is_met_whatever_the_units_and_the_guess(scale, target, start):
    phi = scale * np.random.default_rng(0).gamma(2.0, size=1000)
    assert perplexity(phi, eta_for_perplexity(phi, target, start)) == pytest.approx(target)


def test_ties_at_the_top_leave_the_smallest_eta():
    phi = np.array([1.0, 1.0, 1.0, 0.0])
    eta = eta_for_perplexity(phi, 2.0)
    assert 0.0 < eta < 1e-5


def test_equal_costs_have_some_eta():
    assert eta_for_perplexity(np.full(4, 3.0), 2.0) > 0.0
    assert eta_for_perplexity(np.zeros(4), 2.0) > 0.0


def test_target_is_capped_at_half():
    assert target_perplexity(1, 1) == 1.0
    assert target_perplexity(1000, 1001) == 501.0
