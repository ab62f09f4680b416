"""Plans of every kind can do the same things, give what an array would, and cannot be changed."""

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
from frot import FrankWolfe, Plan, PlanLike, Sinkhorn
from frot._base.arrays import Home, is_foreign, to_numpy
from frot.plans.lazy import LazyPlan, TransposedPlan
from frot.plans.plan import PlanAt
from frot.solvers.sinkhorn import kernel as row_blocks_module
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
def entropic(library: Library, turned: bool) -> LazyPlan:
    plan = quiet(frot.solve, **problem(library, turned), eta=0.1, eps=0.2).plan
    assert isinstance(plan, LazyPlan)
    return plan


def lazy(library: Library = HOST, turned: bool = False) -> LazyPlan:
    """A plan that has not been asked for anything yet."""
    plan = entropic(library, turned)
    return LazyPlan(plan.terms, plan.ranks, plan.phi, plan.out)


@cache
def mean(library: Library, turned: bool) -> LazyPlan:
    solver = FrankWolfe(oracle=Sinkhorn(), step="paper", max_iter=3)
    plan = quiet(frot.solve, **problem(library, turned), eta=0.5, eps=0.2, solver=solver).plan
    assert isinstance(plan, LazyPlan)
    assert len(plan.terms) == 3
    return plan


def averaged(library: Library = HOST, turned: bool = False) -> LazyPlan:
    plan = mean(library, turned)
    return LazyPlan(plan.terms, plan.ranks, plan.phi, plan.out)


@cache
def underflown() -> LazyPlan:
    """Some entries of this one are too small for a float."""
    plan = quiet(frot.solve, 30.0 * X, 30.0 * Y, eps=0.1, max_iter=3).plan
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
        "dense": lambda: PlanAt(Plan(SPARSE), home),
        "arcs": lambda: PlanAt(arcs(), home),
        "arcs transposed": lambda: PlanAt(arcs(SPARSE.T), home).T,
        "exact": lambda: frot.solve(**problem(library, False)).plan,
        "lazy": lambda: lazy(library),
        "lazy transposed": lambda: lazy(library, turned=True).T,
        "averaged": lambda: averaged(library),
        "of a batch": lambda: batch(library)[1].plan,
    }
    return {f"{library}, {name}": (library, make) for name, make in makers.items()} | {
        f"{library}, for NumPy": (HOST, lambda: lazy(library).at(Home.of(np.zeros(1)))),
    }


