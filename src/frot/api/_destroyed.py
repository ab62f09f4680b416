"""A warning where next to nothing was kept, with a tau that would keep about half."""

from __future__ import annotations

import numpy as np

from frot._base.arrays import to_numpy
from frot._base.errors import warn_caller
from frot._base.stopping import no_deadline
from frot.problem.marginals import Side
from frot.problem.problem import Problem
from frot.problem.result import Result
from frot.problem.status import Status

__all__ = ["keeps_half", "warn_if_destroyed", "warn_if_members_are_destroyed"]

# Less of the lighter side than this is next to nothing.
NEXT_TO_NOTHING = 1e-2
# Rows that are looked at for a tau, and columns with each.
LOOKED_AT = 1_000
HALVINGS = 60


def warn_if_destroyed(problem: Problem, result: Result) -> None:
    """Say which tau keeps half where less than a hundredth was kept."""
    settled = result.status in (Status.CONVERGED, Status.PRECISION)
    if problem.marginals.kept or not settled:
        return
    mass = _mass(problem, result)
    if mass >= NEXT_TO_NOTHING * min(result.totals):
        return
    kept = f"{mass / min(result.totals):.1e} of the lighter side's mass was kept"
    if not problem.costs.on_host:
        warn_caller(f"tau: is too small: {kept}; the mean cost is {result.mean_cost:.4g}")
        return
    with no_deadline():
        half = keeps_half(problem, to_numpy(result.alpha))
    warn_caller(f"tau: is too small: {kept}; tau={half:.3g} would keep about half")


def warn_if_members_are_destroyed(
    weights: tuple[np.ndarray, np.ndarray],
    potentials: tuple[np.ndarray, np.ndarray],
    prices: tuple[np.ndarray, np.ndarray],
) -> None:
    """Say so of a batch; weights and potentials are (B, n) and (B, m), prices (B,)."""
    kept = np.zeros(len(prices[0]))
    for masses, potential, tau in zip(weights, potentials, prices, strict=True):
        for at in np.flatnonzero(np.isfinite(tau)):
            own = masses[at] > 0.0
            mass = Side(tau[at]).kept(masses[at][own], potential[at][own]).sum()
            kept[at] = max(kept[at], mass)
    shares = kept / np.minimum(weights[0].sum(axis=1), weights[1].sum(axis=1))
    if (low := int((shares < NEXT_TO_NOTHING).sum())) > 0:
        worst = int(shares.argmin())
        warn_caller(
            f"tau: is too small: {low} of {len(shares)} members kept less than a hundredth of "
            f"their mass; frot.solve on member {worst} names a tau that keeps half"
        )


def _mass(problem: Problem, result: Result) -> float:
    """What was kept, about, without a pass over a plan that is not there yet."""
    if problem.marginals.partial:
        return result.mass
    pairs = zip(problem.marginals.sides, (problem.a, problem.b), result.potentials, strict=True)
    # Points without weight may have any potential.
    return max(
        float(side.kept(weights[weights > 0.0], to_numpy(potential)[weights > 0.0]).sum())
        for side, weights, potential in pairs
        if side.soft
    )


def keeps_half(problem: Problem, alpha: np.ndarray) -> float:
    r"""Return a price of both sides that keeps half of the mass, or so.

    With one partner each, at the distance :math:`m_i` of the nearest point, a pair keeps
    :math:`e^{-m_i / 2 \tau}` of its mass, or, where mass is left out, all if
    :math:`m_i < 2 \tau`.

    Examples
    --------
    >>> import math
    >>> from frot.costs import StackedCosts
    >>> from frot.problem.marginals import Marginals
    >>> costs = StackedCosts(np.array([[[2.0]]]))
    >>> problem = Problem(costs, np.ones(1), np.ones(1), marginals=Marginals(0.01, 0.01))
    >>> round(keeps_half(problem, np.ones(1)) * math.log(2.0), 9)
    1.0
    """
    n, m = problem.shape[1:]
    rows, cols = (np.linspace(0, k - 1, min(k, LOOKED_AT)).astype(int) for k in (n, m))
    part = problem.part(rows, cols)
    mixed = part.costs.mix(alpha)
    sides = ((mixed.min(axis=1), part.a), (mixed.min(axis=0), part.b))
    # The side that is worse off decides.
    return max(_half(np.maximum(least, 0.0), w, problem.marginals.partial) for least, w in sides)


def _half(least: np.ndarray, weights: np.ndarray, partial: bool) -> float:
    """Return the tau of one side."""
    shares = weights / weights.sum()
    if partial:
        order = np.argsort(least)
        return 0.5 * float(least[order][np.searchsorted(np.cumsum(shares[order]), 0.5)])
    low, high = 0.0, float(least.max()) / np.log(2.0) + 1e-300
    for _ in range(HALVINGS):
        tau = 0.5 * (low + high)
        kept = float(shares @ np.exp(-np.minimum(least / (2.0 * tau), 700.0)))
        low, high = (tau, high) if kept < 0.5 else (low, tau)
    return float(high)
