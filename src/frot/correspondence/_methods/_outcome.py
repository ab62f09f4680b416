"""What a method of matching is given, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from frot._arrays import Home, to_numpy
from frot._result import Result
from frot.correspondence._coherence import coherences
from frot.correspondence._layers import LayerPair
from frot.correspondence._transport import Transporting

__all__ = ["Outcome", "Setting"]


@dataclass(frozen=True, eq=False)
class Setting:
    r"""Two images' layers, the weights of their cells, and how to transport.

    Parameters
    ----------
    layers : LayerPair
    a, b : arrays of shape (n,) and (m,)
    transport : Transporting
    prior : str or array of shape (L,)
        "coherence", "uniform" or weights of the layers.
    power : float
        What coherences are raised to.
    exponent : float
        Votes are :math:`(n \Pi)^e`.
    layer : int, optional
        The layer of "best-layer".
    rank : int
        Directions of "srw".
    """

    layers: LayerPair
    a: np.ndarray
    b: np.ndarray
    transport: Transporting
    prior: Any = "coherence"
    power: float = 2.0
    exponent: float = 0.5
    layer: int | None = None
    rank: int = 50

    @property
    def home(self) -> Home:
        """Where arrays live."""
        return self.layers.home

    @cached_property
    def coherences(self) -> np.ndarray:
        """Coherence of every layer, (L,)."""
        return coherences(self.layers)

    @cached_property
    def q(self) -> np.ndarray | None:
        """The prior on the layers, (L,); None is the paper's entropy."""
        if isinstance(self.prior, str) and self.prior == "uniform":
            return None
        if isinstance(self.prior, str):
            raised = self.coherences**self.power
            return raised / raised.sum()
        return np.asarray(self.prior, dtype=float)

    def votes(self, plan: Any) -> Any:
        r"""Return :math:`(n \Pi)^e`, (n, m)."""
        xp = self.home.xp
        scaled = xp.clip(self.home.bring(to_numpy(plan)) * float(plan.shape[0]), 0.0, None)
        return xp.sqrt(scaled) if self.exponent == 0.5 else scaled**self.exponent

    def transported(self, result: Result, alpha: np.ndarray | None = None) -> Outcome:
        """The outcome of a plan, with its cost in every layer."""
        plan = np.asarray(result.plan)
        weights = to_numpy(result.alpha) if alpha is None else alpha
        return Outcome(self.votes(plan), weights, self.phi(plan), result, plan)

    def phi(self, plan: np.ndarray) -> np.ndarray:
        """What the plan costs in every layer, (L,)."""
        xp = self.home.xp
        flat = xp.reshape(self.layers.cosines, (len(self.layers.names), -1))
        mass = xp.reshape(self.home.bring(plan), (-1,))
        return 2.0 * float(plan.sum()) - 2.0 * to_numpy(flat @ mass).astype(float)


@dataclass(frozen=True, eq=False)
class Outcome:
    """How strongly each pair of cells is matched.

    Attributes
    ----------
    votes : array of shape (n, m)
        Before Hough matching.
    alpha : array of shape (L,)
        Weights of the layers.
    phi : array of shape (L,), optional
        What the plan costs in each.
    result : Result, optional
        The transport behind it.
    plan : array of shape (n, m), optional
    """

    votes: Any
    alpha: np.ndarray
    phi: np.ndarray | None = None
    result: Result | None = None
    plan: np.ndarray | None = None
