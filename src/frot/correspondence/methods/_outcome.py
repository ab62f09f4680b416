"""What a method of matching is given, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot._base.stopping import finish
from frot.correspondence._coherence import coherences
from frot.correspondence._layers import LayerPair
from frot.correspondence._transport import Transporting
from frot.problem.result import Result

__all__ = ["Outcome", "Setting", "votes_between"]


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

    @property
    def equal(self) -> np.ndarray:
        """Equal weights, (L,)."""
        count = len(self.layers.names)
        return np.full(count, 1.0 / count)

    def alone(self, layer: int) -> np.ndarray:
        """All weight on one layer, (L,)."""
        return np.eye(len(self.layers.names))[layer]

    @cached_property
    def coherences(self) -> np.ndarray:
        """Coherence of every layer, (L,)."""
        return coherences(self.layers)

    @cached_property
    def q(self) -> np.ndarray | None:
        """The prior on the layers, (L,); None is the paper's entropy."""
        if not isinstance(self.prior, str):
            return np.asarray(self.prior, dtype=float)
        if self.prior == "uniform":
            return None
        raised = self.coherences**self.power
        return raised / raised.sum()

    def votes(self, plan: Any) -> Any:
        r"""Return :math:`(n \Pi)^e`, (n, m)."""
        xp = self.home.xp
        scaled = xp.clip(plan * float(plan.shape[0]), 0.0, None)
        return xp.sqrt(scaled) if self.exponent == 0.5 else scaled**self.exponent

    def massive(self, votes: Any) -> Any:
        """Return votes, (n, m), without those from and for cells that have no mass.

        Where there is a plan it has none there by itself.
        """
        return votes_between(votes, self.a > 0.0, self.b > 0.0, self.home)

    def by_one_cost(
        self, cost: Any, name: str, alpha: np.ndarray, prior: np.ndarray | None = None
    ) -> Outcome:
        """The outcome of ordinary transport at one cost, (n, m), made with the weights alpha."""
        return finish(
            lambda: self.transport.alone(cost, name, self.a, self.b),
            lambda result: replace(self.transported(result.plan, alpha, result), prior=prior),
        )

    def transported(self, plan: Any, alpha: Any, result: Result | None) -> Outcome:
        """The outcome of a plan, with its cost in every layer."""
        plan = self.home.bring(plan if result is None else _dense(plan))
        phi = to_numpy(self.layers.costs.inner(plan[None, ...]))[0]
        weights = to_numpy(alpha).astype(float)
        return Outcome(self.votes(plan), weights, phi.astype(float), result, plan)


def votes_between(votes: Any, rows: np.ndarray, columns: np.ndarray, home: Home) -> Any:
    """Return votes, (n, m), with zeros outside some rows, (n,), and columns, (m,)."""
    if rows.all() and columns.all():
        return votes
    left, right = (home.bring(side.astype(float)) for side in (rows, columns))
    return votes * left[:, None] * right[None, :]


def _dense(plan: Any) -> Any:
    """A plan of the library, or a matrix already."""
    return plan.dense() if hasattr(plan, "dense") else plan


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
    prior : array of shape (L,), optional
        The weights that the layers had beforehand, where the method took notice of some.
    """

    votes: Any
    alpha: np.ndarray
    phi: np.ndarray | None = None
    result: Result | None = None
    plan: Any = None
    prior: np.ndarray | None = None
