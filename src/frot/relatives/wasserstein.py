"""Ordinary optimal transport, the Wasserstein distance: all features count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot._base.stopping import Interrupted
from frot._base.validate import check_number
from frot.api.solve import solve
from frot.problem.result import Chosen, Result, handed_out
from frot.relatives.pair import check_pair


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
    alpha = np.ones(1) if home is None else home.bring(np.ones(1))

    try:
        result = solve(X, Y, "all", p=p, metric=metric, **options)
    except Interrupted as stop:
        result = stop.result
    name = f"wasserstein(p={p:g}, {result.solver})"
    return handed_out(replace(result, solver=name, chosen=Chosen("weights", alpha, result.names)))
