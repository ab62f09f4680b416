from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import frot
from frot.selection import FROTSelector, shape_test
from frot.selection._shape_test import align, polynomial
from tests.selection.planted import planted

FIRST = np.arange(120) < 60


def subgroup(count, share=0.2, distance=5.0, seed=0):
    """Features of equal means and variances, of which a part of the first class is elsewhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, count))
    X[: int(60 * share)] += distance
    X[:60] = (X[:60] - share * distance) / np.sqrt(1.0 + share * (1.0 - share) * distance**2)
    return X


def level(X, is_first, **options):
    """Return the shares of features with p <= .05, of form and of spread."""
    test = shape_test(X, np.where(is_first, "a", "b"), n_permutations=199, **options)
    return np.mean(test.p_form <= 0.05), np.mean(test.p_spread <= 0.05)


DRAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_t(3, size=shape),
}


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize(("first", "shift"), [(60, 0.0), (60, 2.0), (30, 0.0), (90, 2.0)])
def test_the_level_holds_whatever_the_distribution(kind, first, shift):
    rng = np.random.default_rng(first)
    is_first = np.arange(120) < first
    X = DRAWS[kind](rng, (120, 1000)) + shift * is_first[:, None]
    # Two standard errors of a share are .014.
    assert level(X, is_first) == pytest.approx((0.05, 0.05), abs=0.021)


def test_a_hidden_subgroup_is_found_where_other_tests_see_little():
    X = subgroup(200)
    test = shape_test(X, np.where(FIRST, "a", "b"), n_permutations=199)
    found = {"form": np.mean(test.p_form <= 0.05), "spread": np.mean(test.p_spread <= 0.05)}
    tests: Any = [stats.ks_2samp(x[:60], x[60:]) for x in X.T]
    found["KS"] = np.mean([one.pvalue <= 0.05 for one in tests])
    levene: Any = stats.levene(X[:60], X[60:])
    found["Levene"] = np.mean(levene.pvalue <= 0.05)
    assert found["form"] > 0.9
    assert max(found["KS"], found["Levene"], found["spread"]) < 0.6
    # And so it is where the means differ too.
    assert level(X + 2.0 * FIRST[:, None], FIRST)[0] > 0.9


def test_spread_and_form_are_told_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 500))
    X[:60] *= 2.0
    form, spread = level(X, FIRST)
    assert spread > 0.95
    assert form < 0.07
    test = shape_test(X, FIRST.astype(int), n_permutations=19)
    assert np.median(test.spread_ratio) == pytest.approx(0.5, rel=0.1)
    assert np.mean(test.columns["more_spread_in"] == "1") > 0.95


@pytest.mark.parametrize("size", [60, 20])
def test_one_bad_sample_decides_nothing(size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * size, 500))
    X[3] += 20.0 * rng.choice([-1.0, 1.0], size=500)
    form, spread = level(X, np.arange(2 * size) < size)
    assert form < 0.08
    assert spread < 0.08


def test_the_samples_of_a_subgroup_are_named():
    X = subgroup(100, distance=7.0)
    names = [f"P{row}" for row in range(120)]
    frame = pd.DataFrame(X, index=names, columns=[f"g{k}" for k in range(100)])
    test = shape_test(frame, np.where(FIRST, "sick", "well"), n_permutations=99)
    assert np.mean(np.array(test.subgroup_in) == "sick") > 0.95
    hits = [len(set(rows.tolist()) & set(range(12))) for rows in test.subgroups]
    assert np.mean(hits) > 10.5
    assert np.mean([len(rows) for rows in test.subgroups]) < 15.0
    assert test.subgroup("g0") == [names[row] for row in test.subgroups[0]]
    # The farthest first.
    assert (np.diff(X[test.subgroups[0], 0]) <= 0.0).all()
    given = shape_test(X, FIRST, n_permutations=9, sample_names=names)
    assert given.sample_names == tuple(names)
    with pytest.raises(frot.InputError, match="name: 'x' is not a feature that was tested"):
        test.subgroup("x")


def test_of_many_with_the_least_p_the_surest_come_first():
    X = np.hstack([subgroup(20, distance=4.0), subgroup(10, distance=6.0, seed=1)])
    test = shape_test(X, FIRST, n_permutations=19)
    assert (test.p_form == 0.05).sum() >= 25
    # By chance a third.
    assert np.mean(test.order[:10] >= 20) >= 0.6
    assert (np.diff(test.q_form[test.order]) >= 0.0).all()


def test_results_are_in_tables_and_print():
    X, y = subgroup(30), np.where(FIRST, "a", "b")
    selector = FROTSelector(3).fit(X, y)
    test = selector.shape_test(X, y, n_permutations=99)
    assert test is selector.shape_
    table = selector.table_.set_index("feature")
    assert table.loc["x4", "p_form"] == test.p_form[4]
    assert table.loc["x4", "subgroup_size"] == len(test.subgroups[4])
    assert test.table["feature"][0] == test.names[test.order[0]]
    assert test.table["q_form"].is_monotonic_increasing
    lines = repr(test).splitlines()
    assert lines[0] == "Shape test of 30 features, a vs b: 99 permutations"
    assert len(lines) <= 8
    assert "shape_" not in vars(selector.fit(X, y))


@pytest.mark.parametrize("kind", ["batches", "pairs"])
def test_the_level_holds_within_blocks(kind):
    rng = np.random.default_rng(1)
    if kind == "pairs":
        is_first, block = np.tile([True, False], 60), np.repeat(np.arange(60), 2)
    else:
        block = np.repeat([0, 1, 2], 40)
        share = np.repeat([0.3, 0.5, 0.7], 40)
        is_first = np.arange(120) % 40 < 40 * share
    X = rng.exponential(size=(120, 1000)) + is_first[:, None]
    X += rng.normal(size=(block.max() + 1, 1000))[block]
    assert level(X, is_first, block=block) == pytest.approx((0.05, 0.05), abs=0.021)


def test_what_differs_between_batches_does_not_hide_a_subgroup():
    X, block = subgroup(200), np.tile([0, 1, 2], 40)
    moved = X + 5.0 * np.random.default_rng(0).normal(size=(3, 200))[block]
    assert level(moved, FIRST, block=block)[0] > 0.85
    assert level(moved, FIRST)[0] < 0.5


def test_units_do_not_matter_and_turning_classes_turns_the_ratio():
    X, y = subgroup(20), np.where(FIRST, "a", "b")
    rng = np.random.default_rng(2)
    plain = shape_test(X, y, n_permutations=49)
    moved = shape_test(X * rng.uniform(0.1, 9.0, 20) + rng.normal(size=20), y, n_permutations=49)
    np.testing.assert_allclose(moved.p_form, plain.p_form, atol=0.021)
    turned = shape_test(X, np.where(FIRST, "b", "a"), n_permutations=49)
    np.testing.assert_allclose(turned.spread_ratio, 1.0 / plain.spread_ratio, rtol=1e-6)


def test_aligned_classes_have_the_same_rank_moments():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(50, 120))
    X[:, FIRST] = 3.0 * X[:, FIRST] - 7.0
    for scale in (False, True):
        found = align(X, FIRST, scale)
        for side in (FIRST, ~FIRST):
            for order in found.orders:
                means = polynomial(order, found.v[:, side]).mean(axis=1)
                assert np.abs(means).max() < 0.03
    assert np.median(found.ratio) == pytest.approx(3.0, rel=0.1)


def test_polynomials_have_variance_one_and_their_derivatives():
    v = np.linspace(-1.0, 1.0, 200_001)
    for order in (1, 2, 3, 4):
        assert np.mean(np.square(polynomial(order, v))) == pytest.approx(1.0, rel=1e-4)
        slope = np.gradient(polynomial(order, v), v)
        np.testing.assert_allclose(polynomial(order, v, 1)[1:-1], slope[1:-1], atol=1e-3)


def test_features_of_few_values_are_not_tested():
    X = subgroup(5)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = 0.0
    test = shape_test(X, FIRST, n_permutations=19)
    assert test.tested.tolist() == [True, False, False, True, True]
    assert test.p_form[[1, 2]].tolist() == test.q_spread[[1, 2]].tolist() == [1.0, 1.0]
    assert test.subgroup_in[1] == ""
    assert test.subgroups[1].size == 0


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (np.arange(40) % 3, {}, "y: has 3 classes, and shape_test compares two"),
        (np.arange(40) < 9, {}, "y: has 9 samples of a class.*needs 10 of each"),
        (None, {"sample_names": ["a"]}, "sample_names: has 1 names for 40 samples"),
        (None, {"n_permutations": 0}, "n_permutations: must be"),
        (None, {"selector": FROTSelector(1, groups=[[0], [1, 2]])}, "selector: has groups"),
    ],
)
def test_bad_input_is_refused(labels, options, message):
    X, y = planted()
    with pytest.raises(frot.InputError, match=message):
        shape_test(X, y if labels is None else labels, **options)
