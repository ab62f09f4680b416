"""With anndata and scanpy themselves, in the environment that `make test-anndata` makes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner

import frot
from frot.cli.app import app
from frot.selection import FROTSelector, rank_genes, read_samples
from tests.selection.data_files import frame, read_tsv
from tests.selection.test_anndata import cells

anndata: Any = pytest.importorskip("anndata")
sc: Any = pytest.importorskip("scanpy")

# Of an installation for biologists, in MB; and what it must not bring.
LARGEST = 600
NEEDLESS = {"torch", "onnxruntime", "transformers", "jax", "pyarrow"}


@pytest.mark.filterwarnings("ignore")
def test_scanpy_reads_it(tmp_path):
    plain = cells()
    adata = sc.AnnData(sparse.csr_matrix(plain.X), var=pd.DataFrame(index=plain.var_names))
    adata.obs["kind"] = pd.Categorical(plain.obs["kind"])
    rank_genes(adata, "kind", n_permutations=19)
    table = sc.get.rank_genes_groups_df(adata, group="rescued")
    assert set(table["names"][:3]) == {"gene0", "gene1", "gene2"}
    assert {"scores", "logfoldchanges", "pvals", "pvals_adj"} <= set(table.columns)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = sc.read_h5ad(tmp_path / "cells.h5ad")
    pd.testing.assert_frame_equal(sc.get.rank_genes_groups_df(again, group="rescued"), table)
    import matplotlib

    matplotlib.use("Agg")
    sc.pl.rank_genes_groups(adata, n_genes=3, show=False)
    sc.pl.rank_genes_groups_dotplot(adata, n_genes=2, dendrogram=False, show=False)


@pytest.mark.filterwarnings("ignore")
def test_it_agrees_with_scanpys_t_test():
    plain = cells()
    adata = sc.AnnData(sparse.csr_matrix(plain.X), var=pd.DataFrame(index=plain.var_names))
    adata.obs["kind"] = pd.Categorical(plain.obs["kind"])
    rank_genes(adata, "kind")
    sc.tl.rank_genes_groups(adata, "kind", method="t-test", key_added="theirs")
    ours, theirs = (
        sc.get.rank_genes_groups_df(adata, group="rescued", key=key).set_index("names")
        for key in ("rank_genes_groups", "theirs")
    )
    theirs = theirs.loc[ours.index]
    np.testing.assert_allclose(ours["logfoldchanges"], theirs["logfoldchanges"], rtol=1e-4)
    # Theirs is Welch's t, of one feature alone.
    assert ours["scores"].corr(theirs["scores"], method="spearman") > 0.98
    assert np.corrcoef(np.log(ours["pvals"]), np.log(theirs["pvals"]))[0, 1] > 0.95


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_file_that_is_open_is_read(tmp_path, form):
    plain = cells()
    adata = sc.AnnData(form(plain.X), var=pd.DataFrame(index=plain.var_names))
    adata.obs["kind"] = pd.Categorical(plain.obs["kind"])
    rank_genes(adata, "kind")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    del backed.uns["rank_genes_groups"]
    rank_genes(backed, "kind")
    for key in ("names", "scores"):
        ours = backed.uns["rank_genes_groups"][key]
        assert (ours == adata.uns["rank_genes_groups"][key]).all()
    y = backed.obs["kind"].astype(str)
    from_file = FROTSelector(3, plan=False).fit(backed.X, y)
    assert (from_file.ranking_ == FROTSelector(3, plan=False).fit(adata.X, y).ranking_).all()


def test_layers(adata, tmp_path):
    adata.layers["twice"] = 2.0 * adata.X
    adata.write_h5ad(tmp_path / "data.h5ad")
    plain, twice = (
        read_samples(tmp_path / "data.h5ad", "class", layer=layer) for layer in (None, "twice")
    )
    assert (2.0 * plain.X != twice.X).nnz == 0
    with pytest.raises(frot.InputError, match=r"has no layer 'thrice'; it has 'twice'"):
        read_samples(tmp_path / "data.h5ad", "class", layer="thrice")


@pytest.fixture
def adata():
    """40 samples of 40 genes, of which the first three differ, in a sparse table."""
    table = frame()
    genes = [name for name in table if str(name).startswith("gene")]
    obs = table[["class", "batch"]].copy()
    obs.index = table["patient"].to_numpy()
    found = anndata.AnnData(sparse.csr_matrix(np.maximum(table[genes].to_numpy(), 0.0)), obs=obs)
    found.var_names = genes
    return found


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "300"})


def test_files(adata, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    adata.write_h5ad("data.h5ad")
    with pytest.warns(frot.DataWarning, match="as if logarithms were taken before"):
        found = read_samples("data.h5ad", "class", log1p=True, drop=["gene7"])
    assert sparse.issparse(found.X)
    expected = np.log1p(adata[:, adata.var_names != "gene7"].X.toarray())
    np.testing.assert_allclose(found.X.toarray(), expected)
    words = ["--label", "class", "--top", 3, "--permutations", 9, "--block", "batch"]
    done = run("select", "data.h5ad", *words, "--table", "genes.tsv", "--report", "page.html")
    assert done.exit_code == 0, done.output
    rows = read_tsv(tmp_path / "genes.tsv")
    assert {row["feature"] for row in rows[:3]} == {"gene0", "gene1", "gene2"}
    assert "gene0" in (tmp_path / "page.html").read_text(encoding="utf-8")
    done = run("select", "data.h5ad", "--label", "kind")
    assert "label: data.h5ad has no column 'kind'; it has 'class', 'batch'" in done.stderr


def test_labels_from_another_file(adata, tmp_path):
    adata[5:].copy().write_h5ad(tmp_path / "data.h5ad")
    table = pd.DataFrame({"who": adata.obs_names, "arm": adata.obs["class"].to_numpy()})
    table[::-1].to_csv(tmp_path / "arms.csv", index=False)
    with pytest.warns(frot.DataWarning, match="5 of its rows are of no sample in the table"):
        found = read_samples(tmp_path / "data.h5ad", "arm", labels=tmp_path / "arms.csv")
    assert found.y.tolist() == adata.obs["class"].tolist()[5:]


def test_unreadable_files(tmp_path):
    path = tmp_path / "noise.h5ad"
    path.write_bytes(b"not what the name says")
    with pytest.raises(frot.InputError, match=r"cannot read .*noise\.h5ad"):
        read_samples(path, "class")
    with pytest.raises(frot.InputError, match="has its cells in rows; leave transpose=True out"):
        read_samples(path, "class", transpose=True)


def test_solvers_say_how_to_take_the_table(adata):
    for call in (frot.solve, frot.distance):
        with pytest.raises(frot.InputError, match=r"X: is an? AnnData; use X.X, or X.X.toarray"):
            call(adata, adata)
    with pytest.raises(frot.InputError, match=r"X: is an AnnData; use X.X, which may be sparse"):
        FROTSelector().fit(adata, adata.obs["class"])


def test_anndata_needs_no_conversion_for_scanpy(adata):
    rank_genes(adata, "class")
    table = sc.get.rank_genes_groups_df(adata, group="treated")
    assert set(table["names"][:3]) == {"gene0", "gene1", "gene2"}


def needed(name: str, extras: set[str], seen: set[str]) -> Iterator[str]:
    """Yield the installed distributions that one needs with its extras, itself included."""
    from packaging.requirements import Requirement

    try:
        found = distribution(name)
    except PackageNotFoundError:
        return  # for another platform
    if name not in seen:
        seen.add(name)
        yield name
    for text in found.requires or ():
        want = Requirement(text)
        used = any(
            want.marker is None or want.marker.evaluate({"extra": extra})
            for extra in extras or {""}
        )
        other = re.sub(r"[-_.]+", "-", want.name).lower()
        if used and (other not in seen or other == "frot"):
            yield from needed(other, set(want.extras), seen)


def test_an_installation_for_biologists_is_small(capsys):
    """`pip install "frot[selection,anndata]"`: what it brings, by the files of each package."""
    names = set(needed("frot", {"selection", "anndata"}, set()))
    assert {"anndata", "scikit-learn", "h5py", "pandas"} <= names
    assert names.isdisjoint(NEEDLESS)
    size = sum(
        path.stat().st_size
        for name in names
        for file in distribution(name).files or ()
        if (path := Path(str(distribution(name).locate_file(file)))).is_file()
    )
    with capsys.disabled():
        print(f"frot[selection,anndata]: {size / 1e6:.0f} MB in {len(names)} packages")
    assert size / 1e6 < LARGEST
