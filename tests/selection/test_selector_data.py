"""What the data may be like: classes, weights, missing values, constants, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import frot
from frot.selection import FROTSelector
from tests.selection.planted import SIGNAL, planted


@pytest.mark.parametrize("how", ["ovr", "ovo"])
def test_three_classes_are_compared_and_averaged(how):
    X, y = planted(classes=3)
    found = FROTSelector(3, multiclass=how).fit(X, y)
    names = [one.name for one in found.comparisons_]
    if how == "ovr":
        assert names == ["control vs rest", "rescued vs rest", "treated vs rest"]
    else:
        assert names == ["control vs rescued", "control vs treated", "rescued vs treated"]
    assert np.flatnonzero(found.get_support()).tolist() == list(SIGNAL)
    mean = np.mean([one.parts.phi for one in found.comparisons_], axis=0)
    np.testing.assert_allclose(found.phi_, mean)
    assert len(found.plan_) == len(found.result_) == len(found.eta_) == 3
    first, second = found.comparisons_[0].rows
    assert found.plan_[0].shape == (len(first), len(second))
    assert set(y[first]) == {"control"}
    if how == "ovr":
        assert len(first) + len(second) == len(y)


def test_a_pair_of_three_classes_is_what_the_pair_alone_gives():
    X, y = planted(classes=3)
    found = FROTSelector(3, multiclass="ovo").fit(X, y).comparisons_[1]
    pair = np.isin(y, ["control", "treated"])
    alone = FROTSelector(3).fit(X[pair], y[pair])
    np.testing.assert_allclose(found.parts.phi, alone.phi_)


def test_the_others_are_compared_with_the_reference():
    X, y = planted(classes=3)
    found = FROTSelector(3, reference="control").fit(X, y)
    assert [one.name for one in found.comparisons_] == ["rescued vs control", "treated vs control"]
    pair = np.isin(y, ["control", "treated"])
    plain = FROTSelector(3).fit(X[pair], y[pair])
    turned = FROTSelector(3, reference="control").fit(X[pair], y[pair])
    assert plain.comparisons_[0].name == "control vs treated"
    assert turned.comparisons_[0].name == "treated vs control"
    one, other = (table.sort_values("feature") for table in (plain.table_, turned.table_))
    for name in ("t", "log2_fold_change", "signed_score"):
        np.testing.assert_allclose(one[name], -other[name], rtol=1e-12)
    for name in ("up_in", "score", "rank", "mean_control"):
        assert one[name].tolist() == pytest.approx(other[name].tolist())
    assert turned.plan_.shape == plain.plan_.shape[::-1]
    # Labels that are numbers may be given as text, as a command line does.
    numbers = np.unique(y, return_inverse=True)[1]
    assert FROTSelector(3, reference="2").fit(X, numbers).comparisons_[0].name == "0 vs 2"
    with pytest.raises(frot.InputError, match="reference: no sample of class treated has a weight"):
        FROTSelector(3, reference="treated").fit(X, y, sample_weight=1.0 * (y != "treated"))


def test_weights_stand_for_repetition():
    X, y = planted()
    weight = np.random.default_rng(0).integers(1, 4, size=40)
    weighted = FROTSelector(5, tol=1e-3, max_iter=5000).fit(X, y, sample_weight=weight)
    repeated = FROTSelector(5, tol=1e-3, max_iter=5000).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted.shift_, repeated.shift_)
    np.testing.assert_allclose(weighted.shape_, repeated.shape_, atol=1e-9)
    assert weighted.result_.value == pytest.approx(repeated.result_.value, rel=2e-3)


def test_weight_zero_is_absence_and_units_of_weight_do_not_matter():
    X, y = planted()
    weight = np.ones(40)
    weight[[0, 30]] = 0.0
    kept = weight > 0.0
    found = FROTSelector(5).fit(X, y, sample_weight=1e-9 * weight)
    alone = FROTSelector(5).fit(X[kept], y[kept])
    np.testing.assert_allclose(found.phi_, alone.phi_)
    assert found.plan_.shape == (23, 15)
    assert 30 not in found.comparisons_[0].rows[1]


def test_constant_features_score_zero_and_come_last():
    X, y = planted(gap=0.0, d=10)
    X[:, [2, 7]] = 0.1
    found = FROTSelector(9).fit(X, y)
    assert found.scores_[[2, 7]].tolist() == [0.0, 0.0]
    assert sorted(found.ranking_[[2, 7]]) == [9, 10]
    assert not found.get_support()[7]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_missing_values_are_imputed_by_the_mean_of_all(form):
    X, y = planted()
    X[3, 5] = X[30, 5] = X[8, 9] = np.nan
    found = FROTSelector(3, missing="impute").fit(form(X), y)
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    np.testing.assert_allclose(found.phi_, FROTSelector(3).fit(filled, y).phi_, rtol=1e-9)
    assert np.isnan(X).sum() == 3


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_features_with_missing_values_can_be_left_out(form):
    X, y = planted()
    X[3, 1] = np.nan
    found = FROTSelector(2, missing="drop").fit(form(X), y)
    assert np.flatnonzero(found.get_support()).tolist() == [0, 2]
    assert found.scores_[1] == 0.0
    assert np.isnan(X[3, 1])


def test_a_feature_nobody_has_is_constant():
    X, y = planted()
    X[:, 1] = np.nan
    assert FROTSelector(2, missing="impute").fit(X, y).ranking_[1] == 40


X, Y = planted()
BAD = [
    ({}, X, np.repeat("a", 40), "1 class.*two or more classes"),
    ({}, X, np.r_[["one"], np.repeat(["b", "c"], [20, 19])], "class one has one sample.*drop it"),
    ({}, X, Y[:39], "y: has 39 labels for the 40 rows of X"),
    ({}, np.ones((40, 3)), Y, "no feature varies"),
    ({"n_features_to_select": 41}, X, Y, "41 features are asked for but there are 40"),
    ({"n_features_to_select": 0}, X, Y, "must be at least 1"),
    ({"n_features_to_select": 1.5}, X, Y, "not a fraction in .* whole number"),
    ({"n_features_to_select": True}, X, Y, "neither a whole number nor a fraction"),
    ({"n_features_to_select": "ten"}, X, Y, "neither a whole number nor a fraction"),
    ({"threshold": "high"}, X, Y, "threshold: 'high' is not a number"),
    ({"scaling": "z"}, X, Y, "scaling: 'z' is none of 'balanced'"),
    ({"plan": "yes"}, X, Y, "plan: 'yes' is none of 'auto', True and False"),
    ({"plan": False, "score": "phi"}, X, Y, "plan: score='phi' is read off the plan; leave plan"),
    ({"values": "counts"}, X, Y, "values: 'counts' is none of 'auto'"),
    ({"score": "beta"}, X, Y, "score: 'beta' is none of 'auto'"),
    ({"multiclass": "all"}, X, Y, "multiclass: 'all'"),
    ({"reference": "c"}, X, Y, "reference: 'c' is not a class of y; the classes are '"),
    ({"missing": "skip"}, X, Y, "missing: 'skip'"),
    ({"group_cost": "max"}, X, Y, "group_cost: 'max'"),
    ({"eta": 0.0}, X, Y, "eta: must be finite and > 0"),
    ({"eta": "small"}, X, Y, "eta: 'small' is neither 'auto' nor a number"),
    ({"tol": 0.0}, X, Y, "tol: must be"),
    ({"max_iter": 0}, X, Y, "max_iter: must be"),
    ({"groups": "sets.gmt"}, X, Y, "groups: cannot read sets.gmt"),
    ({"groups": "prefix"}, X, Y, "named features; pass X as a DataFrame with named columns"),
    ({}, X, np.linspace(0.0, 1.0, 40), "Unknown label type: continuous"),
    ({}, X, np.r_[np.nan, np.ones(39)], "1 of 40 labels are missing, the first in row 0"),
    (
        {},
        X,
        ["a"] * 20 + ["b"] * 19 + [None],
        "missing, the first in row 39; drop these",
    ),
    ({}, X, pd.Series(["a", None] * 20, dtype="string"), "20 of 40 labels are missing"),
    ({}, pd.DataFrame({"a": X[:, 0], "sex": "f"}), Y, "X: columns 'sex' hold text; leave it out"),
    ({"groups": {"a": ["TP53"]}}, X, Y, "group"),
    ({"groups": [[0, 99]]}, X, Y, "holds feature 99|99"),
]


@pytest.mark.parametrize(("options", "X", "y", "message"), BAD, ids=[str(bad[3]) for bad in BAD])
def test_bad_input_is_one_clear_sentence(options, X, y, message):
    with pytest.raises(frot.InputError, match=message):
        FROTSelector(**options).fit(X, y)


def test_labels_with_the_rows_in_another_order_are_told():
    table, labels = pd.DataFrame(X), pd.Series(Y)
    with pytest.warns(frot.DataWarning, match=r"^y: .* another order.*y\.loc\[X\.index\]") as told:
        shuffled = FROTSelector(3, plan=False).fit(table, labels[::-1])
    assert told[0].filename == __file__
    np.testing.assert_array_equal(
        shuffled.scores_, FROTSelector(3, plan=False).fit(X, Y[::-1]).scores_
    )
    # Other names, as after reset_index, say nothing.
    FROTSelector(3, plan=False).fit(table, pd.Series(Y[::-1]))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(39), "sample_weight: has shape"),
        (np.full(40, -1.0), "finite and >= 0"),
        (np.zeros(40), "all weights are zero"),
        (np.repeat([1.0, 0.0], [24, 16]), "has 1 class"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    with pytest.raises(frot.InputError, match=message):
        FROTSelector().fit(X, Y, sample_weight=weight)
