import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import frot
from frot.selection import FROTSelector
from tests.selection.planted import SIGNAL, planted


# Checks repeat rows, which is told, and have tables with negative means.
@pytest.mark.filterwarnings("ignore:X. :frot.DataWarning")
@parametrize_with_checks(
    [
        FROTSelector(),
        FROTSelector(1, score="alpha", missing="impute"),
        FROTSelector(threshold=0.0, scaling="paper", eta=1.0),
    ]
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_the_planted_features_are_found_and_the_rest_is_consistent():
    X, y = planted()
    found = FROTSelector(3).fit(X, y)
    assert np.flatnonzero(found.get_support()).tolist() == list(SIGNAL)
    assert np.shape(found.transform(X)) == (40, 3)
    assert sorted(found.ranking_) == list(range(1, 41))
    assert (found.ranking_ <= 3).tolist() == found.get_support().tolist()
    (one,) = found.comparisons_
    np.testing.assert_array_equal(found.scores_, np.abs(one.t))
    np.testing.assert_allclose(found.alpha_.sum(), 1.0)
    assert found.plan_.shape == (24, 16)
    assert found.result_.gap <= 1e-2
    assert one.name == "control vs treated"
    np.testing.assert_array_equal(one.rows[1], np.arange(24, 40))


def test_the_papers_weights_can_be_the_score():
    X, y = planted()
    found = FROTSelector(5, score="alpha").fit(X, y)
    np.testing.assert_array_equal(found.scores_, found.alpha_)
    np.testing.assert_array_equal(found.alpha_, found.comparisons_[0].alpha)
    assert set(found.ranking_[list(SIGNAL)]) == {1, 2, 3}
    # Ranked by alpha as by the costs of the plan.
    order = np.argsort(-found.comparisons_[0].parts.phi)
    assert found.ranking_[order].tolist() == list(range(1, 41))


def test_units_do_not_matter():
    X, y = planted()
    rng = np.random.default_rng(5)
    moved = X * rng.uniform(0.5, 2.0, size=40) + rng.normal(size=40)
    one, two = FROTSelector(5, score="alpha").fit(X, y), FROTSelector(5).fit(moved, y)
    np.testing.assert_allclose(one.alpha_, two.alpha_, rtol=1e-6)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_tables_give_the_same_answer(form):
    X, y = planted()
    X[np.abs(X) < 0.8] = 0.0
    dense, thin = (FROTSelector(4).fit(table, y) for table in (X, form(X)))
    np.testing.assert_allclose(thin.scores_, dense.scores_, rtol=1e-9)
    np.testing.assert_allclose(thin.alpha_, dense.alpha_, rtol=1e-9)
    assert sparse.issparse(thin.transform(form(X)))


def test_many_sparse_cells_take_no_dense_copy():
    import tracemalloc

    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.random((20_000, 500)) * (rng.random((20_000, 500)) < 0.1))
    y = rng.integers(3, size=20_000)
    tracemalloc.start()
    FROTSelector(10).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Dense it would take 80 MB; the table itself, in the order of columns, takes 12 MB.
    assert peak < 90e6


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float32, np.float64, int])
def test_layout_and_kind_of_numbers_do_not_matter(order, kind):
    X, y = planted()
    X = np.round(16.0 * X)
    expected = FROTSelector(5, values="log2").fit(X, y)
    found = FROTSelector(5, values="log2").fit(np.asarray(X, dtype=kind, order=order), y)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-9)
    np.testing.assert_allclose(found.alpha_, expected.alpha_, rtol=1e-9)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_come_in_and_go_out(frame):
    X, y = planted()
    names = [f"gene{column}" for column in range(40)]
    table = frame(dict(zip(names, X.T, strict=True)))
    found = FROTSelector(3).fit(table, y)
    assert found.feature_names_in_.tolist() == names
    assert found.get_feature_names_out().tolist() == ["gene0", "gene1", "gene2"]
    assert sorted(found.table_["feature"][:3]) == ["gene0", "gene1", "gene2"]
    for form, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        out = found.set_output(transform=form).transform(table)
        assert isinstance(out, kind)
        assert list(out.columns) == ["gene0", "gene1", "gene2"]


