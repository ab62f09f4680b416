"""A plan behaves as an array, and stays sparse where it can."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis.extra import numpy as hnp
from scipy import sparse

from frot import Plan
from frot._base.arrays import Home, to_numpy
from frot.plans.plan import PlanAt, factor_type, is_rows, pick, positions, runs
from tests.libraries import FOREIGN, Library
from tests.strategies import seeds

DENSE = np.array([[0.0, 0.5, 0.0], [0.25, 0.0, 0.25]])


def make(kind: str) -> Plan:
    if kind == "dense":
        return Plan(DENSE.copy())
    if kind == "arcs":
        # Out of order, and one arc in two parts.
        return Plan.from_arcs([1, 0, 1, 1], [2, 1, 0, 2], [0.125, 0.5, 0.25, 0.125], (2, 3))
    return Plan(sparse.csc_array(DENSE))


@pytest.fixture(params=["dense", "arcs", "scipy"])
def plan(request) -> Plan:
    return make(request.param)


class TestAsAnArray:
    def test_protocol(self, plan: Plan):
        assert np.array_equal(np.asarray(plan), DENSE)
        assert np.asarray(plan, dtype=np.float32).dtype == np.float32
        assert (plan.shape, plan.ndim, len(plan), plan.dtype) == ((2, 3), 2, 2, np.dtype(float))

    def test_a_copy_is_one(self, plan: Plan):
        mine = np.array(plan)
        mine[0, 1] = 7.0
        assert np.array_equal(np.asarray(plan), DENSE)

    def test_products(self, plan: Plan):
        V, U = np.arange(6.0).reshape(3, 2), np.arange(4.0).reshape(2, 2)
        assert np.array_equal(plan @ V, DENSE @ V)
        assert np.array_equal(U @ plan, U @ DENSE)
        assert np.array_equal(plan.T @ U, DENSE.T @ U)
        assert np.array_equal(plan @ plan.T, DENSE @ DENSE.T)
        assert np.array_equal(plan @ np.ones(3), [0.5, 0.5])

    def test_arithmetic(self, plan: Plan):
        C = np.arange(6.0).reshape(2, 3)
        assert np.array_equal(plan * C, DENSE * C)
        assert np.array_equal(2.0 * plan - C, 2.0 * DENSE - C)
        assert np.array_equal(plan > 0.0, DENSE > 0.0)
        assert np.array_equal(np.sqrt(plan), np.sqrt(DENSE))
        assert np.array_equal(plan + plan, 2.0 * DENSE)

    def test_items(self, plan: Plan):
        assert plan[0, 1] == 0.5
        assert np.array_equal(plan[1], DENSE[1])
        assert np.array_equal(plan[:, 1:], DENSE[:, 1:])

    def test_numpys_functions(self, plan: Plan):
        assert np.sum(plan) == 1.0
        assert np.array_equal(np.sum(plan, axis=0), DENSE.sum(axis=0))
        assert np.array_equal(np.argmax(plan, axis=1), [1, 0])
        assert np.allclose(plan, DENSE)


class TestItsOwnWords:
    def test_sums(self, plan: Plan):
        assert plan.sum() == 1.0
        assert plan.sum(axis=1).tolist() == [0.5, 0.5]
        assert plan.sum(axis=0).tolist() == [0.25, 0.5, 0.25]
        assert plan.sum(axis=-1).tolist() == [0.5, 0.5]

    def test_argmax(self, plan: Plan):
        assert plan.argmax().tolist() == [1, 0]
        assert plan.argmax(axis=0).tolist() == [1, 0, 1]

    def test_rows(self, plan: Plan):
        assert plan.rows(1).tolist() == [0.25, 0.0, 0.25]
        assert plan.rows([1, 0]).tolist() == [[0.25, 0.0, 0.25], [0.0, 0.5, 0.0]]

    def test_arcs_come_by_row_and_column(self, plan: Plan):
        rows, cols, mass = plan.arcs()
        assert (rows.tolist(), cols.tolist()) == ([0, 1, 1], [1, 0, 2])
        assert mass.tolist() == [0.5, 0.25, 0.25]
        assert plan.nnz == 3

    def test_transpose(self, plan: Plan):
        assert np.array_equal(np.asarray(plan.T), DENSE.T)
        assert plan.T.is_sparse == plan.is_sparse

    def test_expand_places_rows_and_columns(self, plan: Plan):
        large = plan.expand(np.array([3, 1]), np.array([0, 2, 4]), (5, 6))
        expected = np.zeros((5, 6))
        expected[np.ix_([3, 1], [0, 2, 4])] = DENSE
        assert np.array_equal(np.asarray(large), expected)
        assert large.is_sparse == plan.is_sparse

    def test_repr(self):
        assert repr(make("arcs")) == "Plan(2 x 3, 3 arcs, mass 1)"
        assert repr(make("dense")) == "Plan(2 x 3, dense, mass 1)"

    @pytest.mark.parametrize(
        "twin", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))]
    )
    def test_it_can_be_copied_and_sent(self, plan: Plan, twin):
        again = twin(plan)
        assert np.array_equal(np.asarray(again), DENSE)
        assert again.is_sparse == plan.is_sparse

    def test_arcs_without_mass_are_dropped(self):
        plan = Plan.from_arcs([0, 0, 1], [0, 1, 1], [1.0, 0.0, -1e-20], (2, 2))
        assert plan.nnz == 1


class TestCombine:
    @given(seeds, st.integers(1, 30), st.booleans())
    def test_it_is_the_weighted_sum(self, seed, count, mixed):
        rng = np.random.default_rng(seed)
        plans = []
        for number in range(count):
            dense = rng.random((4, 5)) * (rng.random((4, 5)) < 0.4)
            sparse_one = Plan.from_arcs(*Plan(dense).arcs(), (4, 5))
            plans.append(Plan(dense) if mixed and number % 2 else sparse_one)
        weights = rng.random(count)
        total = Plan.combine(plans, weights)
        expected = sum(w * np.asarray(p) for w, p in zip(weights, plans, strict=True))
        assert np.asarray(total) == pytest.approx(expected, rel=1e-14, abs=1e-16)
        assert total.is_sparse == all(p.is_sparse for p in plans)

    def test_plans_of_zero_weight_are_left_out(self):
        total = Plan.combine([make("arcs"), make("dense")], [1.0, 0.0])
        assert total.is_sparse
        assert np.array_equal(np.asarray(total), DENSE)

    def test_nothing_cannot_be_combined(self):
        with pytest.raises(ValueError, match="at least one plan of non-zero weight"):
            Plan.combine([make("arcs")], [0.0])


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


RNG = np.random.default_rng(0)
HOLED = RNG.random((4, 3)) * (RNG.random((4, 3)) < 0.7)
SPARSE = Plan.from_arcs(*Plan(HOLED).arcs(), (4, 3))


@pytest.mark.parametrize("plan", [Plan(HOLED), SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("library", FOREIGN, ids=str)
def test_arrays_go_in_and_come_out_as_the_users(library: Library, plan: Plan):
    at = PlanAt(plan, Home.of(library([0.0])))
    V, U = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 2))
    for found, expected in (
        (at.dense(), HOLED),
        (at @ library(V), HOLED @ V),
        (at.T @ library(U), HOLED.T @ U),
        (at.T.T @ library(V), HOLED @ V),
        (at.rows(1), HOLED[1]),
        (at.rows([2, 0]), HOLED[[2, 0]]),
        (at.sum(axis=0), HOLED.sum(axis=0)),
        (at.sum(axis=1), HOLED.sum(axis=1)),
        (at[1], HOLED[1]),
        (at * library(HOLED), HOLED**2),
    ):
        assert library.owns(found)
        assert to_numpy(found) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert at.sum() == pytest.approx(HOLED.sum())
    for axis in (0, 1):
        assert to_numpy(at.argmax(axis=axis)).tolist() == HOLED.argmax(axis=axis).tolist()
    assert np.asarray(at) == pytest.approx(HOLED, abs=0)
    assert np.asarray(at).dtype == np.float64
    assert at.is_sparse == plan.is_sparse
    assert at.nnz == plan.nnz
    assert isinstance(at.T, PlanAt)


def test_products_come_back_in_the_precision_of_the_factor():
    home = Home.of(torch.zeros(1))
    assert factor_type(home, [1, 2]) is None
    assert factor_type(home, torch.zeros(2, dtype=torch.int64)) is None
    assert factor_type(home, torch.zeros(2, dtype=torch.float64)) is torch.float64


def test_sums_run_over_arcs_that_are_not_added_up_yet():
    one = Plan.from_arcs([0, 0], [0, 1], [0.5, 0.5], (1, 2))
    many = Plan.combine([one, one], [0.5, 0.5])
    # Four arcs on two places until they are added up.
    assert many.longest == 4
    many.arcs()
    assert many.longest == 2
    assert Plan(np.full((3, 5), 1 / 15)).longest == 5
