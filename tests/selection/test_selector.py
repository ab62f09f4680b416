import pickle
from typing import Any

import numpy as np
import ot
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import frot
from frot.selection import FROTSelector
from frot.selection._comparison import transport
from tests.selection.planted import SIGNAL, planted


@parametrize_with_checks(
    [
        FROTSelector(),
        FROTSelector(1, score="shift", missing="impute"),
        FROTSelector(threshold=0.0, multiclass="ovo", scaling="paper", eta=1.0),
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
    np.testing.assert_array_equal(found.scores_, found.moderated_)
    correlation = np.corrcoef(X.T, y == "control")[-1, :-1]
    np.testing.assert_allclose(found.combined_, found.phi_ + 4.0 * correlation**2)
    np.testing.assert_allclose(found.alpha_.sum(), 1.0)
    assert found.plan_.shape == (24, 16)
    assert found.result_.gap <= 1e-2
    assert found.result_.perplexity == pytest.approx(9.0)
    assert found.comparisons_[0].name == "control vs treated"
    np.testing.assert_array_equal(found.comparisons_[0].rows[1], np.arange(24, 40))


def test_the_cost_is_the_sum_of_its_parts_and_each_is_nonnegative():
    X, y = planted()
    found = FROTSelector(3).fit(X, y)
    total = found.shift_ + found.shape_ + found.misalignment_
    np.testing.assert_allclose(total, found.phi_, rtol=1e-9)
    assert min(found.shift_.min(), found.shape_.min(), found.misalignment_.min()) >= 0.0


@pytest.mark.parametrize("sizes", [(24, 16), (20, 20), (7, 13)])
def test_shift_and_shape_are_the_wasserstein_distance_of_order_two(sizes):
    X, y = planted(*sizes)
    found = FROTSelector(3, scaling="paper").fit(X, y)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    one, two = standard[y == "control"], standard[y == "treated"]
    expected = np.array([ot.emd2_1d(one[:, k], two[:, k]) for k in range(X.shape[1])])
    np.testing.assert_allclose(found.shift_ + found.shape_, expected)


@pytest.mark.parametrize(
    "score", ["t", "shift", "shape", "combined", "alpha", "phi", "misalignment"]
)
def test_any_part_can_be_the_score(score):
    X, y = planted()
    found = FROTSelector(5, score=score).fit(X, y)
    np.testing.assert_array_equal(found.scores_, getattr(found, f"{score}_"))
    assert found.scores_[found.get_support()].min() >= found.scores_[~found.get_support()].max()


def test_alpha_and_phi_rank_alike():
    X, y = planted()
    by_alpha, by_phi = (FROTSelector(5, score=score).fit(X, y) for score in ("alpha", "phi"))
    np.testing.assert_array_equal(by_alpha.ranking_, by_phi.ranking_)


def test_balanced_scores_do_not_depend_on_units():
    X, y = planted()
    rng = np.random.default_rng(5)
    moved = X * rng.uniform(0.01, 100.0, size=40) + rng.normal(size=40)
    one, two = FROTSelector(5).fit(X, y), FROTSelector(5).fit(moved, y)
    np.testing.assert_allclose(one.phi_, two.phi_, rtol=1e-6)
    np.testing.assert_allclose(one.eta_, two.eta_, rtol=1e-6)


def test_swapping_the_classes_transposes_the_plan():
    X, y = planted()
    one = FROTSelector(5, tol=1e-4, max_iter=5000).fit(X, y)
    two = FROTSelector(5, tol=1e-4, max_iter=5000).fit(X, np.where(y == "control", "z", "a"))
    assert two.plan_.shape == one.plan_.shape[::-1]
    assert two.result_.value == pytest.approx(one.result_.value, rel=2e-4)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("scaling", ["balanced", "paper", "none"])
def test_sparse_tables_give_the_same_answer(form, scaling):
    X, y = planted()
    X[np.abs(X) < 0.8] = 0.0
    dense, thin = (FROTSelector(4, scaling=scaling).fit(table, y) for table in (X, form(X)))
    np.testing.assert_allclose(thin.phi_, dense.phi_, rtol=1e-9)
    np.testing.assert_array_equal(thin.get_support(), dense.get_support())
    assert sparse.issparse(thin.transform(form(X)))


def thin_table(rng, shape, density):
    return sparse.csr_array(rng.random(shape) * (rng.random(shape) < density))


def test_sparse_tables_are_not_made_dense():
    import tracemalloc

    rng = np.random.default_rng(0)
    X = thin_table(rng, (400, 20_000), 0.01)
    y = np.repeat([0, 1], 200)
    selector = FROTSelector(10, eta=0.5)
    tracemalloc.start()
    selector.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Dense it would take 64 MB, and scaled as much again.
    assert peak < 24e6


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float32, np.float64, int])
def test_layout_and_kind_of_numbers_do_not_matter(order, kind):
    X, y = planted()
    X = np.round(16.0 * X)
    expected = FROTSelector(5).fit(X, y)
    found = FROTSelector(5).fit(np.asarray(X, dtype=kind, order=order), y)
    np.testing.assert_allclose(found.phi_, expected.phi_, rtol=1e-9)


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


