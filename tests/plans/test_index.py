"""Indices of plans pick what NumPy's do."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis.extra import numpy as hnp

from frot.plans._index import is_rows, pick, positions, runs


def read(key: Any, shape: tuple[int, int]) -> Any:
    """What `pick` says, read from a matrix whose entries are all different."""
    whole = np.arange(shape[0] * shape[1]).reshape(shape)
    picked = pick(key, shape)
    if not picked.crossed:
        return whole[picked.rows, picked.cols]
    cols = np.arange(shape[1]) if picked.cols is None else picked.cols
    return whole[picked.rows.reshape(picked.rows.shape + (1,) * cols.ndim), cols]


def check(key: Any, shape: tuple[int, int]) -> None:
    whole = np.arange(shape[0] * shape[1]).reshape(shape)
    found, expected = read(key, shape), whole[key]
    assert np.shape(found) == np.shape(expected)
    assert np.array_equal(found, expected)


@given(st.data())
def test_numbers_slices_and_new_axes(data):
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    check(data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True)), shape)


@given(st.data())
def test_lists_of_numbers(data):
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    rows, cols = data.draw(hnp.integer_array_indices(shape))
    part = data.draw(st.slices(shape[1]) | st.integers(0, shape[1] - 1))
    check((rows, cols), shape)
    check(rows, shape)
    check((rows, part), shape)
    check((slice(None), cols), shape)


@given(st.data())
def test_masks(data):
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    rows = data.draw(hnp.arrays(bool, shape[0]))
    cols = data.draw(hnp.arrays(bool, shape[1]))
    for key in (rows, (slice(None), cols), (rows, 0), data.draw(hnp.arrays(bool, shape))):
        check(key, shape)


ODD = {
    "no index": (),
    "an empty list": [],
    "lists": ([0, 2], [1, 1]),
    "a range": range(2),
    "NumPy's numbers": (np.int64(1), np.uint8(2)),
    "an array that holds one": (np.array(1), slice(None)),
    "true": True,
    "a matrix of rows": [[0, 1], [2, 0]],
}


@pytest.mark.parametrize("key", ODD.values(), ids=ODD)
def test_what_else_numpy_takes(key):
    check(key, (3, 4))


def test_tensors_are_lists_of_numbers_and_masks():
    shape = (3, 4)
    for key in (torch.tensor([2, 0]), torch.tensor(1), torch.tensor([True, False, True])):
        assert np.array_equal(read(key, shape), np.arange(12).reshape(shape)[key.numpy()])


@pytest.mark.parametrize("key", [3, -4, (0, 4), [0, 3], ([0], [4]), (0, 0, 0), [True] * 4, "a"])
def test_what_is_not_there(key):
    with pytest.raises(IndexError):
        pick(key, (3, 4))


def test_rows_alone_leave_the_columns_out():
    for key in (1, slice(1, 3), [0, 2], (slice(None), slice(None)), (1, slice(0, 4))):
        assert pick(key, (3, 4)).cols is None
    reversed_columns = pick((slice(None), slice(None, None, -1)), (3, 4)).cols
    assert reversed_columns is not None
    assert reversed_columns.tolist() == [3, 2, 1, 0]


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 5))
def test_runs_are_the_rows_in_their_order(rows, most):
    parts = runs(np.array(rows, dtype=int), most) if rows else []
    assert [row for part in parts for row in range(part.start, part.stop)] == rows
    assert all(part.stop - part.start <= most for part in parts)


def test_runs_are_as_long_as_they_can_be():
    assert runs(np.arange(10), 4) == [slice(0, 4), slice(4, 8), slice(8, 10)]


def test_positions_count_from_the_front():
    assert positions(-1, 3) == 2
    assert positions(slice(None, None, -1), 3).tolist() == [2, 1, 0]


def test_axes():
    assert [is_rows(axis) for axis in (None, 0, 1, -1, -2)] == [False, False, True, True, False]
    for axis in (2, -3, "rows", (0, 1)):
        with pytest.raises(ValueError, match="of a plan, which has the axes 0 and 1"):
            is_rows(axis)
