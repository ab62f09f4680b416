"""Regularisation as a share of the mean cost."""

from __future__ import annotations

import numpy as np
import pytest

import frot

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(8, 4)), RNG.normal(size=(6, 4))


def test_it_is_a_share_of_the_mean_cost():
    plain = frot.solve(X, Y)
    result = frot.solve(X, Y, eta=frot.relative(0.2), eps=frot.relative(0.05))
    assert result.eta == pytest.approx(0.2 * plain.mean_cost)
    assert result.eps == pytest.approx(0.05 * plain.mean_cost)
    same = frot.solve(X, Y, eta=0.2 * plain.mean_cost, eps=0.05 * plain.mean_cost)
    assert result.value == pytest.approx(same.value, rel=1e-9)


def test_units_do_not_matter():
    one = frot.solve(X, Y, eta=frot.relative(0.1))
    other = frot.solve(1e3 * X, 1e3 * Y, eta=frot.relative(0.1))
    assert other.value == pytest.approx(1e6 * one.value, rel=1e-8)
    assert other.alpha == pytest.approx(one.alpha, abs=1e-6)


def test_of_normalised_costs():
    result = frot.solve(X, Y, eta=frot.relative(0.1), normalise="mean")
    assert result.eta == pytest.approx(0.1)


def test_zero_is_zero():
    assert "Exact" in frot.solve(X, Y, eps=frot.relative(0.0)).solver


@pytest.mark.parametrize("share", [-1.0, float("nan"), float("inf"), "much", None])
def test_bad_shares(share):
    with pytest.raises(frot.InputError, match="relative"):
        frot.relative(share)
