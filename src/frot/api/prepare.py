"""From checked arguments to a problem: costs are computed and made comparable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot.api.normalise import normalise_costs
from frot.costs import Costs
from frot.problem.adversary import SimplexFamily
from frot.problem.problem import Problem
from frot.problem.terms import Terms, amount_at
from frot.solvers.forbidden import check_allowed

__all__ = ["make_problem"]

# Costs beyond this overflow when they are summed.
LARGEST_COST = 1e290


def make_problem(
    make_costs: Callable[[], Costs], terms: Terms, names: tuple[str, ...], **known: Any
) -> Problem:
    """Compute the costs and normalise them.

    What else is `known` of the problem, its points for one, goes in as it is.
    """
    a, b = terms.a, terms.b
    with np.errstate(over="ignore", invalid="ignore"):
        costs = normalise_costs(make_costs(), a, b, terms.normalise)
        check_allowed(costs.forbidden, a, b)
        plain = Problem(costs, a, b, names=names)
        level = plain.mean_cost
    if not np.isfinite(level) or level > LARGEST_COST:
        raise InputError("costs: are infinite or NaN; scale the points down, or check the metric")
    adversary = terms.adversary
    if isinstance(adversary, SimplexFamily):
        adversary = adversary.having(amount_at(terms.eta, level), terms.log_prior)
    # Where nothing costs anything every eps gives a b^T, but it has to be one.
    eps = amount_at(terms.eps, level or 1.0)
    return plain.having(adversary=adversary, eps=eps, **known)
