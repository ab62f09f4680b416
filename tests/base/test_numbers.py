"""Numbers out of whatever holds them, and one sentence where that cannot be."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from frot import InputError
from frot._base.numbers import check_finite, read_numbers
from tests.libraries import LIBRARIES, Library

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
    "masked": (np.ma.masked_equal([1.0, 2.0], 2.0), r"^a: has masked entries; .*a.filled\(...\)$"),
    "too large": (np.array([10**400], dtype=object), r"^a: holds objects that are not numbers \("),
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
