"""Plans of every kind answer what their matrix would, in the user's library, and cannot change."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

import frot
from frot import FrankWolfe, InputError, LazyPlan, Plan, Sinkhorn
from frot._base.arrays import Home, is_foreign, to_numpy
from frot.plans.plan import bring_plan, factor_type, is_sparse, n_entries, plan_kind, positions
from frot.solvers.entropic import kernel as row_blocks_module
from tests.libraries import FOREIGN, Library
from tests.reference import quiet

N, M = 7, 5
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(N, 3)), RNG.normal(size=(M, 3)) + 0.5
A, B = RNG.dirichlet(np.ones(N)), RNG.dirichlet(np.ones(M))
# Two rows, a column and many entries of nothing; and equal ones, of which the first is meant.
SPARSE = np.zeros((N, M))
SPARSE[[1, 1, 2, 4, 6, 6], [3, 0, 0, 3, 1, 3]] = [0.25, 0.1, 0.25, 0.25, 0.05, 0.1]
HOST = Library("numpy", "float64")


@cache
def problem(library: Library, turned: bool) -> dict[str, Any]:
    sides = (X, A), (Y, B)
    (one, a), (other, b) = sides[::-1] if turned else sides
    return {"X": library(one), "Y": library(other), "a": library(a), "b": library(b)}


@cache
def lazy(library: Library = HOST, turned: bool = False) -> LazyPlan:
    plan = quiet(frot.solve, **problem(library, turned), eta=0.1, eps=0.2).plan
    assert isinstance(plan, LazyPlan)
    return plan


@cache
def averaged(library: Library = HOST, turned: bool = False) -> LazyPlan:
    solver = FrankWolfe(oracle=Sinkhorn(eps=0.2), step="paper", max_iter=3)
    plan = quiet(frot.solve, **problem(library, turned), eta=0.5, solver=solver).plan
    assert isinstance(plan, LazyPlan)
    return plan


@cache
def batch(library: Library) -> frot.BatchResult:
    stacks = (library(np.stack([part, part + 1.0])) for part in (X, Y))
    return frot.solve_batch(*stacks, eta=0.1, eps=0.2)


def arcs(matrix: np.ndarray = SPARSE) -> Plan:
    """Out of order, and one arc in two parts."""
    rows, cols = np.nonzero(matrix)
    mass = matrix[rows, cols]
    mass[0] /= 2.0
    rows, cols, mass = (np.append(part, part[0])[::-1] for part in (rows, cols, mass))
    return Plan.from_arcs(rows, cols, mass, (len(matrix), len(matrix.T)))


# What the user's arrays are, and a plan of shape (N, M).
Maker = tuple[Library, Callable[[], Any]]


def of_a_library(library: Library) -> dict[str, Maker]:
    home = Home.of(library([0.0]))
    makers: dict[str, Callable[[], Any]] = {
        "dense": lambda: bring_plan(Plan(SPARSE), home),
        "arcs": lambda: bring_plan(arcs(), home),
        "arcs transposed": lambda: bring_plan(arcs(SPARSE.T), home).T,
        "exact": lambda: frot.solve(**problem(library, False)).plan,
        "lazy": lambda: lazy(library),
        "lazy transposed": lambda: lazy(library, turned=True).T,
        "averaged": lambda: averaged(library),
        "of a batch": lambda: batch(library)[1].plan,
    }
    return {f"{library}, {name}": (library, make) for name, make in makers.items()} | {
        f"{library}, for NumPy": (HOST, lambda: bring_plan(lazy(library), None)),
    }


MAKERS: dict[str, Maker] = {
    "dense": (HOST, lambda: Plan(SPARSE)),
    "dense transposed": (HOST, lambda: Plan(SPARSE.T).T),
    "arcs": (HOST, arcs),
    "arcs transposed": (HOST, lambda: arcs(SPARSE.T).T),
    "no arcs": (HOST, lambda: Plan.from_arcs([], [], [], (N, M))),
    "lazy": (HOST, lazy),
    "lazy transposed": (HOST, lambda: lazy(turned=True).T),
    "averaged": (HOST, averaged),
    "averaged transposed": (HOST, lambda: averaged(turned=True).T),
    "of a batch": (HOST, lambda: batch(HOST)[1].plan),
}
for one in FOREIGN:
    MAKERS |= of_a_library(one)


class Kind:
    """A way to make plans, and what such a plan is as an array of NumPy's."""

    def __init__(self, name: str) -> None:
        self.library, self.make = MAKERS[name]
        self.whole = np.array(self.make())
        self.loose = 1e-6 if self.library.precision == "float32" else 1e-14

    def check(self, found: Any, expected: Any) -> None:
        """An array has to be the user's, and right."""
        expected = np.asarray(expected)
        if expected.dtype.kind == "f":
            assert self.library.owns(found)
            assert to_numpy(found) == pytest.approx(expected, rel=1e2 * self.loose, abs=self.loose)
        else:
            assert type(found) is type(self.library([0.0]))
            assert to_numpy(found).tolist() == expected.tolist()
        assert np.shape(found) == expected.shape


