"""`Result.value` is the objective of `Result.plan`, whoever solved, worked out again in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import frot
from frot import FrankWolfe, NetworkSimplex, Result, Sinkhorn, solvers
from frot._base.arrays import to_numpy
from tests.libraries import FOREIGN, Library
from tests.reference import quiet

RNG = np.random.default_rng(5)
N, M, D = 12, 9, 6
X, Y = RNG.normal(size=(N, D)), RNG.normal(size=(M, D)) + 0.4
A, B = RNG.dirichlet(np.ones(N)), RNG.dirichlet(np.ones(M))
HOLES = np.where(np.arange(N) % 3, A, 0.0) / A[np.arange(N) % 3 != 0].sum()
GROUPS = [[0, 1, 2], [2, 3], [4, 5]]
STACK = np.stack([((X[:, None, g] - Y[None][..., g]) ** 2).sum(-1) for g in GROUPS])
PRIOR = np.array([0.5, 0.3, 0.2])


def smooth(phi: np.ndarray, eta: float, prior: Any = None) -> float:
    """G_eta: what the adversary makes of group costs."""
    if eta == 0.0:
        return float(phi.max())
    weights = None if prior is None else np.asarray(prior)
    return eta * float(np.asarray(logsumexp(phi / eta, b=weights)))


def divergence(plan: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """KL(plan | a b^T), of plans and weights of mass one."""
    on = plan > 0.0
    return float((plan[on] * np.log(plan[on] / np.outer(a, b)[on])).sum())


def check_value(found: Result, expected: float, entropy: bool, near: float) -> None:
    """The value is the objective, in the interval; an entropy is bounded by that of its parts."""
    unit = near * abs(expected)
    if entropy:
        assert found.lower - unit <= expected <= found.value + unit
    else:
        assert found.value == pytest.approx(expected, rel=near)
    assert found.lower <= found.value + unit
    assert found.value <= found.upper
    if not entropy:
        # That close to the bound: `upper` but for rounding.
        assert found.upper == pytest.approx(found.value, rel=1e-6)


def check(found: Result, stack: np.ndarray, a: Any = A, b: Any = B, **given: Any) -> None:
    """The plan is feasible, phi is its cost in each group, and the value their objective."""
    plan = np.asarray(found.plan)
    assert plan.sum(axis=1) == pytest.approx(a, abs=1e-13)
    assert plan.sum(axis=0) == pytest.approx(b, abs=1e-13)
    phi = np.einsum("lij,ij->l", stack, plan)
    assert to_numpy(found.phi) == pytest.approx(phi, rel=1e-9)
    value, entropy = smooth(phi, found.eta, given.get("prior")), bool(given.get("entropy"))
    if entropy:
        value += found.eps * divergence(plan, a, b)
    check_value(found, value, entropy, 1e-11)


STEPS = ("paper", "line_search", "fully_corrective")
# Options, and whether the objective has an entropy of the plan.
SOLVERS: dict[str, tuple[dict[str, Any], bool]] = {
    "exact": ({}, False),
    "exact, eta": ({"eta": 0.3}, False),
    "exact, prior": ({"eta": 0.3, "prior": PRIOR}, False),
    "exact, one step": ({"solver": frot.Exact(max_iter=1)}, False),
    "linear program": ({"solver": "linear_program"}, False),
    "interior point": ({"solver": frot.LinearProgram(method="ipm")}, False),
    "entropic": ({"eta": 0.3, "eps": 0.2}, True),
    "entropic, no eta": ({"eps": 0.2}, True),
    "entropic, prior": ({"eta": 0.3, "eps": 0.2, "prior": PRIOR}, True),
    "entropic, one step": ({"eps": 0.2, "solver": frot.Entropic(max_iter=1)}, True),
    "entropic, tight": ({"eps": 0.2, "solver": frot.Entropic(tol=1e-9)}, True),
    "entropic, small eps": ({"eps": 0.01}, True),
    "streamed": ({"eta": 0.3, "eps": 0.2, "memory_budget": 10}, True),
    **{
        f"simplex, {step}": (
            {"eta": 0.3, "solver": FrankWolfe(NetworkSimplex(), step, max_iter=9)},
            False,
        )
        for step in STEPS
    },
    **{
        f"Sinkhorn, {step}": (
            {"eta": 0.3, "solver": FrankWolfe(Sinkhorn(eps=0.2), step, max_iter=4)},
            False,
        )
        for step in STEPS
    },
    "simplex, no eta": ({"solver": FrankWolfe()}, False),
    "cutting set": ({"solver": "cutting_set"}, False),
}


def test_every_solver_of_the_registry_is_here():
    asked = [options.get("solver", "exact") for options, _ in SOLVERS.values()]
    used = {type(solvers.SOLVERS.get(name, name)) for name in asked if isinstance(name, str)}
    used |= {type(solver) for solver in asked}
    assert {type(solver) for solver in solvers.SOLVERS.values()} <= used


@pytest.mark.parametrize("a", [A, HOLES], ids=["", "holes"])
@pytest.mark.parametrize("name", SOLVERS)
def test_of_points(name: str, a: np.ndarray):
    options, entropy = SOLVERS[name]
    found = quiet(frot.solve, X, Y, GROUPS, a=a, b=B, **options)
    check(found, STACK, a, prior=options.get("prior"), entropy=entropy)


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "streamed"])
def test_of_costs(name: str):
    options, entropy = SOLVERS[name]
    # Some costs below zero, and one group twice.
    stack = np.concatenate([STACK - 1.0, STACK[:1] - 1.0])[[0, 1, 3]]
    found = quiet(frot.solve_costs, stack, A, B, **options)
    check(found, stack, prior=options.get("prior"), entropy=entropy)


@pytest.mark.parametrize("library", FOREIGN, ids=str)
@pytest.mark.parametrize("name", ["exact, eta", "entropic", "streamed", "Sinkhorn, paper"])
def test_of_other_libraries(name: str, library: Library):
    options, entropy = SOLVERS[name]
    given = {"X": X, "Y": Y, "a": A, "b": B}
    found = quiet(frot.solve, **{k: library(v) for k, v in given.items()}, groups=GROUPS, **options)
    x, y, a, b = (np.asarray(v, dtype=library.precision).astype(float) for v in given.values())
    a, b = a / a.sum(), b / b.sum()
    stack = np.stack([((x[:, None, g] - y[None][..., g]) ** 2).sum(-1) for g in GROUPS])
    plan = np.asarray(found.plan)
    value = smooth(np.einsum("lij,ij->l", stack, plan), found.eta)
    value += found.eps * divergence(plan, a, b) if entropy else 0.0
    check_value(found, value, entropy, 1e-9 if library.precision == "float64" else 1e-6)


@pytest.mark.parametrize("how", ["mean", "regret"])
def test_of_normalised_costs(how: str):
    found = frot.solve(X, Y, GROUPS, a=A, b=B, eta=0.1, normalise=how)
    means = np.einsum("lij,i,j->l", STACK, A, B)[:, None, None]
    if how == "mean":
        stack = STACK / means
    else:
        alone = [frot.solve_costs(cost[None], A, B).value for cost in STACK]
        stack = STACK - np.array(alone)[:, None, None]
    phi = np.einsum("lij,ij->l", stack, np.asarray(found.plan))
    assert found.phi == pytest.approx(phi, rel=1e-9)
    check_value(found, smooth(phi, 0.1), entropy=False, near=1e-9)


def test_of_batches():
    many = [RNG.normal(size=(4, size, D)) for size in (N, M)]
    batch = frot.solve_batch(many[0], many[1], GROUPS, a=A, b=B, eta=0.3, eps=0.2, prior=PRIOR)
    for x, y, found, plan in zip(many[0], many[1], batch, batch.plans(), strict=True):
        stack = np.stack([((x[:, None, g] - y[None][..., g]) ** 2).sum(-1) for g in GROUPS])
        check(found, stack, prior=PRIOR, entropy=True)
        assert np.asarray(found.plan) == pytest.approx(plan, rel=1e-12, abs=1e-16)


def moments(plan: np.ndarray) -> np.ndarray:
    """The displacements' second moments, (d, d)."""
    steps = X[:, None] - Y[None]
    return np.einsum("ij,ijk,ijl->kl", plan, steps, steps)


