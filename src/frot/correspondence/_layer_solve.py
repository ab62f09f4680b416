"""Certified transport between the cells of two images, over all layers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from frot._base.errors import InputError, hearing
from frot._base.stopping import finish
from frot._base.validate import check_names
from frot.api.prepare import make_problem
from frot.api.run import Run
from frot.correspondence._grid_geometry import GridGeometry
from frot.costs import MEMORY_BUDGET, DeviceCosts, StackedCosts
from frot.problem.amounts import Relative
from frot.problem.result import Result
from frot.problem.terms import check_terms
from frot.solvers.choose import Limits, Solver, choose_solver
from frot.solvers.entropic.entropic import Entropic
from frot.solvers.frank_wolfe import FrankWolfe
from frot.solvers.oracles import Sinkhorn, keeps_potentials

__all__ = ["paper_solver", "solve_layers"]


def paper_solver(steps: int = 3, tol: float = 1e-3) -> FrankWolfe:
    """The paper's algorithm 2: so many Frank-Wolfe steps with a Sinkhorn oracle.

    Parameters
    ----------
    steps : int
        T.
    tol : float
        Mass that an oracle call may leave in wrong columns (rounding puts it right).

    Examples
    --------
    >>> paper_solver().step, paper_solver().max_iter
    ('paper', 3)
    """
    return FrankWolfe(oracle=Sinkhorn(tol=tol), step="paper", max_iter=steps)


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

    Parameters
    ----------
    costs : GridGeometry
        What `layer_costs` returns.
    a, b : arrays of shape (n,) and (m,), optional
        Weights of the cells; divided by their sums, uniform if left out.
    names : sequence of str, optional
        Names of the layers.
    eta, eps, prior, normalise, start :
        As in `frot.solve`. "regret" needs the whole stack in double precision.
    solver : Solver, optional
        ``Entropic(tol=1e-3)`` if left out; `paper_solver` is the paper's, which stops after its
        steps whatever the gap, and says nothing about it but the result's status and interval.
    tol, max_iter, time_limit : optional
        Override the solver's.

    Returns
    -------
    Result
        Its arrays are NumPy's, or those of the costs' library on their device.

    Examples
    --------
    >>> from frot.correspondence._feature_map import FeatureMap
    >>> from frot.correspondence._grid_costs import layer_costs
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
    limits = Limits(tol, max_iter, time_limit)
    chosen = choose_solver(solver or Entropic(tol=1e-3), shape, terms, limits)
    at_home = getattr(chosen, "any_library", False) or keeps_potentials(
        getattr(chosen, "oracle", None)
    )
    run = Run(chosen, start)
    run.check(shape)
    if at_home and terms.normalise != "regret":
        make = partial(DeviceCosts, costs.double(), costs.home)
    else:
        make = partial(_stacked, costs)
    # Kernels are kept whatever their size: streaming would work the costs out at every sweep.
    problem = make_problem(make, terms, labels).having(memory_budget=float("inf"))
    # The paper's steps end where they end.
    with hearing() if getattr(chosen, "keep_last", False) else nullcontext():
        home = None if costs.home.library == "numpy" else costs.home
        return finish(lambda: run(problem), lambda result: result.at(home))


def _stacked(costs: GridGeometry) -> StackedCosts:
    """Return the costs as a stack on the host, for solvers that need one."""
    if 8 * int(np.prod(costs.shape)) > MEMORY_BUDGET:
        raise InputError(
            f"solver, normalise: need a stack of {8 * np.prod(costs.shape) / 1e9:.1f} GB; use "
            "Entropic and normalise='none' or 'mean', or a smaller image"
        )
    from frot._base.arrays import to_numpy

    return StackedCosts(to_numpy(costs.double().stack())[0])
