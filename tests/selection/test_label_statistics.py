from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from frot.api.permutations import permuted_labels
from frot.selection import _label_statistics, permutation_test
from frot.selection._label_statistics import Centred, LabelStatistics


def table(seed=0, thin=False):
    """Return values of many scales and offsets, two of the features constant."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(60, 30)) * rng.uniform(0.1, 10.0, 30) + 100.0 * rng.normal(size=30)
    values[:, 4], values[:, 5] = 3.3, 0.0
    if thin:
        values = np.abs(values)
        values[rng.random(values.shape) > np.linspace(0.1, 1.0, 30)] = 0.0
    return values


def design(seed=1, blocks=3):
    rng = np.random.default_rng(seed)
    return rng.random(60) < 0.4, rng.integers(blocks, size=60)


def by_regression(values, is_first, block):
    """Welch's t of a feature in a linear model with blocks, as a normal deviate, written out."""
    X = np.column_stack([is_first, *(block == one for one in np.unique(block))]).astype(float)
    solve = np.linalg.pinv(X)
    beta, weights = solve @ values, solve[0]
    residuals, left = values - X @ beta, 1.0 - np.diag(X @ solve)
    parts, degrees = [], []
    for side in (is_first, ~is_first):
        degrees.append(left[side].sum())
        variance = np.square(residuals[side]).sum() / degrees[-1]
        parts.append(variance * np.square(weights[side]).sum())
    error = sum(parts)
    nu = error**2 / sum(part**2 / df for part, df in zip(parts, degrees, strict=True))
    nu = min(nu, sum(degrees))
    t = beta[0] / np.sqrt(error)
    return np.sign(t) * (8 * nu + 1) / (8 * nu + 3) * np.sqrt(nu * np.log1p(t * t / nu))


@pytest.mark.parametrize("blocks", [1, 3])
def test_it_is_welchs_t_of_a_linear_model_under_every_labelling(blocks):
    X, (is_first, block) = table(), design(blocks=blocks)
    labels = np.vstack([is_first, permuted_labels(is_first, block, 0, range(5))])
    found = LabelStatistics.of(X, is_first, block).deviates(labels)
    for row, label in enumerate(labels):
        expected = [by_regression(X[:, k], label, block) for k in range(6, 30)]
        np.testing.assert_allclose(found[6:, row], expected, rtol=1e-9)
    assert (found[4:6] == 0.0).all()


def test_pairs_are_the_paired_test():
    rng = np.random.default_rng(0)
    X, block = rng.normal(size=(24, 9)), np.tile(np.arange(12), 2)
    is_first = np.arange(24) < 12
    found = LabelStatistics.of(X, is_first, block).deviates(is_first[None])[:, 0]
    paired: Any = stats.ttest_rel(X[:12], X[12:])
    expected = np.sign(paired.statistic) * stats.norm.isf(paired.pvalue / 2.0)
    np.testing.assert_allclose(found, expected, rtol=5e-3)


def test_without_blocks_it_is_as_rare_as_welchs_t():
    X, (is_first, _) = table(), design()
    X[is_first] *= 1.5
    welch: Any = stats.ttest_ind(X[is_first, 6:], X[~is_first, 6:], equal_var=False)
    found = LabelStatistics.of(X, is_first, np.zeros(60, int)).deviates(is_first[None])[6:, 0]
    expected = np.sign(welch.statistic) * stats.norm.isf(welch.pvalue / 2.0)
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize("blocks", [1, 3])
def test_sparse_is_dense(blocks):
    X, (is_first, block) = table(thin=True), design(blocks=blocks)
    labels = permuted_labels(is_first, block, 0, range(4))
    dense = LabelStatistics.of(X, is_first, block)
    thin = LabelStatistics.of(sparse.csr_array(X), is_first, block)
    assert 0 < len(thin.centred.columns) < 30
    np.testing.assert_allclose(thin.deviates(labels), dense.deviates(labels), atol=1e-9)
    np.testing.assert_allclose(thin.borrowed, dense.borrowed)


def test_large_offsets_lose_no_digits_in_dense_nor_in_sparse_tables():
    X, (is_first, block) = np.random.default_rng(0).normal(size=(60, 5)), design()
    plain, far, thin = (
        LabelStatistics.of(form, is_first, block).deviates(is_first[None])
        for form in (X, X + 1e6, sparse.csr_array(X + 1e6))
    )
    np.testing.assert_allclose(far, plain, rtol=1e-6)
    np.testing.assert_allclose(thin, plain, rtol=1e-6)


@pytest.mark.parametrize("power", [-450, 400])
def test_units_of_any_size_give_the_same(power):
    X, (is_first, block) = table(), design()
    plain, scaled = (
        LabelStatistics.of(values, is_first, block).deviates(is_first[None])
        for values in (X, np.ldexp(X, power))
    )
    np.testing.assert_allclose(scaled, plain, rtol=1e-9)


