"""Potentials of one term at given weights: sweeps, and Newton's steps where these are slow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from frot.costs import Stack
from frot.solvers.entropic.ascent import Ascent
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.engine import Engine
from frot.solvers.entropic.point import Point, select

# Sweeps before Newton's steps.
QUICK_SWEEPS = 300


def potentials_for(engine: Engine, alpha: Tensor, g: Tensor | None, misplaced: Tensor) -> Point:
    """Return the point at weights alpha, (B, L), with at most `near`, (B,), in wrong columns.

    Parameters
    ----------
    engine : Engine
    g : tensor of shape (B, m), optional
        Where to start; from nothing without.
    """
    if not isinstance(engine, DenseEngine) or not engine.newton_pays:
        return engine.start(alpha, misplaced) if g is None else engine.sweep(alpha, g, misplaced)
    limit = QUICK_SWEEPS + 1
    point = (
        engine.start(alpha, misplaced) if g is None else engine.sweep(alpha, g, misplaced, limit)
    )
    if not has_double(engine) or bool((point.error <= misplaced).all()):
        return point
    ahead = engine.sweep(alpha, _by_newton(engine, alpha, point, misplaced).g, misplaced, 20)
    return select(engine.problem.home.xp, ahead.error < point.error, ahead, point)


def has_double(engine: Engine) -> bool:
    """Whether an engine works in double precision."""
    return engine.problem.home.dtype == engine.problem.home.xp.float64


def _by_newton(engine: DenseEngine, alpha: Tensor, point: Point, misplaced: Tensor) -> Point:
    """Solve the problem whose one cost is the mixture."""
    problem = engine.problem
    sizes = (alpha * problem.sizes).sum(1, keepdim=True)
    mixed = DenseEngine(
        Stack(engine.costs.mix(alpha)[:, None]),
        replace(problem, sizes=sizes, k=1, log_prior=None, exact=None),
    )
    # What the error may be as a share of the value.
    size = point.dual.abs().clamp(min=1e-300)
    tol = float((misplaced * problem.scale[:, 0] / size).min())
    # Scores are costs over eps, and off by as many units more.
    enough = misplaced.maximum(engine.noise * problem.scale[:, 0] / problem.eps[:, 0])
    ascent: Any = Ascent(mixed, alpha.new_ones(len(alpha), 1), point.g, tol)
    return ascent.climb(lambda ahead: bool((ahead.error <= enough).all()), limit=200)
