"""One problem of a batch, on the host and without points of zero weight."""

from __future__ import annotations

import numpy as np

from frot._base.arrays import to_numpy
from frot.costs import DeviceCosts, StackedCosts
from frot.costs.geometry import Geometry
from frot.costs.stack import stack_of
from frot.problem.adversary import simplex_of
from frot.problem.problem import Problem
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["host_costs", "host_problem"]


def host_costs(geometry: Geometry) -> StackedCosts:
    """Bring the costs of one problem to the host, as a stack that knows its errors."""
    return stack_of(DeviceCosts(geometry, geometry.home))


def host_problem(geometry: Geometry, terms: Terms) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Bring one problem to the host; return it and the rows and columns that it has.

    Parameters
    ----------
    geometry : Geometry
        A batch of one in double precision.
    terms : Terms
        Likewise.
    """
    prior = None if terms.log_prior is None else to_numpy(terms.log_prior)[0]
    problem = Problem(
        host_costs(geometry),
        to_numpy(terms.a)[0],
        to_numpy(terms.b)[0],
        adversary=simplex_of(terms.k, float(terms.eta[0, 0]), prior),
        eps=float(terms.eps[0, 0]),
    )
    return problem.support()
