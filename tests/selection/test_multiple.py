import numpy as np
import pytest
from scipy import stats

from frot.selection._multiple import benjamini_hochberg, max_t, permutation_p


def test_benjamini_hochberg_is_scipys():
    p = np.random.default_rng(0).uniform(size=200) ** 3
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p))


def test_p_values_count_the_data_as_a_permutation():
    null = np.arange(9.0)[:, None]
    found = [permutation_p(np.array([value]), null)[0] for value in (8.5, 8.0, -1.0)]
    assert found == [0.1, 0.2, 1.0]


def test_max_t_is_the_slow_definition_and_never_below_p():
    rng = np.random.default_rng(1)
    observed, null = rng.normal(size=12) + 1.0, rng.normal(size=(99, 12))
    order = np.argsort(-observed)
    expected, level = np.empty(12), 0.0
    for place, feature in enumerate(order):
        beaten = null[:, order[place:]].max(axis=1) >= observed[feature]
        level = max(level, (1 + beaten.sum()) / 100)
        expected[feature] = level
    found = max_t(observed, null)
    np.testing.assert_allclose(found, expected)
    assert (found >= permutation_p(observed, null)).all()


def test_under_independence_max_t_errs_as_often_as_it_says():
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(400, 100, 20))
    wrong = np.mean([max_t(one[0], one[1:]).min() <= 0.1 for one in draws])
    assert wrong == pytest.approx(0.1, abs=3 * np.sqrt(0.09 / 400))
