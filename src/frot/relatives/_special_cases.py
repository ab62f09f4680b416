"""Ordinary transport, and cutting sets (Dhouib et al. 2020): calls of `solve` by other names."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot._base.spelling import second_names
from frot._base.stopping import finish
from frot._base.validate import check_costs, check_number
from frot.api.solve import solve, solve_costs
from frot.problem.adversary import Simplex, SimplexFamily
from frot.problem.result import Chosen, Result
from frot.relatives.pair import check_pair
from frot.solvers import Callback, CuttingSet


def wasserstein(
    X: Any, Y: Any, *, p: float = 2.0, metric: Any = "euclidean", **options: Any
) -> Result:
    r"""Ordinary transport in all features: `solve` with one group.

    .. math::
        W_p^p = \min_{\Pi \in U(a, b)} \sum_{ij} \pi_{ij}\, d(x_i, y_j)^p

    `value` is :math:`W_p^p`; its p-th root is the distance.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), or DataFrames
    p : float
        The order, at least 1.
    metric : str or callable
        The distance d.
    **options :
        As in `solve`: a, b, eps (exact where it is 0 or left out), tol, max_iter, time_limit, ...

    Returns
    -------
    Result
        The adversary has nothing to choose: ``alpha`` is one, and ``chosen`` says so.

    Examples
    --------
    >>> import frot
    >>> frot.wasserstein([[0.0, 0.0]], [[3.0, 4.0]]).value
    25.0
    """
    if "groups" in options:
        raise InputError("groups: ordinary transport has none; leave it out, or use frot.solve")
    p = check_number(p, "p", least=1.0)
    home = check_pair(X, Y, None, None).home
    one = np.ones(1) if home is None else home.bring(np.ones(1))

    def named(result: Result) -> Result:
        solver = f"wasserstein(p={p:g}, {result.solver})"
        return replace(result, solver=solver, chosen=Chosen("weights", one, result.names))

    return finish(lambda: solve(X, Y, "all", p=p, metric=metric, **options), named)


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
    check_costs(C)
    if isinstance(adversary, SimplexFamily) and adversary.eta != 0.0:
        raise InputError("adversary: takes no entropy here; use frot.solve_costs(..., eta=...)")
    given = Simplex() if adversary is None else adversary
    solver = CuttingSet(tol, max_iter, time_limit)
    begin = time.perf_counter()

    def weighed(result: Result) -> Result:
        return replace(
            result,
            solver=f"cutting_set({type(given).__name__})",
            time=time.perf_counter() - begin,
            chosen=Chosen("weights", result.alpha, result.names),
        )

    return finish(
        lambda: solve_costs(
            C, a, b, eps=0.0, adversary=given, names=names, normalise_weights=normalise_weights,
            solver=solver, callback=callback, progress=progress,
        ),
        weighed,
    )  # fmt: skip
