"""Relatives on the problems people really have: points without weight, costs that forbid."""

from __future__ import annotations

import numpy as np
import pytest

import frot
from tests.reference import quiet


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


@pytest.mark.parametrize("noise", [1e-8, 1e-10])
def test_single_features_of_near_duplicates_are_told_to_their_last_digits(noise):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 3))
    Y = X + noise * rng.normal(size=X.shape)
    result = frot.max_min(X, Y, "each")
    truth = max(np.mean((np.sort(X[:, k]) - np.sort(Y[:, k])) ** 2) for k in range(3))
    assert result.lower == pytest.approx(truth, rel=1e-6, abs=0.0)
    assert result.lower <= truth * (1.0 + 1e-12)
    assert truth <= result.upper * (1.0 + 1e-12)


def test_max_min_has_the_value_of_its_last_group_where_bounds_stay():
    """Near copies: the bound of all groups is there before the group that attains it."""
    X = [[-0.22, 0.22, 0.14], [-1.74, -0.65, -3.33], [0.46, -1.52, 0.49], [1.23, 0.91, -1.91]]
    rng = np.random.default_rng(0)
    for _ in range(40):
        Y = X + 1e-10 * rng.normal(size=(4, 3))
        groups = [[0, 2], [0, 2], [1, 2], [0]]
        res = quiet(frot.max_min, X, Y[[0, 2, 3, 1]], groups, metric="euclidean")
        assert res.lower <= res.value * (1 + 1e-9) <= res.upper * (1 + 1e-9)
        assert res.value == pytest.approx(float(res.phi @ res.alpha), rel=1e-9, abs=0.0)