def test_it_works_in_a_pipeline_and_a_grid():
    X, y = planted()
    grid = GridSearchCV(
        make_pipeline(FROTSelector(), SVC()),
        {"frotselector__n_features_to_select": [1, 3], "frotselector__score": ["alpha", "shift"]},
        cv=3,
    ).fit(X, y)
    assert grid.best_score_ > 0.9
    best: Any = clone(grid.best_estimator_)
    assert best[0].get_params() == grid.best_estimator_[0].get_params()


def test_score_is_a_parameter_and_no_method():
    selector = FROTSelector(score="shift")
    assert selector.get_params()["score"] == "shift"
    assert "score='shift'" in repr(selector)
    assert not hasattr(selector, "score")
    with pytest.raises(AttributeError, match=r"get_params\(\)\['score'\]"):
        _ = selector.score


def test_a_fitted_selector_survives_pickling():
    X, y = planted()
    found = FROTSelector(3).fit(X, y)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.get_support(), found.get_support())
    assert len(pickle.dumps(found)) < 60_000


def test_the_table_is_ranked_and_has_no_p_values_before_a_test():
    X, y = planted()
    table = FROTSelector(3).fit(X, y).table_
    columns = ["feature", "rank", "score", "signed_score", "up_in", "log2_fold_change", "t"]
    columns += ["mean_control", "mean_treated", "shift", "shape", "misalignment", "alpha"]
    tested = ["p", "q", "q_bh", "p_max"]
    assert list(table.columns) == columns + tested
    assert table["rank"].tolist() == list(range(1, 41))
    assert table["score"].is_monotonic_decreasing
    assert table[tested].isna().all(axis=None)


def test_without_pandas_the_table_is_a_dict_of_arrays(monkeypatch):
    X, y = planted()
    found = FROTSelector(3).fit(X, y)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    table = found.table_
    assert isinstance(table, dict)
    assert table["rank"].tolist() == list(range(1, 41))


@pytest.mark.parametrize("eta", [0.5, frot.relative(0.1)])
def test_eta_can_be_set(eta):
    X, y = planted()
    found = FROTSelector(3, eta=eta).fit(X, y)
    expected = 0.1 * found.result_.mean_cost if eta != 0.5 else 0.5
    assert found.eta_ == pytest.approx(expected)


