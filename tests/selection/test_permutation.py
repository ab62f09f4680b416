import numpy as np
import pytest
from scipy import sparse, stats

import frot
from frot.selection import FROTSelector, permutation_test
from frot.selection._comparison import WITHOUT_PLAN
from frot.selection._permutation import STATISTICS, benjamini_hochberg, max_t, permutation_p
from tests.selection.planted import SIGNAL, planted


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


def null_data(seed, d=12):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(24, 1))
    return rng.normal(size=(24, d)) + common, np.repeat(["a", "b"], [14, 10])


@pytest.mark.parametrize("statistic", STATISTICS)
def test_planted_features_are_significant(statistic):
    X, y = planted(gap=3.0)
    test = permutation_test(X, y, statistic=statistic, n_permutations=99)
    assert test.null.shape == (99, 40)
    assert test.observed.shape == test.p.shape == test.q.shape == test.p_max.shape == (40,)
    assert ((test.p > 0.0) & (test.p <= 1.0)).all()
    assert (test.p_max >= test.p).all()
    if statistic not in ("shape", "misalignment"):
        assert test.p[list(SIGNAL)].tolist() == [0.01, 0.01, 0.01]
        assert (test.p_max[list(SIGNAL)] <= 0.1).all()
    assert test.by_feature == (statistic in WITHOUT_PLAN)


@pytest.mark.parametrize("statistic", ["shift", "shape", "wasserstein"])
def test_a_feature_that_does_not_differ_is_not_found_besides_others_that_do(statistic):
    wrong, least = [], []
    for seed in range(40):
        X, y = planted(gap=3.0, d=13, seed=seed)
        test = permutation_test(X, y, statistic=statistic, n_permutations=19)
        wrong.append(np.mean(test.p[3:] <= 0.1))
        least.append(test.p_max[3:].min() <= 0.1)
    assert np.mean(wrong) <= 0.1 + 3 * np.sqrt(0.09 / 400)
    assert np.mean(least) <= 0.1 + 2.5 * np.sqrt(0.09 / 40)


@pytest.mark.parametrize("statistic", ["phi", "combined", "shift"])
def test_p_values_are_uniform_and_max_t_holds_where_there_is_nothing(statistic):
    selector = FROTSelector(3)
    first, least = [], []
    for seed in range(60):
        X, y = null_data(seed)
        test = permutation_test(
            X, y, selector=selector, statistic=statistic, n_permutations=19, random_state=seed
        )
        first.append(test.p[0])
        least.append(test.p_max.min())
    # Twenty values are possible; a half step makes them uniform on the unit interval.
    spread = np.array(first) - 1 / 40
    assert stats.kstest(spread, "uniform").pvalue > 0.01
    errors = np.mean(np.array(least) <= 0.1)
    assert errors <= 0.1 + 2.5 * np.sqrt(0.09 / 60)


def test_blocks_keep_their_labels():
    rng = np.random.default_rng(0)
    batch = np.repeat([0, 1], 20)
    y = np.r_[np.repeat([0, 1], [16, 4]), np.repeat([0, 1], [4, 16])]
    X = rng.normal(size=(40, 8)) + 3.0 * batch[:, None]
    free = permutation_test(X, y, statistic="shift", n_permutations=199)
    within = permutation_test(X, y, statistic="shift", n_permutations=199, block=batch)
    # Every feature differs between batches, and none between classes within them.
    assert (free.p < 0.05).all()
    assert np.median(within.p) > 0.1


def test_workers_do_not_change_the_answer():
    X, y = planted(d=12)
    one, two = (
        permutation_test(X, y, statistic="phi", n_permutations=20, n_jobs=jobs)
        for jobs in (None, 2)
    )
    np.testing.assert_array_equal(one.null, two.null)


def test_seeds_change_it_and_more_permutations_begin_alike():
    X, y = planted(d=12)
    runs = [
        permutation_test(X, y, statistic="shift", n_permutations=count, random_state=seed).null
        for count, seed in ((10, 0), (20, 0), (10, 1))
    ]
    np.testing.assert_array_equal(runs[0], runs[1][:10])
    assert (runs[0] != runs[2]).any()