# Only these are computed block by block.
LAZY = [name for name in MAKERS if isinstance(MAKERS[name][1](), LazyPlan)]
kind_of = cache(Kind)


@pytest.fixture(params=[*MAKERS, *(f"in blocks: {name}" for name in LAZY)])
def kind(request, monkeypatch) -> Kind:
    name = request.param.removeprefix("in blocks: ")
    if request.param != name:
        # Blocks of a row or two.
        monkeypatch.setattr(row_blocks_module, "BLOCK_BYTES_ON_HOST", 2 * 8 * M)
    return kind_of(name)


def times(array: Any, plan: Any) -> Any:
    """``array @ plan``."""
    return array @ plan


class TestWhatItAnswers:
    def test_shape_and_words(self, kind: Kind):
        plan = kind.make()
        assert plan.shape == kind.whole.shape
        assert f"{N} x {M}, {plan_kind(plan)}" in repr(plan)

    def test_dense(self, kind: Kind):
        kind.check(kind.make().dense(), kind.whole)
        assert np.asarray(kind.make(), dtype=np.float32).dtype == np.float32

    def test_rows(self, kind: Kind):
        plan = kind.make()
        for index in (3, -1, slice(1, 4), slice(None), [4, 0, -1], [4, 5, 6], [], A > 0.1):
            kind.check(plan.rows(index), kind.whole[index])
        kind.check(plan.rows(torch.tensor([4, 0])), kind.whole[[4, 0]])
        for index in (N, -N - 1):
            with pytest.raises(IndexError):
                plan.rows(index)

    def test_sums_and_maxima(self, kind: Kind):
        plan = kind.make()
        assert type(plan.sum()) is float
        assert plan.sum() == pytest.approx(kind.whole.sum(), rel=1e-14)
        for axis in (0, 1):
            kind.check(plan.sum(axis=axis), kind.whole.sum(axis=axis))
            kind.check(plan.argmax(axis=axis), kind.whole.argmax(axis=axis))
        kind.check(plan.argmax(), kind.whole.argmax(axis=1))
        for ask in (plan.sum, plan.argmax):
            with pytest.raises(InputError, match="axis: 2 of a plan, whose axes are 0 and 1"):
                ask(axis=2)

    def test_products(self, kind: Kind):
        plan, given = kind.make(), kind.library
        V = np.linspace(-1.0, 1.0, 3 * M).reshape(M, 3)
        U = np.linspace(-1.0, 1.0, N * 2).reshape(2, N)
        kind.check(plan @ given(V), kind.whole @ V)
        kind.check(plan @ given(V[:, 0]), kind.whole @ V[:, 0])
        kind.check(times(given(U), plan), U @ kind.whole)
        kind.check(times(given(U[0]), plan), U[0] @ kind.whole)
        kind.check(plan @ V, kind.whole @ V)
        kind.check(plan.T @ given(U.T), kind.whole.T @ U.T)
        kind.check(times(given(V.T), plan.T), V.T @ kind.whole.T)
        kind.check(plan @ plan.T, kind.whole @ kind.whole.T)

    def test_arcs(self, kind: Kind):
        rows, cols, mass = kind.make().arcs()
        i, j = np.nonzero(kind.whole)
        kind.check(rows, i)
        kind.check(cols, j)
        kind.check(mass, kind.whole[i, j])

    def test_the_transposed(self, kind: Kind):
        plan = kind.make()
        assert type(plan.T) is type(plan)
        assert np.array_equal(np.asarray(plan.T.T), np.asarray(plan))
        kind.check(plan.T.dense(), kind.whole.T)
        assert is_sparse(plan.T) == is_sparse(plan)

    def test_numpys(self, kind: Kind):
        host = bring_plan(kind.make(), None)
        assert isinstance(host.dense(), np.ndarray)
        assert np.array_equal(np.asarray(host), np.asarray(kind.make()))
        assert is_sparse(host) == is_sparse(kind.make())
        assert isinstance(host @ np.ones(M), np.ndarray)

    def test_it_is_no_array(self, kind: Kind):
        """What would form the whole behind one's back is said aloud: ``np.asarray(plan)``."""
        plan: Any = kind.make()
        for ask in (
            lambda: plan * 2.0,
            lambda: np.ones((N, M)) + plan,
            lambda: np.sqrt(plan),
            lambda: plan[0],
            lambda: len(plan),
        ):
            with pytest.raises(TypeError):
                ask()


def spoil(array: Any) -> bool:
    """Write to an array, if that can be done."""
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        return False
    array[...] = 7
    return True


