import numpy as np
import pytest
from scipy import sparse, stats

import frot
from frot.selection import FROTSelector, _permutation, permutation_test
from frot.selection._comparison import WITHOUT_PLAN
from frot.selection._permutation import (
    STATISTICS,
    benjamini_hochberg,
    max_t,
    permutation_p,
    pooled_q,
)
from tests.selection.planted import SIGNAL, planted

# Few permutations are quick, and said to be few.
pytestmark = pytest.mark.filterwarnings("ignore:n_permutations")


# What is permuted is any number that labels give, an optimum or not: three steps will do.
QUICK = FROTSelector(3, max_iter=3)


SEEDS = 40


def null_data(seed, d=12):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(24, 1))
    return rng.normal(size=(24, d)) + common, np.repeat(["a", "b"], [14, 10])


@pytest.mark.parametrize("statistic", STATISTICS)
def test_planted_features_are_significant(statistic):
    X, y = planted(gap=3.0)
    # Weights tell nothing before they are near the best.
    selector, count = (FROTSelector(3), 19) if statistic == "alpha" else (QUICK, 99)
    test = permutation_test(X, y, selector=selector, statistic=statistic, n_permutations=count)
    assert test.null.shape == (count, 40)
    assert test.observed.shape == test.p.shape == test.q.shape == test.p_max.shape == (40,)
    assert ((test.p > 0.0) & (test.p <= 1.0)).all()
    assert (test.p_max >= test.p).all()
    if statistic not in ("shape", "misalignment"):
        assert test.p[list(SIGNAL)].tolist() == [1 / (1 + count)] * 3
        assert (test.p_max[list(SIGNAL)] <= 0.1).all()
    assert test.by_feature == (statistic in WITHOUT_PLAN)
    assert test.q_method == ("pooled" if statistic == "t" else "bh")


@pytest.mark.parametrize("statistic", ["t", "shape", "wasserstein"])
def test_a_feature_that_does_not_differ_is_not_found_besides_others_that_do(statistic):
    wrong, least = [], []
    for seed in range(40):
        X, y = planted(gap=3.0, d=13, seed=seed)
        test = permutation_test(X, y, statistic=statistic, n_permutations=19)
        wrong.append(np.mean(test.p[3:] <= 0.1))
        least.append(test.p_max[3:].min() <= 0.1)
    assert np.mean(wrong) <= 0.1 + 3 * np.sqrt(0.09 / 400)
    assert np.mean(least) <= 0.1 + 2.5 * np.sqrt(0.09 / 40)


@pytest.mark.parametrize("statistic", ["phi", "combined", "t"])
def test_p_values_are_uniform_and_max_t_holds_where_there_is_nothing(statistic):
    first, least = [], []
    for seed in range(SEEDS):
        X, y = null_data(seed)
        test = permutation_test(
            X, y, selector=QUICK, statistic=statistic, n_permutations=19, random_state=seed
        )
        first.append(test.p[0])
        least.append(test.p_max.min())
    # Twenty values are possible; a half step makes them uniform on the unit interval.
    spread = np.array(first) - 1 / 40
    assert stats.kstest(spread, "uniform").pvalue > 0.01
    errors = np.mean(np.array(least) <= 0.1)
    assert errors <= 0.1 + 2.5 * np.sqrt(0.09 / SEEDS)


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


