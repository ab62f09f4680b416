"""What goes in is not changed by what comes out, nor the other way round."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import frot
from frot import BatchResult, Chosen, FrankWolfe, Result, Sinkhorn
from frot._base.arrays import Home, is_foreign, to_numpy
from frot.plans.plan import is_sparse
from frot.torch import FRWDLoss
from tests.libraries import FOREIGN, LIBRARIES, Library
from tests.reference import quiet

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 4)), RNG.normal(size=(5, 4)) + 0.5
A, B = RNG.dirichlet(np.ones(6)), RNG.dirichlet(np.ones(5))
PRIOR = RNG.dirichlet(np.ones(4))
STACK = RNG.random((4, 6, 5))
PAPER = FrankWolfe(oracle=Sinkhorn(eps=0.1), step="paper", max_iter=2)

Given = dict[str, Any]


def points(library: Library) -> Given:
    return {"X": library(X), "Y": library(Y), "a": library(A), "b": library(B)}


def stacks(library: Library) -> Given:
    return {"C": library(STACK), "a": library(A), "b": library(B)}


def batches(library: Library) -> Given:
    return {
        "X": library(np.stack([X, X + 1.0])),
        "Y": library(np.stack([Y, Y])),
        "a": library(np.stack([A, A])),
        "b": library(B),
    }


# How the arguments are made, and what is done with them.
CALLS: dict[str, tuple[Callable[[Library], Given], Callable[..., Any]]] = {
    "exact": (points, frot.solve),
    "eta": (lambda at: points(at) | {"prior": at(PRIOR)}, lambda **g: frot.solve(**g, eta=0.1)),
    "entropic": (points, lambda **g: frot.solve(**g, eta=0.1, eps=0.1)),
    "unbalanced": (points, lambda **g: frot.solve(**g, eps=0.1, tau=5.0)),
    "partial": (points, lambda **g: frot.solve(**g, tau=5.0, penalty="tv")),
    "mass": (points, lambda **g: frot.solve(**g, mass=0.5)),
    "streamed": (points, lambda **g: frot.solve(**g, eps=0.1, memory_budget=10)),
    "cosine": (points, lambda **g: frot.solve(**g, eps=0.1, metric="cosine")),
    "a metric": (points, lambda **g: frot.solve(**g, eps=0.1, metric="cityblock")),
    "paper": (points, lambda **g: frot.solve(**g, eta=0.1, solver=PAPER)),
    "network simplex": (points, lambda **g: frot.solve(**g, eta=0.1, solver="frank_wolfe")),
    "linear program": (points, lambda **g: frot.solve(**g, solver="linear_program")),
    "regret": (points, lambda **g: frot.solve(**g, normalise="regret")),
    "costs": (stacks, frot.solve_costs),
    "entropic costs": (stacks, lambda **g: frot.solve_costs(**g, eps=0.1)),
    "start": (
        lambda at: points(at) | {"start": at(np.outer(A, B))},
        lambda **g: frot.solve(**g, eta=0.1, solver="frank_wolfe"),
    ),
    "weights to start from": (
        lambda at: points(at) | {"start": at(PRIOR)},
        lambda **g: frot.solve(**g, eps=0.1),
    ),
    "batch": (batches, lambda **g: frot.solve_batch(**g, eta=0.1, eps=0.1)),
    "unbalanced batch": (batches, lambda **g: frot.solve_batch(**g, eps=0.1, tau=5.0)),
    "wasserstein": (points, frot.wasserstein),
    "srw": (points, lambda **g: frot.srw(**g, k=2)),
    "max_min": (points, frot.max_min),
    "max_sliced": (points, frot.max_sliced),
    "sliced": (points, frot.sliced),
    "equitable": (stacks, frot.equitable),
}
# The relatives that take stacks are for NumPy alone.
HOST_ONLY = ("equitable",)

EVERY = [
    pytest.param(call, library, id=f"{call}-{library}")
    for call in CALLS
    for library in LIBRARIES
    if library.precision == "float64" and (library not in FOREIGN or call not in HOST_ONLY)
]


def arrays(answer: Any) -> Iterator[Any]:
    """Every array that an answer hands out."""
    if isinstance(answer, BatchResult):
        yield from (answer.value, answer.lower, answer.upper, answer.gap)
        yield from (answer.alpha, answer.phi, answer.eta, answer.eps, answer.mean_cost)
        yield from (answer.plans(), *answer.potentials)
        for one in answer:
            yield from arrays(one)
        return
    assert isinstance(answer, Result)
    plan = answer.plan
    yield from (answer.alpha, answer.phi, *answer.potentials, *(answer.points or ()))
    yield from (answer.ranking(), plan.dense(), np.asarray(plan), *plan.arcs(), plan.sum(axis=1))
    yield from (plan.rows(0), plan.T.rows(0), plan.T.dense(), *plan.T.arcs())
    if isinstance(answer.chosen, Chosen):
        yield answer.chosen.array
        if answer.chosen.weights is not None:
            yield answer.chosen.weights
    if is_foreign(answer.alpha):
        yield from arrays(answer.numpy())


def snapshot(answer: Any) -> list[np.ndarray]:
    numbers = np.ravel([answer.value, answer.lower, answer.upper])
    return [numbers, *(np.array(to_numpy(array)) for array in arrays(answer))]


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    # What is computed again may be added up in another order.
    return len(one) == len(other) and all(
        np.allclose(mine, theirs, rtol=1e-13, atol=1e-16, equal_nan=True)
        for mine, theirs in zip(one, other, strict=True)
    )


def spoil(array: Any) -> None:
    if not isinstance(array, np.ndarray) or array.flags.writeable:
        array[...] = 7


@pytest.mark.parametrize(("call", "library"), EVERY)
def test_arguments_and_answers_share_nothing(call: str, library: Library):
    make, solve = CALLS[call]
    given, untouched = make(library), make(library)
    answer = quiet(solve, **given)
    before = snapshot(answer)
    # Solving, and asking, left the arguments as they were.
    for name, array in given.items():
        assert np.array_equal(to_numpy(array), to_numpy(untouched[name])), name
    # Nothing that is handed out is the user's.
    for array in arrays(answer):
        spoil(array)
    for name, array in given.items():
        assert np.array_equal(to_numpy(array), to_numpy(untouched[name])), name
    # And nothing of the user's is kept.
    answer = quiet(solve, **given)
    for array in given.values():
        spoil(array)
    assert same(snapshot(answer), before)


@pytest.mark.parametrize(("call", "library"), EVERY)
def test_what_is_handed_out_is_read_only_or_a_copy(call: str, library: Library):
    make, solve = CALLS[call]
    answer = quiet(solve, **make(library))
    fields = {"alpha", "phi", "potentials", "points", "chosen"}
    before = snapshot(answer)
    results = list(answer) if isinstance(answer, BatchResult) else [answer]
    for result in results:
        whole = [result.alpha, result.phi, *result.potentials, *(result.points or ())]
        whole += [] if result.chosen is None else [result.chosen.array]
        for array in whole:
            assert is_foreign(array) or not array.flags.writeable
        assert fields <= set(vars(result))
    if not is_foreign(results[0].alpha):
        for array in arrays(answer):
            spoil(array)
        assert same(snapshot(answer), before)
        return
    # Tensors of a result are its own: changing one changes nothing else. Asked anew, since a plan
    # that has been formed no longer needs what it is made of.
    again = quiet(solve, **make(library))
    fresh = list(again) if isinstance(again, BatchResult) else [again]
    for result, untouched in zip(fresh, results, strict=True):
        for array in (result.alpha, result.phi, *result.potentials, *(result.points or ())):
            spoil(array)
        assert np.array_equal(np.asarray(result.plan), np.asarray(untouched.plan))
        assert (to_numpy(result.alpha) == 7).all()
    if isinstance(again, BatchResult):
        for array in arrays(again):
            spoil(array)
        assert same(snapshot(again), before)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "twin", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copied", "pickled"]
)
def test_copies_of_answers_are_as_safe(call: str, twin: Callable[[Any], Any]):
    make, solve = CALLS[call]
    answer = quiet(solve, **make(Library("numpy", "float64")))
    before = snapshot(answer)
    again = twin(answer)
    assert same(snapshot(again), before)
    for array in arrays(again):
        spoil(array)
    assert same(snapshot(again), before)


@pytest.mark.parametrize("call", ["exact", "entropic", "cosine", "a metric", "srw", "wasserstein"])
@pytest.mark.parametrize("library", FOREIGN, ids=str)
def test_every_array_is_the_users(call: str, library: Library):
    make, solve = CALLS[call]
    given = make(library)
    answer = quiet(solve, **given)
    found = [answer.alpha, answer.phi, *answer.potentials, *answer.points, answer.plan.dense()]
    found += [] if answer.chosen is None else [answer.chosen.array]
    assert all(map(library.owns, found))
    for name, array in zip("XY", answer.points, strict=True):
        assert np.array_equal(to_numpy(array), to_numpy(given[name]))
        assert Home.of(array) == Home.of(given[name])
    host = answer.numpy()
    assert all(isinstance(array, np.ndarray) for array in arrays(host))
    assert answer.summary()


def test_an_exact_plan_stays_sparse_on_its_way_to_the_host():
    given = points(Library("torch", "float64"))
    host = frot.solve(**given).numpy()
    assert is_sparse(host.plan)
    assert np.array_equal(np.asarray(host.plan), np.asarray(frot.solve(X, Y, a=A, b=B).plan))


def test_a_large_lazy_plan_is_not_formed_on_its_way_to_the_host(monkeypatch):
    given = points(Library("torch", "float64"))
    monkeypatch.setattr("frot.plans.lazy.LazyPlan.form_up_to", 10)
    answer = frot.solve(**given, eps=0.1)
    monkeypatch.setattr("frot.LazyPlan._native", lambda self: pytest.fail("it was formed"))
    host = answer.numpy()
    assert isinstance(host.plan @ np.ones(5), np.ndarray)
    assert host.plan.sum(axis=1) == pytest.approx(A)


def test_the_error_says_what_is_wrong():
    plan = frot.solve(X, Y, eps=0.1).plan
    dense = plan.dense()
    with pytest.raises(ValueError, match="read-only"):
        dense /= dense.sum(axis=1, keepdims=True)
    rows = np.array(plan)
    rows /= rows.sum(axis=1, keepdims=True)
    assert rows.sum() == pytest.approx(6.0)
    assert plan.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("room", [True, False], ids=["together", "one by one"])
def test_what_a_loss_keeps_shares_nothing(room: bool, monkeypatch):
    if not room:
        monkeypatch.setattr("frot.torch._solved.MEMORY_BUDGET", 0)
    kept = []
    for _ in range(2):
        x, y = torch.tensor(X), torch.tensor(Y)
        loss = FRWDLoss(eta=0.1, eps=0.1)
        loss(x, y)
        x[...], y[...] = 7.0, 7.0
        kept.append(loss.result)
    one, other = kept
    for array in (one.alpha, one.phi, *one.potentials):
        array[...] = 7.0
    plan = np.asarray(other.plan)
    assert np.array_equal(np.asarray(one.plan), plan)
    stack = ((X[:, None] - Y) ** 2).transpose(2, 0, 1)
    assert to_numpy(other.phi) == pytest.approx((stack * plan).sum(axis=(1, 2)), rel=1e-9)
