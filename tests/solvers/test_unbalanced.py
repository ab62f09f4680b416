"""Marginals that need not be kept, at the price of their divergence: with eps and without."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import rel_entr

import frot
from tests.libraries import FOREIGN, Library
from tests.strategies import seeds

INF = float("inf")
PRICES = [(0.02, 0.02), (0.1, 0.4), (1.0, 1.0), (1.0, INF), (INF, 0.3), (50.0, 50.0)]


def divergence(x: np.ndarray, y: np.ndarray) -> float:
    return float((rel_entr(x, y) - x + y).sum())


def objective(
    stack: np.ndarray, a: np.ndarray, b: np.ndarray, plan: np.ndarray, tau: tuple[float, float],
    eta: float, eps: float,
) -> float:  # fmt: skip
    """What a plan costs."""
    found = frot.Simplex(eta).best((stack * plan).sum(axis=(1, 2)))[0]
    if eps > 0.0:
        found += eps * divergence(plan, np.outer(a, b))
    for price, kept, weights in ((tau[0], plan.sum(1), a), (tau[1], plan.sum(0), b)):
        if price < INF:
            found += price * divergence(kept, weights)
    return found


def reference(
    stack: np.ndarray, a: np.ndarray, b: np.ndarray, tau: tuple[float, float], eta: float,
    eps: float,
) -> float:  # fmt: skip
    """Minimise over plans of positive entries, by their logarithms; both sides soft, eta > 0."""

    def both(score: np.ndarray) -> tuple[float, np.ndarray]:
        plan = np.exp(score.reshape(stack.shape[1:]))
        _, alpha = frot.Simplex(eta).best((stack * plan).sum(axis=(1, 2)))
        slope = np.tensordot(alpha, stack, 1)
        slope = slope + tau[0] * np.log(plan.sum(1) / a)[:, None]
        slope = slope + tau[1] * np.log(plan.sum(0) / b)
        if eps > 0.0:
            slope = slope + eps * np.log(plan / np.outer(a, b))
        return objective(stack, a, b, plan, tau, eta, eps), (slope * plan).ravel()

    start = np.log(np.outer(a, b)).ravel()
    options = {"maxiter": 400, "maxfun": 600, "ftol": 1e-15, "gtol": 1e-10}
    return float(minimize(both, start, jac=True, method="L-BFGS-B", options=options).fun)


def drawn(seed: int, shape: tuple[int, int, int] = (3, 4, 5)) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    a, b = 0.1 + rng.random(shape[1]), 0.1 + rng.random(shape[2])
    return rng.random(shape) ** 2, a / a.sum(), 1.5 * b / b.sum()


@settings(max_examples=12)
@given(seeds, st.sampled_from([(0.05, 0.05), (0.3, 0.1), (3.0, 2.0)]), st.sampled_from([0.0, 0.05]))
def test_the_interval_holds_the_reference(seed: int, tau: tuple[float, float], eps: float) -> None:
    stack, a, b = drawn(seed)
    res = frot.solve_costs(stack, a, b, tau=tau, eta=0.1, eps=eps, tol=1e-7)
    truth = reference(stack, a, b, tau, 0.1, eps)
    # The reference is the objective of a plan: it may be above the optimum, never below; without
    # eps it is so by more, since entries of zero are far away in logarithms.
    assert res.lower <= truth * (1 + 1e-12)
    assert truth - (1e-4 if eps > 0.0 else 2e-2) * abs(truth) <= res.upper <= truth * (1 + 2e-7)
    assert res.gap <= 1e-7


@pytest.mark.parametrize("tau", PRICES)
@pytest.mark.parametrize("eps", [0.0, 0.02])
@pytest.mark.parametrize("shape", [(4, 40, 30), (1, 25, 35), (2, 1, 5), (2, 6, 1)])
def test_values_are_those_of_plans(
    tau: tuple[float, float], eps: float, shape: tuple[int, int, int]
) -> None:
    stack, a, b = drawn(1, shape)
    res = frot.solve_costs(stack, a, b, tau=tau, eps=eps, tol=1e-6)
    plan = np.asarray(res.plan)
    assert res.gap <= 1e-6
    assert res.value == pytest.approx(objective(stack, a, b, plan, tau, 0.0, eps), rel=1e-9)
    for price, kept, weights in zip(tau, res.marginals, (a, b), strict=True):
        if price == INF:
            assert kept == pytest.approx(weights, rel=1e-9)
    assert res.lower <= res.value <= res.upper


@pytest.mark.parametrize("eps", [0.0, 0.7])
def test_two_points_have_a_closed_form(eps: float) -> None:
    mass_a, mass_b, cost, (s, t) = 2.0, 0.5, 3.0, (0.7, 1.9)
    res = frot.solve_costs([[[cost]]], [mass_a], [mass_b], tau=(s, t), eps=eps, tol=1e-9)
    logs = s * np.log(mass_a) + t * np.log(mass_b) + eps * np.log(mass_a * mass_b)
    mass = np.exp((logs - cost) / (s + t + eps))
    value = s * mass_a + t * mass_b + eps * mass_a * mass_b - (s + t + eps) * mass
    assert res.lower <= value * (1 + 1e-14)
    assert value <= res.upper * (1 + 1e-14)
    assert res.mass == pytest.approx(mass, rel=1e-4)


@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_an_infinite_price_is_the_ordinary_problem(eps: float) -> None:
    stack, a, b = drawn(2, (3, 12, 9))
    b = b / b.sum()
    plain = frot.solve_costs(stack, a, b, eps=eps, tol=1e-8)
    same = frot.solve_costs(stack, a, b, eps=eps, tol=1e-8, tau=INF)
    assert (same.value, same.lower, same.upper) == (plain.value, plain.lower, plain.upper)
    near = frot.solve_costs(stack, a, b, eps=eps, tol=1e-8, tau=1e6)
    assert near.value == pytest.approx(plain.value, rel=1e-5)
    assert near.mass == pytest.approx(1.0, abs=1e-5)


class TestOneGroup:
    """Against POT, whose answers are plans: never below the lower bound, and hardly above."""

    @staticmethod
    def drawn() -> tuple[np.ndarray, ...]:
        stack, a, b = drawn(3, (1, 20, 25))
        return stack[0], a, b

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    @pytest.mark.parametrize(
        ("how", "price"), [("mm", 0.05), ("mm", 0.5), ("mm", 5.0), ("lbfgsb", 0.05)]
    )
    def test_without_eps(self, price: float, how: str) -> None:
        cost, a, b = self.drawn()
        res = frot.solve_costs(cost[None], a, b, tau=price, tol=1e-8)
        call = {"mm": ot.unbalanced.mm_unbalanced, "lbfgsb": ot.unbalanced.lbfgsb_unbalanced}[how]
        options: dict[str, Any] = {"numItermax": 1000, "stopThr": 1e-12}
        if how == "lbfgsb":
            options |= {"reg": 0.0, "reg_m": price, "regm_div": "kl", "numItermax": 200}
        else:
            options |= {"reg_m": price}
        plan = call(a, b, cost, **options)
        theirs = objective(cost[None], a, b, plan, (price, price), 0.0, 0.0)
        assert res.lower <= theirs * (1 + 1e-12)
        assert res.upper <= theirs * (1 + 1e-7)
        # Multiplicative steps are slow where next to all mass is kept.
        assert theirs <= res.upper * (1 + 2e-2)

    @pytest.mark.parametrize("price", [0.05, 0.5, 5.0])
    def test_with_eps(self, price: float) -> None:
        cost, a, b = self.drawn()
        res = frot.solve_costs(cost[None], a, b, tau=price, eps=0.1, tol=1e-9)
        plan = ot.unbalanced.sinkhorn_unbalanced(
            a, b, cost, 0.1, price, numItermax=20_000, stopThr=1e-15, reg_type="kl"
        )
        theirs = objective(cost[None], a, b, plan, (price, price), 0.0, 0.1)
        assert res.lower <= theirs * (1 + 1e-12)
        assert theirs <= res.upper * (1 + 1e-7)


@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_sides_may_be_swapped(eps: float) -> None:
    stack, a, b = drawn(4, (3, 9, 14))
    one = frot.solve_costs(stack, a, b, tau=(0.2, 0.6), eps=eps, eta=0.05, tol=1e-8)
    other = frot.solve_costs(
        stack.transpose(0, 2, 1), b, a, tau=(0.6, 0.2), eps=eps, eta=0.05, tol=1e-8
    )
    assert one.value == pytest.approx(other.value, rel=1e-7)
    assert one.alpha == pytest.approx(other.alpha, abs=1e-3)


@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_answers_start_others(eps: float) -> None:
    stack, a, b = drawn(12, (3, 20, 14))
    first = frot.solve_costs(stack, a, b, tau=0.3, eps=eps, tol=1e-6)
    for start in (first, first.alpha, np.asarray(first.plan)):
        again = frot.solve_costs(stack, a, b, tau=0.3, eps=eps, tol=1e-6, start=start)
        assert again.value == pytest.approx(first.value, rel=2e-6)


def test_masses_scale_with_eta() -> None:
    stack, a, b = drawn(5, (3, 9, 14))
    one = frot.solve_costs(stack, a, b, tau=0.3, eta=0.05, tol=1e-8)
    many = frot.solve_costs(stack, 1e3 * a, 1e3 * b, tau=0.3, eta=50.0, tol=1e-8)
    assert many.value == pytest.approx(1e3 * one.value, rel=1e-7)


@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_prior_and_cap_combine(eps: float) -> None:
    stack, a, b = drawn(6, (4, 12, 10))
    options: dict[str, Any] = {"tau": (0.2, 0.6), "eps": eps, "tol": 1e-6}
    mean = frot.solve_costs(stack, a, b, adversary=frot.CappedSimplex(4), **options)
    alone = frot.solve_costs(stack.mean(axis=0)[None], a, b, **options)
    assert mean.value == pytest.approx(alone.value, rel=1e-5)
    prior = frot.solve_costs(stack, a, b, prior=[1.0, 2.0, 3.0, 4.0], eta=0.1, **options)
    assert prior.gap <= 1e-6


@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_points_without_weight_and_costs_of_nothing(eps: float) -> None:
    stack, a, b = drawn(7, (2, 6, 5))
    a[2], b[0] = 0.0, 0.0
    res = frot.solve_costs(stack, a, b, tau=0.3, eps=eps, tol=1e-6)
    small = frot.solve_costs(
        np.delete(np.delete(stack, 2, 1), 0, 2), np.delete(a, 2), np.delete(b, 0), tau=0.3,
        eps=eps, tol=1e-6,
    )  # fmt: skip
    assert res.value == pytest.approx(small.value, rel=1e-5)
    assert np.asarray(res.plan)[2].sum() == 0.0
    none = frot.solve_costs(0.0 * stack, a, b, tau=(0.3, 0.6), eps=eps, tol=1e-6)
    best = frot.solve_costs([[[0.0]]], [a.sum()], [b.sum()], tau=(0.3, 0.6), eps=eps, tol=1e-6)
    assert none.value == pytest.approx(best.value, rel=1e-5)


def test_units_do_not_matter_to_shares() -> None:
    rng = np.random.default_rng(8)
    X, Y = rng.normal(size=(15, 4)), 0.5 + rng.normal(size=(12, 4))
    metres, miles = (
        frot.solve(s * X, s * Y, tau=frot.relative(0.5), eps=frot.relative(0.05), tol=1e-7)
        for s in (1.0, 1e3)
    )
    assert miles.value == pytest.approx(1e6 * metres.value, rel=1e-6)
    assert miles.mass == pytest.approx(metres.mass, rel=1e-4)


def test_streamed() -> None:
    rng = np.random.default_rng(9)
    X, Y = rng.normal(size=(60, 4)), 0.5 + rng.normal(size=(50, 4))
    a = np.full(60, 0.05)
    options: dict[str, Any] = {"tau": (1.0, 3.0), "eps": 0.3, "tol": 1e-5}
    dense = frot.solve(X, Y, a=a, **options)
    streamed = frot.solve(X, Y, a=a, memory_budget=1.0, **options)
    assert streamed.gap <= 1e-5
    assert streamed.value == pytest.approx(dense.value, rel=2e-5)
    assert streamed.mass == pytest.approx(dense.mass, rel=1e-2)
    assert streamed.plan.shape == (60, 50)


@pytest.mark.parametrize("library", FOREIGN, ids=str)
@pytest.mark.parametrize("budget", [1e9, 1.0])
def test_in_other_libraries(library: Library, budget: float) -> None:
    rng = np.random.default_rng(9)
    X, Y = rng.normal(size=(30, 4)), 0.5 + rng.normal(size=(20, 4))
    a = np.full(30, 0.05)
    options: dict[str, Any] = {"tau": (1.0, 3.0), "eps": 0.3, "tol": 1e-4}
    here = frot.solve(X, Y, a=a, **options)
    there = frot.solve(library(X), library(Y), a=library(a), memory_budget=budget, **options)
    assert there.gap <= 1e-4
    assert there.value == pytest.approx(here.value, rel=2e-4)
    assert library.owns(there.marginals[0])


@pytest.mark.parametrize("eps", [0.0, 0.5])
@pytest.mark.parametrize("tau", [3.0, (INF, 3.0), (3.0, INF)])
def test_without_time_there_is_an_interval(eps: float, tau: Any) -> None:
    rng = np.random.default_rng(13)
    X, Y = rng.normal(size=(300, 4)), 0.5 + rng.normal(size=(200, 4))
    with pytest.warns(frot.ConvergenceWarning):
        short = frot.solve(X, Y, [2, 2], tau=tau, eps=eps, time_limit=1e-6, tol=1e-12)
    whole = frot.solve(X, Y, [2, 2], tau=tau, eps=eps, tol=1e-4)
    assert short.lower <= whole.upper
    assert whole.lower <= short.upper < INF
    assert short.status is frot.Status.TIME_LIMIT


@pytest.mark.parametrize("penalty", ["kl", "tv"])
def test_a_price_that_destroys_all_is_told_with_the_mean_cost(penalty: str) -> None:
    rng = np.random.default_rng(11)
    X, Y = rng.normal(size=(40, 4)), 1.0 + rng.normal(size=(30, 4))
    with pytest.warns(frot.DataWarning, match=r"tau: is too small") as told:
        frot.solve(X, Y, tau=1e-3, penalty=penalty)
    (cost,) = re.findall(r"the mean cost, (\S+)", str(told[0].message))
    assert frot.solve(X, Y, tau=float(cost), penalty=penalty).mass > 0.5
    with pytest.warns(frot.DataWarning, match=r"tau: is too small"):
        frot.solve(X, Y, tau=1e-7, penalty=penalty, tol=1e-7)


def test_members_that_keep_next_to_nothing_are_told() -> None:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(2, 20, 4))
    Y = X + np.array([0.0, 50.0])[:, None, None]
    with pytest.warns(frot.DataWarning, match=r"1 of 2 members kept .* the least member 1;"):
        found = frot.solve_batch(X, Y, tau=1.0, eps=0.01)
    assert found[1].mass < 0.01 < 0.5 < found[0].mass
    with pytest.warns(frot.DataWarning, match="nearer to the mean cost, "):
        frot.solve(X[1], Y[1], tau=1.0, eps=0.01)


def test_batches_are_their_members() -> None:
    rng = np.random.default_rng(10)
    X, Y = rng.normal(size=(4, 20, 5)), 0.5 + rng.normal(size=(4, 25, 5))
    a, b = 0.1 + rng.random((4, 20)), 0.1 + rng.random(25)
    options: dict[str, Any] = {
        "tau": (frot.relative(0.5), INF), "eps": frot.relative(0.05), "eta": 0.1, "tol": 1e-6,
    }  # fmt: skip
    b *= a.sum(axis=1).mean() / b.sum()
    batch = frot.solve_batch(X, Y, groups=[2, 3], a=a, b=b, **options)
    for at, member in enumerate(batch):
        one = frot.solve(X[at], Y[at], groups=[2, 3], a=a[at], b=b, **options)
        assert member.value == pytest.approx(one.value, rel=2e-6)
        assert member.lower <= one.upper
        assert one.lower <= member.upper
        assert member.tau == pytest.approx(one.tau)
        assert member.marginals[1] == pytest.approx(b)
        assert np.asarray(member.plan) == pytest.approx(np.asarray(one.plan), abs=1e-3)


def test_steps_do_not_overshoot_where_rounding_hides_the_dual() -> None:
    # Single precision sees no rise of the dual near the optimum; steps that grew all the same made
    # this problem take 33 iterations and three proofs.
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 40)), rng.normal(size=(200, 40))
    Y[:, :8] += 1.0
    options = {"eps": frot.relative(0.01), "tol": 1e-4, "solver": "entropic"}
    for tau in (None, frot.relative(10.0)):
        found = frot.solve(X, Y, [4] * 10, tau=tau, **options)
        assert found.gap <= 1e-4
        assert len(found.history) == 1
