"""`pairwise`: the matrix of distances between many clouds, spread over workers, resumable."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot._base.files import check_path
from frot._base.parallel import check_n_jobs
from frot._base.spelling import second_names
from frot._base.validate import check_flag, check_metric, check_number, read_numbers
from frot.api._pairwise_table import (
    Call,
    Effort,
    Table,
    check_clouds,
    check_same_features,
    fill_table,
)
from frot.api.prepare import refuse_normalised_distance
from frot.costs import MEMORY_BUDGET, METRICS
from frot.groups.groups import Groups
from frot.problem.adversary import SimplexFamily
from frot.problem.amounts import Relative
from frot.problem.marginals import check_tau
from frot.problem.terms import check_terms
from frot.solvers.choose import Limits, Solver, choose_solver

__all__ = ["pairwise"]

# Seconds for a pair, and for an entry of a cost matrix: measured, and right to a factor of
# three or so, which is enough to cut the work into tiles.
PER_PAIR, PER_ENTRY = 5e-3, 1.5e-7
# How much dearer an entry is where Python computes it, and where there is entropy on the plan.
CALLABLE, ENTROPIC = 15.0, 5.0
# The one metric of SciPy's in which a point is not at distance zero from itself.
NO_IDENTITY = "russellrao"


@second_names
def pairwise(
    clouds: Any,
    groups: Any = None,
    *,
    others: Any = None,
    weights: Any = None,
    other_weights: Any = None,
    p: float = 2.0,
    metric: str | Callable[[np.ndarray, np.ndarray], float] = "euclidean",
    eta: float | Relative = 0.0,
    eps: float | Relative = 0.0,
    prior: Any = None,
    adversary: Any = None,
    tau: Any = None,
    penalty: str = "kl",
    normalise: str = "none",
    normalise_weights: bool = False,
    solver: str | Solver = "auto",
    tol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    memory_budget: float = MEMORY_BUDGET,
    n_jobs: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> np.ndarray:
    r"""Return the feature-robust Wasserstein distances between all pairs of clouds.

    .. math::
        D_{ij} = \mathrm{FRWD}_p(\mu_i, \mu_j) = \Big( \min_\Pi \max_{\alpha \in \Sigma^L}
        \sum_{kl} \pi_{kl} \sum_g \alpha_g\, d(x_k^{(g)}, y_l^{(g)})^p \Big)^{1/p}

    Without `others` the matrix is symmetric: d is taken to be symmetric and one of each two
    pairs is solved. Its diagonal is zero, unless d is a callable or "russellrao": then it is
    computed, since nothing says that such a d is zero between equal points.

    With `eta` or `eps` the entries are the optimal values *with their entropies*, to the power
    1/p (values below zero count as zero), and so they are with sets of weights other than the
    (capped) simplex. That is no distance: the diagonal, which is computed,
    is not zero, and the triangle inequality may fail. With `tau` the entries include the price of
    mass that is not kept; a cloud keeps all of itself.

    Parameters
    ----------
    clouds : list of N arrays of shape (n_i, d), or of DataFrames
        The clouds; they may differ in size.
    groups : optional
        What `Groups.parse` reads; the default is one group per feature.
    others : list of M arrays of shape (m_j, d), optional
        Distances are from `clouds` to these, rather than among `clouds`.
    weights, other_weights : lists of arrays of shapes (n_i,) and (m_j,), optional
        Weights of each cloud's points, which sum to one; None, for all or for one, is uniform.
    p : float
        The order, at least 1.
    metric : str or callable
        The distance d within a group, as in `solve`.
    tau, penalty :
        As in `solve`: weights may then sum to anything. Among `clouds` alone both sides have one
        price, so that the matrix is symmetric.
    eta, eps, prior, adversary, normalise_weights, solver, tol, max_iter, memory_budget :
        As in `solve`. A `relative` eta or eps is a share of each pair's own mean cost, and the
        budget is for each worker.
    normalise : {"none"}
        The other ways of `solve` depend on the pair, and make distances that cannot be compared.
    time_limit : float, optional
        Seconds at most for one pair.
    n_jobs : int, optional
        Worker processes; -1 is one per processor. 1 is this process. None, the default, follows
        ``joblib.parallel_config``: ``parallel_config(backend="dask")`` spreads the work over a
        Dask cluster, where tasks of lost workers are run again on others.
    progress : bool
        Show a bar with the count of pairs and the time left, on stderr.
    checkpoint : path, optional
        A file that keeps what is finished. The same call with the same file goes on from there,
        after Ctrl-C, a crash or a kill, with whatever `n_jobs`. A callable metric is known by
        its code, not by what globals it reads.

    Returns
    -------
    array of shape (N, N), or (N, M) with `others`

    Raises
    ------
    InputError
        If an argument cannot be used, before any work; the message names the cloud. Also if
        `checkpoint` is of other data or options.

    Warns
    -----
    ConvergenceWarning
        Once, if some pairs ended before their tolerance; it says how many, and the worst.

    Examples
    --------
    >>> import frot
    >>> clouds = [[[0.0, 0.0]], [[3.0, 4.0]], [[0.0, 1.0], [0.0, 3.0]]]
    >>> frot.pairwise(clouds, groups="all").round(3)
    array([[0.   , 5.   , 2.236],
           [5.   , 0.   , 3.742],
           [2.236, 3.742, 0.   ]])
    >>> frot.pairwise(clouds, groups="all", others=clouds[:1]).round(3)
    array([[0.   ],
           [5.   ],
           [2.236]])
    """
    prices = check_tau(tau, penalty)
    any_mass = prices is not None and not normalise_weights
    first = check_clouds(clouds, weights, normalise_weights, any_mass=any_mass)
    if others is None:
        if other_weights is not None:
            raise InputError("other_weights: are of no clouds; pass others, or use weights")
        if prices is not None and prices[0] != prices[1]:
            raise InputError(
                "tau: the prices of the two sides differ, and so would the matrix and its "
                "transpose; pass one price, or others=clouds"
            )
        second = None
    else:
        second = check_clouds(
            others, other_weights, normalise_weights, "others", "other_weights", any_mass
        )
        check_same_features(first, second)
    columns = first.columns or (second.columns if second is not None else None)
    parsed = Groups.parse(groups, first.width, columns)
    p = check_number(p, "p", least=1.0)
    metric = check_metric(metric, METRICS)
    n_jobs = check_n_jobs(n_jobs)
    progress = check_flag(progress, "progress")
    checkpoint = None if checkpoint is None else check_path(checkpoint, "checkpoint")
    shape = (len(parsed), int(first.sizes.max()), int((second or first).sizes.max()))
    refuse_normalised_distance(normalise)
    terms = check_terms(
        shape, None, None, eta, eps, prior, normalise, normalise_weights, adversary=adversary,
        tau=tau, penalty=penalty,
    )  # fmt: skip
    chosen = choose_solver(solver, shape, terms, Limits(tol, max_iter, time_limit))
    options = {
        "metric": metric,
        "p": p,
        "eta": terms.eta,
        "eps": terms.eps,
        "prior": None if prior is None else read_numbers(prior, "prior"),
        "normalise": normalise,
        "solver": solver,
        # As the chosen solver has them: plain numbers.
        "tol": None if tol is None else chosen.tol,
        "max_iter": None if max_iter is None else chosen.max_iter,
        "time_limit": None if time_limit is None else chosen.time_limit,
    }
    # Only what is asked for is added, for checkpoints that are there.
    if prices is not None:
        options |= {"tau": prices, "penalty": penalty}
    if adversary is not None:
        # Eta is among the options.
        options["adversary"] = adversary
        if isinstance(adversary, SimplexFamily):
            options["adversary"] = adversary.having(0.0, adversary.log_prior)
    effort = Effort(
        PER_PAIR,
        PER_ENTRY
        * len(parsed)
        * (CALLABLE if callable(metric) else 1.0)
        * (ENTROPIC if terms.regularisation[1] > 0.0 else 1.0),
    )
    apart = callable(metric) or metric == NO_IDENTITY or any(terms.regularisation)
    apart = apart or not terms.adversary.on_simplex
    budget = check_number(memory_budget, "memory_budget")
    call = Call(parsed, options, budget, diagonal=apart, any_mass=any_mass)
    table = Table(first, second, call, effort)
    values = fill_table(table, n_jobs, progress, checkpoint)
    return np.maximum(values, 0.0) ** (1.0 / p)