def test_a_stopped_run_resumes_to_the_same_answer(tmp_path, monkeypatch):
    X, y = planted(d=12)
    whole = permutation_test(X, y, n_permutations=24)
    path = tmp_path / "run"
    calls = []
    from frot.selection import _permutation

    real = _permutation._permuted

    def stops(*arguments):
        calls.append(arguments[-1])
        if len(calls) == 18:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(_permutation, "_permuted", stops)
    with pytest.raises(KeyboardInterrupt):
        permutation_test(X, y, n_permutations=24, checkpoint=path)
    calls.clear()
    monkeypatch.setattr(
        _permutation,
        "_permuted",
        lambda *arguments: (calls.append(arguments[-1]), real(*arguments))[1],
    )
    again = permutation_test(X, y, n_permutations=24, checkpoint=path)
    assert calls == list(range(16, 24))
    np.testing.assert_array_equal(again.null, whole.null)
    np.testing.assert_array_equal(again.p, whole.p)


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    X, y = planted(d=12)
    permutation_test(X, y, statistic="shift", n_permutations=3, checkpoint=tmp_path / "run")
    for change in ({"statistic": "shape"}, {"random_state": 1}, {"selector": FROTSelector(2)}):
        with pytest.raises(frot.InputError, match="other data or options"):
            permutation_test(
                X,
                y,
                n_permutations=3,
                checkpoint=tmp_path / "run",
                **{"statistic": "shift", **change},
            )


def test_the_selector_puts_p_and_q_into_its_table():
    X, y = planted(gap=3.0)
    selector = FROTSelector(3).fit(X, y)
    test = selector.permutation_test(X, y, n_permutations=49)
    assert test is selector.permutation_
    table = selector.table_.set_index("feature")
    assert table.loc["x0", "p"] == test.p[0] == 0.02
    assert table.loc["x7", "q"] == test.q[7]
    assert selector.fit(X, y).table_["p"].isna().all()


def test_groups_sparse_tables_and_weights_are_tested_alike():
    X, y = planted(gap=3.0)
    groups = {"signal": [0, 1, 2], "noise": range(3, 40)}
    selector = FROTSelector(1, groups=groups)
    dense, thin = (
        permutation_test(form, y, selector=selector, n_permutations=20)
        for form in (X, sparse.csr_array(X))
    )
    assert dense.names == ("signal", "noise")
    np.testing.assert_allclose(dense.null, thin.null, rtol=1e-5)
    weight = np.ones(40)
    weight[:3] = 0.0
    weighted = permutation_test(X, y, statistic="shift", n_permutations=20, sample_weight=weight)
    alone = permutation_test(X[3:], y[3:], statistic="shift", n_permutations=20)
    np.testing.assert_allclose(weighted.null, alone.null, rtol=1e-5)


def test_three_classes_are_permuted_together():
    X, y = planted(classes=3, gap=3.0)
    test = permutation_test(X, y, statistic="shift", n_permutations=49)
    assert test.p[list(SIGNAL)].tolist() == [0.02, 0.02, 0.02]


def test_the_null_and_a_table_are_returned():
    X, y = planted(gap=3.0)
    test = permutation_test(X, y, statistic="shift", n_permutations=49)
    low, high = test.quantiles((0.1, 0.9))
    assert (low <= high).all()
    assert test.table["p"].is_monotonic_increasing
    assert set(test.table["feature"][:3]) == {"x0", "x1", "x2"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": "u"}, "statistic: 'u' is none of"),
        ({"n_permutations": 0}, "n_permutations: must be"),
        ({"block": np.zeros(3)}, "block: has shape"),
        ({"block": np.repeat([0, 1], [24, 16])}, "block: every block holds a single class"),
        ({"random_state": 0.5}, "random_state: 0.5 is not a whole number"),
        ({"random_state": None, "checkpoint": "x"}, "random_state: a run with a checkpoint"),
    ],
)
def test_bad_options_are_refused(options, message):
    X, y = planted()
    with pytest.raises(frot.InputError, match=message):
        permutation_test(X, y, **options)