def test_probes_of_one_gene_are_features_of_their_own():
    X, y = planted()
    table = pd.DataFrame(X, columns=["TP53", "TP53", *(f"g{k}" for k in range(2, 40))])
    found = FROTSelector(3).fit(table, y)
    assert found.feature_names_in_[:2].tolist() == ["TP53", "TP53#2"]


def test_it_works_in_a_pipeline_and_a_grid():
    X, y = planted()
    grid = GridSearchCV(
        make_pipeline(FROTSelector(), SVC()),
        {"frotselector__n_features_to_select": [1, 3],
         "frotselector__score": ["alpha", "moderated"]},
        cv=3,
    ).fit(X, y)  # fmt: skip
    assert grid.best_score_ > 0.9
    best: Any = clone(grid.best_estimator_)
    assert best[0].get_params() == grid.best_estimator_[0].get_params()


def batches(n=120, d=60, seed=0):
    """Three features differ between classes; all differ between batches, which hide it."""
    rng = np.random.default_rng(seed)
    batch = np.repeat([0, 1, 2], n // 3)
    y = (np.arange(n) % 4 < 1 + batch).astype(int)
    X = rng.normal(size=(n, d)) + 6.0 * rng.normal(size=(3, d))[batch]
    X[y == 1, :3] += 1.2
    return X, y, batch


def test_blocks_are_routed_through_pipelines_and_cross_validation():
    X, y, batch = batches()
    with sklearn.config_context(enable_metadata_routing=True):
        selector = FROTSelector(3, plan=False).set_fit_request(block=True)
        pipeline: Any = make_pipeline(selector, SVC()).fit(X, y, block=batch)
        np.testing.assert_array_equal(pipeline[0].block_, batch)
        assert np.flatnonzero(pipeline[0].get_support()).tolist() == [0, 1, 2]
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        scores = cross_val_score(pipeline, X, y, cv=folds, params={"block": batch})
        assert len(scores) == 3
        again: Any = clone(selector)
        out = again.fit_transform(X, y, block=batch)
        assert np.shape(out) == (120, 3)
    plain = FROTSelector(3, plan=False).fit(X, y)
    assert plain.block_ is None
    assert np.flatnonzero(plain.get_support()).tolist() != [0, 1, 2]


def test_blocks_count_in_the_plan_too():
    X, y, batch = batches()
    moved = X + 9.0 * np.random.default_rng(1).normal(size=(3, 60))[batch]
    one, two = (FROTSelector(3, score="alpha").fit(table, y, batch) for table in (X, moved))
    np.testing.assert_allclose(one.alpha_, two.alpha_, rtol=1e-6)
    np.testing.assert_allclose(one.table_["shift"], two.table_["shift"], rtol=1e-6)
    assert len({0, 1, 2} & set(np.flatnonzero(one.get_support()))) >= 2


def test_score_is_a_parameter_and_no_method():
    selector = FROTSelector(score="alpha")
    assert selector.get_params()["score"] == "alpha"
    assert "score='alpha'" in repr(selector)
    assert not hasattr(selector, "score")
    with pytest.raises(AttributeError, match=r"get_params\(\)\['score'\]"):
        _ = selector.score


def test_a_fitted_selector_survives_pickling():
    X, y = planted()
    found = FROTSelector(3).fit(X, y)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.get_support(), found.get_support())
    assert len(pickle.dumps(found)) < 60_000


def test_the_table_is_ranked_and_has_p_values_without_a_test():
    X, y = planted()
    found = FROTSelector(3).fit(X, y)
    table = found.table_
    columns = ["feature", "rank", "score", "up_in", "log2_fold_change", "t", "p", "q"]
    columns += ["mean_control", "mean_treated", "shift", "shape", "misalignment", "alpha"]
    assert list(table.columns) == columns
    assert table["rank"].tolist() == list(range(1, 41))
    assert table["score"].is_monotonic_decreasing
    assert table["p"].is_monotonic_increasing
    assert (table["q"] <= 0.01).sum() == 3
    np.testing.assert_array_equal(table["t"].abs(), table["score"])


