"""Marginals that need not be kept: against our own ordinary problem, and against POT.

    python benchmarks/unbalanced.py [--quick] [--only groups pot mass]

Same process, one thread, the same problems; processor time, the least of several runs. "groups" is
n = 500 points in L = 34 groups to a gap of 1e-4, at prices tau from 0.01 to 100 of the mean cost,
as a share of what the problem takes that keeps its marginals. "pot" is one cost, to an objective
within 1e-4 of the optimum: POT at the fewest steps, of some numbers, that get there, which are
found without counting; ours by proof. "mass" is partial transport of a given mass, exact, from
cost matrices: one cost beside POT's `partial_wasserstein`, of the same optimum, and several groups,
which POT has not, beside the problem that moves all.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from _common import fastest, table  # isort: skip  (sets the number of threads)

import numpy as np
import ot
from scipy.special import rel_entr

import frot

GOAL = 1e-4
PRICES = (0.01, 0.1, 1.0, 10.0, 100.0)
# Seconds after which a peer gets no more steps.
LIMIT = 10.0
STEPS = (10, 30, 100, 300, 1_000, 3_000, 10_000)

Objective = Callable[[np.ndarray], float]


def against_ordinary(quick: bool) -> None:
    """One problem of many groups, with and without eps."""
    n, count = (150, 10) if quick else (500, 34)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, 4 * count)), rng.normal(size=(n, 4 * count))
    Y[:, :8] += 1.0
    groups = [4] * count
    rows = []
    for eta, eps in (
        (0.0, 0.0),
        (0.05, 0.0),
        (0.1, 0.1),
        (0.1, 0.01),
        (0.01, 0.01),
        (0.0, 0.01),
    ):
        amounts = {"eta": frot.relative(eta), "eps": frot.relative(eps), "tol": GOAL}

        def run(tau: Any = None, amounts: dict[str, Any] = amounts) -> frot.Result:
            return frot.solve(X, Y, groups, tau=tau, **amounts)

        plain, _ = fastest(run)
        cells = []
        for price in PRICES:
            seconds, found = fastest(lambda price=price, run=run: run(frot.relative(price)))
            assert found.gap <= GOAL
            cells.append(f"{seconds / plain:.2f}")
        rows.append([f"{eta:g}", f"{eps:g}", f"{plain:.2f} s", *cells])
    table(["eta", "eps", "kept", *(f"tau {price:g}" for price in PRICES)], rows)


def against_pot(quick: bool) -> None:
    """One cost."""
    for n in (200,) if quick else (500, 2000):
        rng = np.random.default_rng(n)
        X, Y = rng.normal(size=(n, 5)), 0.5 + rng.normal(size=(n, 5))
        cost, half = np.asarray(ot.dist(X, Y)), np.full(n, 1.0 / n)
        mean = float(cost.mean())
        for share in (0.0, 0.05):
            for price in (0.1, 1.0, 10.0):
                eps, tau = share * mean, price * mean
                seconds, found = fastest(
                    lambda X=X, Y=Y, eps=eps, tau=tau: frot.solve(
                        X, Y, "all", eps=eps, tau=tau, tol=GOAL
                    )
                )
                goal = found.lower * (1.0 + GOAL)
                value = _objective(cost, half, half, eps, tau)
                peers = _peers(cost, half, eps, tau)
                cells = [_time(call, value, goal) for call in peers.values()]
                names = [f"{name} {cell}" for name, cell in zip(peers, cells, strict=True)]
                head = f"n = {n}, eps = {share:g}, tau = {price:g} of the mean cost"
                print(f"{head}: frot {seconds:.3f}; {'; '.join(names)}", flush=True)


def given_masses(quick: bool) -> None:
    """Partial transport of a given mass."""
    rows = []
    for n in (50, 200) if quick else (50, 200, 500, 1000):
        rng = np.random.default_rng(n)
        X, Y = rng.normal(size=(n, 5)), 0.5 + rng.normal(size=(n, 5))
        cost, half = np.asarray(ot.dist(X, Y)), np.full(n, 1.0 / n)
        for mass in (0.1, 0.5, 0.9):
            peer, plan = fastest(
                lambda cost=cost, half=half, mass=mass: ot.partial.partial_wasserstein(
                    half, half, cost, m=mass, numItermax=10_000_000
                )
            )
            seconds, found = fastest(
                lambda cost=cost, half=half, mass=mass: frot.solve_costs(
                    cost[None], half, half, mass=mass
                )
            )
            off = float((np.asarray(plan) * cost).sum()) / found.lower - 1.0
            assert abs(off) < 1e-8
            row = [f"{n}", f"{mass:g}", f"{seconds:.4f}", f"{peer:.4f}", f"{seconds / peer:.2f}"]
            rows.append([*row, f"{found.gap:.0e}"])
    table(["n", "mass", "frot, s", "POT, s", "ratio", "gap"], rows)
    print()
    n, count = (150, 10) if quick else (500, 34)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, 4 * count)), rng.normal(size=(n, 4 * count))
    Y[:, :8] += 1.0
    rows = []
    for eta in (0.0, 0.05):

        def run(eta: float = eta, **options: Any) -> frot.Result:
            return frot.solve(X, Y, [4] * count, eta=frot.relative(eta), **options)

        plain, _ = fastest(run)
        cells = []
        for mass in (0.1, 0.5, 0.9):
            seconds, found = fastest(lambda mass=mass, run=run: run(mass=mass))
            assert found.status.ok
            cells.append(f"{seconds:.2f}")
        rows.append([f"{n}", f"{count}", f"{eta:g}", f"{plain:.2f}", *cells])
    table(["n", "groups", "eta", "all, s", "mass .1", ".5", ".9"], rows)


def _objective(cost: np.ndarray, a: np.ndarray, b: np.ndarray, eps: float, tau: float) -> Objective:
    def divergence(x: np.ndarray, y: np.ndarray) -> float:
        return float((rel_entr(x, y) - x + y).sum())

    def value(plan: np.ndarray) -> float:
        found = float((cost * plan).sum())
        found += tau * (divergence(plan.sum(1), a) + divergence(plan.sum(0), b))
        return found + (eps * divergence(plan, np.outer(a, b)) if eps > 0.0 else 0.0)

    return value


def _peers(
    cost: np.ndarray, half: np.ndarray, eps: float, tau: float
) -> dict[str, Callable[[int], Any]]:
    """POT's solvers, each by the number of steps it may take."""
    if eps == 0.0:
        return {
            "mm": lambda steps: ot.unbalanced.mm_unbalanced(
                half, half, cost, tau, numItermax=steps, stopThr=0.0
            ),
            "lbfgsb": lambda steps: ot.unbalanced.lbfgsb_unbalanced(
                half, half, cost, 0.0, tau, regm_div="kl", numItermax=steps, stopThr=1e-15
            ),
        }
    return {
        name: lambda steps, method=method: ot.unbalanced.sinkhorn_unbalanced(
            half, half, cost, eps, tau, method=method, numItermax=steps, stopThr=0.0, reg_type="kl"
        )
        for name, method in (
            ("sinkhorn", "sinkhorn"),
            ("translation invariant", "sinkhorn_translation_invariant"),
        )
    }


