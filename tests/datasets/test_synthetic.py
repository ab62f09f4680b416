import numpy as np
import pytest

import frot
from frot.datasets.synthetic import PRINTED_SIGMA, toy, toy_covariance


def test_shapes_groups_and_seed():
    X, Y, groups = toy(n=30, random_state=3)
    assert X.shape == Y.shape == (30, 10)
    assert groups.names == ("true", "noise")
    assert groups.sizes.tolist() == [2, 8]
    again = toy(n=30, random_state=3)
    assert np.array_equal(again[0], X)
    assert np.array_equal(again[1], Y)
    assert not np.array_equal(toy(n=30, random_state=4)[0], X)


def test_means_and_covariances_are_the_papers():
    X, Y, _ = toy(n=200_000)
    for points, mean in ((X, (-5, 0)), (Y, (5, 0))):
        assert points.mean(axis=0) == pytest.approx([*mean, *[0.0] * 8], abs=0.02)
        covariance = np.eye(10)
        covariance[:2, :2] = toy_covariance()
        assert np.cov(points.T) == pytest.approx(covariance, abs=0.05)


def test_covariance_is_what_numpy_draws_with_the_printed_matrix():
    covariance = toy_covariance()
    assert np.allclose(covariance, covariance.T, rtol=1e-14)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    drawn = np.random.RandomState(0).multivariate_normal(
        np.zeros(2), PRINTED_SIGMA, size=200_000, check_valid="ignore"
    )
    assert np.cov(drawn.T) == pytest.approx(covariance, abs=0.05)


def test_no_points_is_an_error():
    with pytest.raises(frot.InputError, match="n: must be a whole number >= 1, got 0"):
        toy(0)
