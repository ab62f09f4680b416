"""Bounds of a problem with eps from the one without, for an eps that is next to nothing."""

from __future__ import annotations

from collections.abc import Iterator

from frot.problem.bounds import relative_gap
from frot.problem.problem import Problem
from frot.solvers._start import Start
from frot.solvers.drive import Offer
from frot.solvers.entropic.arcs import plan_upper
from frot.solvers.exact.exact import Exact

__all__ = ["without_eps"]

# The problem without eps is solved to this share of the tolerance.
CLOSER = 0.1


def without_eps(problem: Problem, tol: float) -> Iterator[Offer]:
    """Solve the problem without eps, and offer what its plans and potentials prove.

    Lower bounds hold as they are, for no entropy is negative; the entropy of a plan is summed, and
    is no more than eps times the logarithm of the smallest weight.

    Parameters
    ----------
    problem : Problem
        Costs on the host, weights > 0, eps > 0.
    tol : float
        The gap that is asked for.
    """
    for offer in Exact().offers(problem.having(eps=0.0), Start()):
        upper, lower = offer.upper, offer.lower
        if upper is None or lower is None:
            yield Offer()
            continue
        yield Offer(plan_upper(problem, upper.plan), lower)
        if relative_gap(lower.bound, upper.bound) <= CLOSER * tol:
            return
