r"""One class held against another: which are, the plan between them, and what costs are made of.

For one feature with values x and y, weights a and b, and any plan in U(a, b),

.. math::
    \phi = \underbrace{\Delta^2}_{\text{shift}}
        + \underbrace{W_2^2 - \Delta^2}_{\text{shape}}
        + \underbrace{\phi - W_2^2}_{\text{misalignment}},
    \qquad \Delta = \textstyle\sum_i a_i x_i - \sum_j b_j y_j,

where :math:`W_2` is the Wasserstein distance of the feature alone. All three are >= 0: the mean
cannot move by more than the points do, and no plan moves one feature more cheaply than sorting.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError
from frot._base.stopping import Interrupted, finish
from frot.groups.groups import Groups
from frot.plans.plan import Plan
from frot.problem.adversary import SimplexFamily
from frot.problem.amounts import Relative
from frot.problem.result import Result
from frot.selection._costs import BlockedCosts, pooling
from frot.selection._frank_wolfe import (
    UNWATCHED,
    Eta,
    Limits,
    Watch,
    solve_classes,
    target_perplexity,
)
from frot.selection._scaling import Scaled, Sides, scale_sides

__all__ = [
    "MULTICLASS",
    "Comparison",
    "Contrast",
    "Parts",
    "Settings",
    "compare",
    "contrasts_of",
    "statistic_of",
]


@dataclass(frozen=True, eq=False)
class Parts:
    """Costs of features, or of groups of them, and what they are made of; shapes (L,).

    Examples
    --------
    >>> Parts.of(np.array([3.0]), shift=np.array([1.0]), wasserstein=np.array([1.5]))
    Parts(phi=array([3.]), shift=array([1.]), shape=array([0.5]), misalignment=array([1.5]))
    """

    phi: np.ndarray
    shift: np.ndarray
    shape: np.ndarray
    misalignment: np.ndarray

    @classmethod
    def of(cls, phi: np.ndarray, shift: np.ndarray, wasserstein: np.ndarray) -> Parts:
        """Take the parts apart; what rounding leaves below zero is zero."""
        return cls(
            phi, shift, np.maximum(wasserstein - shift, 0.0), np.maximum(phi - wasserstein, 0.0)
        )

    @classmethod
    def mean(cls, several: list[Parts]) -> Parts:
        """Average over comparisons."""
        if len(several) == 1:
            return several[0]
        names = [field.name for field in fields(cls)]
        return cls(*(np.mean([getattr(parts, name) for parts in several], axis=0)
                     for name in names))  # fmt: skip


MULTICLASS = ("ovr", "ovo")


class Contrast(NamedTuple):
    """Two sets of samples; `second` is None where it is every other class."""

    first: Any
    second: Any | None
    rows: tuple[np.ndarray, np.ndarray]

    @property
    def name(self) -> str:
        """Such as "tumor vs normal"."""
        return f"{self.first} vs {'rest' if self.second is None else self.second}"


def contrasts_of(
    codes: np.ndarray, classes: np.ndarray, how: str, weight: np.ndarray | None = None
) -> list[Contrast]:
    """List the comparisons: one for two classes, else each against the rest or every pair.

    `codes`, of shape (N,), are positions in `classes`; samples of weight zero do not count.

    Examples
    --------
    >>> codes = np.array([0, 1, 2, 0, 1, 2])
    >>> [contrast.name for contrast in contrasts_of(codes, np.array(["a", "b", "c"]), "ovr")]
    ['a vs rest', 'b vs rest', 'c vs rest']
    """
    counted = np.ones(len(codes), dtype=bool) if weight is None else weight > 0.0
    sizes = np.bincount(codes[counted], minlength=len(classes))
    present = np.flatnonzero(sizes)
    if len(present) < 2:
        held = f" ({classes[present[0]]!s})" if len(present) else ""
        raise InputError(
            f"y: has {len(present)} class{held} with samples; give labels of two or more classes"
        )
    # A weighted sample may stand for many.
    if weight is None and (sizes[present] < 2).any():
        single = classes[present[np.argmin(sizes[present])]]
        raise InputError(
            f"y: class {single!s} has one sample, which has no spread; drop it, or merge it with "
            "another class"
        )
    rows = {code: np.flatnonzero((codes == code) & counted) for code in present}
    if len(present) == 2 or how == "ovo":
        return [
            Contrast(classes[one], classes[two], (rows[one], rows[two]))
            for one, two in combinations(present, 2)
        ]
    return [
        Contrast(classes[one], None, (rows[one], np.flatnonzero((codes != one) & counted)))
        for one in present
    ]


# Statistics that need no plan, and so no solver.
WITHOUT_PLAN = ("shift", "shape", "wasserstein")


@dataclass(frozen=True)
class Settings:
    """How a selector compares classes; `picks` is the K of eta="auto", None for all there are."""

    scaling: str = "balanced"
    eta: Any = "auto"
    picks: int | None = None
    group_cost: str = "mean"
    limits: Limits = Limits()
    adversary: SimplexFamily | None = None


DEFAULTS = Settings()


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two classes of samples held against each other, as `FROTSelector` keeps them.

    Not `frot.Comparison`, which holds methods against each other.

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
    costs = _costs(table, contrast, groups, settings, weight)
    constant = _constant_groups(costs.scaled, groups)
    return finish(
        lambda: _solved(costs, groups, constant, settings, watch),
        lambda result: _taken_apart(contrast, costs, constant, result),
    )


def _costs(
    table: Any,
    contrast: Contrast,
    groups: Groups,
    settings: Settings,
    weight: np.ndarray | None,
    wasserstein: bool = True,
) -> BlockedCosts:
    sides = Sides.of(table, *contrast.rows, weight)
    scaled = scale_sides(sides, settings.scaling, wasserstein=wasserstein)
    return BlockedCosts(scaled, pooling(groups, scaled.constant, settings.group_cost))


def _solved(
    costs: BlockedCosts,
    groups: Groups,
    constant: np.ndarray,
    settings: Settings,
    watch: Watch = UNWATCHED,
) -> Result:
    rule = _eta_rule(costs, constant, settings)
    return solve_classes(costs, groups, rule, settings.limits, watch, settings.adversary)


def _taken_apart(
    contrast: Contrast, costs: BlockedCosts, constant: np.ndarray, result: Result
) -> Comparison:
    scaled = costs.scaled
    assert scaled.wasserstein is not None
    single = result.phi if costs.pool is None else costs.features(result.plan)
    features = Parts.of(single, scaled.shift, scaled.wasserstein)
    parts = features
    if costs.pool is not None:
        single = (features.shift, features.shape, features.misalignment)
        parts = Parts(result.phi, *(costs.pooled(part) for part in single))
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
    sorting = name in ("shape", "wasserstein", "misalignment")
    costs = _costs(table, contrast, groups, settings, weight, sorting)
    scaled, alone = costs.scaled, costs.scaled.wasserstein
    if name == "shift":
        return costs.pooled(scaled.shift)
    if name in WITHOUT_PLAN:
        assert alone is not None
        return costs.pooled(alone - (scaled.shift if name == "shape" else 0.0))
    constant = _constant_groups(scaled, groups)
    try:
        result = _solved(costs, groups, constant, settings)
    except Interrupted:
        # One of many: what it had so far is no answer.
        raise KeyboardInterrupt from None
    if alone is not None:
        return np.maximum(result.phi - costs.pooled(alone), 0.0)
    found = result.alpha if name == "alpha" else result.phi
    if name == "combined":
        found = found + costs.pooled(scaled.correlation)
    return np.where(constant, 0.0, found)


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
