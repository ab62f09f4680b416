"""Transport between the cells of two images: certified, or the paper's steps alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from frot._base.arrays import Home, at_least, quiet, to_numpy
from frot._base.errors import InputError, collect_warnings
from frot._base.validate import check_names, check_number, check_prior, check_weights
from frot.api.run import SolverRun, make_problem
from frot.correspondence._cosines import row_blocks
from frot.correspondence._layer_costs import GridGeometry
from frot.costs import MEMORY_BUDGET, DeviceCosts, StackedCosts
from frot.problem.adversary import Simplex
from frot.problem.result import Result, handed_out
from frot.problem.terms import Relative, check_terms
from frot.solvers.choose import Solver, choose_solver
from frot.solvers.entropic.entropic import Entropic
from frot.solvers.frank_wolfe import FrankWolfe
from frot.solvers.oracles import Sinkhorn, keeps_potentials

# Mass that a vertex of the paper's steps may have in wrong columns.
PAPER_TOL = 1e-3


def paper_solver(steps: int = 3, eps: float = 0.1, tol: float = PAPER_TOL) -> FrankWolfe:
    """The paper's algorithm 2: so many Frank-Wolfe steps with a Sinkhorn oracle.

    eps is the oracle's, and no part of the problem. An oracle call may leave mass `tol` in wrong
    columns (rounding puts it right).

    Examples
    --------
    >>> paper_solver().step, paper_solver().max_iter
    ('paper', 3)
    """
    return FrankWolfe(oracle=Sinkhorn(eps=eps, tol=tol), step="paper", max_iter=steps)


def solve_layers(
    costs: GridGeometry,
    a: Any = None,
    b: Any = None,
    *,
    names: Sequence[str] | None = None,
    eta: float | Relative = 0.3,
    eps: float | Relative = 0.1,
    prior: Any = None,
    normalise: str = "none",
    solver: Solver | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    start: Any = None,
) -> Result:
    r"""Solve feature-robust transport between cells, with the layers of a network as groups.

    .. math::
        \min_{\Pi \in U(a, b)} \max_{\alpha \in \Sigma^L} \sum_l \alpha_l \langle \Pi, C_l \rangle
        - \eta\, \mathrm{KL}(\alpha | q) + \varepsilon\, \mathrm{KL}(\Pi | a b^\top)

    The weights of the cells, (n,) and (m,), are divided by their sums. The other terms are those
    of `frot.solve`; "regret" needs the whole stack in double precision. The solver is
    ``Entropic(tol=1e-3)`` if left out; `paper_solver` is the paper's, for eps = 0, which stops
    after its steps whatever the gap, and says nothing about it but the result's status and
    interval. Arrays of the result are NumPy's, or those of the costs' library on their device.

    Examples
    --------
    >>> from frot.correspondence._features import FeatureMap
    >>> from frot.correspondence._layer_costs import layer_costs
    >>> rng = np.random.default_rng(0)
    >>> A, B = ([FeatureMap(str(h), rng.normal(size=(8, h, h)), 16 / h, 1) for h in (4, 2)]
    ...         for _ in range(2))
    >>> result = solve_layers(layer_costs(A, B))
    >>> result.gap <= 1e-3, result.lower <= result.value <= result.upper
    (True, True)
    """
    shape = costs.shape[1:]
    labels = check_names(names, shape[0])
    terms = check_terms(shape, a, b, eta, eps, prior, normalise, normalise_weights=True)
    limits = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit}
    chosen = choose_solver(solver or Entropic(tol=1e-3), shape, terms, **limits)
    at_home = chosen.any_library or keeps_potentials(getattr(chosen, "oracle", None))
    run = SolverRun(chosen, start)
    run.check(shape)
    if at_home and terms.normalise != "regret":
        make = partial(DeviceCosts, costs.double(), costs.home)
    else:
        make = partial(_stacked, costs)
    # Kernels are kept whatever their size: streaming would work the costs out at every sweep.
    problem = make_problem(make, terms, labels).having(memory_budget=float("inf"))
    # The paper's steps end where they end.
    with collect_warnings() if getattr(chosen, "keep_last", False) else nullcontext():
        home = None if costs.home.library == "numpy" else costs.home
        return handed_out(run(problem).at(home))


def _stacked(costs: GridGeometry) -> StackedCosts:
    """Return the costs as a stack on the host, for solvers that need one."""
    if 8 * int(np.prod(costs.shape)) > MEMORY_BUDGET:
        raise InputError(
            f"solver, normalise: need a stack of {8 * np.prod(costs.shape) / 1e9:.1f} GB; use "
            "Entropic and normalise='none' or 'mean', or a smaller image"
        )
    return StackedCosts(to_numpy(costs.double().stack())[0])


# Rows that are worked on at a time, in bytes: they stay in a core's cache.
BLOCK_BYTES = 2_000_000


@dataclass(frozen=True, eq=False)
class LayerPlan:
    """What the paper's steps end with.

    Attributes
    ----------
    plan : array of shape (n, m)
        Single precision, where the costs are. Rows are right to rounding.
    alpha, phi : arrays of shape (L,)
        The last weights' answer to the plan, and its costs, on the host.
    error : float
        Mass in wrong columns, of the worst of the steps.
    sweeps : int
        Sweeps of Sinkhorn's, over all steps.
    g : array of shape (m,), optional
        The columns' potential, where weights were looked for.
    """

    plan: Any
    alpha: np.ndarray
    phi: np.ndarray
    error: float
    sweeps: int
    g: np.ndarray | None = None


def paper_plan(
    costs: GridGeometry,
    a: Any = None,
    b: Any = None,
    *,
    eta: float = 0.3,
    eps: float = 0.1,
    prior: Any = None,
    steps: int = 3,
    tol: float = PAPER_TOL,
    max_sweeps: int = 1_000,
) -> LayerPlan:
    """Take the paper's steps, each vertex swept until no more than `tol` is in wrong columns.

    `solve_layers` with `paper_solver` takes the same steps and proves an interval, which takes
    seven times as long. Cells may have no weight; eta and eps are positive.

    Examples
    --------
    >>> from frot.correspondence._features import FeatureMap
    >>> from frot.correspondence._layer_costs import layer_costs
    >>> rng = np.random.default_rng(0)
    >>> maps = [FeatureMap(str(h), rng.normal(size=(64, h, h)), 16 / h, 1) for h in (4, 2)]
    >>> found = paper_plan(layer_costs(maps, maps))
    >>> found.plan.argmax(axis=1).tolist() == list(range(16)), found.error <= 1e-3
    (True, True)
    """
    _, count, n, m = costs.shape
    weights = [check_weights(x, k, name, True) for x, k, name in ((a, n, "a"), (b, m, "b"))]
    check_steps(eta, eps, steps)
    adversary = Simplex(eta, check_prior(prior, count))
    home = costs.home
    left, right = (home.bring(x) for x in weights)
    phi = to_numpy(costs.product(left[None, :], right[None, :]))[0].astype(float)
    plan, g, worst, sweeps = None, home.xp.zeros_like(right), 0.0, 0
    for gamma in paper_gammas(steps):
        _, alpha = adversary.best(phi)
        kernel = costs.mix(home.bring(alpha[None, :]))[0, ...]
        g, error, used = _vertex(kernel, left, right, eps, g, tol, max_sweeps, home)
        worst, sweeps = max(worst, error), sweeps + used
        phi = (1.0 - gamma) * phi + gamma * to_numpy(costs.inner(kernel[None, ...]))[0]
        if plan is None:
            plan = kernel
            continue
        for part in _blocks(home, kernel):
            plan[part, :] *= 1.0 - gamma
            plan[part, :] += gamma * kernel[part, :]
    return LayerPlan(plan, adversary.best(phi)[1], phi, worst, sweeps)


def paper_gammas(steps: int) -> list[float]:
    r"""Return how far each of the paper's Frank-Wolfe steps goes to the best plan found there.

    .. math:: \Pi^{(t+1)} = (1 - \gamma_t)\, \Pi^{(t)} + \gamma_t\, \hat\Pi, \qquad
        \gamma_t = 2 / (2 + t)

    Examples
    --------
    >>> paper_gammas(3)
    [1.0, 0.6666666666666666, 0.5]
    """
    return [2.0 / (2.0 + step) for step in range(steps)]


def paper_shares(steps: int) -> list[float]:
    """Return the shares of the plans in their mixture after so many of the paper's steps.

    Examples
    --------
    >>> paper_shares(2)
    [0.3333333333333333, 0.6666666666666666]
    """
    return [2.0 * (step + 1) / (steps * (steps + 1)) for step in range(steps)]


def check_steps(eta: Any, eps: Any, steps: Any) -> None:
    """Refuse what the paper's steps cannot do."""
    check_number(eta, "eta", strict=True)
    check_number(eps, "eps", strict=True)
    if steps < 1:
        raise InputError(f"steps: must be >= 1, got {steps!r}")


