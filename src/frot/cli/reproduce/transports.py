"""The paper's algorithms by the paper's settings, and how close one plan is to another."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frot._base.errors import ConvergenceWarning
from frot.api.solve import solve
from frot.plans.plan import Plan
from frot.problem.result import Result
from frot.solvers import FrankWolfe
from frot.solvers.oracles import NetworkSimplex, Sinkhorn

__all__ = [
    "FW_EMD",
    "FW_SINKHORN",
    "ITERATIONS",
    "Run",
    "described",
    "mean_squared_error",
    "relative_excess",
    "run",
    "shared_mass",
    "stacked_phi",
    "wasserstein_by_call",
]

# "T = 10"; a tolerance of zero keeps a run that is done early from stopping early.
ITERATIONS = 10
FW_EMD = FrankWolfe(oracle=NetworkSimplex(), step="paper", max_iter=ITERATIONS, tol=0.0)
FW_SINKHORN = FrankWolfe(oracle=Sinkhorn(), step="paper", max_iter=ITERATIONS, tol=0.0)


class Run(NamedTuple):
    """The result of an experiment's solve, and the warnings that came with it."""

    result: Result
    warnings: tuple[str, ...]


def run(X: Any, Y: Any, groups: Any, **options: Any) -> Run:
    """Solve; where a solver or its oracle fell short, that is noted instead of shown."""
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


def shared_mass(plan: Plan, reference: Plan) -> float:
    r"""Mass that two plans put on the same arcs, :math:`\sum_{ij} \min(\pi_{ij}, \rho_{ij})`.

    1 for equal plans, 0 for plans without a common arc. Of two one-to-one matchings it is the
    share of pairs they have in common.

    Examples
    --------
    >>> halves = Plan(np.full((2, 2), 0.25))
    >>> shared_mass(halves, Plan(np.eye(2) / 2))
    0.5
    """
    return float(np.minimum(plan.dense(), reference.dense()).sum())


def relative_excess(plan: Plan, reference: Plan, cost: np.ndarray) -> float:
    r"""How much of the way from `reference` to an arbitrary plan the cost of `plan` is.

    .. math::
        \frac{\langle \Pi - \Pi_{ref}, C \rangle}{\langle a b^\top - \Pi_{ref}, C \rangle},

    0 for a plan as cheap as the reference and 1 for one as dear as no matching at all.

    Examples
    --------
    >>> best = Plan(np.eye(2) / 2)
    >>> relative_excess(Plan(np.full((2, 2), 0.25)), best, np.array([[0.0, 1.0], [1.0, 0.0]]))
    1.0
    """
    independent = float(plan.sum(axis=1) @ cost @ plan.sum(axis=0))
    least = float((reference.dense() * cost).sum())
    return float(((plan.dense() * cost).sum() - least) / (independent - least))


def mean_squared_error(plan: Plan, reference: Plan) -> float:
    r"""The paper's measure, :math:`\sum_{ij} (\pi_{ij} - \rho_{ij})^2 / (n m)`.

    Examples
    --------
    >>> mean_squared_error(Plan(np.full((2, 2), 0.25)), Plan(np.eye(2) / 2))
    0.0625
    """
    return float(np.mean((plan.dense() - reference.dense()) ** 2))


def stacked_phi(X: NDArray, Y: NDArray, eta: float = 1.0, steps: int = 10) -> NDArray[np.float64]:
    r"""Run algorithm 2 line by line with the network simplex, one group per feature.

    Forms the :math:`d \times n \times m` stack :math:`C_l = (x_{il} - y_{jl})^2`, for X of shape
    (n, d) and Y (m, d), and returns :math:`\phi_l = \langle \Pi, C_l \rangle`, shape (d,), which
    ranks as :math:`\alpha` does; `steps` is T.

    Examples
    --------
    >>> stacked_phi(np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]])).tolist()
    [1.0, 4.0]
    """
    import ot

    n, m = len(X), len(Y)
    a, b = np.full(n, 1.0 / n), np.full(m, 1.0 / m)
    stack = np.empty((X.shape[1], n, m))
    for feature in range(X.shape[1]):
        stack[feature] = ot.dist(X[:, [feature]], Y[:, [feature]], metric="sqeuclidean")
    plan = np.outer(a, b)
    for step in range(steps):
        phi = np.sum(plan * stack, axis=(1, 2))
        weights = np.exp((phi - phi.max()) / eta)
        mixed = np.sum((weights / weights.sum())[:, None, None] * stack, axis=0)
        gamma = 2.0 / (2.0 + step)
        plan = (1.0 - gamma) * plan + gamma * np.asarray(ot.emd(a, b, mixed))
    return np.sum(plan * stack, axis=(1, 2))


def wasserstein_by_call(X: NDArray, Y: NDArray) -> NDArray[np.float64]:
    """1-D Wasserstein distances by a call of POT's sort for every feature.

    Examples
    --------
    >>> wasserstein_by_call(np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]])).tolist()
    [1.0, 2.0]
    """
    import ot

    distance: Any = ot.emd2_1d
    pairs = zip(X.T, Y.T, strict=True)
    return np.array([float(distance(x, y, metric="euclidean")) for x, y in pairs])