MAKERS: dict[str, Maker] = {
    "dense": (HOST, lambda: Plan(SPARSE)),
    "dense transposed": (HOST, lambda: Plan(SPARSE.T).T),
    "arcs": (HOST, arcs),
    "arcs transposed": (HOST, lambda: arcs(SPARSE.T).T),
    "no arcs": (HOST, lambda: Plan.from_arcs([], [], [], (N, M))),
    "scipy's": (HOST, lambda: Plan(sparse.csc_matrix(SPARSE))),
    "lazy": (HOST, lazy),
    "lazy transposed": (HOST, lambda: lazy(turned=True).T),
    "averaged": (HOST, averaged),
    "averaged transposed": (HOST, lambda: averaged(turned=True).T),
    "underflown": (HOST, underflown),
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
        """An array has to be the user's, fresh or read-only, and right."""
        expected = np.asarray(expected)
        kind = expected.dtype.kind
        if expected.ndim == 0 and self.library == HOST:
            assert isinstance(found, float if kind == "f" else int | np.integer)
        elif kind == "f":
            assert self.library.owns(found)
        else:
            assert type(found) is type(self.library([0.0]))
        assert np.shape(found) == expected.shape
        if kind == "f":
            assert to_numpy(found) == pytest.approx(expected, rel=1e2 * self.loose, abs=self.loose)
        else:
            assert to_numpy(found).tolist() == expected.tolist()


# Only these are formed block by block.
LAZY = [name for name in MAKERS if isinstance(MAKERS[name][1](), LazyPlan | TransposedPlan)]
kind_of = cache(Kind)


def cut_blocks(monkeypatch) -> None:
    """Have blocks of a row or two."""
    monkeypatch.setattr(row_blocks_module, "BLOCK_BYTES_ON_HOST", 2 * 8 * M)


@pytest.fixture(params=[*MAKERS, *(f"in blocks: {name}" for name in LAZY)])
def kind(request, monkeypatch) -> Kind:
    name = request.param.removeprefix("in blocks: ")
    if request.param != name:
        cut_blocks(monkeypatch)
    return kind_of(name)


KEYS: dict[str, Any] = {
    "a row": 2,
    "the last row": -1,
    "rows": slice(1, 4),
    "every other row, from the end": slice(None, None, -2),
    "no rows": slice(3, 3),
    "a list of rows": [4, -1, 4, 5, 6],
    "an empty list": [],
    "a mask of rows": A > 0.1,
    "an entry": (2, 1),
    "an entry from the end": (-1, -1),
    "a column": (slice(None), 1),
    "a column of some rows": (slice(2, 5), -1),
    "columns": (slice(None), slice(1, None, 2)),
    "all": (slice(None), slice(None)),
    "a list of columns": (slice(None), [3, 0, 3]),
    "a mask of columns": (slice(None), B > 0.1),
    "a part of a row": (3, slice(1, 4)),
    "a list of columns of a row": (3, [1, 0]),
    "a list of rows of a column": ([1, 0], 3),
    "a list of rows of columns": ([6, 1], slice(1, 3)),
    "entries": ([0, 5, 5, 1], [4, 2, 3, 1]),
    "entries in a square": ([[0, 5], [5, 1]], [[4, 2], [3, 1]]),
    "rows against columns": (np.ix_([4, 0], [1, 3, 2])),
    "no entries": (np.empty(0, dtype=int), np.empty(0, dtype=int)),
    "a mask": RNG.random((N, M)) < 0.3,
    "an empty mask": np.zeros((N, M), dtype=bool),
    "an ellipsis": (..., 2),
    "a new axis": (None, 2),
}


def every_kind(plan: Plan, lazy: LazyPlan, turned: TransposedPlan, at: PlanAt) -> list[PlanLike]:
    """For the type checker, which looks at signatures."""
    return [plan, lazy, turned, at]


class TestAsAnArray:
    def test_it_says_so(self, kind: Kind):
        plan = kind.make()
        assert isinstance(plan, PlanLike)
        assert (plan.shape, plan.ndim, len(plan)) == (kind.whole.shape, 2, len(kind.whole))
        assert plan.dtype == plan.dense().dtype
        n, m = plan.shape
        assert f"{n} x {m}" in repr(plan)

    def test_items(self, kind: Kind):
        for plan in (kind.make(), formed(kind.make())):
            for key in KEYS.values():
                kind.check(plan[key], kind.whole[key])

    def test_rows(self, kind: Kind):
        for plan in (kind.make(), formed(kind.make())):
            for index in (3, -1, slice(1, 4), slice(None), [4, 0, -1], [], range(2), A > 0.1):
                kind.check(plan.rows(index), kind.whole[index])

    def test_rows_by_tensors(self, kind: Kind):
        index = torch.tensor([4, 0])
        kind.check(kind.make().rows(index), kind.whole[[4, 0]])
        kind.check(kind.make()[index, 1], kind.whole[[4, 0], 1])

    @pytest.mark.parametrize("what", ["sum", "max", "argmax"])
    def test_sums_and_maxima(self, kind: Kind, what: str):
        for plan in (kind.make(), formed(kind.make())):
            expected = getattr(kind.whole, what)()
            for found in (getattr(plan, what)(axis=None), getattr(np, what)(plan)):
                assert type(found) is (int if what == "argmax" else float)
                assert found == pytest.approx(expected, rel=1e-14)
            for axis in (0, 1, -1, -2):
                expected = getattr(kind.whole, what)(axis=axis)
                kind.check(getattr(plan, what)(axis=axis), expected)
                kind.check(getattr(np, what)(plan, axis=axis), expected)

    def test_by_default_sums_are_of_all_and_the_best_is_of_each_row(self, kind: Kind):
        plan = kind.make()
        assert plan.sum() == pytest.approx(kind.whole.sum())
        assert plan.max() == pytest.approx(kind.whole.max())
        kind.check(plan.argmax(), kind.whole.argmax(axis=1))

    def test_products(self, kind: Kind):
        n, m = kind.whole.shape
        given = kind.library
        V, U = np.linspace(-1.0, 1.0, 3 * m).reshape(m, 3), np.linspace(-1.0, 1.0, n * 2)
        U = U.reshape(2, n)
        stack = np.stack([V, 2.0 * V])
        for plan in (kind.make(), formed(kind.make())):
            kind.check(plan @ given(V), kind.whole @ V)
            kind.check(plan @ given(V[:, 0]), kind.whole @ V[:, 0])
            kind.check(times(given(U), plan), U @ kind.whole)
            kind.check(times(given(U[0]), plan), U[0] @ kind.whole)
            kind.check(plan @ V, kind.whole @ V)
            kind.check(plan.T @ given(U.T), kind.whole.T @ U.T)
            kind.check(times(given(V.T), plan.T), V.T @ kind.whole.T)
            kind.check(plan @ plan.T, kind.whole @ kind.whole.T)
        if not kind.make().is_sparse:
            kind.check(kind.make() @ given(stack), kind.whole @ stack)
            stack = np.stack([U, -U])
            kind.check(times(given(stack), kind.make()), stack @ kind.whole)

    def test_products_are_as_precise_as_their_factors(self, kind: Kind):
        factor = np.ones(kind.whole.shape[1])
        found = kind.make() @ torch.tensor(factor) if kind.library.name == "torch" else None
        if found is not None:
            assert found.dtype == torch.float64
            assert found.numpy() == pytest.approx(kind.whole.sum(axis=1), rel=1e-13)

    def test_arithmetic(self, kind: Kind):
        plan, whole = kind.make(), kind.whole
        C = np.linspace(1.0, 2.0, whole.size).reshape(whole.shape)
        for found, expected in (
            (2.0 * plan, 2.0 * whole),
            (plan - 1.0, whole - 1.0),
            (plan / kind.library(C), whole / C),
            (plan + plan, 2.0 * whole),
            (plan**2, whole**2),
            (np.sqrt(plan), np.sqrt(whole)),
            (abs(-plan), whole),
            (plan > 0.0, whole > 0.0),
        ):
            kind.check(found, expected)
        assert to_numpy(plan * C) == pytest.approx(whole * C, rel=1e-6)

    def test_arcs(self, kind: Kind):
        plan = kind.make()
        rows, cols, mass = plan.arcs()
        i, j = np.nonzero(kind.whole)
        kind.check(rows, i)
        kind.check(cols, j)
        kind.check(mass, kind.whole[i, j])
        assert plan.nnz == len(i)

    def test_other_kinds_of_numbers(self, kind: Kind):
        single = np.float32 if kind.library == HOST else Home.of(kind.library([0.0])).xp.float32
        found = kind.make().astype(single)
        assert type(found) is type(kind.library([0.0]))
        assert found.dtype == single
        assert to_numpy(found) == pytest.approx(kind.whole, rel=1e-6)
        assert np.asarray(kind.make(), dtype=np.float32).dtype == np.float32

    def test_the_transposed(self, kind: Kind):
        plan = kind.make()
        assert isinstance(plan.T, PlanLike)
        assert plan.T.shape == kind.whole.T.shape
        assert np.array_equal(np.asarray(plan.T.T), np.asarray(plan))
        kind.check(plan.T.dense(), kind.whole.T)

    def test_numpys(self, kind: Kind):
        host = kind.make().numpy()
        assert isinstance(host.dense(), np.ndarray)
        assert np.array_equal(np.asarray(host), np.asarray(kind.make()))
        assert host.is_sparse == kind.make().is_sparse
        assert isinstance(host @ np.ones(kind.whole.shape[1]), np.ndarray)

    def test_what_it_does_not_have(self, kind: Kind):
        plan = kind.make()
        for what in ("sum", "max", "argmax"):
            with pytest.raises(ValueError, match="axis 2 of a plan, which has the axes 0 and 1"):
                getattr(plan, what)(axis=2)
            with pytest.raises(TypeError, match=f"a plan's {what} takes no dtype and no out"):
                getattr(plan, what)(out=np.zeros(M))
        for key in (N, (0, N), (0, 0, 0)):
            with pytest.raises(IndexError):
                plan[key]


def times(array: Any, plan: Any) -> Any:
    """``array @ plan``."""
    return array @ plan


def formed(plan: Any) -> Any:
    """A plan that has been asked for all of its entries."""
    plan.dense()
    return plan


def spoil(array: Any) -> bool:
    """Write to an array, if that can be done."""
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        return False
    if np.ndim(array) == 0:
        return False
    array[...] = 7
    return True


class TestItCannotBeChanged:
    def test_by_what_it_hands_out(self, kind: Kind):
        for plan in (kind.make(), formed(kind.make())):
            n, m = plan.shape
            handed = [
                *(plan.dense(), plan.T.dense(), np.asarray(plan), np.asarray(plan.T)),
                *(
                    np.array(plan),
                    plan.astype(plan.dtype),
                    plan[:],
                    plan[:, :],
                    plan[1],
                    plan[:, 1],
                ),
                *(plan.rows(0), plan.rows(slice(None)), plan.sum(axis=0), plan.sum(axis=1)),
                *(plan.max(axis=0), plan.argmax(axis=1), *plan.arcs(), *plan.T.arcs()),
                *(plan @ kind.library(np.eye(m)), times(kind.library(np.eye(n)), plan), plan + 0.0),
                *(plan.numpy().dense(), np.asarray(plan.numpy()), *plan.numpy().arcs()),
            ]
            assert sum(map(spoil, handed)) >= 10
            assert np.array_equal(np.asarray(plan), np.asarray(kind.make()))
            assert plan.sum() == pytest.approx(kind.whole.sum(), rel=1e-14)
            assert to_numpy(plan @ kind.library(np.ones(m))) == pytest.approx(
                kind.whole.sum(axis=1), rel=1e-6
            )

    def test_what_is_whole_is_read_only_and_parts_are_fresh(self, kind: Kind):
        plan = kind.make()
        for array in (plan.dense(), np.asarray(plan), *plan.arcs()):
            assert is_foreign(array) or not array.flags.writeable
        parts = (plan.rows([0]), plan[:2], plan[0], plan[:, 0], plan.sum(axis=0), np.array(plan))
        for array in parts:
            assert is_foreign(array) or array.flags.writeable
        assert plan.astype(float if kind.library == HOST else plan.dtype).shape == plan.shape

    def test_in_place(self, kind: Kind):
        plan: Any = kind.make()
        with pytest.raises(TypeError, match=r"cannot be changed; np.array\(plan\) is a copy"):
            plan *= 2.0
        with pytest.raises(TypeError, match="does not support item assignment"):
            plan[0, 0] = 1.0
        assert np.array_equal(np.asarray(plan), np.asarray(kind.make()))

    @pytest.mark.parametrize(
        "twin", [copy.copy, copy.deepcopy, lambda plan: pickle.loads(pickle.dumps(plan))]
    )
    def test_nor_can_its_copies(self, kind: Kind, twin):
        for plan in (kind.make(), formed(kind.make())):
            again = twin(plan)
            assert type(again) is type(plan)
            for array in (again.dense(), np.asarray(again), *again.arcs()):
                spoil(array)
            # What is computed again may be added up in another order.
            assert np.asarray(again) == pytest.approx(np.asarray(kind.make()), rel=1e-13)
            assert np.asarray(plan) == pytest.approx(np.asarray(kind.make()), rel=1e-13)

    def test_by_what_it_was_made_of(self):
        matrix, (rows, cols, mass) = SPARSE.copy(), (part.copy() for part in arcs().arcs())
        compressed = sparse.csr_array(SPARSE)
        plans = [Plan(matrix), Plan.from_arcs(rows, cols, mass, (N, M)), Plan(compressed)]
        for array in (matrix, rows, cols, mass, compressed.data):
            array[...] = 3
        for plan in plans:
            assert np.array_equal(np.asarray(plan), SPARSE)


@pytest.mark.parametrize("in_blocks", [False, True])
@pytest.mark.parametrize("name", LAZY)
def test_what_is_asked_of_a_part_does_not_form_the_whole(name, in_blocks, monkeypatch):
    if in_blocks:
        cut_blocks(monkeypatch)
    plan = MAKERS[name][1]()
    monkeypatch.setattr(LazyPlan, "_form", lambda self: pytest.fail("it was formed"))
    n, m = plan.shape
    for key in KEYS.values():
        plan[key]
    plan.rows([0, 2])
    for what in (plan.sum, plan.max, plan.argmax):
        for axis in (None, 0, 1):
            what(axis=axis)
    for product in (plan @ np.ones(m), np.ones(n) @ plan, plan.T @ np.ones(n)):
        assert product.ndim == 1
    assert "lazy" in repr(plan)
    assert plan.nnz <= n * m


def test_a_column_takes_no_more_memory_than_a_block(monkeypatch):
    """Blocks that were looked at are not held on to."""
    monkeypatch.setattr(row_blocks_module, "BLOCK_BYTES_ON_HOST", 8 * M)
    plan, held, most = lazy(), set(), []

    class Block(np.ndarray):
        def __del__(self) -> None:
            held.discard(id(self))

    compute = LazyPlan._block

    def counted(self, part):
        block = compute(self, part).view(Block)
        held.add(id(block))
        most.append(len(held))
        return block

    monkeypatch.setattr(LazyPlan, "_block", counted)
    for ask in (lambda: plan[:, 1], lambda: plan[np.arange(N), np.arange(N) % M], plan.sum):
        most.clear()
        ask()
        assert len(most) == N
        assert max(most) <= 2


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

    @pytest.mark.parametrize("plan", [arcs(), arcs().T], ids=["arcs", "transposed"])
    def test_what_needs_one_says_so(self, plan: Plan):
        with pytest.raises(ValueError, match="leave copy=False out"):
            np.asarray(plan, copy=False)
        with pytest.raises(ValueError, match="leave copy=False out"):
            np.asarray(Plan(SPARSE), dtype=np.float32, copy=False)


class TestMatrices:
    """What a plan can be made of."""

    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            ("plan", "matrix: is the text 'plan', not numbers"),
            (np.ones(3), "matrix: has 1 dimensions, expected 2"),
            ([[np.nan]], "matrix: 1 of 1 entries are NaN"),
            ([[1j]], "matrix: is complex"),
            (sparse.csr_array([[np.inf]]), "matrix: 1 of 1 entries are NaN or infinite"),
        ],
    )
    def test_refused(self, matrix, message):
        with pytest.raises(frot.InputError, match=message):
            Plan(matrix)
