import warnings

import numpy as np
import pytest

import frot
from frot.selection._costs import BlockedCosts, pooling
from frot.selection._frank_wolfe import (
    Eta,
    eta_for_perplexity,
    solve_classes,
    target_perplexity,
)
from frot.selection._scaling import Sides, scale_sides
from tests.selection.planted import blocked, planted


def perplexity(phi, eta):
    weight = np.exp((phi - phi.max()) / eta)
    weight = weight[weight > 0.0] / weight.sum()
    return np.exp(-(weight @ np.log(weight)))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("target", [1.01, 5.0, 150.0, 990.0])
@pytest.mark.parametrize("start", [None, 1e-8, 1e8])
def test_perplexity_is_met_whatever_the_units_and_the_guess(scale, target, start):
    phi = scale * np.random.default_rng(0).gamma(2.0, size=1000)
    assert perplexity(phi, eta_for_perplexity(phi, target, start)) == pytest.approx(target)


def test_ties_at_the_top_leave_the_smallest_eta():
    phi = np.array([1.0, 1.0, 1.0, 0.0])
    eta = eta_for_perplexity(phi, 2.0)
    assert 0.0 < eta < 1e-5


def test_equal_costs_have_some_eta():
    assert eta_for_perplexity(np.full(4, 3.0), 2.0) > 0.0
    assert eta_for_perplexity(np.zeros(4), 2.0) > 0.0


def test_target_is_capped_at_half():
    assert target_perplexity(1, 1) == 1.0
    assert target_perplexity(1000, 1001) == 501.0


def referee(costs, groups, eta):
    x, y = costs.scaled.block(slice(None))
    a, b = costs.scaled.sides.weights
    if costs.pool is None:
        return frot.solve(x.T, y.T, groups, a=a, b=b, eta=eta)
    stack = np.tensordot(costs.pool.toarray(), (x[:, :, None] - y[:, None, :]) ** 2, axes=1)
    return frot.solve_costs(stack, a, b, eta=eta)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaling", ["balanced", "paper"])
@pytest.mark.parametrize("eta", [Eta(value=0.05), Eta(value=3.0), Eta(perplexity=4.0)])
def test_the_interval_holds_the_optimum(weighted, scaling, eta):
    costs = blocked(scaling, weighted=weighted)
    groups = frot.Groups.each(12)
    found = solve_classes(costs, groups, eta)
    exact = referee(costs, groups, found.eta)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper
    assert found.status.ok
    assert found.gap <= 1e-2
    assert found.lower <= found.value <= found.upper


def test_the_interval_closes_on_the_optimum():
    costs, groups = blocked(), frot.Groups.each(12)
    found = solve_classes(costs, groups, Eta(value=0.2), tol=1e-4, max_iter=5000)
    exact = referee(costs, groups, 0.2)
    assert found.value == pytest.approx(exact.value, rel=1e-4)
    np.testing.assert_allclose(found.phi, exact.phi, atol=0.05)


def test_groups_are_solved_with_their_pooling():
    costs = blocked()
    groups = frot.Groups.from_indices([[0, 1, 2], [2, 3, 4], [5, 6], [7, 8, 9, 10, 11]], 12)
    costs = BlockedCosts(costs.scaled, pooling(groups, costs.scaled.units.constant, "mean"))
    found = solve_classes(costs, groups, Eta(perplexity=2.0), tol=1e-4, max_iter=2000)
    exact = referee(costs, groups, found.eta)
    assert found.value == pytest.approx(exact.value, rel=1e-4)
    assert found.names == groups.names


@pytest.mark.parametrize(("n", "m", "d"), [(20, 30, 300), (8, 5, 2000), (30, 30, 20)])
@pytest.mark.parametrize("gap", [0.0, 1.0, 4.0])
def test_routine_fits_converge_without_a_warning(n, m, d, gap):
    X, y = planted(n, m, d, gap)
    first, second = np.flatnonzero(y == "control"), np.flatnonzero(y != "control")
    costs = BlockedCosts(scale_sides(Sides.of(X, first, second)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve_classes(costs, frot.Groups.each(d), Eta(perplexity=6.0))
    assert found.status.ok


def test_alpha_answers_the_plan_and_has_the_perplexity():
    X, y = planted(d=400)
    sides = Sides.of(X, np.flatnonzero(y == "control"), np.flatnonzero(y == "treated"))
    found = solve_classes(BlockedCosts(scale_sides(sides)), frot.Groups.each(400), Eta(None, 9.0))
    answer = np.exp((found.phi - found.phi.max()) / found.eta)
    np.testing.assert_allclose(found.alpha, answer / answer.sum(), rtol=1e-9)
    assert found.perplexity == pytest.approx(9.0, rel=1e-6)
    np.testing.assert_allclose(found.plan.sum(axis=1), sides.weights[0])
    np.testing.assert_allclose(found.plan.sum(axis=0), sides.weights[1])


def test_eta_has_a_floor_where_the_plan_makes_costs_equal():
    X, y = planted(gap=0.0, d=2000)
    sides = Sides.of(X, np.flatnonzero(y == "control"), np.flatnonzero(y == "treated"))
    found = solve_classes(BlockedCosts(scale_sides(sides)), frot.Groups.each(2000), Eta(None, 3.0))
    assert found.eta == pytest.approx(0.015 * found.mean_cost)
    assert found.perplexity > 3.0
    assert found.status.ok


def test_a_run_that_ends_early_says_so_and_its_interval_holds():
    costs, groups = blocked(), frot.Groups.each(12)
    with pytest.warns(frot.ConvergenceWarning, match="Stopped at max_iter"):
        found = solve_classes(costs, groups, Eta(value=0.05), tol=1e-9, max_iter=2)
    exact = referee(costs, groups, 0.05)
    assert found.status is frot.Status.MAX_ITER
    assert found.lower <= exact.value <= found.upper


def test_costs_that_are_all_zero_are_solved():
    sides = Sides.of(np.ones((4, 2)), np.arange(2), np.arange(2, 4))
    found = solve_classes(BlockedCosts(scale_sides(sides)), frot.Groups.each(2), Eta(None, 1.0))
    assert found.phi.tolist() == [0.0, 0.0]
