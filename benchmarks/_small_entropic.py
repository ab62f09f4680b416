"""One small entropic problem from points to plan, beside POT's Sinkhorn and OTT-JAX's.

Accuracy is the mass that a plan has elsewhere than the converged one, in the 1-norm. Ours is what
the default tolerance gives; a peer is timed at the loosest threshold that gives it no more than
that, from points too, and with several groups on the cost mixed by our weights, which it is told.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from _common import fastest  # isort: skip  (sets the number of threads)

import numpy as np
import ot

import frot

__all__ = ["entropic_rows"]

CASES = ((100, 1, 0.5), (100, 1, 0.05), (500, 1, 0.5), (500, 1, 0.05), (100, 3, 0.05))
FEATURES = 6
# A call takes about as long as the clock can tell: so many at a time.
CALLS, REPEATS = 10, 9
# Thresholds that are tried, from the loosest on.
THRESHOLDS = 10.0 ** np.arange(-1.0, -9.0, -0.25)
SWEEPS = 5_000
HEADER = [
    "entropic",
    "eps / mean",
    "frot ms",
    "gap",
    "off by",
    "POT ms",
    "OTT-JAX ms",
    "ratio",
]


class Case(NamedTuple):
    """Points, their weights, eps and the weights of features under our alpha."""

    X: np.ndarray
    Y: np.ndarray
    a: np.ndarray
    eps: float
    plan: np.ndarray


def entropic_rows() -> tuple[list[str], list[list[str]]]:
    """Return a header, and rows: what, eps, our time, gap and error, peers' times, the ratio."""
    rows = []
    for n, groups, share in CASES:
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(n, FEATURES)), rng.normal(size=(n, FEATURES)) + 0.3
        sizes = [FEATURES // groups] * groups
        eps = frot.relative(share)
        ours, result = _milliseconds(lambda X=X, Y=Y, s=sizes, e=eps: frot.solve(X, Y, s, eps=e))
        sharp = frot.solve(X, Y, sizes, eps=eps, tol=1e-10)
        weights = np.sqrt(np.repeat(sharp.alpha, FEATURES // groups))
        case = Case(
            X * weights, Y * weights, np.full(n, 1.0 / n), sharp.eps, np.asarray(sharp.plan)
        )
        error = _error(np.asarray(result.plan), case)
        peers = [_pot(case, error), _ott(case, error)]
        times = [peer for peer in peers if isinstance(peer, float)]
        shown = [f"{peer:.2f}" if isinstance(peer, float) else peer for peer in peers]
        what = [f"n = {n}, L = {groups}", f"{share:g}", f"{ours:.2f}", f"{result.gap:.0e}"]
        ratio = f"{min(times) / ours:.2f}" if times else "-"
        rows.append([*what, f"{error:.0e}", *shown, ratio])
    return HEADER, rows


def _milliseconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """The least processor time of a call, and what it returned."""
    result = call()

    def many() -> None:
        for _ in range(CALLS):
            call()

    return fastest(many, REPEATS)[0] / CALLS * 1e3, result


def _error(plan: np.ndarray, case: Case) -> float:
    return float(np.abs(plan - case.plan).sum())


def _loosest(solve: Callable[[float], Any], case: Case, error: float) -> float | None:
    """The loosest threshold whose plan is as good as ours."""
    for threshold in THRESHOLDS:
        if _error(np.asarray(solve(float(threshold))), case) <= error:
            return float(threshold)
    return None


def _pot(case: Case, error: float) -> float | str:
    """POT's faster Sinkhorn."""
    found = []
    for method in ("sinkhorn", "sinkhorn_log"):

        def solve(threshold: float, method: str = method) -> Any:
            M = ot.dist(case.X, case.Y)
            return ot.sinkhorn(
                case.a, case.a, M, case.eps, method=method, stopThr=threshold, numItermax=SWEEPS
            )

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            threshold = _loosest(solve, case, error)
            if threshold is not None:
                found.append(_milliseconds(lambda s=solve, t=threshold: s(t))[0])
    return min(found) if found else "not reached"


def _ott(case: Case, error: float) -> float | str:
    """OTT-JAX's fastest Sinkhorn of some, in double precision, compiled beforehand."""
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
    try:
        import jax  # pyright: ignore[reportMissingImports]
        import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
        from ott.geometry import pointcloud  # pyright: ignore[reportMissingImports]
        from ott.problems.linear import linear_problem  # pyright: ignore[reportMissingImports]
        from ott.solvers.linear import sinkhorn  # pyright: ignore[reportMissingImports]
    except ImportError:
        return "not installed"
    jax.config.update("jax_enable_x64", True)
    x, y, a = (jnp.asarray(part) for part in (case.X, case.Y, case.a))
    found = []
    for lse in (True, False):

        def plan(x: Any, y: Any, threshold: Any, lse: bool = lse) -> Any:
            geometry = pointcloud.PointCloud(x, y, epsilon=case.eps)
            solver = sinkhorn.Sinkhorn(threshold=threshold, max_iterations=SWEEPS, lse_mode=lse)
            return solver(linear_problem.LinearProblem(geometry, a, a)).matrix

        compiled = jax.jit(plan).lower(x, y, 1e-3).compile()

        def solve(threshold: float, run: Any = compiled) -> Any:
            return run(x, y, threshold).block_until_ready()

        threshold = _loosest(solve, case, error)
        if threshold is not None:
            found.append(_milliseconds(lambda s=solve, t=threshold: s(t))[0])
    return min(found) if found else "not reached"