def test_a_fraction_and_a_threshold_select():
    X, y = planted()
    assert FROTSelector(0.1).fit(X, y).get_support().sum() == 4
    assert FROTSelector().fit(X, y).get_support().sum() == 20
    high = FROTSelector(threshold=4.0).fit(X, y)
    assert high.get_support().tolist() == (high.scores_ >= 4.0).tolist()
    both = FROTSelector(2, threshold=4.0).fit(X, y)
    assert both.get_support().sum() == 2
    with pytest.warns(UserWarning, match="No features were selected"):
        FROTSelector(threshold=1e9).fit(X, y).transform(X)


class TestDirection:
    """Which class a feature is higher in, and by how much."""

    def test_two_classes(self):
        X, y = planted()
        X[:, 1] *= -1.0
        table = FROTSelector(3, values="log2").fit(X, y).table_.set_index("feature")
        assert table.loc[["x0", "x1", "x2"], "up_in"].tolist() == ["treated", "control", "treated"]
        means = [X[y == name].mean(axis=0) for name in ("control", "treated")]
        found = table.loc[[f"x{column}" for column in range(40)]]
        np.testing.assert_allclose(found["mean_control"], means[0])
        np.testing.assert_allclose(found["mean_treated"], means[1])
        np.testing.assert_allclose(found["log2_fold_change"], means[0] - means[1], atol=1e-12)

    @pytest.mark.parametrize("values", ["log2", "log1p", "linear"])
    @pytest.mark.parametrize("blocked", [False, True])
    def test_the_fold_change_has_the_sign_of_t(self, values, blocked):
        X, y = planted()
        block = np.arange(40) % 3 if blocked else None
        X = np.abs(X) + 3.0
        found = FROTSelector(values=values, plan=False).fit(X, y, block).table_
        assert (np.sign(found["log2_fold_change"]) == np.sign(found["t"])).all()
        assert ((found["t"] > 0.0) == (found["up_in"] == "control")).all()

    def test_three_classes_say_which_one_a_feature_marks(self):
        X, y = planted(classes=3, gap=0.0, d=60)
        for column, label in enumerate(("rescued", "treated", "control")):
            X[y == label, column] += 3.0
            X[y == label, column + 3] -= 3.0
        selector = FROTSelector(6, plan=False).fit(X, y)
        table = selector.table_
        assert set(table["feature"][:6]) == {f"x{k}" for k in range(6)}
        # The list has features that are up, in a class that has a name.
        assert (table["t"] > 0.0).all()
        assert set(table["up_in"]) == set(y)
        marks = table.set_index("feature").loc[[f"x{k}" for k in range(3)]]
        assert marks["up_in"].tolist() == ["rescued", "treated", "control"]
        assert marks["comparison"].tolist() == [f"{name} vs rest" for name in marks["up_in"]]
        each = np.array([one.t for one in selector.comparisons_])
        np.testing.assert_allclose(selector.scores_, np.sqrt(np.mean(each**2, axis=0)))
        down = selector.comparisons_[1]
        assert (down.name, down.up_in[3]) == ("rescued vs rest", "all but rescued")
        assert {f"mean_{name}" for name in selector.classes_} <= set(table.columns)
        assert list(selector.tables_) == [f"{name} vs rest" for name in selector.classes_]
        one = selector.tables_["treated vs rest"]
        assert one["rank"].tolist() == list(range(1, 61))
        assert (one.loc[0, "feature"], one.loc[0, "up_in"]) == ("x1", "treated")
        rest = one.set_index("feature").loc[[f"x{column}" for column in range(60)], "mean_rest"]
        np.testing.assert_allclose(rest, X[y != "treated"].mean(axis=0))
        # Bonferroni over the comparisons.
        p = np.array([one.effects.p for one in selector.comparisons_])
        np.testing.assert_allclose(selector.p_values[0], np.minimum(3.0 * p.min(axis=0), 1.0))

    def test_the_others_are_compared_with_the_reference(self):
        X, y = planted(classes=3)
        found = FROTSelector(3, reference="control").fit(X, y)
        assert [one.name for one in found.comparisons_] == [
            "rescued vs control",
            "treated vs control",
        ]
        largest = np.argmax([np.abs(one.t) for one in found.comparisons_], axis=0)
        np.testing.assert_array_equal(found.standing_out, largest)
        pair = np.isin(y, ["control", "treated"])
        plain = FROTSelector(3).fit(X[pair], y[pair])
        turned = FROTSelector(3, reference="control").fit(X[pair], y[pair])
        assert turned.comparisons_[0].name == "treated vs control"
        one, other = (table.sort_values("feature") for table in (plain.table_, turned.table_))
        for name in ("t", "log2_fold_change"):
            np.testing.assert_allclose(one[name], -other[name], rtol=1e-9, atol=1e-12)
        for name in ("up_in", "score", "rank", "mean_control", "p"):
            assert one[name].tolist() == pytest.approx(other[name].tolist())
        assert turned.plan_.shape == plain.plan_.shape[::-1]
        # Labels that are numbers may be given as text, as a command line does.
        numbers = np.unique(y, return_inverse=True)[1]
        assert FROTSelector(3, reference="2").fit(X, numbers).comparisons_[0].name == "0 vs 2"

    def test_a_constant_has_none(self):
        X, y = planted()
        X[:, 5] = 0.1
        found = FROTSelector(3, plan=False).fit(X, y)
        row = found.table_.set_index("feature").loc["x5"]
        assert (row["t"], row["up_in"], row["log2_fold_change"]) == (0.0, "", 0.0)
        assert (row["rank"], row["p"]) == (40, 1.0)
        assert row["mean_control"] == row["mean_treated"] == pytest.approx(0.1)