def test_blocks_of_features_give_the_same(monkeypatch):
    X, (is_first, block) = table(), design()
    labels = permuted_labels(is_first, block, 0, range(20))
    statistics = LabelStatistics.of(X, is_first, block)
    whole = statistics.deviates(labels)
    np.testing.assert_allclose(
        np.hstack([statistics.deviates(one[None]) for one in labels]), whole, rtol=1e-12
    )
    monkeypatch.setattr(_label_statistics, "CACHE_BYTES", 1000)
    np.testing.assert_allclose(statistics.deviates(labels), whole, rtol=1e-12)


def test_sparse_tables_are_never_made_dense_whole(monkeypatch):
    rng = np.random.default_rng(0)
    X = sparse.csc_array(rng.random((400, 300)) * (rng.random((400, 300)) < 0.1))
    asked = []
    real = sparse.csc_array.toarray

    def watched(self, *arguments, **options):
        asked.append(self.shape)
        return real(self, *arguments, **options)

    monkeypatch.setattr(sparse.csc_array, "toarray", watched)
    centred = Centred.of(X, np.zeros(400, dtype=int))
    for _ in centred.products(np.ones((400, 2))):
        pass
    assert all(rows * columns < 400 * 300 / 10 for rows, columns in asked)


def test_classes_that_do_not_overlap_and_do_not_vary_have_a_finite_t_above_all_others():
    X = np.zeros((12, 2))
    X[6:, 0] = 1.0
    X[:, 1] = np.arange(12) + 10.0 * (np.arange(12) >= 6)
    is_first = np.arange(12) < 6
    found = LabelStatistics.of(X, is_first, np.zeros(12, int)).deviates(is_first[None])[:, 0]
    assert found[0] < found[1] < -3.0
    assert np.isfinite(found).all()


def test_one_sample_of_a_class_in_every_block_has_no_variance_of_its_own():
    # Two blocks, of which each has one sample of the first class.
    X = np.random.default_rng(0).normal(size=(8, 3))
    is_first, block = np.arange(8) % 4 == 0, np.repeat([0, 1], 4)
    found = LabelStatistics.of(X, is_first, block).deviates(is_first[None])
    assert np.isfinite(found).all()


def test_a_small_class_of_zeros_does_not_hide_what_differs():
    rng = np.random.default_rng(0)
    y, gene = np.repeat([0, 1], [600, 40]), np.arange(400)
    mean = np.where(gene < 40, (gene + 4) / 40, np.exp(rng.normal(-2.5, 1.7, size=400)))
    rates = np.where((y == 1)[:, None] & (gene < 40), 3.0, 1.0) * mean
    counts = sparse.csr_array(np.log1p(rng.poisson(rates)))
    found = permutation_test(counts, y, n_permutations=99)
    assert (found.q[:40] <= 0.1).sum() >= 35
    assert (found.q[40:] <= 0.1).sum() <= 8
    statistics = LabelStatistics.of(counts, y == 1, np.zeros(640, int))
    share = counts.count_nonzero(axis=0) / 640
    np.testing.assert_allclose(statistics.borrowed, 10.0 * (1 - share) / np.maximum(share, 1 / 640))
    # A zero that is not the least value is one like any other.
    lower = np.asarray(counts.todense()) - np.log(2.0)
    negative = lower.min(axis=0) < 0.0
    assert ((lower == 0.0).any(axis=0) & negative).sum() > 300
    borrowed = LabelStatistics.of(lower, y == 1, np.zeros(640, int)).borrowed
    assert (borrowed[negative] == 0.0).all()


def test_mostly_zero_features_borrow_the_variance_within_both_classes():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 4)) < 0.2, rng.uniform(1.0, 3.0, size=(60, 4)), 0.0)
    is_first, block = np.arange(60) < 20, np.zeros(60, int)
    found = LabelStatistics.of(X, is_first, block).deviates(is_first[None])[:, 0]
    for column, z in zip(X.T, found, strict=True):
        first, second = column[is_first], column[~is_first]
        share = (column == 0.0).mean()
        more = 10.0 * share / (1.0 - share)
        within = (19 * first.var(ddof=1) + 39 * second.var(ddof=1)) / 58
        parts, degrees = [], []
        for side in (first, second):
            df = len(side) - 1
            degrees.append(df + more)
            variance = (df * side.var(ddof=1) + more * within) / degrees[-1]
            parts.append(variance / len(side))
        nu = min(sum(parts) ** 2 / sum(a**2 / df for a, df in zip(parts, degrees, strict=True)), 58)
        t = (first.mean() - second.mean()) / np.sqrt(sum(parts))
        expected = np.sign(t) * (8 * nu + 1) / (8 * nu + 3) * np.sqrt(nu * np.log1p(t * t / nu))
        assert z == pytest.approx(expected, rel=1e-9)
