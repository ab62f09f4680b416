"""Relatives on the problems people really have: points without weight, costs that forbid."""

from __future__ import annotations

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


<<<<<<< HEAD
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


=======
>>>>>>> main
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
