"""What a solver may ask of an ordinary transport solver."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from frot._plan import Plan

__all__ = ["Oracle", "Transport"]


class Transport(NamedTuple):
    """A plan, the potentials that go with it, and whether the oracle reached its tolerance."""

    plan: Plan
    f: np.ndarray
    g: np.ndarray
    converged: bool = True


class Oracle(Protocol):
    """min over plans of <plan, M> (+ eps KL where the oracle has it)."""

    @property
    def entropic(self) -> bool:
        """Whether the oracle needs eps > 0."""
        ...

    def __call__(
        self,
        M: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        eps: float = 0.0,
        start: np.ndarray | None = None,
    ) -> Transport:
        """Transport a to b at cost M; `start` is a potential g to begin from."""
        ...
