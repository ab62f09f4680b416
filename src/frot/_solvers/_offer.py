"""What an algorithm has after a step."""

from __future__ import annotations

from typing import NamedTuple

from frot._bounds import Lower, Upper

__all__ = ["Offer"]


class Offer(NamedTuple):
    """Bounds that a step has found; None where it has nothing new.

    Examples
    --------
    >>> Offer()
    Offer(upper=None, lower=None)
    """

    upper: Upper | None = None
    lower: Lower | None = None
