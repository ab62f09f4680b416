from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

import frot
from frot.groups.groups import Groups
from frot.selection import FROTSelector, _label_statistics, permutation_test
from frot.selection._comparison import statistic_of
from frot.selection._inputs import prepare
from frot.selection._label_statistics import (
    Centred,
    FeatureStatistic,
    leading_edge,
    permuted_labels,
    set_statistics,
)
from tests.selection.planted import planted

ONE_BLOCK = np.zeros(60, dtype=int)


def table(seed=0, thin=False):
    """Return values of many scales and offsets, two of the features constant."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(60, 30)) * rng.uniform(0.1, 10.0, 30) + 100.0 * rng.normal(size=30)
    values[:, 4], values[:, 5] = 3.3, 0.0
    if thin:
        values[rng.random(values.shape) > np.linspace(0.1, 1.0, 30)] = 0.0
    return values


@pytest.fixture
def welchs(monkeypatch):
    """Leave variances as they are, however many zeros there are."""
    return lambda: monkeypatch.setitem(FeatureStatistic.under.__globals__, "FEW", 0.0)


def labellings(codes, count=6):
    rng = np.random.default_rng(1)
    return np.stack([codes, *(rng.permutation(codes) for _ in range(count - 1))])


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("scaling", ["balanced", "paper", "none"])
def test_shifts_are_those_of_a_fit(scaling, classes, weighted, thin):
    X, y = table(thin=thin), np.repeat([0, 1, 2], [30, 20, 10]) % classes
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 60) if weighted else None
    form = sparse.csr_array(X) if thin else X
    for how, groups in (("ovr", "each"), ("ovr", {"a": [0, 1, 4], "b": range(9, 30)}),
                        ("ovo", "each")):  # fmt: skip
        model = FROTSelector(1, groups=groups, scaling=scaling, multiclass=how)
        ready = prepare(model, form, y, weight)
        labels = labellings(ready.codes)
        expected = [
            np.mean([statistic_of(ready, one, "shift") for one in ready.contrasts(codes)], axis=0)
            for codes in labels
        ]
        found = FeatureStatistic.of(ready, ONE_BLOCK, "shift").under(labels)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("thin", [False, True])
def test_t_is_welchs_as_a_normal_deviate(thin, welchs):
    welchs()
    X, y = table(thin=thin), np.repeat([0, 1], [45, 15])
    X[y == 1, 6:] *= 1.5
    ready = prepare(FROTSelector(), sparse.csr_array(X) if thin else X, y)
    found = FeatureStatistic.of(ready, ONE_BLOCK, "t").under(labellings(ready.codes))
    varies = np.ptp(X, axis=0) > 0.0
    assert (found[:, ~varies] == 0.0).all()
    for row, codes in zip(found, labellings(ready.codes), strict=True):
        first, second = (X[codes == one][:, varies] for one in (0, 1))
        welch: Any = stats.ttest_ind(first, second, equal_var=False)
        deviate = stats.norm.isf(welch.pvalue / 2.0)
        np.testing.assert_allclose(row[varies], deviate, rtol=1e-2, atol=2e-3)


def test_classes_that_do_not_overlap_and_do_not_vary_have_a_finite_t_above_all_others():
    X = np.zeros((12, 2))
    X[6:, 0] = 1.0
    X[:, 1] = np.arange(12) + 10.0 * (np.arange(12) >= 6)
    ready = prepare(FROTSelector(), X, np.repeat([0, 1], 6))
    found = FeatureStatistic.of(ready, np.zeros(12, dtype=int), "t").under(ready.codes[None])[0]
    assert found[0] > found[1] > 3.0
    assert np.isfinite(found).all()


def test_several_classes_have_the_root_mean_square_of_their_comparisons():
    X, y = table(), np.repeat([0, 1, 2], [30, 20, 10])
    for how, pairs in (("ovr", [(0, (1, 2)), (1, (0, 2)), (2, (0, 1))]),
                       ("ovo", [(0, (1,)), (0, (2,)), (1, (2,))])):  # fmt: skip
        ready = prepare(FROTSelector(multiclass=how), X, y)
        found = FeatureStatistic.of(ready, ONE_BLOCK, "t").under(ready.codes[None])[0]
        squares = []
        for one, others in pairs:
            rows = np.isin(y, (one, *others))
            two = prepare(FROTSelector(), X[rows], (y[rows] == one).astype(int))
            alone = FeatureStatistic.of(two, np.zeros(rows.sum(), dtype=int), "t")
            squares.append(np.square(alone.under(two.codes[None])[0]))
        np.testing.assert_allclose(found, np.sqrt(np.mean(squares, axis=0)), rtol=1e-4)


def test_within_blocks_offsets_do_not_matter_and_sparse_is_dense(welchs):
    welchs()  # an offset has no zeros
    X, y, block = table(thin=True), np.tile([0, 1], 30), np.repeat([0, 1, 2], 20)
    X[:, 7] = np.array([0.0, 5.0, 0.0])[block]  # constant within each
    moved = X + 1000.0 * block[:, None]
    found = []
    for form in (X, sparse.csr_array(X), moved):
        ready = prepare(FROTSelector(), form, y)
        found.append(FeatureStatistic.of(ready, block, "t").under(labellings(ready.codes)))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-5, atol=1e-6)
    assert (found[1][:, 7] == 0.0).all()


def test_weights_stand_for_repeated_samples_in_the_means():
    X, y = table(), np.repeat([0, 1], [45, 15])
    twice = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
    ready = prepare(FROTSelector(), X, y, twice)
    sums = FeatureStatistic.of(ready, ONE_BLOCK, "shift")
    rows = np.repeat(np.arange(60), twice.astype(int))
    copied = prepare(FROTSelector(), X[rows], y[rows])
    plain = FeatureStatistic.of(copied, np.zeros(len(rows), dtype=int), "shift")
    np.testing.assert_allclose(
        sums.under(ready.codes[None]), plain.under(copied.codes[None]), rtol=1e-5
    )


def test_how_many_labellings_go_together_does_not_matter(monkeypatch):
    ready = prepare(FROTSelector(), table(), np.repeat([0, 1], [45, 15]))
    sums = FeatureStatistic.of(ready, ONE_BLOCK, "t")
    labels = labellings(ready.codes, 20)
    whole = sums.under(labels)
    np.testing.assert_allclose(np.vstack([sums.under(one[None]) for one in labels]), whole)
    monkeypatch.setattr(_label_statistics, "CACHE_BYTES", 1000)
    np.testing.assert_allclose(sums.under(labels), whole)
    monkeypatch.setattr(_label_statistics, "LABEL_BYTES", 60 * 8 * 5)
    assert sums.chunk_size == 5


def test_large_offsets_lose_no_digits_in_dense_nor_in_sparse_tables():
    X, y = np.random.default_rng(0).normal(size=(60, 5)), np.repeat([0, 1], 30)
    plain, far, thin = (
        FeatureStatistic.of(prepare(FROTSelector(), form, y), ONE_BLOCK, "t").under(y[None])
        for form in (X, X + 1e6, sparse.csr_array(X + 1e6))
    )
    np.testing.assert_allclose(far, plain, rtol=1e-6)
    np.testing.assert_allclose(thin, plain, rtol=1e-6)


def test_sparse_tables_are_never_made_dense_whole(monkeypatch):
    rng = np.random.default_rng(0)
    X = sparse.csc_array(rng.random((400, 300)) * (rng.random((400, 300)) < 0.1))
    asked = []
    real = sparse.csc_array.toarray

    def watched(self, *arguments, **options):
        asked.append(self.shape)
        return real(self, *arguments, **options)

    monkeypatch.setattr(sparse.csc_array, "toarray", watched)
    centred = Centred.of(X, np.ones(400), np.zeros(400, dtype=int))
    for _ in centred.products(np.ones((400, 2))):
        pass
    assert all(rows * columns < 400 * 300 / 10 for rows, columns in asked)


def test_squares_that_overflow_are_refused():
    X = np.array([[1e200], [2e200], [3e200], [5e200]])
    ready = prepare(FROTSelector(), X, [0, 0, 1, 1])
    with pytest.raises(frot.InputError, match="squares overflow; divide it by a constant"):
        FeatureStatistic.of(ready, np.zeros(4, dtype=int), "t")


def test_a_small_class_of_zeros_does_not_hide_what_differs(welchs):
    rng = np.random.default_rng(0)
    y, gene = np.repeat([0, 1], [600, 40]), np.arange(400)
    mean = np.where(gene < 40, (gene + 4) / 40, np.exp(rng.normal(-2.5, 1.7, size=400)))
    rates = np.where((y == 1)[:, None] & (gene < 40), 3.0, 1.0) * mean
    counts = sparse.csr_array(np.log1p(rng.poisson(rates)))
    found = permutation_test(counts, y, n_permutations=99)
    assert (found.q[:40] <= 0.1).sum() >= 35
    assert (found.q[40:] <= 0.1).sum() <= 8
    welchs()
    assert (permutation_test(counts, y, n_permutations=99).q[:40] <= 0.1).sum() <= 15


SETS = {"signal": range(8), "noise": range(8, 30), "mixed": [0, 12, 20, 33, 39]}


def statistics(X, y, weight=None, block=None, count=20, **options):
    prepared = prepare(FROTSelector(groups=SETS, **options), X, y, weight)
    blocks = np.zeros(X.shape[0], dtype=int) if block is None else block
    return set_statistics(prepared, blocks, count, 0)


def same(one, two):
    for name in ("competitive", "self_contained", "z"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=2e-5)


def test_deviates_are_as_rare_as_welchs_t():
    X, y = planted(d=40)
    first, second = X[y == "control"], X[y == "treated"]
    t, p = (np.asarray(one) for one in stats.ttest_ind(first, second, equal_var=False))
    exact = np.sign(t) * stats.norm.isf(p / 2.0)
    np.testing.assert_allclose(statistics(X, y).z[0], exact, rtol=5e-3, atol=5e-3)


def test_units_and_the_order_of_features_do_not_matter():
    X, y = planted()
    rng = np.random.default_rng(1)
    same(statistics(X, y), statistics(X * rng.uniform(0.1, 9.0, 40) + rng.normal(size=40), y))


@pytest.mark.parametrize("power", [-450, 400])
def test_units_of_any_size_give_the_same(power):
    X, y = planted()
    same(statistics(X, y), statistics(np.ldexp(X, power), y))
    plain, scaled = (
        permutation_test(values, y, n_permutations=19) for values in (X, np.ldexp(X, power))
    )
    np.testing.assert_allclose(scaled.null, plain.null, rtol=1e-5)
    np.testing.assert_array_equal(scaled.p, plain.p)


def test_a_feature_of_equal_means_varies():
    X, y = planted(n=20, m=20)
    # Exactly the same values in both classes, in other order.
    X[:, 39] = np.arange(40) % 10
    found = statistics(X, y)
    assert found.z[0, 39] == 0.0
    assert found.varying[39]


def test_sparse_tables_and_weights():
    X, y = planted()
    X[np.abs(X) < 0.7] = 0.0
    same(statistics(X, y), statistics(sparse.csr_array(X), y))
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    weight[[3, 30]] = 0.0
    kept = weight > 0.0
    same(statistics(X, y, weight), statistics(X[kept], y[kept], weight[kept]))


def test_a_feature_that_does_not_vary_counts_nowhere():
    X, y = planted(d=41)
    X[:, 40] = 7.0
    one = prepare(FROTSelector(groups=SETS), X[:, :40], y)
    two = prepare(FROTSelector(groups={**SETS, "noise": [*SETS["noise"], 40]}), X, y)
    blocks = np.zeros(len(X), dtype=int)
    found, other = (set_statistics(ready, blocks, 20, 0) for ready in (one, two))
    np.testing.assert_allclose(found.competitive, other.competitive, atol=2e-5)
    assert not other.varying[40]


def test_what_differs_between_blocks_does_not_count():
    X, y = planted(n=20, m=20)
    block = np.arange(40) % 10
    moved = X + np.random.default_rng(3).normal(size=(10, 40))[block]
    same(statistics(X, y, block=block), statistics(moved, y, block=block))


def test_what_a_leading_edge_leaves_is_ordinary():
    rng = np.random.default_rng(0)
    values = rng.exponential(size=300)
    members = rng.permutation(300)[:60]
    values[members[:7]] += 20.0
    edge = leading_edge(values, members, 1.0)
    assert set(members[:7]) <= set(edge)
    assert np.delete(values[members], np.isin(members, edge)).mean() <= 1.0
    assert np.delete(values[members], np.isin(members, edge[:-1])).mean() > 1.0
    assert leading_edge(values, members[7:], 5.0).size == 0


def test_coverage_and_limits(tmp_path):
    path = tmp_path / "sets.gmt"
    path.write_text("A\t-\ta\tb\tc\tx\nB\t-\ta\ty\tz\tw\tv\nC\t-\tb\tc\n")
    groups = Groups.from_gmt(path, ["a", "b", "c"])
    assert groups.listed == (4, 5, 2)
    np.testing.assert_allclose(groups.coverage, [0.75, 0.2, 1.0])
    assert groups.limited(1, min_coverage=0.5).names == ("A", "C")
    assert groups.limited(2, 2).dropped == ("A", "B")
    assert groups.limited(2).listed == (4, 2)
    assert Groups.parse([2, 1], 3).limited().sizes.tolist() == [2, 1]


def test_permuted_labels_depend_on_seed_and_number_only():
    codes, one = np.repeat([0, 1], 20), np.zeros(40, dtype=int)
    draws = {(s, i): permuted_labels(codes, one, s, [i])[0] for s in (0, 1) for i in (0, 1)}
    assert len({tuple(labels) for labels in draws.values()}) == 4
    np.testing.assert_array_equal(draws[1, 0], permuted_labels(codes, one, 1, [0, 1])[0])
