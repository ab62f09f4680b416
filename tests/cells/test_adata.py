import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import frot
from frot.cells import Cells, Coupling, Trajectory, couple, trajectory
from tests.cells.planted import GROUPS, planted

OPTIONS = [
    {}, {"eps": 0.0}, {"tau": (np.inf, 0.5), "growth": "growth", "components": 2},
    {"denoise": False}, {"gate": 1e-6},
]  # fmt: skip


def plain(days=2):
    X, obs, names = planted(days=days)
    return Cells(X, pd.DataFrame(obs), names, obsm={"X_pca": X[:, :3], "X_scvi": X[:, 3:6]})


def annotated(days=2, form=np.asarray):
    anndata = pytest.importorskip("anndata")
    X, obs, names = planted(days=days)
    table = pd.DataFrame(obs, index=[f"cell{at}" for at in range(len(X))])
    return anndata.AnnData(form(X), obs=table, var=pd.DataFrame(index=names))


def same(one, two):
    plans = [np.asarray(each.result.plan) for each in (one, two)]
    # The same potentials to single precision.
    np.testing.assert_allclose(*plans, rtol=1e-3, atol=1e-7 * plans[1].max())
    np.testing.assert_allclose(one.alpha[: len(two.alpha)], two.alpha, atol=1e-6)
    assert max(one.result.lower, two.result.lower) <= min(one.result.upper, two.result.upper)
    assert one.about == two.about
    assert one.result.status is two.result.status
    assert one.drivers()["gene"].tolist() == two.drivers()["gene"].tolist()


@pytest.mark.parametrize("options", OPTIONS)
def test_a_coupling_is_read_back_and_proven_anew(options):
    data = plain()
    found = couple(data, groups=GROUPS, **options)
    found.to_adata()
    same(Coupling.from_adata(data), found)


@pytest.mark.parametrize("options", [{}, {"gate": None}, {"denoise": False}])
def test_coordinates_are_read_back_as_they_were_coupled(options):
    data = plain()
    found = couple(data, groups=GROUPS, **options)
    found.to_adata()
    again = Coupling.from_adata(data)
    for one, two in zip(found.blocks, again.blocks, strict=True):
        np.testing.assert_allclose(one.source, two.source, atol=1e-12)
        np.testing.assert_allclose(one.target, two.target, atol=1e-12)
    assert max(found.result.lower, again.result.lower) <= min(
        found.result.upper, again.result.upper
    )


def test_couplings_written_before_there_was_denoising_are_read_as_they_were():
    data = plain()
    found = couple(data, groups=GROUPS, denoise=False)
    found.to_adata()
    for name in ("gate", "denoise"):
        del data.uns["frot"]["params"][name]
    same(Coupling.from_adata(data), found)


def test_latent_blocks_are_read_back():
    data = plain()
    found = couple(data, groups=["X_pca", "X_scvi"])
    found.to_adata(key_added="latent")
    same(Coupling.from_adata(data, "latent"), found)
    with pytest.raises(frot.InputError, match="no couplings at 'frot'; it has 'latent'"):
        Coupling.from_adata(data)


def test_transitions_of_all_days_are_one_matrix_whose_rows_sum_to_one():
    data = plain(days=3)
    found = trajectory(data, groups=GROUPS)
    found.to_adata(labels="kind")
    T = data.obsp["frot"]
    np.testing.assert_allclose(T.sum(axis=1), 1.0)
    # What is left out is a thousandth of a row at most.
    plan = np.asarray(found[1].result.plan)
    expected = plan / plan.sum(axis=1, keepdims=True)
    assert np.abs(T[40:80, 80:].toarray() - expected).sum(axis=1).max() < 2e-3
    np.testing.assert_array_equal(T[80:].toarray(), np.eye(120)[80:])
    fates = data.obsm["frot_kind"]
    np.testing.assert_allclose(fates.iloc[:80].sum(axis=1), 1.0)
    assert fates.iloc[80:].isna().all(axis=None)
    assert data.obs["frot_kind"].isna().sum() == 40
    again = Trajectory.from_adata(data)
    assert again.days == found.days
    same(again[1], found[1])
    with pytest.raises(frot.InputError, match=r"has 2 couplings; read them by frot.cells.Traj"):
        Coupling.from_adata(data)


def test_fates_are_written_whatever_they_are_called():
    data = plain()
    data.obs["label"] = np.where(data.obs["kind"] == "stem", "label", "probability")
    couple(data, groups=GROUPS).to_adata(labels="label")
    fates = data.obsm["frot_label"]
    assert fates.columns.tolist() == ["label", "probability"]
    assert (data.obs["frot_label"][:40] == fates[:40].idxmax(axis=1)).all()


def test_other_cells_are_refused():
    with pytest.raises(frot.InputError, match="is not an AnnData of the 80 cells coupled"):
        couple(plain(), groups=GROUPS).to_adata(plain(days=3))


@pytest.mark.parametrize("options", OPTIONS)
def test_files_keep_couplings(tmp_path, options):
    anndata = pytest.importorskip("anndata")
    adata = annotated(form=sparse.csr_matrix)
    found = couple(adata, groups=GROUPS, **options)
    found.to_adata(labels="kind")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    same(Coupling.from_adata(read), found)
    table, expected = (one.transition_matrix("kind") for one in (Coupling.from_adata(read), found))
    assert table.index.tolist() == expected.index.tolist()
    np.testing.assert_allclose(table, expected, atol=1e-6)


def test_cellrank_takes_what_is_written():
    cellrank = pytest.importorskip("cellrank")
    scanpy = pytest.importorskip("scanpy")
    adata = annotated(days=3)
    trajectory(adata, groups=GROUPS).to_adata()
    moves = cellrank.kernels.PrecomputedKernel("frot", adata=adata)
    assert abs(moves.transition_matrix - adata.obsp["frot"]).max() < 1e-12
    scanpy.pp.neighbors(adata, use_rep="X")
    near = cellrank.kernels.ConnectivityKernel(adata).compute_transition_matrix()
    fates = cellrank.estimators.GPCCA(0.8 * moves + 0.2 * near)
    adata.obs["kind"] = adata.obs["kind"].astype("category")
    fates.compute_macrostates(2, cluster_key="kind")
    fates.set_terminal_states()
    fates.compute_fate_probabilities()
    likely = np.asarray(fates.fate_probabilities["stem"])[:, 0]
    assert ((likely > 0.5) == (adata.obs["kind"] == "stem")).mean() > 0.95


def test_backed_and_subset_tables_are_coupled(tmp_path):
    anndata = pytest.importorskip("anndata")
    adata = annotated(days=3)
    whole = trajectory(adata, groups=GROUPS)
    part = couple(adata[adata.obs["day"] > 3], groups=GROUPS)
    np.testing.assert_allclose(part.alpha, whole[1].alpha, atol=1e-6)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    found = couple(backed, "day", 4, 5, groups=GROUPS)
    np.testing.assert_allclose(found.alpha, whole[1].alpha, atol=1e-6)
    adata.X = sparse.csr_matrix(adata.X)
    adata.write_h5ad(tmp_path / "sparse.h5ad")
    backed = anndata.read_h5ad(tmp_path / "sparse.h5ad", backed="r")
    found = couple(backed, "day", 4, 5, groups=GROUPS)
    np.testing.assert_allclose(found.alpha, whole[1].alpha, atol=1e-6)
    with pytest.raises(frot.InputError, match=r"adata: has no X; give a layer"):
        couple(anndata.AnnData(obs=adata.obs, var=adata.var), "day", 4, 5, groups=GROUPS)
