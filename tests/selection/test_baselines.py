import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.feature_selection import SelectKBest, f_classif

import frot
from frot.selection import correlation_score, mmd_score, mrmr_scores, wasserstein_score
from tests.selection.planted import SIGNAL, planted

SCORES = (wasserstein_score, correlation_score, mmd_score, mrmr_scores)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("classes", [2, 3])
def test_they_work_in_select_k_best(score, classes):
    X, y = planted(classes=classes, gap=3.0)
    # Of features that are redundant, mRMR takes one and then others.
    count = 1 if score is mrmr_scores else 3
    chosen = SelectKBest(score, k=count).fit(X, y).get_support(indices=True)
    assert set(np.asarray(chosen).tolist()) <= set(SIGNAL)


@pytest.mark.parametrize("score", SCORES)
def test_a_constant_feature_scores_zero(score):
    X, y = planted(gap=0.0)
    X[:, 4] = 0.1
    found = score(X, y)
    assert found[4] == 0.0
    assert (np.delete(found, 4) > 0.0).all()


@pytest.mark.parametrize("score", SCORES[:3])
def test_sparse_tables_and_units_do_not_matter(score):
    X, y = planted()
    np.testing.assert_allclose(score(sparse.csr_array(X), y), score(X, y), atol=1e-12)
    np.testing.assert_allclose(score(7.0 * X - 3.0, y), score(X, y), atol=1e-9)


@pytest.mark.parametrize("sizes", [(24, 16), (20, 20), (7, 13)])
def test_wasserstein_is_scipys(sizes):
    X, y = planted(*sizes)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    one, two = standard[y == "control"], standard[y == "treated"]
    expected = [stats.wasserstein_distance(one[:, k], two[:, k]) for k in range(40)]
    np.testing.assert_allclose(wasserstein_score(X, y), expected)


def test_wasserstein_of_order_two_is_the_shift_and_the_shape():
    from frot.selection import FROTSelector

    X, y = planted()
    found = FROTSelector(3, scaling="paper").fit(X, y)
    np.testing.assert_allclose(wasserstein_score(X, y, p=2) ** 2, found.shift_ + found.shape_)


def test_correlation_is_pearsons_and_ranks_like_f():
    X, y = planted()
    label = (y == "treated").astype(float)
    expected = np.abs([np.corrcoef(X[:, k], label)[0, 1] for k in range(40)])
    np.testing.assert_allclose(correlation_score(X, y), expected)
    order = np.argsort(correlation_score(X, y))
    np.testing.assert_array_equal(order, np.argsort(f_classif(X, y)[0]))


def test_mmd_is_the_double_sum():
    X, y = planted(n=6, m=4, d=3)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    sign = np.where(y == "control", 1 / 6, -1 / 4)
    kernel = np.exp(-((standard[:, None] - standard) ** 2) / (2 * 0.5**2))
    expected = np.einsum("i,j,ijk->k", sign, sign, kernel)
    np.testing.assert_allclose(mmd_score(X, y, bandwidth=0.5), expected)


def test_mrmr_takes_no_twins():
    X, y = planted(n=40, m=40)
    noise = np.random.default_rng(0).normal(size=(4, 80))
    label = (y == "treated").astype(float)
    first = label + 0.5 * noise[0]
    twins = np.column_stack([first, first + 0.01 * noise[1], label + 0.5 * noise[2], noise[3]])
    by_f = np.argsort(-correlation_score(twins, y))
    by_mrmr = np.argsort(-mrmr_scores(twins, y))
    assert set(by_f[:2].tolist()) == {0, 1}
    assert by_mrmr[:2].tolist() == [0, 2]
    scores = mrmr_scores(X, y, n_ranked=2)
    assert sorted(scores)[-2:] == [1.0, 2.0]
    assert sorted(scores)[-3] < 1.0


@pytest.mark.parametrize("score", SCORES)
def test_bad_labels_are_refused(score):
    X, y = planted()
    with pytest.raises(frot.InputError, match="39 labels for the 40 rows"):
        score(X, y[:39])
    with pytest.raises(frot.InputError, match="1 class"):
        score(X, np.ones(40, dtype=int))
    with pytest.raises(frot.InputError, match="X contains NaN"):
        score(np.where(X[0, 0] == X, np.nan, X), y)


def test_bad_options_are_refused():
    X, y = planted()
    with pytest.raises(frot.InputError, match="p: must be"):
        wasserstein_score(X, y, p=0.5)
    with pytest.raises(frot.InputError, match="bandwidth: must be"):
        mmd_score(X, y, bandwidth=0.0)
    with pytest.raises(frot.InputError, match="n_ranked: must be"):
        mrmr_scores(X, y, n_ranked=0)
