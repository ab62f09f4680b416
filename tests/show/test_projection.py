import numpy as np
import pytest

import frot
from frot.show.projection import project


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(15, 6)), rng.normal(size=(12, 6))
    Y[:, 3:] += 4.0
    return X, Y


def test_principal_components_of_a_large_heaviest_group(clouds):
    X, Y = clouds
    groups = frot.Groups.from_mapping({"low": [0, 1, 2], "high": [3, 4, 5]}, 6)
    shown = project(frot.solve(X, Y, groups), groups=groups)
    assert shown.labels[0].startswith("high: component 1 (")
    both = np.vstack([X, Y])[:, 3:]
    expected = np.linalg.svd(both - both.mean(axis=0), compute_uv=False)
    found = np.vstack([shown.x, shown.y])
    assert np.linalg.norm(found, axis=0) == pytest.approx(expected[:2])
    assert found[:, 0] @ found[:, 1] == pytest.approx(0.0, abs=1e-9)


def test_a_group_of_one_feature_is_joined_by_the_next(clouds):
    X, Y = clouds
    Y = Y.copy()
    Y[:, 5] += 20.0
    groups = frot.Groups.from_mapping({"rest": [0, 1, 2, 3, 4], "one": [5]}, 6)
    shown = project(frot.solve(X, Y, groups, solver="linear_program"), groups=groups)
    assert shown.labels == ("feature 5", "feature 0")
    assert np.array_equal(shown.x, X[:, [5, 0]])


def test_each_feature_a_group_shows_the_two_heaviest(clouds):
    X, Y = clouds
    result = frot.solve(X, Y, "each", eta=1.0)
    first, second = result.ranking()[:2]
    assert project(result).labels == (result.names[first], result.names[second])


def test_unknown_groups_fall_back_to_all_features(clouds):
    X, Y = clouds
    shown = project(frot.solve(X, Y, "3,3"))
    assert shown.x.shape == (15, 2)
    assert "component 2" in shown.labels[1]
