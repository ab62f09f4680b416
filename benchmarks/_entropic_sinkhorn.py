"""frot.Sinkhorn on one cost matrix, against POT's and OTT-JAX's."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from _common import fastest, table  # isort: skip  (sets the number of threads)

import numpy as np
import ot

import frot
from _entropic_data import marginal_error, mixed_cost

__all__ = ["against_ott", "against_pot"]

GOAL = 1e-6
SHARES = (0.1, 0.01, 0.001)
OTT_SHARES = (0.05, 0.01)
KINDS = ("plane", "groups")
# What a peer may take, in seconds, before it is given up; how much slower is too slow to tune.
LIMIT, QUICK_LIMIT = 60.0, 10.0
HOPELESS = 30.0
OTT_SWEEPS = 5_000

# Defaults, and for the stabilized one also what saves it kernels and checks.
POT: dict[str, tuple[str, dict[str, Any]]] = {
    "sinkhorn": ("sinkhorn", {}),
    "log": ("sinkhorn_log", {}),
    "stabilized": ("sinkhorn_stabilized", {}),
    "stabilized, tuned": ("sinkhorn_stabilized", {"tau": 1e60, "print_period": 50}),
}


class _Cell(NamedTuple):
    """One problem."""

    M: np.ndarray
    a: np.ndarray
    b: np.ndarray
    eps: float


class _Timed(NamedTuple):
    """What a solver took, and the error of the marginals it left."""

    seconds: float
    error: float

    @property
    def reached(self) -> bool:
        return self.error <= 1.001 * GOAL

    def __str__(self) -> str:
        if self.reached:
            return f"{self.seconds:.4f}"
        if not np.isfinite(self.error):
            return "NaN"
        if self.error > 0.5:
            return "mass lost"
        return f"> {self.seconds:.1f} ({self.error:.0e})"


def _cell(n: int, kind: str, share: float, of: Callable[[np.ndarray], float]) -> _Cell:
    M = mixed_cost(n, kind)
    half = np.full(n, 1.0 / n)
    return _Cell(M, half, half, share * float(of(M)))


def _ours(cell: _Cell) -> _Timed:
    oracle = frot.Sinkhorn(cell.eps, tol=GOAL, max_iter=1_000_000)
    seconds, found = fastest(lambda: oracle(cell.M, cell.a, cell.b), repeats=7)
    return _Timed(seconds, marginal_error(np.asarray(found.plan), cell.a, cell.b))


def _pot(cell: _Cell, method: str, options: dict[str, Any], *, limit: float, ours: float) -> _Timed:
    """Time POT at the loosest stopping threshold that reaches the goal.

    Its own error is the 2-norm of the columns', so what it must be is found by trying, unless it
    is `HOPELESS` times slower than we are anyhow.
    """

    def solve(stop: float) -> np.ndarray:
        plan: Any = ot.sinkhorn(
            cell.a, cell.b, cell.M, cell.eps, method=method, stopThr=stop, numItermax=sweeps,
            **options,
        )  # fmt: skip
        return plan

    def error(plan: np.ndarray) -> float:
        return marginal_error(plan, cell.a, cell.b)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # This threshold is always enough.
        stop, sweeps = GOAL / np.sqrt(len(cell.b)), 50
        while True:
            seconds, plan = fastest(lambda: solve(stop), repeats=1)
            reached = error(plan)
            if reached <= GOAL:
                break
            if not np.isfinite(reached) or seconds > 0.5 * limit:
                return _Timed(seconds, reached)
            sweeps = int(sweeps * min(8.0, limit / seconds))
        if seconds > HOPELESS * ours:
            return _Timed(seconds, reached)
        while stop < GOAL:
            looser = min(GOAL, 0.95 * stop * max(GOAL / max(reached, 0.01 * GOAL), 1.2))
            plan = solve(looser)
            if not error(plan) <= GOAL:
                break
            stop, reached = looser, error(plan)
        repeats = 7 if seconds < 0.5 else 2
        seconds, plan = fastest(lambda: solve(stop), repeats=repeats)
    return _Timed(seconds, error(plan))


def against_pot(quick: bool = False) -> None:
    """Print us, POT's Sinkhorns and the ratio to the fastest that reached the same error."""
    rows = []
    for n in (500,) if quick else (500, 2000):
        for kind in KINDS:
            for share in SHARES:
                cell = _cell(n, kind, share, np.max)
                ours = _ours(cell)
                limit = QUICK_LIMIT if quick else LIMIT
                peers = [_pot(cell, *peer, limit=limit, ours=ours.seconds) for peer in POT.values()]
                times = [peer.seconds for peer in peers if peer.reached]
                ratio = f"{min(times) / ours.seconds:.1f}x" if times else "none reached it"
                start = [str(n), kind, f"{share:g}", str(ours)]
                rows.append([*start, *map(str, peers), ratio, f"{ours.error:.0e}"])
                print("  ".join(rows[-1]), flush=True)
    print()
    table(["n=m", "costs", "eps/max", "frot s", *POT, "ratio", "our error"], rows)


