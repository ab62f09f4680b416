import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import frot
from frot.cells import Cells
from frot.cells._blocks import make_blocks


def made(X, groups, n=20, layer=None, components=10, scale=True, weights=None, **more):
    rows = (np.arange(n), np.arange(n, X.shape[0]))
    uniform = (np.full(len(rows[0]), 1.0 / len(rows[0])), np.full(len(rows[1]), 1.0 / len(rows[1])))
    return make_blocks(
        Cells(X, {}, **more), rows, weights or uniform, groups, layer, components, scale
    )


@pytest.fixture(name="X")
def table():
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, 8)) * rng.uniform(0.1, 5.0, 8) + rng.normal(size=8)


def test_coupling_at_random_costs_one_in_every_group(X):
    rng = np.random.default_rng(1)
    weights = tuple(w / w.sum() for w in (rng.uniform(size=20), rng.uniform(size=30)))
    blocks, _ = made(X, {"a": [0, 1, 2], "b": range(8), "c": [5]}, weights=weights)
    for block in blocks:
        costs = cdist(block.source, block.target, "sqeuclidean")
        assert weights[0] @ costs @ weights[1] == pytest.approx(1.0)


def test_all_components_keep_distances_and_fewer_keep_the_share_told(X):
    (whole,), _ = made(X, {"a": range(8)}, scale=False)
    costs = cdist(X[:20], X[20:], "sqeuclidean")
    np.testing.assert_allclose(
        cdist(whole.source, whole.target, "sqeuclidean"), costs / costs.mean()
    )
    assert whole.share == pytest.approx(1.0)
    (few,), _ = made(X, {"a": range(8)}, scale=False, components=3)
    loadings = np.asarray(few.loadings)
    np.testing.assert_allclose(loadings.T @ loadings, np.eye(3), atol=1e-12)
    variance = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    assert few.share == pytest.approx(variance[:3].sum() / variance.sum())


def test_a_group_wider_than_its_cells_is_the_same_from_either_gram_matrix():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(10, 40))
    (block,), _ = made(X, {"a": range(40)}, n=5, scale=False)
    assert block.size == 9
    costs = cdist(X[:5], X[5:], "sqeuclidean")
    np.testing.assert_allclose(
        cdist(block.source, block.target, "sqeuclidean"), costs / costs.mean()
    )
    loadings = np.asarray(block.loadings)
    np.testing.assert_allclose(loadings.T @ loadings, np.eye(9), atol=1e-10)


def test_sparse_tables_give_what_dense_ones_give(X):
    X = np.where(X > 0.0, X, 0.0)
    groups = {"a": [0, 3, 5], "b": [1, 2]}
    dense, thin = made(X, groups)[0], made(sparse.csr_matrix(X), groups)[0]
    for one, two in zip(dense, thin, strict=True):
        np.testing.assert_allclose(
            cdist(one.source, one.target), cdist(two.source, two.target), atol=1e-10
        )


def test_units_of_genes_do_not_matter_where_genes_are_scaled(X):
    first, _ = made(X, {"a": range(8)})
    second, _ = made(X * np.arange(1.0, 9.0), {"a": range(8)})
    np.testing.assert_allclose(
        cdist(first[0].source, first[0].target), cdist(second[0].source, second[0].target)
    )


def test_groups_that_tell_nothing_are_named(X):
    X[:, 0] = 7.0
    blocks, flat = made(X, {"constant": [0], "rest": [1, 2]})
    assert [block.name for block in blocks] == ["rest"]
    assert flat == ("constant",)
    with pytest.raises(frot.InputError, match="no group has values that vary"):
        made(X, {"constant": [0]})


def test_latent_blocks_are_taken_as_they_are(X):
    (block,), _ = made(X, ["X_pca"], obsm={"X_pca": X[:, :3], "X_umap": X[:, 4:6]})
    costs = cdist(X[:20, :3], X[20:, :3], "sqeuclidean")
    np.testing.assert_allclose(
        cdist(block.source, block.target, "sqeuclidean"), costs / costs.mean()
    )
    with pytest.raises(frot.InputError, match="obsm has no 'X_scvi'; it has 'X_pca'"):
        made(X, ["X_pca", "X_scvi"], obsm={"X_pca": X[:, :3]})


def test_genes_that_the_data_does_not_have_are_left_out(X):
    names = [f"g{at}" for at in range(8)]
    blocks, _ = made(X, {"a": ["g1", "MYC", "g3"]}, var_names=names)
    assert blocks[0].genes == ("g1", "g3")
    with pytest.raises(frot.InputError, match="'b' has no gene that adata has"):
        made(X, {"a": ["g1"], "b": ["MYC", "TP53"]}, var_names=names)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_values_that_are_not_finite_are_refused_by_gene(X, form):
    X[30, 4] = np.nan
    with pytest.raises(frot.InputError, match="gene '4' has a value that is not finite"):
        made(form(X), {"a": [0, 1]})
