"""Options of the solvers, drawn so that they go together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import frot

from .case import Problem
from .draw import Rng, chance, pick

__all__ = ["REGIMES", "Regime", "amounts", "level", "limits", "solver"]


class Regime(NamedTuple):
    """Ranges of eta and eps, as powers of ten of the mean cost; None is zero."""

    eta: tuple[float, float] | None = None
    eps: tuple[float, float] | None = None


REGIMES: dict[str, tuple[Regime, ...]] = {
    "small eps": (Regime(None, (-4, -2.5)), Regime((-3, 0), (-4, -2.5))),
    "small eta": (Regime((-5, -3)), Regime((-5, -3), (-2, 0))),
}
COMMON = (
    *(Regime(),) * 6,
    *(Regime((-3, 1)),) * 4,
    *(Regime(None, (-2.5, 0.5)),) * 3,
    *(Regime((-2, 1), (-2.5, 0.5)),) * 3,
)


def level(problem: Problem) -> float:
    """The mean cost, which eta and eps are drawn in units of."""
    means = problem.program.means(size=True)
    return float(sum(means) / len(means)) or 1.0


def amounts(rng: Rng, problem: Problem, kind: str, entropic: bool = False) -> dict[str, Any]:
    """Draw eta, eps and a prior, as the kind has them; `entropic`: there has to be an eps."""
    regime = pick(rng, *REGIMES.get(kind, COMMON))
    if entropic and regime.eps is None:
        regime = regime._replace(eps=(-2.5, 0.5))
    options: dict[str, Any] = {}
    unit = level(problem)
    for name, span in (("eta", regime.eta), ("eps", regime.eps)):
        if span is not None:
            share = float(10.0 ** rng.uniform(*span))
            # A share of no cost at all is no eps, and batches say so.
            shares = chance(rng, 0.4) and any(problem.program.means(size=True))
            options[name] = frot.relative(share) if shares else share * unit
    if "eta" in options and chance(rng, 0.3):
        options["prior"] = rng.dirichlet(np.ones(problem.shape[0])) + 1e-3
    return options


def solver(rng: Rng, options: dict[str, Any], unit: float = 1.0) -> dict[str, Any]:
    """Draw a solver that takes such eta and eps; mostly the default. `unit` is the mean cost."""
    smooth, entropic = "eta" in options, "eps" in options
    if chance(rng, 0.55):
        return {}
    steps = ["fully_corrective", "line_search", "paper"] if smooth else ["fully_corrective"]
    step: Any = pick(rng, *steps)
    if entropic:
        fine = frot.Entropic(tol=pick(rng, 1e-6, 1e-9))
        return {"solver": pick(rng, "entropic", frot.Entropic(), fine, fine)}
    wolfe = frot.FrankWolfe(step=step, max_iter=int(pick(rng, 3, 20, 200)))
    if chance(rng, 0.2):
        eps = unit * float(10.0 ** rng.uniform(-2.5, 0.5))
        sweeps = frot.Sinkhorn(eps=eps, tol=pick(rng, 1e-3, 1e-6), max_iter=1000)
        wolfe = frot.FrankWolfe(oracle=sweeps, step=step, max_iter=int(pick(rng, 3, 20)))
    if smooth:
        return {"solver": pick(rng, wolfe, wolfe, "exact", frot.Exact())}
    linear = (frot.LinearProgram(), frot.LinearProgram(method="ipm"), "linear_program")
    return {"solver": pick(rng, wolfe, "exact", frot.Exact(tol=1e-7), *linear)}


def limits(rng: Rng, problem: Problem) -> dict[str, Any]:
    """Draw what stops a run, and where it starts; mostly nothing."""
    count, n, m = problem.shape
    options: dict[str, Any] = {}
    if chance(rng, 0.08):
        options["tol"] = float(pick(rng, 1e-3, 1e-6, 1e-10, 0.0))
    if chance(rng, 0.05):
        options["max_iter"] = int(rng.integers(1, 6))
    if chance(rng, 0.05):
        options["time_limit"] = float(pick(rng, 1e-3, 0.1, 10.0))
    if chance(rng, 0.05):
        options["start"] = rng.dirichlet(np.ones(count))
    elif chance(rng, 0.05):
        options["start"] = rng.random((n, m))
    if chance(rng, 0.04):
        options["callback"] = stop_at_second
    return options


def stop_at_second(now: frot.Progress) -> bool:
    """A callback that stops a run."""
    return now.iteration >= 2