def _blocks(home: Home, matrix: Any) -> list[slice]:
    n, m = matrix.shape
    return row_blocks(home, 0, n, 4 * m, BLOCK_BYTES)


def _vertex(
    M: Any, a: Any, b: Any, eps: float, g: Any, tol: float, limit: int, home: Home
) -> tuple[Any, float, int]:
    """Turn the mixed cost into its entropic plan, in place; return g, the error and the sweeps."""
    xp = home.xp
    on = b > 0.0
    bias = xp.where(on, g / eps, -xp.inf)[None, :]
    for part in _blocks(home, M):
        block = M[part, :]
        block *= -1.0 / eps
        block += bias
        block -= xp.max(block, axis=1)[:, None]
        with quiet():
            M[part, :] = xp.exp(block)
    v, sweeps = xp.ones_like(b), 0
    while True:
        u, columns, error = sweep(xp, M, a, b, v)
        error = float(error)
        if error <= tol or sweeps == limit or not np.isfinite(error):
            break
        v, sweeps = 1.0 / columns, sweeps + 1
    rows, cols = a * u, b * v
    for part in _blocks(home, M):
        M[part, :] *= rows[part][:, None]
        M[part, :] *= cols[None, :]
    return g + eps * xp.log(v), error, sweeps


def sweep(xp: Any, K: Any, a: Any, b: Any, v: Any, least: float = 0.0) -> tuple[Any, Any, Any]:
    """Half a sweep of Sinkhorn's on a kernel: rows made right, what columns then are, their error.

    Returns u = 1 / K (b v), the columns K^T (a u), one where b is zero, whose inverse is the next
    v, and the mass in wrong columns. Sums are taken for `least` where they are smaller.
    """
    with quiet():
        u = 1.0 / at_least(xp, K @ (b * v), least)
        columns = xp.where(b > 0.0, at_least(xp, (a * u) @ K, least), xp.ones_like(b))
    return u, columns, xp.sum(b * xp.abs(v * columns - 1.0))
