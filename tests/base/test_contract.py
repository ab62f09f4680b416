"""The numbers of the contract, each from both sides of its limit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import frot
from frot._base.contract import (
    check_batch_range,
    check_cost_range,
    check_eps_range,
    drop_light_weights,
    gap_floor,
    refuse_large_integers,
    refuse_masked,
    relative_gap,
)


class TestWeights:
    def test_a_share_of_the_largest_decides(self):
        with pytest.warns(frot.DataWarning, match="1 of 3 weights .* together they weigh 9e-15"):
            found = drop_light_weights(np.array([10.0, 9e-15, 1.1e-14]), "b")
        assert found.tolist() == [10.0, 0.0, 1.1e-14]

    def test_others_are_as_they_were(self):
        weights = np.array([0.0, 1e-14, 1.0])
        assert drop_light_weights(weights, "a") is weights


class TestCosts:
    @pytest.mark.parametrize(
        ("mean", "largest"), [(1.0, 9e13), (1e-99, 1e-98), (1e99, 1e110), (0.0, 0.0)]
    )
    def test_inside(self, mean, largest):
        check_cost_range(mean, largest)
        check_batch_range(np.array([mean]), np.array([largest]), np.array([0.0]), "x[{index}]")

    @pytest.mark.parametrize(
        ("mean", "largest", "message"),
        [
            (1.0, 2e14, "costs: the largest is 2e[+]14 times the mean, .*; rescale it"),
            (1e-101, 1e-101, "costs: are 1e-101 on average, .*; rescale"),
            (1e101, 1e101, r"costs: are 1e\+101 on average, .*; rescale"),
            (0.0, 1.0, "costs: are 0 on average, .*; rescale"),
            (math.inf, math.inf, "costs: some are infinite or NaN; rescale"),
            (math.nan, 1.0, "costs: some are infinite or NaN; rescale"),
        ],
    )
    def test_outside(self, mean, largest, message):
        with pytest.raises(frot.InputError, match=message):
            check_cost_range(mean, largest)
        with pytest.raises(frot.InputError, match=r"^x\[1\]: the costs"):
            check_batch_range(
                np.array([1.0, mean]), np.array([1.0, largest]), np.ones(2), "x[{index}]"
            )

    def test_an_eps_that_costs_cannot_be_divided_by(self):
        check_eps_range(1e-99, 1e-102)
        with pytest.raises(frot.InputError, match=r"eps: 1e-102 is too small .*; pass a larger"):
            check_eps_range(1.0, 1e-102)
        with pytest.raises(frot.InputError, match=r"eps: 1e-102 .* costs of x\[0\] by"):
            check_batch_range(np.ones(1), np.ones(1), np.array([1e-102]), "x[{index}]")


class TestNumbers:
    @pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
    def test_integers_that_a_double_does_not_hold(self, dtype):
        refuse_large_integers(np.array([2**53, 1], dtype=dtype), "X")
        with pytest.raises(frot.InputError, match=r"X: has integers beyond 2\^53"):
            refuse_large_integers(np.array([2**53 + 1, 1], dtype=dtype), "X")

    def test_masked_arrays_alone_and_in_lists(self):
        masked = np.ma.masked_invalid([1.0, np.nan])
        for values in (masked, [masked, masked], (np.ones(2), masked)):
            with pytest.raises(frot.InputError, match=r"C: is a masked array; .* C.filled"):
                refuse_masked(values, "C")


class TestGap:
    @pytest.mark.parametrize(
        ("lower", "upper", "gap"),
        [
            (0.75, 1.0, 0.25),
            (-1.0, -0.5, 0.5),
            (0.0, 1e-30, 1e-24),
            (-1.0, 1.0, 2.0),
            (1.0, 1.0, 0.0),
            (-math.inf, 1.0, 1.0),
        ],
    )
    def test_values(self, lower, upper, gap):
        assert relative_gap(lower, upper, gap_floor(1.0)) == pytest.approx(gap, rel=1e-12, abs=0.0)

    def test_without_any_cost_other_scales_count(self):
        assert gap_floor(0.0, 0.5, 2.0, math.inf) == 2.0
        assert gap_floor(0.0) == 0.0
