import numpy as np
import pytest
from scipy import stats

from frot.api.permutations import permutation_p
from frot.selection._null import against_null, benjamini_hochberg, in_chunks


def drawn(seed, true=0, d=300, count=99, common=0.0):
    rng = np.random.default_rng(seed)
    shared = np.sqrt(common) * rng.normal(size=(count + 1, 1))
    values = np.abs(shared + np.sqrt(1.0 - common) * rng.normal(size=(count + 1, d)))
    values[0, :true] += 4.0
    return values[0].astype(np.float32), values[1:].astype(np.float32)


def test_p_counts_the_data_as_one_more():
    observed, null = drawn(0, true=9, d=40)
    np.testing.assert_array_equal(against_null(observed, [null]).p, permutation_p(observed, null))


def test_benjamini_hochberg_is_scipys():
    p = np.random.default_rng(0).uniform(size=200) ** 3
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p))


def test_max_t_is_the_slow_definition_and_never_below_p():
    rng = np.random.default_rng(1)
    observed = rng.uniform(1.0, 4.0, size=12).astype(np.float32)
    null = np.abs(rng.normal(size=(99, 12)) + 1.0).astype(np.float32)
    order = np.argsort(-observed)
    expected, level = np.empty(12), 0.0
    for place, feature in enumerate(order):
        beaten = null[:, order[place:]].max(axis=1) >= observed[feature]
        level = max(level, (1 + beaten.sum()) / 100)
        expected[feature] = level
    found = against_null(observed, [null])
    np.testing.assert_allclose(found.p_max, expected)
    assert (found.p_max >= found.p).all()


def test_pooled_q_is_the_slow_definition():
    observed, null = drawn(3, true=90)
    found = against_null(observed, [null])
    rates = np.array(
        [
            (found.pi0 * (null >= t).sum() + (observed >= t).sum()) / (100 * (observed >= t).sum())
            for t in observed
        ]
    )
    expected = [min(1.0, rates[observed <= t].min()) for t in observed]
    np.testing.assert_allclose(found.q, expected)
    assert found.q.min() >= 0.01


def test_pi0_is_the_share_that_does_not_differ_from_above():
    found = [against_null(o, [n]) for o, n in (drawn(s, 90) for s in range(20))]
    assert 0.7 <= np.mean([one.pi0 for one in found]) <= 0.85
    observed, null = drawn(3)
    assert against_null(observed, [null]).pi0 == pytest.approx(1.0, abs=0.1)
    # What is left out for one permutation in twenty keeps it above, where features go together.
    shared = [against_null(o, [n]).pi0 for o, n in (drawn(s, common=0.9) for s in range(60))]
    assert np.mean(shared) > 0.9


def test_a_null_in_parts_gives_the_same():
    observed, null = drawn(4, true=30)
    whole, parts = against_null(observed, [null]), against_null(observed, np.split(null, 3))
    for name in ("p", "q_bh", "p_max"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    # Another value near the median splits the null.
    assert parts.pi0 == pytest.approx(whole.pi0, abs=0.05)
    np.testing.assert_allclose(parts.q, whole.q, rtol=0.06)


def test_features_that_never_vary_count_nowhere():
    observed, null = drawn(5, true=30)
    plain = against_null(observed, [null])
    more = against_null(
        np.append(observed, np.zeros(900, dtype=np.float32)),
        [np.hstack([null, np.zeros((99, 900), dtype=np.float32)])],
    )
    assert more.pi0 == plain.pi0
    np.testing.assert_array_equal(more.q[:300], plain.q)
    np.testing.assert_array_equal(more.p_max[:300], plain.p_max)
    assert (more.q[300:] == 1.0).all()
    nothing = against_null(np.zeros(2), [np.zeros((9, 2))])
    assert (nothing.pi0, nothing.q.tolist()) == (1.0, [1.0, 1.0])


@pytest.mark.parametrize("common", [0.0, 0.8])
def test_neither_errs_more_than_it_says_where_nothing_differs(common):
    tests = [against_null(o, [n]) for o, n in (drawn(s, common=common) for s in range(300))]
    most = 0.1 + 2.5 * np.sqrt(0.09 / 300)
    assert np.mean([one.q.min() <= 0.1 for one in tests]) <= most
    assert np.mean([one.p_max.min() <= 0.1 for one in tests]) == pytest.approx(
        0.1, abs=2.5 * np.sqrt(0.09 / 300)
    )


def test_a_pooled_null_has_power_that_few_permutations_deny_benjamini_and_hochberg():
    observed, null = drawn(6, true=30)
    found = against_null(observed, [null])
    assert (found.q[:30] <= 0.05).mean() > 0.9
    assert (found.q_bh > 0.05).all()


def test_chunks_are_all_permutations_in_order(capsys, monkeypatch):
    assert [number for chunk in in_chunks(150) for number in chunk] == list(range(150))
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert len(list(in_chunks(150, progress=True))) == 3
    assert capsys.readouterr().err


def test_ties_with_the_median_count_below_it_in_the_data_as_in_the_null():
    observed = np.array([1.0, 1.0, 1.0, 5.0])
    null = np.tile([1.0, 1.0, 1.0, 2.0], (40, 1))
    assert against_null(observed, [null]).pi0 == 1.0