def _ott_solvers(cell: _Cell) -> Iterator[tuple[str, Callable[[], Any]]]:
    """OTT-JAX's Sinkhorn in double precision, compiled, in a few configurations."""
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
    import jax  # pyright: ignore[reportMissingImports]
    import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
    from ott.geometry import geometry  # pyright: ignore[reportMissingImports]
    from ott.problems.linear import linear_problem  # pyright: ignore[reportMissingImports]
    from ott.solvers.linear import acceleration, sinkhorn  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    a, b, M = (jnp.asarray(array) for array in (cell.a, cell.b, cell.M))
    variants = {
        "kernel": {"lse_mode": False},
        "kernel, momentum": {"lse_mode": False, "momentum": acceleration.Momentum(start=20)},
        "lse": {"lse_mode": True},
        "lse, momentum": {"lse_mode": True, "momentum": acceleration.Momentum(start=20)},
    }
    for name, options in variants.items():
        solver = sinkhorn.Sinkhorn(threshold=GOAL, max_iterations=OTT_SWEEPS, **options)

        def plan(cost: Any, solver: Any = solver) -> Any:
            problem = linear_problem.LinearProblem(geometry.Geometry(cost, epsilon=cell.eps), a, b)
            return solver(problem).matrix

        compiled = jax.jit(plan).lower(M).compile()
        yield name, lambda compiled=compiled: compiled(M).block_until_ready()


def against_ott(quick: bool = False) -> None:
    """Print us, OTT-JAX's Sinkhorn at the same weights, and the ratio to its fastest."""
    rows, header = [], []
    for n in (500,) if quick else (500, 2000):
        for share in OTT_SHARES:
            cell = _cell(n, "groups", share, np.mean)
            peers = {}
            try:
                for name, solve in _ott_solvers(cell):
                    seconds, plan = fastest(solve, repeats=1)
                    if seconds < 2.0:
                        seconds, plan = fastest(solve)
                    error = marginal_error(np.asarray(plan), cell.a, cell.b)
                    # Ours has exact rows; with momentum OTT's have not, and may be a bit off.
                    peers[name] = _Timed(seconds, error if error > 2.0 * GOAL else GOAL)
            except ImportError:
                print("OTT-JAX is not installed")
                return
            ours = _ours(cell)
            times = [peer.seconds for peer in peers.values() if peer.reached]
            ratio = f"{min(times) / ours.seconds:.1f}x" if times else "none reached it"
            rows.append([str(n), f"{share:g}", str(ours), *map(str, peers.values()), ratio])
            header = ["n=m", "eps/mean", "frot s", *peers, "ratio"]
            print("  ".join(rows[-1]), flush=True)
    print()
    table(header, rows)
