"""The truth: an interval that holds the optimum, narrower than what double precision can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath

from .linear import check_plan_left, transport
from .numbers import DIGITS, exact, exactly
from .program import ZERO, Program
from .smooth import Entropies, objective, smooth_bounds

__all__ = ["Truth", "optimum"]


@dataclass(frozen=True)
class Truth:
    """The optimum lies in [low, high], for certain.

    Examples
    --------
    >>> Truth(Fraction(1), Fraction(1)).misses(0.9, 0.99)
    0.01...
    """

    low: Fraction
    high: Fraction

    def misses(self, lower: float, upper: float) -> float:
        """Return by how much an interval of floats misses the optimum for certain; 0 if not."""
        over, under = exact(lower) - self.high, self.low - exact(upper)
        return float(max(over, under, ZERO))

    @property
    def width(self) -> float:
        """How wide the interval is, relatively."""
        size = max(abs(self.low), abs(self.high))
        return float((self.high - self.low) / size) if size else 0.0

    def __float__(self) -> float:
        return float((self.low + self.high) / 2)


def optimum(
    program: Program, eta: Any = 0.0, eps: Any = 0.0, prior: Sequence[float] | None = None
) -> Truth:
    r"""Return the optimum of feature-robust transport.

    .. math::
        \min_{\Pi \in U(a, b)} \max_{\alpha \in \Sigma^L} \sum_l \alpha_l \langle \Pi, C_l \rangle
        - \eta \sum_l \alpha_l \log (\alpha_l / q_l) + \varepsilon\,\mathrm{KL}(\Pi | a b^\top)

    Exact where eta = eps = 0; otherwise proven by weak duality with 60 digits. q is one without a
    prior, and the prior divided by its sum with one.

    Raises
    ------
    NoPlanError
        If forbidden arcs leave no plan.

    Examples
    --------
    >>> program = Program.of_stack([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> optimum(program)
    Truth(low=Fraction(1, 2), high=Fraction(1, 2))
    >>> float(optimum(program, eta=1.0))  # 1/2 + log 2
    1.1931471805599454
    """
    small = program.support()
    if not eta and not eps:
        value = transport(small).value
        return Truth(value - program.doubt, value + program.doubt)
    if small.forbidden:
        check_plan_left(small)
    q = (Fraction(1),) * len(small.costs)
    if prior is not None:
        given = exactly(prior)
        q = tuple(x / sum(given, ZERO) for x in given)
    small, q = _merged(small, q)
    terms = Entropies(exact(eta), exact(eps), q)
    if 1 in small.shape[1:]:
        # One plan is all there is, and it is the product.
        plan = {(i, j): small.a[i] * small.b[j] for i, j in small.arcs()}
        with mpmath.workdps(DIGITS):
            low, high = objective(small, terms, plan)
    else:
        low, high = smooth_bounds(small, terms)
    return Truth(low - program.doubt, high + program.doubt)


def _merged(program: Program, q: tuple[Fraction, ...]) -> tuple[Program, tuple[Fraction, ...]]:
    """Take groups of the same costs together: their q add up, and nothing else changes."""
    first: dict[Any, int] = {}
    total: list[Fraction] = []
    for group, weight in zip(program.costs, q, strict=True):
        if group in first:
            total[first[group]] += weight
        else:
            first[group] = len(total)
            total.append(weight)
    return program.only([program.costs.index(group) for group in first]), tuple(total)