class TestPlan:
    """A plan where it is small or asked for; none costs a ranking nothing."""

    def test_none(self, monkeypatch):
        monkeypatch.setattr(frot.NetworkSimplex, "__call__", None)
        X, y = planted()
        found = FROTSelector(3, plan=False).fit(X, y)
        assert np.flatnonzero(found.get_support()).tolist() == list(SIGNAL)
        assert np.isnan(found.alpha_).all()
        assert np.isnan(found.table_["misalignment"]).all()
        for name in ("plan_", "result_", "eta_"):
            with pytest.raises(AttributeError, match=r"no plan between 24 and 16 samples.*plan=T"):
                getattr(found, name)

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_of_many_samples_it_is_of_some(self, monkeypatch, form):
        monkeypatch.setattr("frot.selection._transport.MOST_SAMPLES", 10)
        monkeypatch.setattr("frot.selection._comparison.MOST_SAMPLES", 10)
        X, y = planted(classes=3)
        assert FROTSelector(3).fit(form(X), y).comparisons_[0].result is None
        found = FROTSelector(3, plan=True).fit(form(X), y)
        one = found.comparisons_[0]
        assert one.is_sample
        assert one.plan.shape == (10, 10)
        assert one.about_plan == "plan between 10 of 24 and 10 of 32 samples, drawn at random"
        # Classes in proportion, five of either.
        assert sorted(y[one.rows[1]].tolist()) == ["rescued"] * 5 + ["treated"] * 5
        assert set(y[one.rows[0]]) == {"control"}
        # The ranking is of all samples, whatever the plan is of.
        np.testing.assert_array_equal(
            found.scores_, FROTSelector(3, plan=False).fit(form(X), y).scores_
        )
        by_alpha = FROTSelector(3, score="alpha").fit(form(X), y)
        again = FROTSelector(3, score="alpha").fit(form(X), y)
        np.testing.assert_array_equal(again.ranking_, by_alpha.ranking_)

    def test_several_comparisons_have_a_plan_each(self):
        X, y = planted(classes=3)
        found = FROTSelector(3).fit(X, y)
        assert len(found.plan_) == len(found.result_) == len(found.eta_) == 3
        assert found.plan_[0].shape == (24, 32)
        mean = np.mean([one.alpha for one in found.comparisons_], axis=0)
        np.testing.assert_allclose(found.alpha_, mean)
