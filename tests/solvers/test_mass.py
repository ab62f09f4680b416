"""Partial transport of a given mass: right, proven, and the whole problem where the mass is all."""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import frot
from tests.strategies import seeds

SHARES = st.sampled_from([1.0, 0.999, 0.7, 0.5, 0.1, 1e-3])


def program(stack: np.ndarray, a: np.ndarray, b: np.ndarray, mass: float) -> float:
    """Solve it as a linear program over plans of that mass, with HiGHS."""
    count, n, m = stack.shape
    above = np.hstack([stack.reshape(count, -1), -np.ones((count, 1))])
    rows = np.hstack([np.kron(np.eye(n), np.ones((1, m))), np.zeros((n, 1))])
    cols = np.hstack([np.kron(np.ones((1, n)), np.eye(m)), np.zeros((m, 1))])
    found = linprog(
        np.append(np.zeros(n * m), 1.0),
        np.vstack([above, rows, cols]),
        np.concatenate([np.zeros(count), a, b]),
        np.append(np.ones(n * m), 0.0)[None],
        [mass],
        bounds=[(0.0, None)] * (n * m) + [(None, None)],
    )
    return found.fun


def drawn(seed: int, signed: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 6)), int(rng.integers(1, 8)), int(rng.integers(1, 8)))
    stack = rng.random(shape) ** 2 - (0.5 if signed else 0.0)
    return stack, rng.random(shape[1]) + 0.01, rng.random(shape[2]) + 0.01


def proven(res: frot.Result, stack: np.ndarray, a: np.ndarray, b: np.ndarray, mass: float) -> float:
    """What potentials prove: mass that is left out is taken where they are highest."""
    f, g = res.potentials
    assert (f[:, None] + g <= np.tensordot(res.alpha, stack, 1) + 1e-9).all()
    a, b = np.minimum(a, mass), np.minimum(b, mass)
    left = (a.sum() - mass) * f.max() + (b.sum() - mass) * g.max()
    return float(a @ f + b @ g - left)


@given(seeds, SHARES, st.booleans())
def test_the_interval_holds_the_linear_program(seed: int, share: float, signed: bool) -> None:
    stack, a, b = drawn(seed, signed)
    mass = share * min(a.sum(), b.sum())
    res = frot.solve_costs(stack, a, b, mass=mass, tol=1e-8)
    truth = program(stack, a, b, mass)
    assert res.lower - 1e-8 <= truth <= res.upper + 1e-8
    assert res.gap <= 1e-8
    assert res.mass == pytest.approx(mass, rel=1e-12, abs=1e-14)
    kept_a, kept_b = res.marginals
    assert (kept_a <= a * (1 + 1e-12)).all()
    assert (kept_b <= b * (1 + 1e-12)).all()
    assert proven(res, stack, a, b, mass) == pytest.approx(truth, abs=1e-8)


@given(seeds, SHARES)
def test_with_eta_dual_and_primal_meet(seed: int, share: float) -> None:
    stack, a, b = drawn(seed)
    mass, eta = share * min(a.sum(), b.sum()), 0.2
    res = frot.solve_costs(stack, a, b, mass=mass, eta=eta, tol=1e-8)
    worst = res.phi.max()
    value = worst + eta * np.log(np.exp((res.phi - worst) / eta).sum())
    alpha = res.alpha[res.alpha > 0.0]
    lower = proven(res, stack, a, b, mass) - eta * (alpha @ np.log(alpha))
    assert res.value == pytest.approx(value, rel=1e-9)
    assert res.lower <= value * (1 + 1e-12)
    assert lower == pytest.approx(res.lower, rel=1e-7)
    assert res.gap <= 1e-8


def test_all_of_weights_whose_sum_was_nearly_one():
    stack, a, b = drawn(12)
    a, b = a / a.sum() * (1.0 + 6e-7), b / b.sum() * 2.0
    res = frot.solve_costs(stack, a, b, mass=float(a.sum()))
    assert res.mass == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("solver", ["exact", "linear_program", "frank_wolfe", "cutting_set"])
