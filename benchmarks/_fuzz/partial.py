"""What the numbers of an answer come to where plans have a given mass."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from .evidence import Evidence
from .truth import Truth
from .truth.numbers import to_long
from .truth.partial import partial

__all__ = ["PartialEvidence"]


@dataclass(frozen=True, eq=False)
class PartialEvidence(Evidence):
    """A problem whose plans have a given mass; `totals` are what its weights sum to."""

    mass: float = 1.0
    totals: tuple[Fraction, Fraction] = (Fraction(1), Fraction(1))

    def truth(self, eps: float) -> Truth | None:
        """The optimum, or None where the problem is too large."""
        if eps or not self.is_small(eps):
            return None
        known: dict[float, Truth] = self.__dict__.setdefault("_truths", {})
        if eps not in known:
            known[eps] = partial(self.problem.program, self.mass, self.totals, self.eta, self.prior)
        return known[eps]

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights with their sums."""
        first, second = super().weights
        return first * to_long(self.totals[0]), second * to_long(self.totals[1])

    @property
    def _most(self) -> tuple[np.ndarray, np.ndarray]:
        """What points may send and get, of which none has more than all."""
        a, b = (np.minimum(side, self.mass) for side in self.weights)
        return a, b

    def proven(self, alpha: np.ndarray, f: np.ndarray, g: np.ndarray, eps: float) -> float:
        """What weights and potentials prove: mass that is left out is that of the highest."""
        a, b = self._most
        mixed, f, g = self.mixed(alpha), f.astype(np.longdouble), g.astype(np.longdouble)
        some = np.outer(a, b) > 0.0
        # Where rounding put pairs above their costs, their rows give way.
        f = f - np.maximum(np.where(some, f[:, None] + g - mixed, 0.0).max(axis=1), 0.0)
        left = a.sum() - self.mass, b.sum() - self.mass
        value = a @ f + b @ g - left[0] * f[a > 0.0].max() - left[1] * g[b > 0.0].max()
        return float(value) + self.reward(alpha)

    def size(self, f: np.ndarray, g: np.ndarray) -> float:
        """How much potentials add up, which bounds what rounding does to their sum."""
        a, b = self._most
        top, other = f[a > 0.0].max(), g[b > 0.0].max()
        return float(a @ np.abs(f - top) + b @ np.abs(g - other) + self.mass * abs(top + other))
