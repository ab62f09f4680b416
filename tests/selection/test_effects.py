"""Means, Welch's t and fold changes, held against SciPy and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats

from frot.selection._effects import Moments, fold_change, kind_of_values, measure


def _table(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = np.random.default_rng(seed).poisson(2.0, size=(17, 5)).astype(float)
    return table, np.arange(6), np.arange(6, 17)


def test_t_is_welchs() -> None:
    table, first, second = _table()
    expected = np.asarray(stats.ttest_ind(table[first], table[second], equal_var=False))[0]
    np.testing.assert_allclose(measure(table, first, second).t, expected, rtol=1e-12)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
def test_sparse_tables_give_the_same(form: type) -> None:
    table, first, second = _table(1)
    dense, thin = measure(table, first, second), measure(form(table), first, second)
    np.testing.assert_allclose(thin.t, dense.t, rtol=1e-9)
    np.testing.assert_allclose(thin.difference, dense.difference, rtol=1e-12)


def test_whole_weights_change_means_as_copies_do() -> None:
    table, first, second = _table(2)
    weight = np.ones(len(table))
    weight[[0, 9]] = 3.0, 0.0
    copies = np.repeat(np.arange(len(table)), weight.astype(int))
    weighted = measure(table, first, second, weight)
    copied = measure(table[copies], np.flatnonzero(copies < 6), np.flatnonzero(copies >= 6))
    np.testing.assert_allclose(weighted.difference, copied.difference, rtol=1e-12)
    assert weighted.sizes[1] == pytest.approx(10.0)


def test_offsets_do_not_cancel() -> None:
    table, first, second = _table(3)
    plain, far = measure(table, first, second), measure(table + 1e6, first, second)
    np.testing.assert_allclose(far.t, plain.t, rtol=1e-6)


def test_a_feature_without_variance_is_infinitely_sure_or_nothing() -> None:
    table = np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 2.0], [3.0, 2.0]])
    np.testing.assert_array_equal(
        measure(table, np.array([0, 1]), np.array([2, 3])).t, [-np.inf, 0.0]
    )


def test_fold_changes_agree_between_scales() -> None:
    # Values that do not vary within a class, so that the mean of logarithms is that of the mean.
    counts = np.repeat([[6.0, 3.0], [2.0, 12.0]], 2, axis=0)
    rows = np.array([0, 1]), np.array([2, 3])
    expected = np.log2([3.0, 0.25])
    found = {
        "linear": fold_change(measure(counts, *rows), "linear"),
        "log2": fold_change(measure(np.log2(counts), *rows), "log2"),
        "log1p": fold_change(measure(np.log1p(counts), *rows), "log1p"),
        "base": fold_change(measure(np.log1p(counts) / np.log(2), *rows), "log1p", base=2.0),
    }
    for name, values in found.items():
        np.testing.assert_allclose(values, expected, rtol=1e-6, err_msg=name)


def test_what_values_are() -> None:
    assert kind_of_values(np.array([[1.0, 900.5]])) == "linear"
    assert kind_of_values(np.array([[-20.5, 900.5]])) == "linear"
    assert kind_of_values(sparse.csr_array(np.array([[0.0, 2.0]]))) == "linear"
    assert kind_of_values(np.array([[1.5, 7.25]])) == "log2"
    assert kind_of_values(sparse.csr_array(np.array([[0.0, 1.5]]))) == "log1p"


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("block", [1, 7, 10**6])
def test_classes_are_read_once_and_compared_as_one_likes(
    form: type, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frot.selection._effects.BLOCK", block)
    table = np.random.default_rng(4).poisson(1.0, size=(30, 6)) + np.eye(30, 6)
    codes = np.arange(30) % 4 - 1
    weight = np.random.default_rng(5).uniform(0.0, 2.0, 30)
    moments = Moments.of(form(table), codes, 3, weight)
    found = moments.between([1], [0, 2])
    second = np.flatnonzero((codes == 0) | (codes == 2))
    expected = measure(table, np.flatnonzero(codes == 1), second, weight)
    np.testing.assert_allclose(found.t, expected.t, rtol=1e-10)
    assert found.sizes == pytest.approx(expected.sizes)
    plain = Moments.of(form(table), codes, 3).between([1], [0, 2])
    welch = np.asarray(stats.ttest_ind(table[codes == 1], table[second], equal_var=False))[0]
    np.testing.assert_allclose(plain.t, welch, rtol=1e-10)


def test_entries_that_are_stored_twice_add_up() -> None:
    twice = sparse.csr_array(
        (np.array([1.0, 2.0, 5.0, 4.0]), [0, 0, 0, 0], [0, 2, 3, 4, 4]), (4, 1)
    )
    found = Moments.of(twice, np.array([0, 0, 1, 1]), 2)
    assert found.means.ravel().tolist() == [4.0, 2.0]
    assert found.deviations.ravel().tolist() == [2.0, 8.0]
    assert twice.nnz == 4


def test_moderated_t_is_welchs_of_many_and_students_of_few() -> None:
    rng = np.random.default_rng(6)
    few = rng.normal(size=(4, 3)) * np.array([[1.0], [1.0], [5.0], [5.0]])
    rows = np.array([0, 1]), np.array([2, 3])
    # Of equal sizes the pooled variance is the mean of both, and the error stays what it is.
    np.testing.assert_allclose(measure(few, *rows).moderated, measure(few, *rows).t)
    many = rng.normal(size=(60_000, 3)) * np.where(np.arange(60_000) < 20_000, 1.0, 3.0)[:, None]
    rows = np.arange(20_000), np.arange(20_000, 60_000)
    np.testing.assert_allclose(measure(many, *rows).moderated, measure(many, *rows).t, rtol=2e-3)


def test_a_few_cells_without_a_gene_are_no_proof() -> None:
    counts = np.random.default_rng(7).poisson(0.3, size=(400, 1)).astype(float)
    counts[:5] = 0.0
    found = measure(counts, np.arange(5), np.arange(5, 400))
    assert abs(found.t[0]) > 8.0
    assert abs(found.moderated[0]) < 2.0


def test_a_ratio_of_negative_means_is_none() -> None:
    # Intensities less their background: both negative, their ratio would look like any other.
    table = np.repeat([[-8.0, 300.0, -8.0], [-2.0, 75.0, 75.0]], 2, axis=0)
    found = fold_change(measure(table, np.array([0, 1]), np.array([2, 3])), "linear")
    np.testing.assert_allclose(found, [np.nan, 2.0, np.nan], rtol=1e-6)
