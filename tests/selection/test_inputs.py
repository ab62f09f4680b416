"""What the data may be like: missing values, constants, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import frot
from frot.selection import FROTSelector
from tests.selection.planted import planted


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
    np.testing.assert_allclose(found.scores_, FROTSelector(3).fit(filled, y).scores_, rtol=1e-9)
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
    with pytest.warns(frot.DataWarning, match="1 feature has no value in any sample"):
        assert FROTSelector(2, missing="impute").fit(X, y).ranking_[1] == 40


X, Y = planted()
BAD = [
    ({}, X, np.repeat("a", 40), "one class, a; give labels of two or more classes"),
    ({}, X, np.r_[["one"], np.repeat(["b", "c"], [20, 19])], "class one has one sample.*drop it"),
    ({}, X, Y[:39], "y: has 39 labels for the 40 rows of X"),
    ({}, np.ones((40, 3)), Y, "no feature varies"),
    ({"n_features_to_select": 41}, X, Y, "41 features are asked for but there are 40"),
    ({"n_features_to_select": 0}, X, Y, "must be at least 1"),
    ({"n_features_to_select": 1.5}, X, Y, "not a fraction in .* whole number"),
    ({"n_features_to_select": True}, X, Y, "neither a whole number nor a fraction"),
    ({"n_features_to_select": "ten"}, X, Y, "neither a whole number nor a fraction"),
    ({"threshold": "high"}, X, Y, "threshold: 'high' is not a number"),
    ({"scaling": "none"}, X, Y, "scaling: 'none' is none of 'balanced', 'paper'"),
    ({"plan": "yes"}, X, Y, "plan: 'yes' is none of 'auto', True and False"),
    ({"plan": False, "score": "alpha"}, X, Y, "plan: score='alpha' is read off the plan; leave"),
    ({"values": "counts"}, X, Y, "values: 'counts' is none of 'auto'"),
    ({"score": "phi"}, X, Y, "score: 'phi' is none of 'moderated', 'alpha'"),
    ({"reference": "c"}, X, Y, "reference: 'c' is not a class of y; the classes are '"),
    ({"missing": "skip"}, X, Y, "missing: 'skip'"),
    ({"eta": 0.0}, X, Y, "eta: must be finite and > 0"),
    ({"eta": "small"}, X, Y, "eta: 'small' is neither 'auto' nor a number"),
    ({"groups": "sets.gmt"}, X, Y, "groups: cannot read sets.gmt"),
    ({"groups": "prefix"}, X, Y, "named features; pass X as a DataFrame with named columns"),
    ({}, X, np.linspace(0.0, 1.0, 40), "Unknown label type: continuous"),
    ({}, X, np.r_[np.nan, np.ones(39)], "1 of 40 labels are missing, the first in row 0"),
    ({}, X, ["a"] * 20 + ["b"] * 19 + [None], "missing, the first in row 39; drop these"),
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