@pytest.mark.parametrize("signed", [False, True])
def test_all_solvers_agree(solver: str, signed: bool) -> None:
    stack, a, b = drawn(12, signed)
    mass = 0.6 * min(a.sum(), b.sum())
    res = frot.solve_costs(stack, a, b, mass=mass, solver=solver, tol=1e-5)
    assert res.lower - 1e-9 <= program(stack, a, b, mass) <= res.upper + 1e-9
    assert res.mass == pytest.approx(mass, rel=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_one_group_is_pots_partial_wasserstein(share: float) -> None:
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(3)
    cost, a, b = rng.random((12, 15)), np.full(12, 0.125), np.full(15, 0.0625)
    share *= 15 / 16
    plan = ot.partial.partial_wasserstein(a, b, cost, m=share)
    res = frot.solve_costs(cost[None], a, b, mass=share)
    assert res.value == pytest.approx((plan * cost).sum(), rel=1e-9)
    assert res.gap <= 1e-9


def test_points_of_one_pair_move_the_mass() -> None:
    res = frot.solve([[0.0, 0.0]], [[1.0, 2.0]], mass=0.25)
    assert (res.value, res.lower, res.upper) == pytest.approx((1.0, 1.0, 1.0), rel=1e-13)
    assert res.marginals == (np.array([0.25]), np.array([0.25]))


def test_the_nearest_go_first() -> None:
    # Pairs at distances 1, 2, 3, ...: of mass m / n those of the m nearest.
    n = 6
    X = 100.0 * np.arange(n)[:, None]
    Y = X + np.arange(1.0, n + 1.0)[:, None]
    for count in range(1, n + 1):
        res = frot.solve(X, Y, metric="euclidean", mass=count / n)
        assert res.value == pytest.approx(sum(range(1, count + 1)) / n, rel=1e-12)
        assert (np.asarray(res.plan).argmax(axis=1)[:count] == np.arange(count)).all()


def test_costs_below_zero_move_no_more_than_the_mass() -> None:
    stack = -np.ones((1, 3, 3)) - np.eye(3)
    res = frot.solve_costs(stack, mass=0.5)
    assert res.value == pytest.approx(-1.0, rel=1e-12)
    assert res.mass == pytest.approx(0.5, rel=1e-12)


def test_what_costs_nothing_is_moved_no_further_than_the_mass() -> None:
    X = np.arange(8.0)[:, None]
    res = frot.solve(X, X, mass=0.3)
    assert res.value == 0.0
    assert res.status.ok
    assert res.mass == pytest.approx(0.3, rel=1e-12)


@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_all_of_the_mass_is_the_whole_problem(eta: float) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 5)), rng.normal(size=(9, 5)) + 0.4
    whole = frot.solve(X, Y, [2, 3], eta=eta)
    res = frot.solve(X, Y, [2, 3], eta=eta, mass=1.0)
    assert res.value == pytest.approx(whole.value, rel=1e-9)
    assert res.marginals[0] == pytest.approx(whole.marginals[0], rel=1e-12)
    np.testing.assert_allclose(res.alpha, whole.alpha, atol=1e-6)


def test_more_mass_costs_more() -> None:
    stack, a, b = drawn(4)
    least = min(a.sum(), b.sum())
    values = [
        frot.solve_costs(stack, a, b, mass=share * least).value for share in np.linspace(0.1, 1, 10)
    ]
    # The optimum is a convex function of the mass.
    assert (np.diff(values) > 0.0).all()
    assert (np.diff(values, 2) > -1e-9).all()


def test_a_price_that_leaves_out_as_much_is_twice_the_slope() -> None:
    rng = np.random.default_rng(7)
    stack = rng.random((3, 20, 20))
    res = frot.solve_costs(stack, mass=0.615)
    top = res.potentials[0].max()
    assert res.potentials[1].max() == pytest.approx(top, abs=1e-9)
    priced = frot.solve_costs(stack, tau=top, penalty="tv")
    assert res.value + 2.0 * top * (1.0 - 0.615) == pytest.approx(priced.value, rel=1e-8)


def test_units_orders_and_sides_do_not_matter() -> None:
    stack, a, b = drawn(5)
    mass = 0.4 * min(a.sum(), b.sum())
    res = frot.solve_costs(stack, a, b, mass=mass)
    turned = frot.solve_costs(stack.transpose(0, 2, 1), b, a, mass=mass)
    assert turned.value == pytest.approx(res.value, rel=1e-9)
    dear = frot.solve_costs(1e6 * stack, a, b, mass=mass)
    assert dear.value == pytest.approx(1e6 * res.value, rel=1e-9)
    heavy = frot.solve_costs(stack, 1e3 * a, 1e3 * b, mass=1e3 * mass)
    assert heavy.value == pytest.approx(1e3 * res.value, rel=1e-9)
    order = np.random.default_rng(0).permutation(len(a))
    mixed = frot.solve_costs(stack[:, order], a[order], b, mass=mass)
    assert mixed.value == pytest.approx(res.value, rel=1e-9)
    # A constant that all groups share is paid by all the mass.
    raised = frot.solve_costs(stack + 2.0, a, b, mass=mass)
    assert raised.value == pytest.approx(res.value + 2.0 * mass, rel=1e-9)


def test_points_without_weight_get_nothing_and_prove_no_more() -> None:
    stack, a, b = drawn(14)
    a[0] = b[-1] = 0.0
    mass = 0.5 * min(a.sum(), b.sum())
    res = frot.solve_costs(stack, a, b, mass=mass)
    assert res.value == pytest.approx(program(stack, a, b, mass), rel=1e-8)
    assert (res.marginals[0][0], res.marginals[1][-1]) == (0.0, 0.0)
    assert proven(res, stack, a, b, mass) == pytest.approx(res.value, rel=1e-8)


