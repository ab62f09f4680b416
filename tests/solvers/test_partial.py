"""Partial transport: mass is left out at a price, exactly, by any solver of ordinary problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import frot
from tests.strategies import seeds

INF = float("inf")


def program(stack: np.ndarray, a: np.ndarray, b: np.ndarray, tau: tuple[float, float]) -> float:
    """Solve it as a linear program over plans whose marginals are at most a and b."""
    count, n, m = stack.shape
    prices = [0.0 if price == INF else price for price in tau]
    rows, cols = np.kron(np.eye(n), np.ones((1, m))), np.kron(np.ones((1, n)), np.eye(m))
    above = np.hstack([stack.reshape(count, -1), -np.ones((count, 1))])
    kept: list[Any] = []
    left: list[Any] = [(above, np.zeros(count))]
    for price, sums, side in ((tau[0], rows, a), (tau[1], cols, b)):
        part = (np.hstack([sums, np.zeros((len(side), 1))]), side)
        (kept if price == INF else left).append(part)
    upper, equal = (
        (np.vstack([m for m, _ in part]), np.concatenate([v for _, v in part]))
        if part
        else (None, None)
        for part in (left, kept)
    )
    found = linprog(
        np.append(np.full(n * m, -sum(prices)), 1.0), *upper, *equal,
        bounds=[(0.0, None)] * (n * m) + [(None, None)],
    )  # fmt: skip
    return found.fun + prices[0] * a.sum() + prices[1] * b.sum()


def drawn(seed: int, shape: tuple[int, int, int] = (3, 6, 7)) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    a, b = rng.random(shape[1]), rng.random(shape[2])
    return rng.random(shape) ** 2, a, b


@given(seeds, st.sampled_from([(0.05, 0.1), (0.3, 0.3), (5.0, 0.01), (INF, 0.2), (0.2, INF)]))
def test_the_interval_holds_the_linear_program(seed: int, tau: tuple[float, float]) -> None:
    stack, a, b = drawn(seed)
    if tau[0] == INF:
        a *= 0.7 * b.sum() / a.sum()
    if tau[1] == INF:
        b *= 0.7 * a.sum() / b.sum()
    res = frot.solve_costs(stack, a, b, tau=tau, penalty="tv")
    truth = program(stack, a, b, tau)
    assert res.lower - 1e-9 <= truth <= res.upper + 1e-9
    assert res.gap <= 1e-9
    kept_a, kept_b = res.marginals
    assert (kept_a <= a * (1 + 1e-12)).all()
    assert (kept_b <= b * (1 + 1e-12)).all()
    f, g = res.potentials
    assert (f[:, None] + g <= np.tensordot(res.alpha, stack, 1) + 1e-9).all()
    assert a @ f + b @ g == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("solver", ["exact", "linear_program", "frank_wolfe", "cutting_set"])
def test_all_solvers_agree(solver: str) -> None:
    stack, a, b = drawn(1)
    options: dict[str, Any] = {"solver": solver, "tol": 1e-5}
    res = frot.solve_costs(stack, a, b, tau=0.1, penalty="tv", **options)
    assert res.lower - 1e-9 <= program(stack, a, b, (0.1, 0.1)) <= res.upper + 1e-9
    assert 0.0 < res.mass < min(a.sum(), b.sum())
    assert "kept" in res.summary()


def test_eta_has_the_units_of_all_mass() -> None:
    stack, a, b = drawn(2)
    whole = frot.solve_costs(stack, a, b, tau=0.2, penalty="tv", eta=0.3)
    double = frot.solve_costs(stack, 2 * a, 2 * b, tau=0.2, penalty="tv", eta=0.6)
    assert double.value == pytest.approx(2 * whole.value, rel=1e-8)
    assert whole.value == pytest.approx(
        frot.Simplex(0.3).best(whole.phi)[0] + 0.2 * (a.sum() + b.sum() - 2 * whole.mass), rel=1e-9
    )


def test_a_price_above_all_costs_keeps_what_can_be_kept() -> None:
    stack, a, b = drawn(3)
    a, b = a / a.sum(), b / b.sum()
    res = frot.solve_costs(stack, a, b, tau=100.0, penalty="tv")
    assert res.value == pytest.approx(frot.solve_costs(stack, a, b).value, rel=1e-9)
    with pytest.warns(frot.DataWarning, match="tau: is too small"):
        none = frot.solve_costs(1.0 + stack, a, b, tau=0.1, penalty="tv")
    assert none.mass <= 1e-15
    assert none.value == pytest.approx(0.2)


def test_progress_start_and_warning_are_in_the_users_units() -> None:
    stack, a, b = drawn(4)
    seen: list[frot.Progress] = []
    res = frot.solve_costs(stack, a, b, tau=0.1, penalty="tv", callback=seen.append)
    assert seen[-1].upper == pytest.approx(res.upper)
    again = frot.solve_costs(stack, a, b, tau=0.1, penalty="tv", start=res, solver="frank_wolfe")
    assert again.value == pytest.approx(res.value, rel=1e-4)
    # It begins where the other ended.
    assert again.history[0].upper == pytest.approx(res.upper, rel=1e-6)
    with pytest.warns(frot.ConvergenceWarning) as told:
        few = frot.solve_costs(
            stack,
            a,
            b,
            tau=0.1,
            penalty="tv",
            solver=frot.FrankWolfe(step="paper"),
            max_iter=2,
            eta=0.1,
        )
    assert f"[{few.lower:.8g}, {few.upper:.8g}]" in str(told[0].message)


def test_points_without_weight_are_put_back() -> None:
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(5, 3))
    a = np.array([0.5, 0.0, 1.0, 1.0, 0.0, 2.0])
    res = frot.solve(X, Y, a=a, tau=(0.4, 0.6), penalty="tv")
    kept = np.flatnonzero(a)
    small = frot.solve(X[kept], Y, a=a[kept], tau=(0.4, 0.6), penalty="tv")
    assert res.value == pytest.approx(small.value)
    assert res.plan.shape == (6, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tau": 0.0}, r"tau: must be > 0"),
        ({"tau": (1.0, -1.0)}, r"tau: must be > 0, since"),
        ({"tau": frot.relative(0.0)}, r"tau: must be > 0"),
        ({"tau": "kl"}, r"tau: 'kl' is not a number"),
        ({"penalty": "tv"}, r"penalty: has no effect without tau"),
        ({"tau": 1.0, "penalty": "l2"}, r"penalty: "),
        ({"tau": 1.0, "penalty": "tv", "eps": 0.1}, r"eps: penalty='tv' is solved without eps"),
        ({"tau": (INF, 1.0), "penalty": "tv", "a": [2.0, 2.0]}, r"tau: is infinite for a, whose"),
        ({"tau": 1.0, "adversary": frot.Ellipsoid([1.0], 1.0)}, r"adversary: Ellipsoid"),
        ({"tau": 1.0, "normalise": "regret"}, r"normalise: 'regret'"),
        (
            {"a": [1.0, 1.0], "b": [2.0, 1.0]},
            r"masses differ.*tau=\.\.\. or mass=\.\.\. to let mass go",
        ),
    ],
)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    with pytest.raises(frot.InputError, match=message):
        frot.solve([[0.0], [1.0]], [[1.0], [2.0]], **options)


def test_bounds_are_plain_numbers():
    result = frot.solve([[0.0], [1.0]], [[1.0], [3.0]], tau=1.0, penalty="tv")
    assert [type(part) for part in (result.value, result.lower, result.upper)] == [float] * 3
