"""The checks at the door, one by one."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse

from frot import InputError
from frot._base.validate import (
    METRICS,
    all_finite,
    check_callable,
    check_choice,
    check_costs,
    check_count,
    check_entries,
    check_feature_names,
    check_finite,
    check_flag,
    check_masses,
    check_metric,
    check_names,
    check_number,
    check_points,
    check_prior,
    check_seed,
    check_text,
    check_weights,
    frame_like,
    read_numbers,
)
from tests.libraries import LIBRARIES, Library


class TestPoints:
    @pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, bool, object])
    def test_numbers_become_float64(self, dtype):
        points, names = check_points(np.array([[0, 1], [1, 0]], dtype=dtype), "X")
        assert points.dtype == np.float64
        assert points.tolist() == [[0.0, 1.0], [1.0, 0.0]]
        assert names is None

    def test_data_frames_bring_names_as_text(self):
        pandas = pytest.importorskip("pandas")
        points, names = check_points(pandas.DataFrame({"age": [1], 7: [2]}), "X")
        assert points.tolist() == [[1.0, 2.0]]
        assert names == ("age", "7")

    @pytest.mark.parametrize(
        ("points", "message"),
        [
            ([1.0, 2.0], r"X: has shape \(2,\), but points are rows; use X.reshape\(-1, 1\)"),
            (np.zeros((1, 1, 1)), "X: has 3 dimensions"),
            (3.0, "X: has 0 dimensions"),
            (np.zeros((0, 2)), r"X: has no points \(shape \(0, 2\)\)"),
            (np.zeros((2, 0)), r"X: has no features \(shape \(2, 0\)\)"),
            ([[1.0, np.nan]], r"X: 1 of 2 entries are NaN or infinite, the first at X\[0, 1\]"),
            ([[np.inf, -np.inf]], r"X: 2 of 2 entries are NaN or infinite, the first at X\[0, 0\]"),
            ([[1.0], [2.0, 3.0]], "X: is not a rectangular array"),
            ([[1.0 + 2j]], "X: is complex; pass its real part or its modulus"),
            ([["1.0"]], r"X: holds <U3, not numbers; use X.astype\(float\)"),
            (np.array([[1.0, None]]), r"X: has missing entries, the first at X\[0, 1\]; drop or"),
            (np.array([[{}]]), "X: holds objects that are not numbers"),
            (np.array([["a"]], dtype=object), "X: holds objects that are not numbers"),
            (np.array([["2020-01-01"]], dtype="datetime64[D]"), "X: holds dates; pass numbers"),
        ],
    )
    def test_refused(self, points, message):
        with pytest.raises(InputError, match=message):
            check_points(points, "X")

    def test_integers_beyond_floats_are_refused(self):
        with pytest.raises(InputError, match="X: "):
            check_points(np.array([[10**400]], dtype=object), "X")


class TestCosts:
    def test_a_stack_becomes_contiguous_float64(self):
        stack = check_costs(np.ones((2, 3, 4), dtype=np.float32, order="F"))
        assert stack.dtype == np.float64
        assert stack.flags.c_contiguous

    @pytest.mark.parametrize(
        ("costs", "message"),
        [
            (np.ones((2, 3)), r"C: has shape \(2, 3\).*use C\[None\] for a single cost"),
            (np.ones(2), "C: has 1 dimensions"),
            (np.ones((1, 1, 1, 1)), "C: has 4 dimensions"),
            (np.ones((0, 2, 2)), r"C: is empty \(shape \(0, 2, 2\)\)"),
            (np.full((1, 1, 2), np.nan), r"C: 2 of 2 entries are NaN .* first at C\[0, 0, 0\]"),
        ],
    )
    def test_refused(self, costs, message):
        with pytest.raises(InputError, match=message):
            check_costs(costs)


class TestWeights:
    def test_uniform_by_default(self):
        assert check_weights(None, 4, "a", normalise=False).tolist() == [0.25] * 4

    def test_normalised_on_request(self):
        assert check_weights([1, 3], 2, "a", normalise=True).tolist() == [0.25, 0.75]

    def test_float32_sums_are_close_enough(self):
        weights = np.full(7, 1 / 7, dtype=np.float32)
        found = check_weights(weights, 7, "a", normalise=False)
        assert found == pytest.approx([1 / 7] * 7, rel=1e-7)
        assert found.sum() == pytest.approx(1.0, rel=1e-15)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ([0.5, 0.25, 0.25], r"a: has shape \(3,\), expected one weight per point \(2,\)"),
            ([[0.5, 0.5]], r"a: has shape \(1, 2\)"),
            (1.0, r"a: has shape \(\)"),
            ([1.5, -0.5], r"a: weights must be >= 0, but a\[1\] = -0.5"),
            ([0.0, 0.0], "a: all weights are zero; leave a out for uniform weights"),
            ([np.nan, 1.0], r"a: 1 of 2 entries are NaN or infinite, the first at a\[0\]"),
            ([np.inf, 1.0], "a: 1 of 2 entries are NaN or infinite"),
            ([1.0, 1.0], r"a: the weights sum to 2, which is \+1 off one; pass normalise_weights"),
            ([0.5, 0.4999], r"a: the weights sum to 0.9999, which is -0.0001 off one"),
            (["x", "y"], "a: holds <U1, not numbers"),
            ([1j, 0.0], "a: is complex"),
        ],
    )
    def test_refused(self, weights, message):
        with pytest.raises(InputError, match=message):
            check_weights(weights, 2, "a", normalise=False)


class TestMasses:
    def test_the_difference_is_told(self):
        message = r"a, b: the masses differ by -1 \(1 against 2\); pass normalise_weights=True"
        with pytest.raises(InputError, match=message):
            check_masses([0.5, 0.5], [1.0, 1.0], normalise=False)

    def test_equal_masses_pass_and_so_does_whatever_is_normalised(self):
        check_masses([2.0], [1.0, 1.0], normalise=False)
        check_masses([2.0], [3.0], normalise=True)
        check_masses(None, [3.0], normalise=False)


class TestPrior:
    def test_it_is_the_logarithm_of_the_normalised_prior(self):
        found = check_prior([1, 3], 2)
        assert found is not None
        assert np.exp(found) == pytest.approx([0.25, 0.75], rel=1e-15)
        assert check_prior(None, 2) is None

    def test_huge_ones_are_normalised(self):
        found = check_prior([1.7e308, 1.7e308], 2)
        assert found == pytest.approx(np.log([0.5, 0.5]))

    def test_shares_of_zero_are_refused(self):
        with pytest.raises(InputError, match=r"prior\[0\] is zero next to the largest"):
            check_prior([5e-324, 1e300], 2)

    @pytest.mark.parametrize(
        ("prior", "message"),
        [
            ([1.0], r"prior: has shape \(1,\), expected one weight per group \(2,\)"),
            ([1.0, 0.0], r"prior: must be > 0, but prior\[1\] = 0; leave groups out"),
            ([1.0, -2.0], r"prior: must be > 0, but prior\[1\] = -2"),
            ([1.0, np.nan], "prior: 1 of 2 entries are NaN"),
        ],
    )
    def test_refused(self, prior, message):
        with pytest.raises(InputError, match=message):
            check_prior(prior, 2)


class TestNumbers:
    @pytest.mark.parametrize(
        "value",
        [
            *(1, 1.0, np.float32(1.0), np.int64(1), np.array(1.0), np.longdouble(1.0)),
            *(Fraction(2, 2), Decimal("1.00"), torch.tensor(1.0), torch.tensor(1)),
        ],
    )
    def test_whatever_is_one_is_one(self, value):
        found = check_number(value, "eta")
        assert found == 1.0
        assert type(found) is float

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (-1e-300, "eta: must be finite and >= 0, got -1e-300"),
            (np.nan, "eta: must be finite and >= 0, got nan"),
            (np.inf, "eta: must be finite and >= 0, got inf"),
            (None, "eta: None is not a number"),
            ("small", "eta: 'small' is not a number"),
            ([1.0, 2.0], r"eta: \[1.0, 2.0\] is not a number"),
            (1j, "eta: 1j is not a number"),
        ],
    )
    def test_refused(self, value, message):
        with pytest.raises(InputError, match=message):
            check_number(value, "eta")

    def test_strict_bounds(self):
        assert check_number(0.0, "eta") == 0.0
        with pytest.raises(InputError, match="p: must be finite and > 0, got 0"):
            check_number(0.0, "p", strict=True)
        with pytest.raises(InputError, match=r"p: must be finite and >= 1, got 0\.5"):
            check_number(0.5, "p", least=1.0)

    def test_integers_beyond_floats_are_refused(self):
        with pytest.raises(InputError, match=r"eta: .* is beyond the largest float"):
            check_number(10**400, "eta")

    @pytest.mark.parametrize("value", [Fraction(1, 10), Decimal("0.1")])
    def test_what_is_no_float_exactly_is_refused(self, value):
        with pytest.raises(InputError, match=r"eta: .* is between two floats; pass float\(eta\)"):
            check_number(value, "eta")

    def test_a_gradient_that_would_be_lost_is_refused(self):
        with pytest.raises(InputError, match=r"eta: requires grad, .*; pass float\(eta\)"):
            check_number(torch.tensor(1.0, requires_grad=True), "eta")

    @pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.array(3), Fraction(3), 10**400])
    def test_counts(self, value):
        found = check_count(value, "k")
        assert found == value
        assert type(found) is int

    @pytest.mark.parametrize("value", [0, -1, 2.5, np.nan, np.inf, 5, 10**400])
    def test_what_is_no_count_up_to_four(self, value):
        with pytest.raises(InputError, match=r"k: must be a whole number from 1 to 4 \(all\), got"):
            check_count(value, "k", most=4, of=" (all)")

    @pytest.mark.parametrize("value", [True, "3", None, [3], 3j])
    def test_what_is_no_number_is_no_count(self, value):
        with pytest.raises(InputError, match=r"k: .* is not a number"):
            check_count(value, "k")

    def test_seeds_begin_at_zero(self):
        assert check_seed(0, "seed") == 0
        with pytest.raises(InputError, match="seed: must be a whole number >= 0, got -1"):
            check_seed(-1, "seed")


class TestSwitches:
    @pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
    def test_flags(self, value):
        found = check_flag(value, "progress")
        assert found == value
        assert type(found) is bool

    @pytest.mark.parametrize("value", [1, "yes", None, np.array([True]), [True]])
    def test_no_flags(self, value):
        with pytest.raises(InputError, match=r"progress: is .*; use True or False"):
            check_flag(value, "progress")

    def test_callables(self):
        assert check_callable(print, "callback") is print
        with pytest.raises(InputError, match="callback: 'print' cannot be called; pass a function"):
            check_callable("print", "callback")

    def test_text(self):
        assert check_text("", "title") == ""
        with pytest.raises(InputError, match="title: is None; use text"):
            check_text(None, "title")


class TestNames:
    @pytest.mark.parametrize("names", [["a", "b"], ("a", "b"), "ab", np.array(["a", "b"])])
    def test_they_are_text(self, names):
        names = iter(names) if isinstance(names, str) else names
        assert check_names(names, 2) == ("a", "b")

    def test_numbers_are_names_and_a_string_is_one(self):
        assert check_names([1, 2.5], 2) == ("1", "2.5")
        assert check_names("all", 1) == ("all",)

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (["a", "a"], "names: two groups are named 'a'; give each its own name"),
            ([1, "1"], "names: two groups are named '1'"),
            (["a"], "names: 1 names for 2 groups; give one for each"),
            (["a", "b", "c"], "names: 3 names for 2 groups"),
            (iter("abc"), "names: more or fewer names for 2 groups"),
            ({"a", "b"}, "is not a list of names"),
            ({"a": 1, "b": 2}, "is not a list of names"),
            (b"ab", "names: b'ab' is not a list of names"),
            (5, "names: 5 is not a list of names"),
            ([None, "b"], "names: None is not a name; use text"),
            ([["a"], ["b"]], r"names: \['a'\] is not a name; use text"),
        ],
    )
    def test_refused(self, names, message):
        with pytest.raises(InputError, match=message):
            check_names(names, 2)

    def test_features_may_have_equal_names(self):
        assert check_feature_names(["a", "a"], 2) == ("a", "a")
        assert check_feature_names(None, 2) is None
        with pytest.raises(InputError, match="feature_names: 1 names for 2 features"):
            check_feature_names(["a"], 2)

    def test_choice(self):
        assert check_choice("mean", "normalise", ("none", "mean")) == "mean"
        with pytest.raises(InputError, match="normalise: 'max' is none of 'none', 'mean'"):
            check_choice("max", "normalise", ("none", "mean"))

    @pytest.mark.parametrize("value", [None, 1, ["mean"], np.array(["none", "mean"]), {}, b"mean"])
    def test_no_choice(self, value):
        with pytest.raises(InputError, match=r"normalise: .* is none of 'none', 'mean'"):
            check_choice(value, "normalise", ("none", "mean"))

    @pytest.mark.parametrize("metric", METRICS)
    def test_scipy_knows_every_metric_on_the_list(self, metric):
        from scipy.spatial.distance import cdist

        assert check_metric(metric) == metric
        points = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.5], [2.0, 3.0, 1.0]])
        points = points > 0.5 if metric in ("dice", "yule", "jaccard") else points
        assert cdist(points, points[:3], metric).shape == (4, 3)

    def test_callables_pass(self):
        assert check_metric(max) is max

    def test_a_close_name_is_suggested(self):
        with pytest.raises(InputError, match=r"metric: 'euclidian' .* mean 'euclidean'\?"):
            check_metric("euclidian")

    def test_else_all_are_listed(self):
        with pytest.raises(InputError, match=r"metric: 'qqq' .* known are braycurtis, canberra"):
            check_metric("qqq")


MIXED = np.array([[1, 2.5], [Fraction(1, 4), Decimal("0.5")]], dtype=object)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "g", "i1", "u8", "?", ">f8", object])
def test_numbers_of_every_kind_are_float64(kind: Any):
    found = read_numbers(np.array([[0, 1], [1, 1]], dtype=kind), "X")
    assert found.dtype == np.float64
    assert found.tolist() == [[0.0, 1.0], [1.0, 1.0]]


def test_objects_that_are_numbers():
    assert read_numbers(MIXED, "X").tolist() == [[1.0, 2.5], [0.25, 0.5]]


def test_what_is_float64_is_not_copied():
    array = np.ones((2, 2))
    assert read_numbers(array, "X") is array


WRONG: dict[str, tuple[Any, str]] = {
    "text": (["1", "2"], r"^a: holds <U1, not numbers; use a.astype\(float\)$"),
    "text among objects": (np.array([1.0, "2"], dtype=object), r"not numbers, the first at a\[1\]"),
    "bytes": (b"12", "^a: holds .S2, not numbers"),
    "complex": ([1j], "^a: is complex; pass its real part or its modulus$"),
    "dates": (pd.to_datetime(["2020-01-01"]), "^a: holds dates; pass numbers, such as the days"),
    "spans": (pd.to_timedelta(["1D"]), "^a: holds spans of time; divide them by a unit"),
    "fields": (np.zeros(2, dtype="i4,f8"), "^a: has fields; pass its columns as one table"),
    "ragged": ([[1.0], [2.0, 3.0]], r"^a: is not a rectangular array \("),
    "None": ([1.0, None], r"^a: has missing entries, the first at a\[1\]; drop or impute them$"),
    "NA": (np.array([1.0, pd.NA]), r"^a: has missing entries, the first at a\[1\]"),
    "one object": (object(), "^a: is of type object, not numbers$"),
    "sparse": (sparse.eye(2), r"^a: is a sparse matrix; use a.toarray\(\)$"),
    "AnnData": (SimpleNamespace(X=0, obs=0, var=0), r"^a: is a SimpleNamespace; use a.X, or a.X.t"),
    "masked": (np.ma.masked_equal([1.0, 2.0], 2.0), r"^a: is a masked array; .*a.filled\(...\)$"),
    "too large": (np.array([10**400], dtype=object), r"^a: has integers beyond 2\^53, which"),
    "a gradient": (torch.ones(2, requires_grad=True), r"^a: requires grad, .*; pass a.detach\(\)$"),
    "gradients": ([torch.ones(2, requires_grad=True)], r"^a: cannot be read as an array \(Runtime"),
    "meta": (torch.empty(2, device="meta"), "^a: is a meta tensor, which holds no numbers"),
    "sparse tensor": (torch.eye(2).to_sparse(), r"layout torch.sparse_coo; use a.to_dense\(\)$"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_one_sentence_each(wrong: str):
    values, message = WRONG[wrong]
    with pytest.raises(InputError, match=message):
        read_numbers(values, "a")


def test_beyond_float64_is_infinite_and_says_so():
    with pytest.raises(InputError, match=r"^X: 1 of 2 entries .* the first at X\[0, 1\]"):
        check_finite(read_numbers(np.array([[1, 10**30]], dtype=np.longdouble) ** 20, "X"), "X")


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_where_the_first_wrong_one_is(library: Library):
    check_finite(library(np.ones((2, 3))), "X")
    array = np.ones((2, 3))
    array[1, 0] = np.nan
    array[1, 2] = -np.inf
    with pytest.raises(InputError, match=r"^X: 2 of 6 .* the first at X\[1, 0\]; drop or impute"):
        check_finite(library(array), "X")


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_are_recognised(library):
    values, columns = frame_like(library.DataFrame({"u": [1.0, 2.0], "v": [3.0, 4.0]}))
    assert columns == ("u", "v")
    np.testing.assert_array_equal(values, [[1, 3], [2, 4]])


def test_column_names_become_text():
    assert frame_like(pd.DataFrame(np.eye(2)))[1] == ("0", "1")


@pytest.mark.parametrize("x", [np.eye(2), [[1.0]], pd.Series([1.0]), None])
def test_anything_else_passes_through(x):
    values, columns = frame_like(x)
    assert values is x
    assert columns is None


def test_entries_of_a_matrix_are_a_copy():
    matrix = np.array([[1.0, 2.0]])
    found = check_entries(matrix, "matrix", ndim=2)
    found[0, 0] = 5.0
    assert matrix[0, 0] == 1.0
    with pytest.raises(InputError, match="matrix: has 2 dimensions, expected 1"):
        check_entries(matrix, "matrix")


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_whether_all_are_finite(library: Library):
    assert all_finite(library(np.array([1.0, 2.0])))
    assert not all_finite(library(np.array([1.0, np.inf])))


def test_a_prior_is_normalised():
    found = check_prior([1.0, 3.0], 2)
    assert found is not None
    np.testing.assert_allclose(found, np.log([0.25, 0.75]))
    assert check_prior(None, 2) is None
