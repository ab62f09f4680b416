"""Relatives on the problems people really have: points without weight, costs that forbid."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import frot


def test_points_without_weight_change_nothing_in_max_min():
    X, Y = np.array([[2.0, 0.7], [-2.0, 1.0]]), np.array([[0.7, -0.7], [-0.8, -1.0]])
    padded = frot.max_min(X, Y, "all", b=[0.0, 1.0])
    alone = frot.max_min(X, Y[1:], "all")
    assert padded.status is frot.Status.CONVERGED
    assert padded.value == pytest.approx(alone.value, rel=1e-12)
    assert np.asarray(padded.plan).sum(axis=0).tolist() == [0.0, 1.0]
    f, g = padded.potentials
    cost = ((X[:, None] - Y) ** 2).sum(axis=2)
    assert (f[:, None] + g <= cost + 1e-12).all()


def test_points_without_weight_change_nothing_in_equitable():
    C = np.array([[[0.5, 0.1], [0.1, 0.7]], [[0.2, 0.3], [0.4, 0.6]]])
    padded = frot.equitable(C, b=[0.0, 1.0])
    alone = frot.equitable(C[:, :, 1:])
    assert padded.status is frot.Status.CONVERGED
    assert padded.value == pytest.approx(alone.value, rel=1e-9)


def test_costs_that_stand_for_forbidden_arcs_in_equitable():
    # Masses of 1e-13 on arcs of 1e12 make the optimum: no tolerance of HiGHS sees them.
    rng = np.random.default_rng(0)
    C = rng.random((4, 6, 2))
    C[rng.random(C.shape) < 0.5] = 1e12
    with pytest.warns(frot.ConvergenceWarning, match="as narrow as the precision of costs"):
        result = frot.equitable(C)
    # An upper bound is right to a unit of what it multiplies.
    assert result.upper - result.lower <= 1e-4


def test_pivots_go_on_where_highs_gives_up_in_equitable():
    rng = np.random.default_rng(116)
    stack = rng.random((5, 8, 8))
    far = rng.random((8, 8)) < 0.4
    stack[:, far] *= 10.0 ** rng.uniform(6, 9, (5, far.sum()))
    a, b = 10.0 ** -rng.uniform(0, 10, 8), 10.0 ** -rng.uniform(0, 300, 8)
    b[0] = 1.0
    assert frot.equitable(stack, a, b, normalise_weights=True).status.ok


def test_light_points_and_dear_arcs_in_equitable():
    C = [[[7e8, 0.6], [8e17, 8e8]], [[3e8, 0.2], [2e17, 4e7]]]
    result = frot.equitable(C, a=[1.0, 1e-299], b=[2e-9, 1.0])
    # Of the first column one part moves at 7e8 and one at 3e8, of the second at .6 and at .2.
    assert result.status is frot.Status.CONVERGED
    assert result.gap <= 1e-7


def test_mixed_costs_are_as_sharp_as_their_entries_in_cutting_set():
    C = np.array(
        [
            [[3e12, 3e7], [8e3, 0.6]],
            [[7e12, 7e8], [9e3, 0.8]],
            [[4e10, 9e8], [4e3, 0.2]],
            [[4e12, 7e8], [4e3, 0.4]],
        ]
    )
    result = frot.cutting_set(
        C, a=[7e-9, 1.0], b=[3e-300, 1.0], adversary=frot.CappedSimplex(k=2),
        normalise_weights=True,
    )  # fmt: skip
    assert result.gap <= 1e-8


@pytest.mark.parametrize("noise", [1e-8, 1e-10])
def test_single_features_of_near_duplicates_are_told_to_their_last_digits(noise):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 3))
    Y = X + noise * rng.normal(size=X.shape)
    result = frot.max_min(X, Y, "each")
    truth = max(np.mean((np.sort(X[:, k]) - np.sort(Y[:, k])) ** 2) for k in range(3))
    assert result.lower == pytest.approx(truth, rel=1e-6)
    assert result.lower <= truth * (1.0 + 1e-12)
    assert truth <= result.upper * (1.0 + 1e-12)


@pytest.mark.parametrize("scale", [1e-156, 1e-159, 1e-160, 1e-161])
def test_max_min_of_costs_below_the_normal_numbers(scale: float):
    """The interval holds the optimum of the points as they are, in rational numbers."""
    rng = np.random.default_rng(0)
    X, Y = scale * rng.normal(size=(6, 3)), scale * (rng.normal(size=(6, 3)) + 1.0)
    found = frot.max_min(X, Y)
    # With as many points on both sides, all of one weight, sorting is the plan of a feature.
    truth = max(
        sum((Fraction(x) - Fraction(y)) ** 2 for x, y in zip(*sides, strict=True)) / 6
        for sides in (
            (sorted(X[:, k].tolist()), sorted(Y[:, k].tolist())) for k in range(X.shape[1])
        )
    )
    assert Fraction(found.lower) <= truth <= Fraction(found.upper)


@pytest.mark.parametrize("scale", [1e-155, 1e-158, 1e-160, 1e-161])
@pytest.mark.parametrize("method", ["srw", "max_sliced"])
def test_eigenvalues_below_the_normal_numbers(method: str, scale: float):
    """On a line all directions are one, and sorting is the plan."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, Y = scale * rng.normal(size=(6, 1)), scale * (rng.normal(size=(6, 1)) + 1.0)
        found = frot.srw(X, Y, 1) if method == "srw" else frot.max_sliced(X, Y)
        sides = sorted(X[:, 0].tolist()), sorted(Y[:, 0].tolist())
        truth = sum((Fraction(x) - Fraction(y)) ** 2 for x, y in zip(*sides, strict=True)) / 6
        assert Fraction(found.lower) <= truth <= Fraction(found.upper)
