r"""When points of an ascent are near enough to be proven: by the gap, or by the gradient.

A plan with a mass e in wrong columns and weights with a regret r (what the best answer to the
plan's costs earns more, over the value F) have a gap of about :math:`r + \tfrac12 e s / F`, with s
the mean cost. The gradient by the points, which plan and weights make, is off by about as much as e
but by the root of r: over problems of all kinds (`docs/entropic.md`) by

.. math:: \frac{\|\delta\|}{\|\nabla\|} \le 4\, e\, \frac{s}{F} + 4 \sqrt{r}

at most. So a gradient is asked for by both, and twice as close as that, for losses that are
differences; a gap of its square would sweep for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from frot.solvers.sinkhorn.engine import Point, distances, regrets
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["WEIGHTS", "Aim"]

# What the gradient's relative error is taken to be over the mass in wrong columns and over the root
# of the regret: twice what was measured at most.
PLAN, WEIGHTS = 8.0, 8.0
# The same of a single gap, whatever it comes from: twice the plan's, and no more than what was seen
# of the weights'.
PLAN_GAP, WEIGHTS_GAP = 2.0 * PLAN, 4.0
# A smaller regret is rounding in double precision.
LEAST_REGRET = 1e-14
# Points that were near enough but could not be proven to be are asked for so much more.
TIGHTER = 0.3


@dataclass(frozen=True)
class Aim:
    """What is asked for.

    Parameters
    ----------
    gap : float
        A proven relative gap that is enough whatever made it.
    gradient : float, optional
        The relative error of gradients that is enough, estimated, with a proven gap of no more.

    Examples
    --------
    >>> Aim(1e-4).sweeps, Aim(1e-4, 1e-2).sweeps
    (0.0001, 0.00125)
    """

    gap: float
    gradient: float | None = None
    strictness: float = 1.0

    @property
    def sweeps(self) -> float:
        """Mass that may be in wrong columns, over |value| / scale."""
        return self.gap if self.gradient is None else self.strictness * self.gradient / PLAN

    @property
    def proven(self) -> float:
        """The gap that has to be proven of points that are near."""
        return self.gap if self.gradient is None else max(self.gap, self.gradient)

    def near(self, terms: Terms, at: Point) -> Any:
        """Return which members are near enough to be proven, (B,)."""
        close = distances(terms, at) <= self.gap
        if self.gradient is None:
            return close
        xp = terms.home.xp
        size = xp.maximum(xp.abs(at.primal), xp.abs(at.dual))
        plan = terms.scale[:, 0] * at.error <= self.sweeps * size
        regret = max((self.strictness * self.gradient / WEIGHTS) ** 2, LEAST_REGRET)
        weights = regrets(terms, at) <= regret
        return close | (plan & weights)

    @staticmethod
    def gap_for(gradient: float, groups: int) -> float:
        """Return the gap that makes a gradient as good, where nothing else can be asked for.

        Examples
        --------
        >>> Aim.gap_for(4e-3, 1), Aim.gap_for(4e-3, 2)
        (0.00025, 1e-06)
        """
        return gradient / PLAN_GAP if groups == 1 else (gradient / WEIGHTS_GAP) ** 2

    def tighter(self) -> Aim:
        """The same, for points that did not keep what they promised."""
        return replace(self, strictness=TIGHTER * self.strictness)