@pytest.mark.parametrize("statistic", ["phi", "t"])
def test_workers_do_not_change_the_answer(statistic):
    X, y = planted(d=12)
    one, two = (
        permutation_test(X, y, selector=QUICK, statistic=statistic, n_permutations=24, n_jobs=jobs)
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


@pytest.mark.parametrize("statistic", ["shape", "t"])
def test_a_stopped_run_resumes_to_the_same_answer(statistic, tmp_path, monkeypatch):
    X, y = planted(d=12)
    whole = permutation_test(X, y, statistic=statistic, n_permutations=100)
    names = permutation_test.__globals__
    real, done = names["_permuted"], []

    def watched(*arguments):
        if len(done) >= stop:
            raise KeyboardInterrupt
        done.extend(arguments[-1])
        return real(*arguments)

    monkeypatch.setitem(names, "_permuted", watched)
    options = {"statistic": statistic, "n_permutations": 100, "checkpoint": tmp_path / "run"}
    stop = 64
    with pytest.raises(KeyboardInterrupt):
        permutation_test(X, y, **options)
    assert done == list(range(64))
    stop = 1000
    again = permutation_test(X, y, **options)
    assert done == list(range(100))
    np.testing.assert_array_equal(again.null, whole.null)
    np.testing.assert_array_equal(again.q, whole.q)


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
    test = permutation_test(X, y, n_permutations=49)
    low, high = test.quantiles((0.1, 0.9))
    assert (low <= high).all()
    assert test.table.columns.tolist() == ["feature", "t", "p", "q", "q_bh", "p_max"]
    assert test.table["q"].is_monotonic_increasing
    assert set(test.table["feature"][:3]) == {"x0", "x1", "x2"}
    assert 0.0 < test.pi0 <= 1.0


def test_it_prints_in_ten_lines():
    X, y = planted(gap=3.0)
    frame = {f"a_gene_with_a_name_that_is_too_long_{i}": X[:, i] for i in range(40)}
    import pandas as pd

    lines = str(permutation_test(pd.DataFrame(frame), y, n_permutations=99)).splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Permutation test of 40 features: 99 permutations of t"
    assert lines[1].endswith("3 with max-T p <= 0.05")


def test_groups_of_a_feature_each_are_that_feature_and_several_are_not_pooled():
    X, y = planted(gap=3.0)
    groups = {"one": [0], "two": [1, 2], "rest": range(3, 40)}
    test = permutation_test(X, y, selector=FROTSelector(1, groups=groups), n_permutations=59)
    single = permutation_test(X, y, n_permutations=59)
    np.testing.assert_array_equal(test.null[:, 0], single.null[:, 0])
    squares = np.square(single.null[:, 1:3]).mean(axis=1)
    np.testing.assert_allclose(test.null[:, 1], np.sqrt(squares), rtol=1e-5)
    assert test.q_method == "bh"
    np.testing.assert_array_equal(test.q, test.q_bh)


def test_what_differs_between_blocks_only_is_neither_found_nor_in_the_way():
    rng = np.random.default_rng(0)
    batch = np.tile([0, 1], 20)
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 60))
    X[:, :30] += 8.0 * batch[:, None]
    X[np.ix_(y == 1, range(5))] += 2.0
    test = permutation_test(X, y, n_permutations=99, block=batch)
    assert (test.q[:5] <= 0.05).all()
    assert (test.q[5:] <= 0.05).mean() <= 0.05
    free = permutation_test(X, y, n_permutations=99)
    assert (free.q[:5] > 0.05).any()


@pytest.mark.filterwarnings("error:n_permutations")
def test_too_few_permutations_are_said_to_be_with_the_number_that_would_do():
    X, y = planted(gap=3.0, d=400)
    with pytest.warns(frot.ConvergenceWarning, match="of 400 stand out against all 999, but no q"):
        few = permutation_test(X, y, statistic="shift", n_permutations=999)
    number = int(few.outstanding.sum())
    assert few.q.min() == pytest.approx(400 / number / 1000)
    assert few.needed == np.ceil(400 / number / 0.05) - 1 > 999
    with pytest.warns(frot.ConvergenceWarning, match="no q can be below 0.1; 19 would allow 0.05"):
        permutation_test(X, y, n_permutations=9)
    enough = permutation_test(X, y, n_permutations=19)
    assert enough.q.min() == 0.05
    assert enough.needed == 19


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": "f"}, "statistic: 'f' is none of"),
        ({"n_permutations": 10**9}, "make a null of 160 GB; give 25,000,000 at most"),
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
    monkeypatch.setattr(_permutation, "PART_BYTES", 20_000)
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