def test_arcs_of_the_dummies_set_no_unit() -> None:
    # Most arcs cost next to nothing: those of the dummies, and those between near copies.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 6))
    Y = X[[4, 0]] + 1e-12 * rng.normal(size=(2, 6))
    a, b = np.full(5, 9.1), np.full(2, 0.0745)
    options = {"metric": "euclidean", "eta": frot.relative(0.065), "mass": 0.134}
    assert frot.solve(X, Y, a=a, b=b, **options).status is frot.Status.CONVERGED


def test_next_to_no_mass_keeps_its_digits() -> None:
    # Points send at most the mass: the two weights are as good as equal.
    stack = np.random.default_rng(1).random((2, 5, 6)) + 0.5
    res = frot.solve_costs(stack, mass=1e-12)
    value = 1e-12 * program(stack, np.ones(5), np.ones(6), 1.0)
    assert res.value == pytest.approx(value, rel=1e-6, abs=0.0)
    assert res.mass == pytest.approx(1e-12, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_unit_in_the_last_place_may_be_left_out_where_it_is_dearest(swapped: bool) -> None:
    near, far = np.zeros((1, 1)), np.array([[0.0], [3000.0]])
    b = np.array([0.5, 1e-10])
    mass = float(np.nextafter(b.sum(), 0.0))
    left = Fraction(b[0]) + Fraction(b[1]) - Fraction(mass)
    truth = (Fraction(b[1]) - left) * 9_000_000
    sides = (far, near, b, np.ones(1)) if swapped else (near, far, np.ones(1), b)
    with warnings.catch_warnings():
        # The interval is as wide as what is left out may be worth.
        warnings.simplefilter("ignore", frot.ConvergenceWarning)
        res = frot.solve(*sides[:2], a=sides[2], b=sides[3], mass=mass)
    assert 0 < left < 1e-15 < 1e-12 < float(left * 9_000_000)
    assert Fraction(res.lower) <= truth <= Fraction(res.upper)


def test_starts_and_capped_sets_are_taken() -> None:
    stack, a, b = drawn(17)
    mass = 0.5 * min(a.sum(), b.sum())
    res = frot.solve_costs(stack, a, b, mass=mass)
    for start in (res, res.alpha, np.outer(a, b)):
        again = frot.solve_costs(stack, a, b, mass=mass, start=start)
        assert again.value == pytest.approx(res.value, rel=1e-8)
    k = min(2, len(stack))
    capped = frot.solve_costs(stack, a, b, mass=mass, adversary=frot.CappedSimplex(k))
    assert capped.value <= res.value * (1 + 1e-9)


def test_results_say_the_mass_and_keep_it(tmp_path: Path) -> None:
    res = frot.solve([[0.0], [1.0], [5.0]], [[0.5], [9.0]], mass=0.4)
    assert "mass 0.4" in res.summary()
    assert res.to_dict()["fixed_mass"] == 0.4
    back = frot.load(res.save(tmp_path / "res.npz"))
    assert (back.fixed_mass, back.gap) == (0.4, res.gap)
    assert back.summary() == res.summary()
    assert "keeps 40% of X" in res.plot("plan").axes[0].get_title(loc="left")
    assert "mass 0.4" in frot.write_report(res, tmp_path / "res.html").read_text()


def test_tensors_come_back_as_tensors() -> None:
    torch = pytest.importorskip("torch")
    X = torch.tensor([[0.0], [1.0], [5.0]], dtype=torch.float64)
    res = frot.solve(X, X + 1.0, mass=0.5)
    assert torch.is_tensor(res.alpha)
    assert res.mass == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mass": 0.0}, "mass: must be finite and > 0"),
        ({"mass": -1.0}, "mass: must be finite and > 0"),
        ({"mass": float("nan")}, "mass: must be finite"),
        ({"mass": "half"}, "mass: 'half' is not a number"),
        ({"mass": 1.1}, "mass: 1.1 is more than the 1 of the lighter side"),
        ({"mass": 2.5, "a": [1.0, 1.0], "b": [2.0, 1.0]}, "more than the 2 of the lighter"),
        ({"mass": 1e-200}, "next to none"),
        ({"mass": 0.5, "tau": 1.0}, "pass one of the two"),
        ({"mass": 0.5, "penalty": "tv"}, "no effect without tau"),
        ({"mass": 0.5, "eps": 0.1}, r"solved without eps.*tau=\.\.\."),
        ({"mass": 0.5, "normalise": "regret"}, "with mass use 'mean' or none"),
        ({"mass": 0.5, "adversary": frot.Polytope(np.ones((1, 1)))}, "leave mass out"),
        ({"mass": 0.5, "solver": "entropic"}, "Entropic"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(frot.InputError, match=sentence):
        frot.solve_costs([[[0.0, 1.0], [1.0, 0.0]]], **options)


def test_a_distance_has_no_mass() -> None:
    with pytest.raises(frot.InputError, match=r"mass.*frot\.solve"):
        frot.distance([[0.0]], [[1.0]], mass=0.5)
