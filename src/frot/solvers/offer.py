"""What an algorithm has after a step."""

from __future__ import annotations

from typing import NamedTuple

from frot.problem.bounds import Lower, Upper
from frot.problem.problem import Problem

__all__ = ["Offer"]


class Offer(NamedTuple):
    """Bounds that a step has found; None where it has nothing new.

    An algorithm that changes eta on its way says which `problem` its bounds are about: what was
    known before is then forgotten.

    Examples
    --------
    >>> Offer()
    Offer(upper=None, lower=None, problem=None)
    """

    upper: Upper | None = None
    lower: Lower | None = None
    problem: Problem | None = None
