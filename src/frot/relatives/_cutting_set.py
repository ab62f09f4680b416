"""Robust transport over any convex set of costs, by cutting sets (Dhouib et al. 2020)."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

from frot._base.arrays import find_home, to_numpy
from frot._base.errors import InputError
from frot._base.spelling import second_names
from frot._base.stopping import finish
from frot._base.validate import check_costs, check_names
from frot.api.run import Run, make_problem
from frot.costs import StackedCosts
from frot.problem.adversary import SimplexFamily
from frot.problem.result import Chosen, Result
from frot.problem.terms import check_terms
from frot.relatives.pair import check_limits
from frot.solvers import CuttingSet
from frot.solvers.drive import Callback

__all__ = ["cutting_set"]


@second_names
def cutting_set(
    C: Any,
    a: Any = None,
    b: Any = None,
    *,
    adversary: Any = None,
    names: Any = None,
    normalise_weights: bool = False,
    tol: float = 1e-8,
    max_iter: int = 500,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    uncertainty: Any = None,
) -> Result:
    r"""Robust Kantorovich problem over a convex set of costs.

    .. math::
        \min_{\Pi \in U(a, b)} \; \max_{\alpha \in \mathcal A} \;
        \sum_l \alpha_l \langle \Pi, C_l \rangle

    Costs :math:`\sum_l \alpha_l C_l` found so far are one feature-robust problem, solved exactly;
    the set answers its plan with a new cost, until that is no worse. With the simplex it is
    `solve_costs`. `solve` and `solve_costs` take the same sets as ``adversary=``; this is their
    `CuttingSet`. The lower bound is the feature-robust one, since mixtures of answers are in
    :math:`\mathcal A`; the upper bound is the set's answer to the plan.

    Parameters
    ----------
    C : array of shape (L, n, m)
        Cost matrices; negative entries are allowed.
    a, b : arrays of shape (n,) and (m,), optional
    adversary : optional
        `Simplex` (the default), `CappedSimplex`, `Box`, `Ellipsoid`, `Polytope`, `Polyhedron`, or
        anything with ``best(phi) -> value, alpha`` for a convex and bounded set, and with
        ``contains(alpha)`` and ``project(alpha)`` where its answers may be a little outside it.
    names : sequence of str, optional
        Names of the costs.
    normalise_weights, tol, max_iter, time_limit, callback, progress :
        As in `solve_costs`; `max_iter` counts cuts.
    uncertainty : optional
        The old name of `adversary`.

    Returns
    -------
    Result
        ``alpha`` and ``chosen.array`` are the weights that prove `lower`, in the set.

    Examples
    --------
    >>> import frot
    >>> C = [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    >>> round(frot.cutting_set(C).value, 9)
    0.5
    >>> round(frot.cutting_set(C, adversary=frot.Box([0.0, 0.0], [1.0, 3.0])).value, 9)
    1.0
    """
    if uncertainty is not None:
        if adversary is not None:
            raise InputError("uncertainty: is the old name of adversary; give adversary alone")
        warnings.warn("uncertainty= is now called adversary=", DeprecationWarning, stacklevel=2)
        adversary = uncertainty
    home = find_home(C=C, a=a, b=b)
    stack = to_numpy(check_costs(C)).astype(float)
    if isinstance(adversary, SimplexFamily) and adversary.eta != 0.0:
        raise InputError("adversary: takes no entropy here; use frot.solve_costs(..., eta=...)")
    terms = check_terms(
        stack.shape, a, b, 0.0, 0.0, None, "none", normalise_weights, adversary=adversary
    )
    labels = check_names(names, len(stack))
    limits = check_limits(tol, max_iter, time_limit)
    solver = CuttingSet(limits.tol, limits.max_iter, limits.time_limit)
    run = Run(solver, None, callback, progress)
    run.check(stack.shape)
    begin = time.perf_counter()
    problem = make_problem(lambda: StackedCosts(stack), terms, labels)

    def weighed(result: Result) -> Result:
        return replace(
            result,
            solver=f"cutting_set({terms.adversary.name})",
            time=time.perf_counter() - begin,
            chosen=Chosen("weights", result.alpha, labels),
        ).at(home)

    return finish(lambda: run(problem), weighed)
