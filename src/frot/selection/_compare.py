"""One comparison: scale, solve, take apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._base.interrupted import Interrupted, finish
from frot.groups.groups import Groups
from frot.plans.plan import Plan
from frot.problem.adversary import SimplexFamily
from frot.problem.amounts import Relative
from frot.problem.result import Result
from frot.selection._blocked import BlockedCosts, pooling
from frot.selection._classes import Contrast
from frot.selection._columns import Sides
from frot.selection._decomposition import Parts
from frot.selection._eta import target_perplexity
from frot.selection._fit import UNWATCHED, Eta, Limits, Watch, solve_classes
from frot.selection._scaling import Scaled, scale_sides

__all__ = ["Comparison", "Settings", "compare", "statistic_of"]

# Statistics that need no plan, and so no solver.
WITHOUT_PLAN = ("shift", "shape", "wasserstein")


@dataclass(frozen=True)
class Settings:
    """How classes are compared; `picks` is the K behind eta="auto", None for as many as may be."""

    scaling: str = "balanced"
    eta: Any = "auto"
    picks: int | None = None
    group_cost: str = "mean"
    limits: Limits = Limits()
    adversary: SimplexFamily | None = None


DEFAULTS = Settings()


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two classes held against each other.

    Attributes
    ----------
    name : str
        Such as "tumor vs normal", or "a vs rest".
    first, second : labels
        `second` is None where it is every other class.
    rows : pair of arrays of intp
        The samples behind the rows and the columns of the plan.
    parts, features : Parts
        Costs of the groups and of single features, in scaled units, taken apart.
    combined : array of shape (L,)
        Costs plus four times the squared correlations with the class.
    constant : array of bool, shape (L,)
        Groups in which nothing varies.
    centre, scale : arrays of shape (d,)
        A value v was scaled to (v - centre) / scale.
    result : Result
        Plan, weights and the interval that holds the optimum.
    """

    name: str
    first: Any
    second: Any | None
    rows: tuple[np.ndarray, np.ndarray]
    parts: Parts
    features: Parts
    combined: np.ndarray
    constant: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    result: Result

    @property
    def plan(self) -> Plan:
        """Who corresponds to whom: mass between the two classes' samples."""
        return self.result.plan

    @property
    def alpha(self) -> np.ndarray:
        """Weights of the groups, summing to one."""
        return self.result.alpha

    @property
    def eta(self) -> float:
        """The eta that was used."""
        return self.result.eta


def compare(
    table: Any,
    contrast: Contrast,
    groups: Groups,
    settings: Settings = DEFAULTS,
    weight: np.ndarray | None = None,
    watch: Watch = UNWATCHED,
) -> Comparison:
    """Solve one comparison and take its costs apart; also the answer of one that is interrupted.

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(20, 30))
    >>> table[10:, 0] += 3.0
    >>> contrast = Contrast("a", "b", (np.arange(10), np.arange(10, 20)))
    >>> found = compare(table, contrast, Groups.each(30))
    >>> int(found.alpha.argmax()), found.plan.shape
    (0, (10, 10))
    >>> parts = found.parts
    >>> bool(np.allclose(parts.shift + parts.shape + parts.misalignment, parts.phi))
    True
    """
    sides = Sides.of(table, *contrast.rows, weight)
    scaled = scale_sides(sides, settings.scaling)
    costs = BlockedCosts(scaled, pooling(groups, scaled.constant, settings.group_cost))
    constant = _constant_groups(scaled, groups)
    rule = _eta_rule(costs, constant, settings)
    return finish(
        lambda: solve_classes(costs, groups, rule, settings.limits, watch, settings.adversary),
        lambda result: _taken_apart(contrast, costs, constant, result),
    )


def _taken_apart(
    contrast: Contrast, costs: BlockedCosts, constant: np.ndarray, result: Result
) -> Comparison:
    scaled = costs.scaled
    assert scaled.wasserstein is not None
    single = result.phi if costs.pool is None else costs.features(result.plan)
    features = Parts.of(single, scaled.shift, scaled.wasserstein)
    parts = features
    if costs.pool is not None:
        pooled = (costs.pooled(part) for part in (scaled.shift, features.shape))
        shift, shape = pooled
        parts = Parts(result.phi, shift, shape, costs.pooled(features.misalignment))
    return Comparison(
        contrast.name,
        contrast.first,
        contrast.second,
        scaled.sides.rows,
        parts,
        features,
        result.phi + costs.pooled(scaled.correlation),
        constant,
        scaled.centre,
        scaled.scale,
        result,
    )


def statistic_of(
    table: Any,
    contrast: Contrast,
    groups: Groups,
    settings: Settings,
    weight: np.ndarray | None,
    name: str,
) -> np.ndarray:
    """Return one statistic of every group, shape (L,), doing no more than it needs."""
    if name not in WITHOUT_PLAN:
        sides = Sides.of(table, *contrast.rows, weight)
        needs_sorting = name == "misalignment"
        scaled = scale_sides(sides, settings.scaling, wasserstein=needs_sorting)
        costs = BlockedCosts(scaled, pooling(groups, scaled.constant, settings.group_cost))
        constant = _constant_groups(scaled, groups)
        rule = _eta_rule(costs, constant, settings)
        try:
            result = solve_classes(
                costs, groups, rule, settings.limits, adversary=settings.adversary
            )
        except Interrupted:
            # One of many: what it had so far is no answer.
            raise KeyboardInterrupt from None
        if name == "misalignment":
            assert scaled.wasserstein is not None
            return np.maximum(result.phi - costs.pooled(scaled.wasserstein), 0.0)
        found = result.alpha if name == "alpha" else result.phi
        if name == "combined":
            found = found + costs.pooled(scaled.correlation)
        return np.where(constant, 0.0, found)
    scaled = scale_sides(
        Sides.of(table, *contrast.rows, weight), settings.scaling, wasserstein=name != "shift"
    )
    costs = BlockedCosts(scaled, pooling(groups, scaled.constant, settings.group_cost))
    if name == "shift":
        return costs.pooled(scaled.shift)
    assert scaled.wasserstein is not None
    return costs.pooled(scaled.wasserstein - (scaled.shift if name == "shape" else 0.0))


def _constant_groups(scaled: Scaled, groups: Groups) -> np.ndarray:
    return np.logical_and.reduceat(scaled.constant[groups.flat], groups.offsets[:-1])


def _eta_rule(costs: BlockedCosts, constant: np.ndarray, settings: Settings) -> Eta:
    if isinstance(settings.eta, Relative):
        a, b = costs.scaled.sides.weights
        return Eta(value=settings.eta.of(float(costs.independent(a, b).mean())))
    if settings.eta != "auto":
        return Eta(value=float(settings.eta))
    varying = int((~constant).sum())
    picks = varying if settings.picks is None else settings.picks
    return Eta(perplexity=target_perplexity(picks, max(varying, 1)))
