import numpy as np
import pytest
from scipy import stats

from frot.selection import _false_discovery
from frot.selection._false_discovery import benjamini_hochberg, max_t, permutation_p, pooled_q


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


def drawn(seed, true=0, d=300, count=99, common=0.0):
    rng = np.random.default_rng(seed)
    shared = np.sqrt(common) * rng.normal(size=(count + 1, 1))
    values = np.abs(shared + np.sqrt(1.0 - common) * rng.normal(size=(count + 1, d)))
    values[0, :true] += 4.0
    return values[0], values[1:]


def test_pooled_q_is_the_slow_definition():
    observed, null = drawn(3, true=90)
    q, pi0 = pooled_q(observed, null)
    rates = np.array(
        [
            (pi0 * (null >= t).sum() + (observed >= t).sum()) / (100 * (observed >= t).sum())
            for t in observed
        ]
    )
    expected = [min(1.0, rates[observed <= t].min()) for t in observed]
    np.testing.assert_allclose(q, expected)
    assert 0.7 < pi0 < 0.95
    assert q.min() >= 0.01


def test_a_null_in_parts_gives_the_same(monkeypatch):
    observed, null = drawn(4, true=30)
    whole, together = pooled_q(observed, null), max_t(observed, null)
    monkeypatch.setattr(_false_discovery, "PART_BYTES", 20_000)
    q, pi0 = pooled_q(observed, null)
    # Another value near the median splits the null.
    assert pi0 == pytest.approx(whole[1], abs=0.05)
    np.testing.assert_allclose(q, whole[0], rtol=0.06)
    np.testing.assert_array_equal(max_t(observed, null), together)


def test_features_that_never_vary_count_nowhere():
    observed, null = drawn(5, true=30)
    q, pi0 = pooled_q(observed, null)
    more, same = pooled_q(
        np.append(observed, np.zeros(900)), np.hstack([null, np.zeros((99, 900))])
    )
    assert same == pi0
    np.testing.assert_array_equal(more[:300], q)
    assert (more[300:] == 1.0).all()
    assert pooled_q(np.zeros(2), np.zeros((9, 2)))[1] == 1.0


@pytest.mark.parametrize("common", [0.0, 0.8])
def test_pooled_q_errs_no_more_than_it_says_where_nothing_differs(common):
    wrong = np.mean([pooled_q(*drawn(seed, common=common))[0].min() <= 0.1 for seed in range(300)])
    assert wrong <= 0.1 + 2.5 * np.sqrt(0.09 / 300)


def test_pooled_q_has_power_that_few_permutations_deny_benjamini_and_hochberg():
    observed, null = drawn(6, true=30)
    assert (pooled_q(observed, null)[0][:30] <= 0.05).mean() > 0.9
    assert (benjamini_hochberg(permutation_p(observed, null)) > 0.05).all()
