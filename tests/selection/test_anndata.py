from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import frot
from frot.selection import FROTSelector, rank_genes
from tests.selection.planted import planted


def cells(classes=3, form=np.asarray):
    """Stand in for an AnnData where that library is not installed."""
    X, y = planted(classes=classes, gap=2.0)
    X = np.abs(X)
    names = [f"gene{column}" for column in range(40)]
    return SimpleNamespace(
        X=form(X),
        obs=pd.DataFrame({"kind": y, "batch": np.arange(len(y)) % 2}),
        var_names=np.array(names),
        uns={"log1p": {"base": None}},
        layers={"twice": form(2.0 * X)},
        raw=None,
    )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_every_group_is_ranked_against_the_rest(form):
    adata = cells(form=form)
    rank_genes(adata, "kind")
    found = adata.uns["rank_genes_groups"]
    assert found["names"].dtype.names == ("control", "rescued", "treated")
    assert set(found["names"]["rescued"][:3]) == {"gene0", "gene1", "gene2"}
    assert (np.diff(found["scores"]["rescued"]) <= 0.0).all()
    p, q = found["pvals"]["rescued"], found["pvals_adj"]["rescued"]
    # What scanpy's users filter by.
    assert set(found["names"]["rescued"][q <= 0.01]) == {"gene0", "gene1", "gene2"}
    np.testing.assert_allclose(q, stats.false_discovery_control(p))
    assert found["params"] | {"reference": "rest", "use_raw": False} == found["params"]
    assert len(found["names"]) == 40


def test_a_pair_is_what_a_fit_of_the_pair_gives():
    adata = cells()
    rank_genes(adata, "kind", group="treated", reference="control", n_genes=5, key_added="mine")
    pair = adata.obs["kind"].isin(["treated", "control"]).to_numpy()
    expected = FROTSelector().fit(adata.X[pair], adata.obs["kind"][pair] == "treated")
    found = adata.uns["mine"]
    assert found["names"].dtype.names == ("treated",)
    # The label True is the second class, and up in it is what comes first.
    order = np.argsort(expected.comparisons_[0].effects.t)[:5]
    assert found["names"]["treated"].tolist() == [f"gene{place}" for place in order]
    means = [
        np.expm1(adata.X[adata.obs["kind"] == one].mean(axis=0)) for one in ("treated", "control")
    ]
    np.testing.assert_allclose(
        found["logfoldchanges"]["treated"], np.log2(means[0] / means[1])[order], rtol=1e-4
    )


def test_the_first_genes_are_up_and_the_last_are_down():
    adata = cells(classes=2)
    adata.X[:, 1] = 4.0 - adata.X[:, 1]
    rank_genes(adata, "kind", reference="control")
    found = adata.uns["rank_genes_groups"]
    assert set(found["names"]["treated"][:2]) == {"gene0", "gene2"}
    assert found["names"]["treated"][-1] == "gene1"
    scores, change = found["scores"]["treated"], found["logfoldchanges"]["treated"]
    assert (np.diff(scores) <= 0.0).all()
    assert scores[0] > 0.0 > scores[-1]
    assert (np.sign(change) == np.sign(scores)).all()


def test_no_plan_is_made_unless_the_score_is_read_off_it(monkeypatch):
    adata = cells()
    rank_genes(adata, "kind", selector=FROTSelector(score="alpha"))
    scores = adata.uns["rank_genes_groups"]["scores"]["treated"]
    assert np.abs(scores).sum() == pytest.approx(1.0, rel=1e-5)
    monkeypatch.setattr(frot.NetworkSimplex, "__call__", None)
    rank_genes(cells(), "kind")


def test_groups_are_in_natural_order_or_in_that_of_the_categories():
    adata = cells()
    numbers = adata.obs["kind"].map({"control": "10", "treated": "2", "rescued": "1"})
    adata.obs["cluster"] = numbers
    rank_genes(adata, "cluster")
    assert adata.uns["rank_genes_groups"]["names"].dtype.names == ("1", "2", "10")
    order = pd.Categorical(numbers, categories=["2", "none", "10", "1"])
    adata.obs["cluster"] = order
    rank_genes(adata, "cluster")
    assert adata.uns["rank_genes_groups"]["names"].dtype.names == ("2", "10", "1")


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
def test_cells_without_a_group_are_refused(nothing):
    adata = cells()
    adata.obs.loc[[3, 4], "kind"] = nothing
    with pytest.raises(frot.InputError, match=r"2 cells have no 'kind'; leave them out: adata\["):
        rank_genes(adata, "kind")


def test_a_group_of_one_cell_is_refused():
    adata = cells()
    adata.obs.loc[3, "kind"] = "alone"
    with pytest.raises(frot.InputError, match="'alone' has fewer than two cells"):
        rank_genes(adata, "kind")


def test_p_values_come_from_permutations_within_blocks():
    adata = cells(classes=2)
    rank_genes(adata, "kind", group="treated", n_permutations=49, block="batch")
    found = adata.uns["rank_genes_groups"]
    assert found["pvals"]["treated"][:3].tolist() == [0.02, 0.02, 0.02]
    assert (found["pvals_adj"]["treated"][:3] <= 0.05).all()
    assert (found["pvals_adj"]["treated"] >= 0.02).all()
    adata.obs["donor"] = np.where(np.arange(40) < 8, np.arange(40) // 2, 9)
    with pytest.warns(frot.DataWarning, match="8 of 40 samples of treated vs rest are in 4 blocks"):
        rank_genes(adata, "kind", group="treated", block="donor")
    adata.obs["donor"] = np.arange(40) // 8
    with pytest.raises(frot.InputError, match="average the cells of a donor first"):
        rank_genes(adata, "kind", block="donor")


def test_layers_are_read():
    adata = cells(classes=2)
    rank_genes(adata, "kind", layer="twice", selector=FROTSelector(eta=1.0))
    assert adata.uns["rank_genes_groups"]["params"]["layer"] == "twice"
    adata.raw = SimpleNamespace(X=adata.X[:, :5], var_names=adata.var_names[:5])
    for use_raw, layer, genes in ((True, None, 5), (None, None, 5), (False, None, 40),
                                  (None, "twice", 40)):  # fmt: skip
        rank_genes(adata, "kind", use_raw=use_raw, layer=layer)
        assert len(adata.uns["rank_genes_groups"]["names"]) == genes
        assert adata.uns["rank_genes_groups"]["params"]["use_raw"] == (genes == 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groupby": "type"}, "adata.obs has no column 'type'; it has 'kind', 'batch'"),
        ({"groupby": "kind", "group": "x"}, "kind has no 'x'"),
        ({"groupby": "kind", "reference": "x"}, "kind has no 'x'"),
        ({"groupby": "kind", "block": "x"}, "block: adata.obs has no column"),
        ({"groupby": "kind", "layer": "x"}, "no layer 'x'; it has 'twice'"),
        ({"groupby": "kind", "use_raw": True}, "adata.raw is not set"),
        ({"groupby": "kind", "selector": FROTSelector(groups="all")}, "ranks single genes"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(frot.InputError, match=message):
        rank_genes(cells(), **options)
