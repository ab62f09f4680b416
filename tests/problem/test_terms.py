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


class TestBeyondFloats:
    """Costs that overflow, and quotients that do, are refused and do not come out as NaN."""

    @pytest.mark.parametrize("eps", [1e-309, 1e-320])
    def test_an_eps_that_nothing_can_be_divided_by(self, eps: float):
        with pytest.raises(frot.InputError, match=r"^eps: .* is too small to divide the costs by"):
            frot.solve(X, Y, eps=eps)

    def test_a_share_of_tiny_costs(self):
        with pytest.raises(frot.InputError, match=r"^eps: .*; scale the points up"):
            frot.solve(1e-156 * X, 1e-156 * Y, eps=frot.relative(0.02))

    def test_small_amounts_that_can_be_divided_by_are_taken(self):
        result = frot.solve(X, Y, eps=1e-300)
        assert result.lower <= frot.solve(X, Y).upper
        assert result.upper >= frot.solve(X, Y).lower

    @pytest.mark.parametrize(("scale", "what"), [(1e160, "infinite or NaN"), (1e150, "overflow")])
    def test_batches_name_the_member(self, scale: float, what: str):
        points = np.stack([X, scale * X]), np.stack([Y, Y])
        with pytest.raises(frot.InputError, match=rf"^X\[1\], Y\[1\]: the costs are .*{what}"):
            frot.solve_batch(*points)

    def test_batches_of_tiny_costs(self):
        with pytest.raises(frot.InputError, match=r"^eps: .* of X\[0\], Y\[0\] by"):
            frot.solve_batch(1e-156 * X[None], 1e-156 * Y[None])