def _time(call: Callable[[int], Any], value: Objective, goal: float) -> str:
    """Time a peer at the fewest steps that get there, of some."""
    for steps, last in _last(STEPS):
        seconds, plan = fastest(lambda steps=steps: call(steps), repeats=1)
        found = value(np.asarray(plan))
        if found <= goal:
            return f"{fastest(lambda steps=steps: call(steps), repeats=2)[0]:.3f}"
        if last or seconds > LIMIT or not np.isfinite(found):
            return f"> {seconds:.0f} (off by {found / goal - 1.0:.0e})"
    raise AssertionError


def _last(steps: tuple[int, ...]) -> Iterator[tuple[int, bool]]:
    return ((step, step == steps[-1]) for step in steps)


PARTS = {
    "groups": ("Many groups: time over that of the problem that keeps its mass", against_ordinary),
    "pot": ("One cost, against POT, to 1e-4 of the optimum", against_pot),
    "mass": ("A given mass, exactly, against POT", given_masses),
}


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller problems")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    for name in arguments.only:
        title, run = PARTS[name]
        print(f"# {title}\n", flush=True)
        with warnings.catch_warnings():
            # Of peers that were stopped, and of prices that destroy all.
            warnings.simplefilter("ignore")
            run(arguments.quick)
        print(flush=True)


if __name__ == "__main__":
    main()
