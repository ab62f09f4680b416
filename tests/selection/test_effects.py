"""The linear model and its moderated t, held against least squares written out, and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse, special, stats

import frot
from frot.selection import FROTSelector, rank_genes
from frot.selection._effects import Moments, fit_prior, fold_change, kind_of_values, measure


def limma(table: np.ndarray, is_first: np.ndarray, block: np.ndarray) -> tuple[Any, Any]:
    """Return the moderated t of the class and its p, by lstsq on the whole design matrix."""
    design = np.column_stack([is_first, *(block == one for one in np.unique(block))]).astype(float)
    coefficients, *_ = np.linalg.lstsq(design, table, rcond=None)
    df = len(table) - np.linalg.matrix_rank(design)
    variance = np.square(table - design @ coefficients).sum(axis=0) / df
    unscaled = np.linalg.pinv(design.T @ design)[0, 0]
    # Smyth 2004, section 6.2: moments of the logarithms of the variances.
    z = np.log(variance) - special.digamma(df / 2) + np.log(df / 2)
    excess = z.var(ddof=1) - special.polygamma(1, df / 2)
    if excess > 0.0:
        half: Any = optimize.brentq(
            lambda x: special.polygamma(1, x) - excess, 1e-8, 1e8, xtol=1e-13
        )
        prior_df = 2.0 * half
        prior = np.exp(z.mean() + special.digamma(half) - np.log(half))
        posterior = (df * variance + prior_df * prior) / (df + prior_df)
    else:
        prior_df, posterior = np.inf, np.full(len(variance), np.exp(z.mean()))
    t = coefficients[0] / np.sqrt(posterior * unscaled)
    return t, 2.0 * stats.t.sf(np.abs(t), min(df + prior_df, df * len(variance)))


def drawn(seed: int = 0, n: int = 40, d: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    spread = np.sqrt(1.0 / rng.gamma(4.0, size=d))
    is_first, block = rng.random(n) < 0.4, rng.integers(4, size=n)
    table = rng.normal(size=(n, d)) * spread + 3.0 * rng.normal(size=(4, d))[block] + 5.0
    table[is_first, :20] += 1.0
    return table, is_first, block


@pytest.mark.parametrize("blocks", ["none", "batches", "pairs"])
@pytest.mark.parametrize("same", [False, True])
def test_t_and_p_are_limmas_with_the_same_design_matrix(blocks, same):
    table, is_first, block = drawn()
    if same:
        # Variances that differ by chance alone: the prior has no end of degrees of freedom.
        table = np.random.default_rng(1).normal(size=table.shape)
    if blocks == "none":
        block = np.zeros(40, dtype=int)
    elif blocks == "pairs":
        is_first, block = np.tile([True, False], 20), np.repeat(np.arange(20), 2)
    expected_t, expected_p = limma(table, is_first, block)
    found = measure(table, is_first, block)
    np.testing.assert_allclose(found.t, expected_t, rtol=1e-8)
    np.testing.assert_allclose(found.p, expected_p, rtol=1e-7)
    # And the same through the public door.
    y = np.where(is_first, "a", "b")
    given = None if blocks == "none" else block
    selector = FROTSelector(plan=False).fit(table, y, given)
    columns = selector.table_.sort_values("feature", key=lambda names: names.str[1:].astype(int))
    np.testing.assert_allclose(columns["t"], expected_t, rtol=1e-8)
    np.testing.assert_allclose(columns["p"], expected_p, rtol=1e-7)
    np.testing.assert_allclose(columns["q"], stats.false_discovery_control(expected_p), rtol=1e-7)


def test_genes_of_cells_have_it_too():
    from types import SimpleNamespace

    table, is_first, block = drawn()
    table = np.abs(table)
    obs = pd.DataFrame({"kind": np.where(is_first, "a", "b"), "donor": block})
    names = np.array([f"g{i}" for i in range(300)])
    adata = SimpleNamespace(X=table, var_names=names, uns={}, layers={}, raw=None, obs=obs)
    rank_genes(adata, "kind", group="a", reference="b", block="donor")
    found = adata.uns["rank_genes_groups"]
    t, p = limma(table, is_first, block)
    order = np.argsort(-t)
    assert found["names"]["a"].tolist() == names[order].tolist()
    np.testing.assert_allclose(found["scores"]["a"], t[order], rtol=1e-5)
    np.testing.assert_allclose(found["pvals"]["a"], p[order], rtol=1e-7)
    np.testing.assert_allclose(
        found["pvals_adj"]["a"], stats.false_discovery_control(p)[order], rtol=1e-7
    )


def test_pairs_give_the_paired_t_where_nothing_is_known_of_other_features():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(2, 9, 1))
    found = measure(np.concatenate([one, two]), np.arange(18) < 9, np.tile(np.arange(9), 2))
    expected: Any = stats.ttest_rel(one[:, 0], two[:, 0])
    np.testing.assert_allclose([found.t[0], found.p[0]], [expected.statistic, expected.pvalue])


def test_what_differs_between_blocks_only_changes_nothing():
    table, is_first, block = drawn()
    moved = table + 50.0 * np.random.default_rng(2).normal(size=(4, 300))[block]
    one, two = measure(table, is_first, block), measure(moved, is_first, block)
    np.testing.assert_allclose(one.t, two.t, rtol=1e-9)
    np.testing.assert_allclose(one.difference, two.difference, atol=1e-10)


def test_adjusted_means_are_those_of_the_classes_where_blocks_are_balanced():
    table, _, _ = drawn()
    is_first, block = np.tile([True, False], 20), np.repeat([0, 1, 2, 3], 10)
    found = measure(table, is_first, block)
    np.testing.assert_allclose(found.means[0], table[is_first].mean(axis=0))
    np.testing.assert_allclose(found.means[1], table[~is_first].mean(axis=0))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("part", [7, 10**6])
def test_classes_are_read_once_and_compared_as_one_likes(form, part, monkeypatch):
    monkeypatch.setattr("frot.selection._effects.PART", part)
    rng = np.random.default_rng(4)
    table = rng.poisson(1.0, size=(60, 6)) + np.eye(60, 6)
    codes, block = np.arange(60) % 3, rng.integers(2, size=60)
    moments = Moments.of(form(table), codes, 3, block)
    for first, second in (([1], [0, 2]), ([0], [2])):
        rows = np.isin(codes, [*first, *second])
        expected = measure(table[rows], np.isin(codes[rows], first), block[rows])
        found = moments.between(first, second)
        np.testing.assert_allclose(found.t, expected.t, rtol=1e-9)
        assert found.df == expected.df == rows.sum() - 3


def test_block_effects_are_those_of_least_squares():
    table, is_first, block = drawn()
    moments = Moments.of(table, (~is_first).astype(int), 2, block)
    design = np.column_stack([is_first, *(block == one for one in range(4))]).astype(float)
    coefficients, *_ = np.linalg.lstsq(design, table, rcond=None)
    expected = coefficients[1:] - np.bincount(block) @ coefficients[1:] / 40
    np.testing.assert_allclose(moments.block_effects([0], [1]), expected, atol=1e-9)


def test_offsets_do_not_cancel():
    table, is_first, block = drawn()
    plain, far = measure(table, is_first, block), measure(table + 1e6, is_first, block)
    np.testing.assert_allclose(far.t, plain.t, rtol=1e-5)


def test_p_is_uniform_where_nothing_differs():
    _, is_first, block = drawn()
    spread = np.sqrt(1.0 / np.random.default_rng(5).gamma(4.0, size=20_000))
    table = np.random.default_rng(6).normal(size=(40, 20_000)) * spread
    p = measure(table, is_first, block).p
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert (p <= 0.001).mean() == pytest.approx(0.001, abs=0.0007)


def test_the_prior_is_found_again():
    rng = np.random.default_rng(0)
    for df, prior in ((6, 4.0), (30, 12.0)):
        variances = 3.0 * np.asarray(stats.f.rvs(df, prior, size=40_000, random_state=rng))
        found_df, found = fit_prior(variances, df)
        assert found_df == pytest.approx(prior, rel=0.05)
        assert found == pytest.approx(3.0, rel=0.03)
    assert fit_prior(np.array([2.0]), 6) == (0.0, 0.0)
    assert fit_prior(np.ones(4), 6)[0] == np.inf
    # A variance of next to nothing does not decide.
    with_tiny = fit_prior(np.append(variances, 1e-30), df)
    assert with_tiny[0] == pytest.approx(found_df, rel=0.03)


def test_features_without_variance():
    table = np.array([[1.0, 2.0, 0.1], [1.0, 2.0, 0.1], [3.0, 2.0, 0.1], [3.0, 2.0, 0.1]])
    found = measure(table, np.array([True, True, False, False]))
    np.testing.assert_array_equal(found.t, [-np.inf, 0.0, 0.0])
    np.testing.assert_array_equal(found.p, [0.0, 1.0, 1.0])
    assert found.constant.tolist() == [False, True, True]
    assert found.means[0][2] == found.means[1][2]


def test_fold_changes_agree_between_scales():
    # Values that do not vary within a class, so that the mean of logarithms is that of the mean.
    counts = np.repeat([[6.0, 3.0], [2.0, 12.0]], 2, axis=0)
    rows = np.array([True, True, False, False])
    expected = np.log2([3.0, 0.25])
    found = {
        "linear": fold_change(measure(counts, rows), "linear"),
        "log2": fold_change(measure(np.log2(counts), rows), "log2"),
        "log1p": fold_change(measure(np.log1p(counts), rows), "log1p"),
        "base": fold_change(measure(np.log1p(counts) / np.log(2), rows), "log1p", base=2.0),
    }
    for name, values in found.items():
        np.testing.assert_allclose(values, expected, rtol=1e-6, err_msg=name)


def test_a_ratio_of_negative_means_is_none_and_told():
    # Intensities less their background: both negative, their ratio would look like any other.
    rng = np.random.default_rng(0)
    table = np.repeat([[-8.0, 300.0, -8.0], [-2.0, 75.0, 75.0]], 4, axis=0)
    table += 0.01 * rng.normal(size=table.shape)
    rows = np.arange(8) < 4
    found = fold_change(measure(table, rows), "linear")
    np.testing.assert_allclose(found, [np.nan, 2.0, np.nan], rtol=1e-3)
    with pytest.warns(frot.DataWarning, match="2 fold changes are NaN, since the mean of a class"):
        FROTSelector(1, plan=False).fit(table, rows)


def test_what_a_class_has_nothing_of_has_a_fold_change():
    rng = np.random.default_rng(0)
    table = np.log1p(rng.poisson(3.0, size=(60, 8)))
    table[:20, 0] = 0.0
    rows, block = np.arange(60) < 20, np.arange(60) % 7
    for given in (None, block):
        found = FROTSelector(1, plan=False, values="log1p").fit(table, rows, given).table_
        changes = found.set_index("feature")["log2_fold_change"]
        assert np.isfinite(changes).all()
        assert changes["x0"] > 20.0  # of False over True


def test_what_values_are():
    assert kind_of_values(np.array([[1.0, 900.5]])) == "linear"
    assert kind_of_values(np.array([[-20.5, 900.5]])) == "linear"
    assert kind_of_values(sparse.csr_array(np.array([[0.0, 2.0]]))) == "linear"
    assert kind_of_values(np.array([[1.5, 7.25]])) == "log2"
    assert kind_of_values(np.array([[-1.0, 2.0]])) == "log2"
    assert kind_of_values(sparse.csr_array(np.array([[0.0, 1.5]]))) == "log1p"


def test_entries_that_are_stored_twice_add_up():
    twice = sparse.csr_array(
        (np.array([1.0, 2.0, 5.0, 4.0]), [0, 0, 0, 0], [0, 2, 3, 4, 4]), (4, 1)
    )
    found = Moments.of(twice, np.array([0, 0, 1, 1]), 2)
    assert found.means.ravel().tolist() == [4.0, 2.0]
    assert found.deviations.ravel().tolist() == [2.0, 8.0]
    assert twice.nnz == 4


def test_squares_that_overflow_are_refused():
    table = np.array([[1e200], [2e200], [3e200], [5e200]])
    with pytest.raises(frot.InputError, match="squares overflow; divide it by a constant"):
        FROTSelector(1).fit(table, [0, 0, 1, 1])


def test_a_small_class_that_varies_more_is_told_with_the_share_of_wrong_p_values():
    rng = np.random.default_rng(0)
    table, rows = rng.normal(size=(60, 2000)), np.arange(60) < 50
    table[50:] *= 3.0
    with pytest.warns(frot.DataWarning, match="some 2[0-9]% of the features that do not differ"):
        found = FROTSelector(1, plan=False).fit(table, np.where(rows, "a", "b"))
    effects = found.comparisons_[0].effects
    assert (effects.p <= 0.05).mean() == pytest.approx(0.29, abs=0.03)
    welch = table[:50].var(axis=0, ddof=1) / 50 + table[50:].var(axis=0, ddof=1) / 10
    pooled = effects.variance * (1 / 50 + 1 / 10)
    assert effects.inflation == pytest.approx(np.median(welch / pooled))
    # Not where the large class varies more, nor where nothing does.
    small = rng.normal(size=(60, 2000))
    small[:50] *= 3.0
    assert measure(small, rows).inflation < 0.5
    assert measure(rng.normal(size=(60, 2000)), rows).inflation == pytest.approx(1.0, abs=0.1)
    pairs = measure(rng.normal(size=(40, 9)), np.tile([True, False], 20), np.repeat(range(20), 2))
    assert pairs.inflation == 1.0
