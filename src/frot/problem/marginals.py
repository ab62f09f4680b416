r"""Constraints on the marginals: kept exactly, or at a price (tau) for mass that is not kept.

.. math::
    \min_{\Pi \ge 0} \; \max_{\alpha} \; \sum_l \alpha_l \langle \Pi, C_l \rangle
    - \eta\,\mathrm{KL}(\alpha | q) + \tau_a D(\Pi 1 | a) + \tau_b D(\Pi^\top 1 | b)

with :math:`D = \mathrm{KL}(x | y) = \sum x \log(x / y) - x + y`, or, for partial transport, the
mass that is left out, :math:`\sum y - x` with :math:`x \le y`. An infinite tau keeps its side. By
duality a side adds

.. math::
    -\tau \langle a, e^{-f / \tau} - 1 \rangle \quad (\mathrm{KL}), \qquad
    \langle a, f \rangle,\; f \le \tau \quad (\mathrm{TV}),

to the dual value, and a plan keeps :math:`a\, e^{-f / \tau}` of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf
from typing import Any

import numpy as np

from frot._base.arrays import TINY, UNIT
from frot._base.errors import InputError


@dataclass(frozen=True)
class MarginalPrice:
    r"""The price tau of one side under the KL penalty; infinite keeps it.

    Examples
    --------
    >>> a, f = np.array([0.5, 0.5]), np.array([0.0, 1.0])
    >>> MarginalPrice(inf).dual(a, f), MarginalPrice(inf).kept(a, f)
    (0.5, array([0.5, 0.5]))
    >>> round(MarginalPrice(1.0).dual(a, f), 4), MarginalPrice(1.0).kept(a, f).round(4)
    (0.3161, array([0.5   , 0.1839]))
    """

    tau: float = inf

    @property
    def soft(self) -> bool:
        """Whether mass may go."""
        return self.tau < inf

    def kept(self, weights: np.ndarray, potential: np.ndarray) -> np.ndarray:
        """Return the mass that potentials keep of each point."""
        with np.errstate(over="ignore"):
            return weights * np.exp(-potential / self.tau) if self.soft else weights

    def log_mass(self, weights: np.ndarray, potential: np.ndarray) -> float:
        """Return the logarithm of the mass that is kept in all, which may be next to none."""
        scores = -potential / self.tau + np.log(weights)
        top = float(scores.max())
        return top + float(np.log(np.exp(scores - top).sum()))

    def dual(self, weights: np.ndarray, potential: np.ndarray) -> float:
        """Return what the side adds to the dual value."""
        if not self.soft:
            return float(weights @ potential)
        with np.errstate(over="ignore"):
            return float(-self.tau * (weights @ np.expm1(-potential / self.tau)))

    def price(self, weights: np.ndarray, masses: np.ndarray) -> float:
        r"""Return :math:`\tau\,\mathrm{KL}(x | a)` of the masses x; nothing for a side kept."""
        if not self.soft:
            return 0.0
        return self.tau * float(weights @ _surprise(masses / weights))

    def price_error(self, weights: np.ndarray, masses: np.ndarray, share: float) -> float:
        """Bound the rounding of `price` of masses that are right to a share."""
        if not self.soft:
            return 0.0
        kept = masses / weights
        moved = np.abs(np.log(np.maximum(kept, TINY))) * kept * share
        # Next to where all is kept, differences are off by units of one.
        off = np.abs(kept - 1.0) + _surprise(kept)
        return self.tau * float(weights @ (moved + 8.0 * UNIT * off + 4.0 * share**2))


@dataclass(frozen=True)
class Marginals:
    """How both sides' marginals bind, and what a plan pays for what it does not keep.

    Parameters
    ----------
    tau_a, tau_b : float
        Price of a unit of divergence, in units of cost; infinite for a side that is kept.
    penalty : {"kl", "tv"}
    """

    tau_a: float = inf
    tau_b: float = inf
    penalty: str = "kl"

    @property
    def kept(self) -> bool:
        """Whether both sides are kept: the ordinary problem."""
        return self.tau_a == inf and self.tau_b == inf

    @property
    def soft(self) -> bool:
        """Whether mass may be created and destroyed at the price of a divergence."""
        return self.penalty == "kl" and not self.kept

    @property
    def partial(self) -> bool:
        """Whether mass may be left out."""
        return self.penalty == "tv" and not self.kept

    @property
    def name(self) -> str:
        """What a user would have written."""
        return f"penalty={self.penalty!r}"

    @property
    def sides(self) -> tuple[MarginalPrice, MarginalPrice]:
        """The prices of rows and columns under the KL penalty."""
        return MarginalPrice(self.tau_a), MarginalPrice(self.tau_b)

    def shift(self, a: np.ndarray, f: np.ndarray, b: np.ndarray, g: np.ndarray) -> float:
        r"""Return the constant to add to f and take off g that raises the dual value most.

        The masses that both sides keep are then the same:
        :math:`\tau_a \tau_b / (\tau_a + \tau_b)\, \log(\langle a, e^{-f / \tau_a} \rangle /
        \langle b, e^{-g / \tau_b} \rangle)`. Weights are positive.

        Examples
        --------
        >>> nothing = np.zeros(1)
        >>> round(Marginals(1.0, inf).shift(np.full(1, np.e), nothing, np.ones(1), nothing), 12)
        1.0
        """
        if self.kept:
            return 0.0
        rows, cols = self.sides
        apart = rows.log_mass(a, f) - cols.log_mass(b, g)
        return apart / (1.0 / self.tau_a + 1.0 / self.tau_b)


KEPT = Marginals()


def _surprise(kept: np.ndarray) -> np.ndarray:
    """Return x log(x) - x + 1 of shares x that are kept, without loss where x is next to one."""
    off = kept - 1.0
    near = np.abs(off) < 0.5
    found = np.where(near, np.log1p(np.where(near, off, 0.0)), np.log(np.maximum(kept, TINY)))
    return kept * found - off


def unit_mass(weights: np.ndarray) -> np.ndarray:
    """Return weights as shares of their sum."""
    return weights / fsum(weights.tolist())


def refuse_penalty(solver: Any, marginals: Marginals) -> None:
    """Refuse marginals that a solver does not declare to take (`penalties`)."""
    if marginals.kept:
        return
    takes = getattr(solver, "penalties", frozenset())
    if marginals.penalty not in takes:
        others = "; it takes " + ", ".join(map(repr, sorted(takes))) if takes else ""
        raise InputError(
            f"tau: {type(solver).__name__} does not take {marginals.name}{others}; use "
            "solver='auto', or leave tau out"
        )
