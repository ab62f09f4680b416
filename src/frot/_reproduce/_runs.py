"""The paper's algorithms by the paper's settings, with what they warned of kept as text."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from frot._errors import ConvergenceWarning
from frot._oracles import NetworkSimplex, Sinkhorn
from frot._result import Result
from frot._solve import solve
from frot._solvers import FrankWolfe

__all__ = ["FW_EMD", "FW_SINKHORN", "ITERATIONS", "Run", "run"]

# "T = 10"; a tolerance of zero keeps a run that is done early from stopping early.
ITERATIONS = 10
FW_EMD = FrankWolfe(oracle=NetworkSimplex(), step="paper", max_iter=ITERATIONS, tol=0.0)
FW_SINKHORN = FrankWolfe(oracle=Sinkhorn(), step="paper", max_iter=ITERATIONS, tol=0.0)


class Run(NamedTuple):
    """A result and the warnings that came with it."""

    result: Result
    warnings: tuple[str, ...]


def run(X: Any, Y: Any, groups: Any, **options: Any) -> Run:
    """Solve; ten steps rarely reach a tolerance, so that warning is noted instead of shown."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = solve(X, Y, groups, **options)
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning):
            warnings.warn(warning.message, stacklevel=2)
    noted = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    return Run(result, tuple(noted))


def described(made: Run) -> dict[str, Any]:
    """The numbers of a run, for JSON."""
    result = made.result
    return {
        "value": result.value,
        "lower": result.lower,
        "upper": result.upper,
        "gap": result.gap,
        "status": str(result.status),
        "solver": result.solver,
        "eta": result.eta,
        "eps": result.eps,
        "iterations": result.iterations,
        "seconds": round(result.time, 4),
        "alpha": [float(weight) for weight in result.alpha],
        "phi": [float(cost) for cost in result.phi],
        "warnings": list(made.warnings),
    }
