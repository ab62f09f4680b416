"""Passes over the plan of a potential, with exact rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp, xlogy

import frot
from frot import Simplex
from frot._base.arrays import Home
from frot.costs.points import Points
from frot.costs.stack import Stack
from frot.solvers.entropic.certificate import (
    balanced_objective,
    certify,
    certify_start,
    kernel_pass,
    unbalanced_objective,
)
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.entropic_problem import EntropicProblem

RNG = np.random.default_rng(0)
COSTS = RNG.random((3, 7, 5))
ALPHA = np.array([[0.2, 0.5, 0.3]])
MIXED = (ALPHA @ COSTS.reshape(3, -1)).reshape(7, 5)
A = RNG.dirichlet(np.ones(7))
EPS = 0.05


def engine_of(b: np.ndarray) -> DenseEngine:
    sizes = np.full((1, 3), 0.5)
    problem = EntropicProblem.of(Home.of(COSTS), A[None], b[None], Simplex(), EPS, sizes)
    return DenseEngine(Stack(COSTS[None]), problem)


@pytest.mark.parametrize("b", [np.full(5, 0.2), RNG.dirichlet(np.ones(5))], ids=["even", "uneven"])
def test_a_pass_is_the_softmin_and_its_plan(b: np.ndarray):
    engine, g = engine_of(b), RNG.normal(size=(1, 5))
    shifted = g[0] - b @ g[0]
    first = engine.passes(ALPHA).first(shifted[None])
    f = -EPS * np.asarray(logsumexp((shifted - MIXED) / EPS, b=b[None], axis=1))
    plan = A[:, None] * b * np.exp((f[:, None] + shifted - MIXED) / EPS)
    assert first.g[0] == pytest.approx(shifted, rel=1e-14)
    assert first.f[0] == pytest.approx(f, rel=1e-12)
    assert first.masses[0] == pytest.approx(plan.sum(axis=0), rel=1e-12)


def test_thinned_columns_are_counted():
    b = RNG.dirichlet(np.ones(5))
    engine, thin = engine_of(b), RNG.random((1, 5))
    passes = engine.passes(ALPHA)
    first = passes.first(RNG.normal(size=(1, 5)))
    rows, phi = passes.second(first, thin)
    f, g = first.f[0], first.g[0]
    plan = A[:, None] * b * np.exp((f[:, None] + g - MIXED) / EPS) * thin
    assert rows[0] * A == pytest.approx(plan.sum(axis=1), rel=1e-12)
    assert phi[0] == pytest.approx((COSTS * plan).sum(axis=(1, 2)), rel=1e-12)


UNIT = 2.0**-52


def one_group(eps: float, points: bool, b: np.ndarray) -> DenseEngine:
    """Squared distances of points, as such or as a matrix."""
    X, Y = (np.random.default_rng(seed).normal(size=(1, n, 3)) for seed, n in ((1, 7), (2, 5)))
    stack = ((X[:, :, None] - Y[:, None]) ** 2).sum(axis=-1)[:, None]
    geometry = Points(X, Y, np.ones((1, 3))) if points else Stack(stack)
    problem = EntropicProblem.of(
        Home.of(X), A[None], b[None], Simplex(), eps, geometry.sizes(A[None], b[None])
    )
    return DenseEngine(geometry, problem)


@pytest.mark.parametrize("b", [np.full(5, 0.2), np.array([0.1, 0.3, 0.2, 0.25, 0.15])])
@pytest.mark.parametrize("points", [True, False])
@pytest.mark.parametrize("eps", [50.0, 3.0, 0.4])
def test_the_kernel_of_a_search_makes_the_plan_that_its_potentials_make(eps, points, b):
    engine, one = one_group(eps, points, b), np.ones((1, 1))
    at = engine.start(one, 1e-3)
    passes = engine.passes(one)
    kept = kernel_pass(engine.problem, at)
    formed = passes.first(at.g - b @ at.g[0])
    assert kept is not None
    assert kept.g == pytest.approx(formed.g, abs=1e-14 * (eps + 10.0))
    assert kept.f == pytest.approx(formed.f, abs=1e-14 * (eps + 10.0))
    assert kept.masses == pytest.approx(formed.masses, rel=1e-12)
    thin = RNG.random((1, 5))
    for mine, its in zip(passes.second(kept, thin), passes.second(formed, thin), strict=True):
        assert mine == pytest.approx(its, rel=1e-12)


def test_a_kernel_that_costs_digits_does_not_serve():
    engine, one = one_group(3.0, True, np.full(5, 0.2)), np.ones((1, 1))
    problem, at = engine.problem, engine.start(one, 1e-3)
    assert kernel_pass(problem, at) is not None
    assert kernel_pass(problem, replace(at, base=at.base + 1e3)) is None
    assert kernel_pass(problem, replace(at, f=at.f - 1e3, g=at.g + 1e3)) is None
    assert kernel_pass(problem, replace(at, kernel=at.kernel.astype("float32"))) is None
    assert kernel_pass(problem, replace(at, kernel=None)) is None
    assert kernel_pass(problem, replace(at, left=0.0 * at.left)) is None
    assert kernel_pass(replace(problem, uneven=True), at) is None
    assert kernel_pass(replace(problem, eps=1e-3 * problem.eps), at) is None


@pytest.mark.parametrize("eps", [1e-2, 1.4e-3])
def test_a_light_column_far_away_gets_what_it_weighs(eps):
    costs = np.array([[[0.0, 2.0], [0.0, 2.0]]])
    b = np.array([0.9926262469828404, 0.007373753017159583])
    found = frot.solve_costs(costs, b=b, eps=eps)
    assert found.plan.sum(axis=0) == pytest.approx(b, rel=16.0 * UNIT, abs=0.0)


def kl(x: np.ndarray, y: np.ndarray) -> float:
    """The divergence of masses of any sums: sum x log(x / y) - x + y."""
    return float((xlogy(x, x / y) - x + y).sum())


@pytest.mark.parametrize("b", [np.full(5, 0.2), np.array([0.1, 0.3, 0.2, 0.25, 0.15])])
def test_a_rough_plan_is_shrunk_filled_and_charged_for_its_entropy(b: np.ndarray):
    """The upper bound of `docs/proofs.md`, of potentials that are far from optimal."""
    engine, g = engine_of(b), np.array([[0.2, -0.1, 0.05, 0.0, -0.15]])
    passes = engine.passes(ALPHA)
    first = passes.first(g - b @ g[0])
    found = balanced_objective(engine, passes, ALPHA, first)
    f, product = first.f[0], np.outer(A, b)
    plan = product * np.exp((f[:, None] + first.g[0] - MIXED) / EPS)
    plan *= 1.0 / np.maximum(plan.sum(axis=0) / b, 1.0)
    u, v = (np.maximum(w - plan.sum(axis=i), 0.0) for w, i in ((A, 1), (b, 0)))
    t = 1.0 - plan.sum()
    assert t > 0.1
    whole = plan + np.outer(u, v) / t
    assert np.outer(found.left[0], found.right[0]) == pytest.approx(whole - plan, abs=1e-15)
    assert found.phi[0] == pytest.approx((COSTS * whole).sum(axis=(1, 2)), rel=1e-12)
    parts = t * kl(u / t, A) + t * kl(v / t, b) - (1.0 - t) * np.log(1.0 - t)
    expected = EPS * (float(xlogy(plan, plan / product).sum()) + parts)
    assert found.extra[0] == pytest.approx(expected, rel=1e-10)
    assert found.extra[0] >= EPS * kl(whole, product)
    assert found.dual[0] == pytest.approx(A @ f + b @ first.g[0], rel=1e-12)
    assert found.size[0] == abs(found.extra[0])


UNEVEN = np.array([0.1, 0.3, 0.2, 0.25, 0.15])


@pytest.mark.parametrize("points", [True, False])
def test_margins_have_the_constants_of_the_proofs(points: bool):
    """`docs/proofs.md`: six units a score, 8 + (n + m) / 2 a sum, L + 4 and six a mixture."""
    engine = one_group(3.0, points=True, b=UNEVEN) if points else engine_of(UNEVEN)
    alpha = np.ones((1, 1)) if points else ALPHA
    eps, groups = float(engine.problem.eps[0, 0]), alpha.shape[1]
    g = np.array([[0.2, -0.1, 0.05, 0.0, -0.15]])
    g = g - UNEVEN @ g[0]
    passes = engine.passes(alpha)
    first = passes.first(g)
    objective = balanced_objective(engine, passes, alpha, first)
    size = objective.size[0]
    masses = np.maximum(first.masses[0], UNEVEN)
    carried = A @ np.abs(first.f[0]) + 2.0 * masses @ np.abs(g[0])
    mass = masses.sum() + 1.0
    scores = 6.0 * (carried + eps * (2.0 * mass + masses @ np.abs(np.log(UNEVEN))))
    sums = 2.0 * (8.0 + 12.0 / 2.0) * (carried + eps * mass + size)
    off = passes.rounding()
    rows, cols = np.broadcast_to(off.rows, (1, 7))[0], np.broadcast_to(off.cols, (1, 5))[0]
    assert (rows.min() > 0.0) == points
    assert (cols.min() > 0.0) == points
    share = float(np.squeeze(off.relative)) + (groups + 4.0 + 6.0) * UNIT
    expected = UNIT * (scores + sums) + A @ rows + masses @ cols + share * (carried + size)
    found = certify(engine, alpha, g)
    slack = found.slack[0]
    assert slack == pytest.approx(expected, rel=1e-9, abs=0.0)
    # Above, what the costs are off by comes to it, and nine sums of the two products' masses.
    doubt = passes.doubt(objective.phi, A[None], UNEVEN[None])[0]
    doubt = doubt + 9.0 * (8.0 + 12.0 / 2.0) * UNIT * 2.0 * engine.problem.sizes[0]
    worst = float((objective.phi[0] + doubt).max())
    upper = worst + objective.extra[0] + slack
    assert found.upper[0] == pytest.approx(upper, abs=4.0 * UNIT * worst)
    # A constant of the potentials changes nothing.
    assert certify(engine, alpha, g + 64.0).slack[0] == pytest.approx(slack, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("tau", [(0.7, 0.4), (0.7, np.inf)], ids=["both", "rows"])
def test_a_rough_plan_pays_for_what_it_does_not_keep(tau: tuple[float, float]):
    a, b = 2.0 * A, np.array([0.1, 0.3, 0.2, 0.25, 0.15])
    problem = EntropicProblem.of(
        Home.of(COSTS), a[None], b[None], Simplex(), EPS, np.full((1, 3), 0.5), tau=tau
    )
    engine = DenseEngine(Stack(COSTS[None]), problem)
    passes = engine.passes(ALPHA)
    first = passes.first(np.array([[0.2, -0.1, 0.05, 0.0, -0.15]]))
    found = unbalanced_objective(engine, passes, ALPHA, first)
    f, g, product = first.f[0], first.g[0], np.outer(a, b)
    plan = product * np.exp((f[:, None] + g - MIXED) / EPS)
    # The damped softmin: rows weigh what their potential lets them keep.
    assert plan.sum(axis=1) == pytest.approx(a * np.exp(-f / 0.7), rel=1e-12)
    over = EPS * float(plan.sum() - product.sum())
    dual = -0.7 * float(a @ np.expm1(-f / 0.7)) - over
    dual += float(b @ g) if np.isinf(tau[1]) else -0.4 * float(b @ np.expm1(-g / 0.4))
    assert found.dual[0] == pytest.approx(dual, rel=1e-10)
    if np.isinf(tau[1]):
        plan *= b / plan.sum(axis=0)
    rows, cols = plan.sum(axis=1), plan.sum(axis=0)
    price = 0.7 * kl(rows, a) + (0.0 if np.isinf(tau[1]) else 0.4 * kl(cols, b))
    assert found.rows[0] == pytest.approx(rows, rel=1e-12)
    assert found.cols[0] == pytest.approx(cols, rel=1e-12)
    entropy = EPS * kl(plan, product)
    assert found.extra[0] == pytest.approx(entropy + price, rel=1e-10)
    assert found.size[0] == pytest.approx(abs(entropy) + price + abs(over), rel=1e-10)


def test_a_column_that_is_kept_and_empty_has_no_upper_bound():
    """Potentials so low that a column gets no mass: scaling it to its weight is impossible."""
    problem = EntropicProblem.of(
        Home.of(COSTS), A[None], UNEVEN[None], Simplex(), EPS, np.full((1, 3), 0.5),
        tau=(0.7, np.inf),
    )  # fmt: skip
    engine = DenseEngine(Stack(COSTS[None]), problem)
    some = np.array([[0.2, -0.1, 0.05, 0.0, -0.15]])
    assert np.isfinite(certify(engine, ALPHA, some).upper[0])
    none = some - np.array([[0.0, 0.0, 1e3, 0.0, 0.0]])
    found = certify(engine, ALPHA, none)
    assert found.upper[0] == np.inf
    assert np.isfinite(found.lower[0])


def test_a_start_has_equal_weights():
    found = certify_start(engine_of(UNEVEN))
    assert found.alpha[0] == pytest.approx(np.full(3, 1 / 3))
    assert found.lower[0] <= found.value[0] <= found.upper[0]


def test_a_plan_whose_rows_came_out_too_heavy_is_scaled_down(monkeypatch: pytest.MonkeyPatch):
    engine = engine_of(UNEVEN)
    passes = engine.passes(ALPHA)
    first = passes.first(np.array([[0.2, -0.1, 0.05, 0.0, -0.15]]))
    thin = np.minimum(UNEVEN / first.masses, 1.0)
    rows, phi = passes.second(first, thin)
    heavy = 2.0 / rows.max()
    monkeypatch.setattr(type(passes), "second", lambda *given: (heavy * rows, heavy * phi))
    found = balanced_objective(engine, passes, ALPHA, first)
    assert found.weight[0] == pytest.approx(0.5, rel=1e-12)
    left, right = found.left[0], found.right[0]
    # Rows and columns lack what the plan, at half its weight, does not have.
    columns = first.masses[0] * thin[0]
    assert left.sum() == pytest.approx(1.0 - 0.5 * columns.sum(), rel=1e-12)
    filled = np.einsum("lij,i,j->l", COSTS, left, right)
    assert found.phi[0] == pytest.approx(0.5 * heavy * phi[0] + filled, rel=1e-12)
    entropy = found.extra[0] + ALPHA[0] @ (0.5 * heavy * phi[0])
    scale = EPS * np.log(thin[0] * 0.5)
    linear = 0.5 * heavy * (A * rows[0]) @ first.f[0] + 0.5 * columns @ (first.g[0] + scale)
    mass = 0.5 * heavy * float(A @ rows[0])
    mixing = -mass * np.log(mass)
    for part, full in ((left / left.sum(), A), (right, UNEVEN)):
        mixing += left.sum() * float(xlogy(part, part / full).sum())
    assert entropy == pytest.approx(linear + EPS * mixing, rel=1e-9)


@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_the_lower_bound_has_the_margin_and_the_reward_of_the_weights(eta: float):
    problem = EntropicProblem.of(
        Home.of(COSTS), A[None], UNEVEN[None], Simplex(eta), EPS, np.full((1, 3), 0.5)
    )
    engine = DenseEngine(Stack(COSTS[None]), problem)
    found = certify(engine, ALPHA, np.array([[0.2, -0.1, 0.05, 0.0, -0.15]]))
    reward = -eta * float(ALPHA[0] @ np.log(ALPHA[0]))
    error = float(problem.adversary.reward_error(ALPHA)[0])
    dual = float(A @ found.f[0] + UNEVEN @ found.g[0])
    assert dual > 0.1
    assert (error > 8.0 * UNIT * reward) == (eta > 0.0)
    assert found.lower[0] == pytest.approx(
        dual + reward - found.slack[0], abs=UNIT * (dual + reward)
    )
    without = certify(engine_of(UNEVEN), ALPHA, np.array([[0.2, -0.1, 0.05, 0.0, -0.15]]))
    assert found.slack[0] - error == pytest.approx(without.slack[0], rel=1e-9, abs=0.0)