def along(plan: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    return float((plan * (x[:, None] - y) ** 2).sum())


def shared(found: Result) -> float:
    """The most that any group pays of its own part."""
    return float(np.asarray(found.phi).max())


def chosen(found: Result) -> np.ndarray:
    assert found.chosen is not None
    return np.asarray(found.chosen.array)


POINTS: dict[str, Any] = {"X": X, "Y": Y, "a": A, "b": B}
COSTS: dict[str, Any] = {"C": STACK, "a": A, "b": B}
CAPPED = frot.CappedSimplex(2)
RELATIVES: dict[str, tuple[Callable[..., Result], dict[str, Any], Callable[..., float]]] = {
    "wasserstein": (
        frot.wasserstein,
        POINTS,
        lambda found, plan: float(np.trace(moments(plan))),
    ),
    "srw": (
        lambda **given: frot.srw(**given, k=2),
        POINTS,
        lambda found, plan: float(np.linalg.eigvalsh(moments(plan))[-2:].sum()),
    ),
    "max_min": (
        lambda **given: frot.max_min(**given, groups=GROUPS),
        POINTS,
        lambda found, plan: float((STACK[found.alpha.argmax()] * plan).sum()),
    ),
    "max_sliced": (
        frot.max_sliced,
        POINTS,
        lambda found, plan: along(plan, X @ chosen(found), Y @ chosen(found)),
    ),
    "cutting_set": (
        lambda **given: frot.solve_costs(**given, adversary=CAPPED, solver="cutting_set"),
        COSTS,
        lambda found, plan: CAPPED.best(np.einsum("lij,ij->l", STACK, plan))[0],
    ),
    "equitable": (frot.equitable, COSTS, lambda found, plan: shared(found)),
}


@pytest.mark.parametrize("name", RELATIVES)
def test_of_relatives(name: str):
    call, given, objective = RELATIVES[name]
    found = quiet(call, **given)
    plan = np.asarray(found.plan)
    assert plan.sum(axis=1) == pytest.approx(A, abs=1e-12)
    assert plan.sum(axis=0) == pytest.approx(B, abs=1e-12)
    assert found.value == pytest.approx(objective(found, plan), rel=1e-9)
    assert found.lower <= found.value * (1.0 + 1e-9)
    assert found.value <= found.upper * (1.0 + 1e-12)


def test_sliced_says_that_its_value_is_an_estimate():
    """The one value that is no plan's: the mean over directions has a plan for each of them."""
    found = frot.sliced(**POINTS)
    assert found.status is frot.Status.ESTIMATE
    each = np.diag(moments(np.asarray(found.plan)))
    assert found.phi == pytest.approx(each, rel=1e-12)
    assert found.lower <= found.value <= found.upper
