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