def test_a_fraction_and_a_threshold_select():
    X, y = planted()
    assert FROTSelector(0.1).fit(X, y).get_support().sum() == 4
    assert FROTSelector().fit(X, y).get_support().sum() == 20
    high = FROTSelector(threshold=1.0, score="shift").fit(X, y)
    assert high.get_support().tolist() == (high.shift_ >= 1.0).tolist()
    both = FROTSelector(2, threshold=1.0, score="shift").fit(X, y)
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
        np.testing.assert_allclose(found["log2_fold_change"], means[0] - means[1])
        expected: Any = stats.ttest_ind(X[y == "control"], X[y == "treated"], equal_var=False)[0]
        np.testing.assert_allclose(found["t"], expected)
        effects = FROTSelector(3, plan=False).fit(X, y).comparisons_[0].effects
        np.testing.assert_allclose(found["signed_score"], effects.moderated)

    def test_three_classes_say_which_one_a_feature_marks(self):
        X, y = planted(classes=3, gap=0.0)
        for column, label in enumerate(("rescued", "treated", "control")):
            X[y == label, column] += 4.0
        selector = FROTSelector(3, plan=False).fit(X, y)
        table = selector.table_.set_index("feature")
        marks = table.loc[["x0", "x1", "x2"]]
        assert marks["up_in"].tolist() == ["rescued", "treated", "control"]
        assert marks["comparison"].tolist() == [f"{name} vs rest" for name in marks["up_in"]]
        assert {f"mean_{name}" for name in selector.classes_} <= set(table.columns)
        assert list(selector.tables_) == [f"{name} vs rest" for name in selector.classes_]
        one = selector.tables_["treated vs rest"]
        assert one["rank"].tolist() == list(range(1, 41))
        assert (one.loc[0, "feature"], one.loc[0, "up_in"]) == ("x1", "treated")
        rest = one.set_index("feature").loc[[f"x{column}" for column in range(40)], "mean_rest"]
        np.testing.assert_allclose(rest, X[y != "treated"].mean(axis=0))
        ovo = FROTSelector(3, plan=False, multiclass="ovo").fit(X, y)
        assert ovo.table_.set_index("feature").loc["x1", "up_in"] == "treated"

    def test_groups_have_the_direction_of_their_features(self):
        X, y = planted()
        groups = {"signal": [0, 1, 2], "noise": [3, 4, 5, 6]}
        found = FROTSelector(1, groups=groups, values="log2").fit(X, y)
        table = found.table_.set_index("feature")
        assert table.loc["signal", "up_in"] == "treated"
        t = found.comparisons_[0].effects.t
        assert table.loc["signal", "t"] == pytest.approx(t[:3].mean())
        strong = FROTSelector(1, groups=groups, score="t", plan=False).fit(X, y).scores_[0]
        assert strong == pytest.approx(np.sqrt(np.mean(t[:3] ** 2)))

    def test_fold_changes_by_what_the_values_are(self):
        X, y = planted()
        X = np.exp2(np.abs(X))
        mean = [X[y == name].mean(axis=0) for name in ("control", "treated")]
        order = np.argsort(FROTSelector(plan=False).fit(X, y).ranking_)
        found = FROTSelector(values="linear", plan=False).fit(X, y).table_["log2_fold_change"]
        np.testing.assert_allclose(found, np.log2(mean[0] / mean[1])[order], rtol=1e-6)

    def test_a_constant_has_none(self):
        X, y = planted()
        X[:, 5] = 0.1
        found = FROTSelector(3, plan=False).fit(X, y)
        row = found.table_.set_index("feature").loc["x5"]
        assert (row["t"], row["up_in"], row["log2_fold_change"]) == (0.0, "", 0.0)
        assert row["rank"] == 40
        assert row["mean_control"] == row["mean_treated"] == 0.1


