"""Warnings where next to no mass was kept at a price."""

from __future__ import annotations

import numpy as np

from frot._base.arrays import to_numpy
from frot._base.errors import DataWarning, warn_caller
from frot.problem.marginals import MarginalPrice
from frot.problem.problem import Problem
from frot.problem.result import Result, Status

# Share of the lighter side's mass below which a warning says that tau is too small.
NEXT_TO_NOTHING = 1e-2


def warn_if_destroyed(problem: Problem, result: Result) -> None:
    """Say so, and what costs are, where less than a hundredth was kept."""
    settled = result.status in (Status.CONVERGED, Status.STALLED)
    if problem.marginals.balanced or problem.marginals.mass is not None or not settled:
        return
    share = _mass(problem, result) / min(result.totals)
    if share < NEXT_TO_NOTHING:
        warn_caller(
            f"tau: is too small: {share:.1e} of the lighter side's mass was kept; pass one that is "
            f"nearer to the mean cost, {result.mean_cost:.4g}",
            category=DataWarning,
        )


def warn_if_members_are_destroyed(
    weights: tuple[np.ndarray, np.ndarray],
    potentials: tuple[np.ndarray, np.ndarray],
    prices: tuple[np.ndarray, np.ndarray],
) -> None:
    """Say so of a batch; weights and potentials are (B, n) and (B, m), prices (B,)."""
    kept = np.zeros(len(prices[0]))
    for masses, potential, tau in zip(weights, potentials, prices, strict=True):
        for index in np.flatnonzero(np.isfinite(tau)):
            own = masses[index] > 0.0
            mass = MarginalPrice(float(tau[index])).masses(
                masses[index][own], potential[index][own]
            )
            kept[index] = max(kept[index], mass.sum())
    shares = kept / np.minimum(weights[0].sum(axis=1), weights[1].sum(axis=1))
    if (low := int((shares < NEXT_TO_NOTHING).sum())) > 0:
        warn_caller(
            f"tau: is too small: {low} of {len(shares)} members kept less than a hundredth of "
            f"their mass, the least member {int(shares.argmin())}; pass one that is nearer to the "
            "mean costs",
            category=DataWarning,
        )


def _mass(problem: Problem, result: Result) -> float:
    """What was kept, about, without a pass over a plan that is not there yet."""
    if problem.marginals.partial:
        return result.mass
    pairs = zip(problem.marginals.sides, (problem.a, problem.b), result.potentials, strict=True)
    # Points without weight may have any potential.
    return max(
        float(side.masses(weights[weights > 0.0], to_numpy(potential)[weights > 0.0]).sum())
        for side, weights, potential in pairs
        if side.finite
    )