class TestItCannotBeChanged:
    def test_by_what_it_hands_out(self, kind: Kind):
        plan, given = kind.make(), kind.library
        before = np.array(plan)
        handed = [
            *(plan.dense(), plan.T.dense(), np.asarray(plan), np.asarray(plan.T), np.array(plan)),
            *(plan.rows([0]), plan.rows(slice(None)), plan.sum(axis=0), plan.sum(axis=1)),
            *(plan.argmax(axis=1), *plan.arcs(), *plan.T.arcs()),
            *(plan @ given(np.eye(M)), times(given(np.eye(N)), plan)),
            *(bring_plan(plan, None).dense(), *bring_plan(plan, None).arcs()),
        ]
        assert sum(map(spoil, handed)) >= 7
        assert np.array_equal(np.asarray(plan), before)

    def test_what_is_whole_is_read_only_and_parts_are_fresh(self, kind: Kind):
        plan = kind.make()
        for array in (plan.dense(), np.asarray(plan), *plan.arcs()):
            assert is_foreign(array) or not array.flags.writeable
        for array in (plan.rows([0]), plan.rows(1), plan.sum(axis=0), np.array(plan)):
            assert is_foreign(array) or array.flags.writeable

    @pytest.mark.parametrize(
        "twin", [copy.copy, copy.deepcopy, lambda plan: pickle.loads(pickle.dumps(plan))]
    )
    def test_nor_can_its_copies(self, kind: Kind, twin):
        plan = kind.make()
        again = twin(plan)
        assert type(again) is type(plan)
        for array in (again.dense(), np.asarray(again), *again.arcs()):
            spoil(array)
        assert np.asarray(again) == pytest.approx(kind.whole, rel=1e-13)
        assert np.asarray(plan) == pytest.approx(kind.whole, rel=1e-13)

    def test_by_what_it_was_made_of(self):
        matrix, (rows, cols, mass) = SPARSE.copy(), (part.copy() for part in arcs().arcs())
        plans = [Plan(matrix), Plan.from_arcs(rows, cols, mass, (N, M))]
        for array in (matrix, rows, cols, mass):
            array[...] = 3
        for plan in plans:
            assert np.array_equal(np.asarray(plan), SPARSE)


class TestArcs:
    def test_equal_ones_add_up_and_empty_ones_drop(self):
        plan = Plan.from_arcs([1, 0, 0, 1], [1, 0, 1, 1], [0.25, 0.5, 0.0, 0.25], (2, 2))
        rows, cols, mass = plan.arcs()
        assert (rows.tolist(), cols.tolist(), mass.tolist()) == ([0, 1], [0, 1], [0.5, 0.5])
        assert n_entries(plan) == 2
        assert repr(plan) == "Plan(2 x 2, 2 arcs)"

    def test_masses_below_zero_are_none(self):
        assert n_entries(Plan.from_arcs([0, 1], [0, 1], [1.0, -1e-20], (2, 2))) == 1


class TestCopies:
    """NumPy's rules on copies, of which 1.26 has fewer."""

    @pytest.fixture(autouse=True)
    def rules(self):
        if np.lib.NumpyVersion(np.__version__) < "2.0.0":
            pytest.skip("NumPy 1 does not ask")

    def test_a_dense_plan_is_no_copy(self):
        plan = Plan(SPARSE)
        assert np.shares_memory(np.asarray(plan, copy=False), plan.dense())
        assert not np.shares_memory(np.array(plan), plan.dense())

    @pytest.mark.parametrize("plan", [arcs(), arcs().T, lazy()], ids=["arcs", "transposed", "lazy"])
    def test_what_needs_one_says_so(self, plan: Plan):
        with pytest.raises(ValueError, match="leave copy=False out"):
            np.asarray(plan, copy=False)
        with pytest.raises(ValueError, match="leave copy=False out"):
            np.asarray(Plan(SPARSE), dtype=np.float32, copy=False)


class TestFactors:
    """Whole numbers are numbers, and what comes back is no coarser than what went in."""

    def test_products_come_back_in_the_precision_of_the_factor(self):
        home = Home.of(torch.zeros(1))
        assert factor_type(home, [1, 2]) is None
        assert factor_type(home, torch.zeros(2, dtype=torch.int64)) is None
        assert factor_type(home, torch.zeros(2, dtype=torch.float64)) is torch.float64

    @pytest.mark.parametrize("eps", [0.0, 0.2])
    def test_of_tensors(self, eps):
        plan = frot.solve(torch.tensor(X), torch.tensor(Y), eps=eps).plan
        labels = torch.eye(M, dtype=torch.int64)
        assert np.asarray(plan @ labels) == pytest.approx(np.asarray(plan))
        V = torch.ones(M, dtype=torch.float64, requires_grad=True)
        (plan @ V).sum().backward()
        assert V.grad is not None
        assert V.grad.numpy() == pytest.approx(np.full(M, 1 / M))


class TestMatrices:
    """What a plan can be made of."""

    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            ("plan", "matrix: is the text 'plan', not numbers"),
            (np.ones(3), "matrix: has 1 dimensions, expected 2"),
            ([[np.nan]], "matrix: 1 of 1 entries are NaN"),
            ([[1j]], "matrix: is complex"),
            (sparse.csr_array([[1.0]]), "matrix: is a sparse matrix; use matrix.toarray()"),
        ],
    )
    def test_refused(self, matrix, message):
        with pytest.raises(frot.InputError, match=message):
            Plan(matrix)


def test_positions_count_from_the_front():
    assert positions(-1, 3) == 2
    assert positions(slice(None, None, -1), 3).tolist() == [2, 1, 0]