class TestPlan:
    """A plan where it is small or asked for; none costs a ranking nothing."""

    def test_none(self, monkeypatch):
        monkeypatch.setattr(frot.NetworkSimplex, "__call__", None)
        X, y = planted()
        found = FROTSelector(3, plan=False).fit(X, y)
        assert np.flatnonzero(found.get_support()).tolist() == list(SIGNAL)
        assert np.isnan(found.alpha_).all()
        assert np.isnan(found.table_["misalignment"]).all()
        assert found.n_iter_ == 0
        for name in ("plan_", "result_", "eta_"):
            with pytest.raises(AttributeError, match=r"no plan between 24 and 16 samples.*plan=T"):
                getattr(found, name)

    @pytest.mark.parametrize("score", ["moderated", "t", "shift", "shape"])
    def test_scores_are_the_same_without(self, score):
        X, y = planted()
        one, two = (FROTSelector(3, score=score, plan=plan).fit(X, y) for plan in (True, False))
        np.testing.assert_allclose(two.scores_, one.scores_, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_of_many_samples_it_is_of_some(self, monkeypatch, form):
        monkeypatch.setattr("frot.selection._selector.PAIRS", 100)
        monkeypatch.setattr("frot.selection._comparison.PAIRS", 100)
        X, y = planted(classes=3)
        weight = np.random.default_rng(0).uniform(0.5, 1.0, len(y))
        assert FROTSelector(3).fit(form(X), y).comparisons_[0].result is None
        found = FROTSelector(3, plan=True).fit(form(X), y, weight)
        one = found.comparisons_[0]
        assert one.plan.shape == (10, 10)
        assert one.about_plan == "plan between 10 of 24 and 10 of 32 samples, drawn at random"
        # Classes in proportion, five of either.
        assert sorted(y[one.rows[1]].tolist()) == ["rescued"] * 5 + ["treated"] * 5
        assert set(y[one.rows[0]]) == {"control"}
        total = one.parts.shift + one.parts.shape + one.parts.misalignment
        np.testing.assert_allclose(total, one.parts.phi, rtol=1e-9)
        # The ranking is of all samples, whatever the plan is of.
        np.testing.assert_array_equal(
            found.scores_, FROTSelector(3, plan=False).fit(form(X), y, weight).scores_
        )
        by_phi = FROTSelector(3, score="phi").fit(form(X), y)
        assert by_phi.comparisons_[1].is_sample
        again = FROTSelector(3, score="phi").fit(form(X), y)
        np.testing.assert_array_equal(again.ranking_, by_phi.ranking_)


def test_many_sparse_cells_take_no_dense_copy():
    import tracemalloc

    rng = np.random.default_rng(0)
    X = thin_table(rng, (20_000, 500), 0.1)
    y = rng.integers(3, size=20_000)
    tracemalloc.start()
    FROTSelector(10).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Dense it would take 80 MB; the table itself, in the order of columns, takes 12 MB.
    assert peak < 70e6


class TestWatched:
    """Callbacks, time limits, a bar and Ctrl-C, as every solver has them."""

    def test_parameters_are_kept_as_given(self):
        def callback(progress):
            return None

        made = FROTSelector(time_limit=3, callback=callback, progress=True)
        again: Any = clone(made)
        assert again.get_params() == made.get_params()
        assert made.callback is callback
        assert made.time_limit == 3

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ({"time_limit": 0.0}, "time_limit: must be finite and > 0"),
            ({"callback": 3}, "callback: "),
            ({"progress": "yes"}, "progress: "),
        ],
    )
    def test_mistakes_are_named(self, option, message):
        with pytest.raises(frot.InputError, match=message):
            FROTSelector(**option).fit(*planted())

    def test_a_callback_sees_the_bounds_and_may_stop(self):
        seen = []
        X, y = planted()
        plain = FROTSelector(3, tol=1e-4).fit(X, y)
        watched = FROTSelector(3, tol=1e-4, callback=seen.append).fit(X, y)
        assert np.array_equal(watched.alpha_, plain.alpha_)
        assert seen[-1].gap <= 1e-4
        assert {now.iteration for now in seen} <= set(range(1, plain.n_iter_ + 1))
        assert seen[0].gap > 1e-4
        with pytest.warns(frot.ConvergenceWarning, match="Stopped by the callback"):
            stopped = FROTSelector(3, tol=1e-4, callback=lambda now: True).fit(X, y)
        assert stopped.result_.status is frot.Status.STOPPED
        assert stopped.result_.iterations == seen[0].iteration
        assert stopped.result_.lower <= stopped.result_.upper

    @pytest.mark.parametrize("pass_up_to", [0, 10**9])
    def test_no_time_at_all_leaves_an_interval(self, monkeypatch, pass_up_to):
        monkeypatch.setattr("frot.selection._frank_wolfe.ONE_CALL_UP_TO", pass_up_to)
        X, y = planted()
        exact = FROTSelector(3, eta=0.3, tol=1e-4, max_iter=5000).fit(X, y).result_
        with pytest.warns(frot.ConvergenceWarning, match="Stopped at time_limit"):
            found = FROTSelector(3, eta=0.3, time_limit=1e-9).fit(X, y)
        assert found.result_.status is frot.Status.TIME_LIMIT
        assert found.result_.lower <= exact.upper
        assert exact.lower <= found.result_.upper
        assert found.result_.plan.sum() == pytest.approx(1.0)

    def test_the_time_is_shared_among_comparisons(self, monkeypatch):
        limits = []
        real = transport

        def noting(*given):
            limits.append(given[-2].time_limit)
            return real(*given)

        monkeypatch.setattr("frot.selection._selector.transport", noting)
        X, y = planted()
        classes = np.where(np.arange(len(y)) % 4 == 0, "third", y)
        FROTSelector(3, time_limit=600.0).fit(X, classes)
        assert len(limits) == 3
        # What one does not use is there for the others.
        assert 199.0 < limits[0] <= 200.0
        assert limits[0] <= limits[1] <= limits[2] <= 600.0

    @pytest.mark.parametrize("call", [0, 1])
    def test_ctrl_c_leaves_it_fitted(self, monkeypatch, call):
        X, y = planted()
        made = FROTSelector(3, eta=0.3)
        exact = made.fit(X, y).result_
        interrupt_at(monkeypatch, call)
        selector = FROTSelector(3, eta=0.3)
        with pytest.raises(frot.Interrupted) as stop:
            selector.fit(X, y)
        assert stop.value.result is selector
        found = selector.result_
        assert found.status is frot.Status.INTERRUPTED
        assert found.lower <= exact.upper
        assert exact.lower <= found.upper
        assert np.shape(selector.transform(X)) == (len(y), 3)

    def test_ctrl_c_before_the_last_comparison(self, monkeypatch):
        X, y = planted()
        classes = np.where(np.arange(len(y)) % 4 == 0, "third", y)
        interrupt_at(monkeypatch, 0)
        selector = FROTSelector(3, score="phi")
        with pytest.raises(KeyboardInterrupt, match="0 of 3 comparisons were done") as stop:
            selector.fit(X, classes)
        assert not isinstance(stop.value, frot.Interrupted)
        assert not hasattr(selector, "ranking_")

    def test_a_score_that_needs_no_plan_survives_ctrl_c(self, monkeypatch):
        X, y = planted()
        classes = np.where(np.arange(len(y)) % 4 == 0, "third", y)
        expected = FROTSelector(3, plan=False).fit(X, classes)
        interrupt_at(monkeypatch, 0)
        selector = FROTSelector(3)
        with pytest.raises(frot.Interrupted):
            selector.fit(X, classes)
        np.testing.assert_array_equal(selector.ranking_, expected.ranking_)
        assert [one.result is None for one in selector.comparisons_] == [False, True, True]

    def test_a_bar_is_drawn(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        FROTSelector(3, progress=True).fit(*planted())
        assert capsys.readouterr().err


def interrupt_at(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Interrupt one call of the network simplex, counted from zero."""
    real, calls = frot.NetworkSimplex.__call__, []

    def broken(self, *given):
        calls.append(None)
        if len(calls) == call + 1:
            raise KeyboardInterrupt
        return real(self, *given)

    monkeypatch.setattr(frot.NetworkSimplex, "__call__", broken)
