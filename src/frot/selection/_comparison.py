r"""A comparison of two classes: which classes, the plan between them, the parts of each cost.

For one feature with values x and y, weights a and b, and any plan in U(a, b),

.. math::
    \phi = \underbrace{\Delta^2}_{\text{shift}}
        + \underbrace{W_2^2 - \Delta^2}_{\text{shape}}
        + \underbrace{\phi - W_2^2}_{\text{misalignment}},
    \qquad \Delta = \textstyle\sum_i a_i x_i - \sum_j b_j y_j,

where :math:`W_2` is the Wasserstein distance of the feature alone. All three are >= 0: the mean
cannot move by more than the points do, and no plan moves one feature more cheaply than sorting.

Means, t and the shift come from `compare`, which reads the table once; the plan, and what is made
of it, from `transport`. Between many samples that is a plan of some of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from frot._base.errors import InputError
from frot.groups.groups import Groups
from frot.plans.plan import Plan
from frot.problem.adversary import SimplexFamily
from frot.problem.result import Result, Status, handed_out
from frot.problem.terms import Relative
from frot.selection._costs import BlockedCosts, pooled, pooling
from frot.selection._effects import Effects, fold_change, measure
from frot.selection._frank_wolfe import (
    MAX_ITER,
    TOL,
    UNWATCHED,
    Eta,
    Watch,
    solve_classes,
    target_perplexity,
)
from frot.selection._scaling import Sides, scale_sides, units_of


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
        """Compute the parts; small negative values from rounding are set to zero."""
        return cls(
            phi, shift, np.maximum(wasserstein - shift, 0.0), np.maximum(phi - wasserstein, 0.0)
        )

    @classmethod
    def without_plan(cls, shift: np.ndarray, shape: np.ndarray | None = None) -> Parts:
        """Parts of which only the shift is known, and maybe the shape; the others are NaN."""
        unknown = np.full(len(shift), np.nan)
        return cls(unknown, shift, unknown if shape is None else shape, unknown)


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
    codes: np.ndarray,
    classes: np.ndarray,
    how: str,
    weight: np.ndarray | None = None,
    reference: int | None = None,
) -> list[Contrast]:
    """List the comparisons: one for two classes, else each against the rest or every pair.

    `codes`, of shape (N,), are positions in `classes`; samples of weight zero do not count. With a
    `reference`, also a position, each of the others is compared with that class.

    Examples
    --------
    >>> codes = np.array([0, 1, 2, 0, 1, 2])
    >>> [contrast.name for contrast in contrasts_of(codes, np.array(["a", "b", "c"]), "ovr")]
    ['a vs rest', 'b vs rest', 'c vs rest']
    >>> found = contrasts_of(codes, np.array(["a", "b", "c"]), "ovr", reference=1)
    >>> [contrast.name for contrast in found]
    ['a vs b', 'c vs b']
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
    if reference is not None and reference not in present:
        raise InputError(f"reference: no sample of class {classes[reference]!s} has a weight")
    if len(present) == 2 or how == "ovo" or reference is not None:
        pairs: Any = combinations(present, 2)
        if reference is not None:
            pairs = ((one, reference) for one in present if one != reference)
        return [Contrast(classes[one], classes[two], (rows[one], rows[two])) for one, two in pairs]
    return [
        Contrast(classes[one], None, (rows[one], np.flatnonzero((codes != one) & counted)))
        for one in present
    ]


# Statistics that need no plan, and so no solver; and scores that do.
WITHOUT_PLAN = ("moderated", "t", "shift", "shape", "wasserstein")
OF_PLAN = ("combined", "alpha", "phi", "misalignment")
# Pairs of samples up to which a plan is made of all of them, in some seconds.
PAIRS = 250_000
SEED = 0


@dataclass(frozen=True)
class ComparisonSettings:
    """How a selector compares classes; `picks` is the K of eta="auto", None for all there are."""

    scaling: str = "balanced"
    eta: Any = "auto"
    picks: int | None = None
    group_cost: str = "mean"
    tol: float = TOL
    max_iter: int = MAX_ITER
    adversary: SimplexFamily | None = None


DEFAULTS = ComparisonSettings()


@dataclass(frozen=True, eq=False)
class ComparedTable:
    """A table whose classes are compared, and how."""

    # Of shape (N, d), dense or in CSC order, without NaN.
    table: Any
    groups: Groups
    settings: ComparisonSettings = DEFAULTS
    # None for equal weights.
    weight: np.ndarray | None = None

    def sides(self, rows: tuple[np.ndarray, np.ndarray]) -> Sides:
        """Return the samples of two sets of rows; those of weight zero are left out."""
        return Sides.of(self.table, *rows, self.weight)

    def pooling(self, constant: np.ndarray) -> Any:
        """Return the matrix that pools costs of features into costs of groups."""
        return pooling(self.groups, constant, self.settings.group_cost)

    def constant_groups(self, constant: np.ndarray) -> np.ndarray:
        """Return which groups have no feature that varies, shape (L,)."""
        return np.logical_and.reduceat(constant[self.groups.flat], self.groups.offsets[:-1])


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two classes of samples compared, as `FROTSelector` keeps them.

    Not `frot.Comparison`, which holds methods against each other.

    Attributes
    ----------
    name : str
        Such as "tumor vs normal", or "a vs rest".
    first, second : labels
        `second` is None where it is every other class.
    rows : pair of arrays of intp
        The samples behind the rows and the columns of the plan; all that were compared if there
        is none.
    effects : Effects
        Means, variances and Welch's t of every feature, over all samples; positive is higher in
        the first class.
    t, log2_fold_change : arrays of shape (L,)
        Of the groups: signed means over their features.
    means : pair of arrays of shape (L,)
        Of the first class and the second, in the units of the table.
    moderated, strength : arrays of shape (L,)
        :math:`|t|` with moderated variances, and Welch's; of a group the root of the mean (or
        sum) of the squares.
    shift : array of shape (L,)
        Squared difference of the means, in scaled units, over all samples.
    parts, features : Parts
        Costs of the groups and of single features, in scaled units, taken apart, of the samples
        behind the plan; NaN where there is no plan.
    combined : array of shape (L,)
        Costs plus four times the squared correlations with the class.
    constant : array of bool, shape (L,)
        Groups in which nothing varies.
    centre, scale : arrays of shape (d,)
        A value v was scaled to (v - centre) / scale.
    sizes : pair of int
        How many samples were compared.
    result : Result or None
        Plan, weights and the interval that holds the optimum; None where no plan was made.
    """

    name: str
    first: Any
    second: Any | None
    rows: tuple[np.ndarray, np.ndarray]
    effects: Effects
    t: np.ndarray
    log2_fold_change: np.ndarray
    means: tuple[np.ndarray, np.ndarray]
    moderated: np.ndarray
    strength: np.ndarray
    shift: np.ndarray
    parts: Parts
    features: Parts
    combined: np.ndarray
    constant: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    sizes: tuple[int, int]
    result: Result | None = None

    @property
    def labels(self) -> tuple[str, str]:
        """Both classes as text, the second one "rest" where it is every other class."""
        return str(self.first), "rest" if self.second is None else str(self.second)

    @property
    def up_in(self) -> np.ndarray:
        """The class in which each group is higher, as text; empty where it is in neither."""
        first, second = self.labels
        # In a group, infinite t of both signs come to nothing that is a number.
        sign = np.nan_to_num(np.sign(self.t)).astype(int)
        return np.array(["", first, second], dtype=object)[sign]

    @property
    def is_sample(self) -> bool:
        """Whether the plan is between some of the samples only."""
        return self.result is not None and self.result.plan.shape != self.sizes

    @property
    def about_plan(self) -> str:
        """What the plan is between, in words."""
        (n, m), (all_n, all_m) = (len(self.rows[0]), len(self.rows[1])), self.sizes
        if self.result is None:
            return f"no plan between {all_n:,} and {all_m:,} samples"
        if not self.is_sample:
            return f"plan between {n:,} and {m:,} samples"
        return f"plan between {n:,} of {all_n:,} and {m:,} of {all_m:,} samples, drawn at random"

    @property
    def solved(self) -> Result:
        """The result, which there is none of without a plan: the error says what makes one."""
        if self.result is None:
            raise AttributeError(
                f"there is {self.about_plan}; FROTSelector(plan=True) makes one, of samples drawn "
                "at random where they are many"
            )
        return self.result

    @property
    def plan(self) -> Plan:
        """Who corresponds to whom: mass between the two classes' samples."""
        return self.solved.plan

    @property
    def alpha(self) -> np.ndarray:
        """Weights of the groups, summing to one; NaN where there is no plan."""
        return np.full(len(self.t), np.nan) if self.result is None else self.result.alpha

    @property
    def eta(self) -> float:
        """The eta that was used."""
        return self.solved.eta

    def statistic(self, name: str) -> np.ndarray:
        """Return one of the scores by its name, shape (L,); NaN where it needs a plan."""
        own = {"moderated": self.moderated, "t": self.strength, "shift": self.shift}
        own |= {"combined": self.combined, "alpha": self.alpha}
        return own[name] if name in own else getattr(self.parts, name)

    def scores(self, name: str) -> np.ndarray:
        """Return what to rank the groups by, shape (L,); zero for those that do not vary.

        The score "set" is of all comparisons together; within one, groups are "moderated".
        """
        name = "moderated" if name in ("auto", "set") else name
        return np.where(self.constant, 0.0, self.statistic(name))


def compare(
    data: ComparedTable,
    contrast: Contrast,
    *,
    values: str = "log2",
    base: float | None = None,
    effects: Effects | None = None,
) -> Comparison:
    """Hold the classes against each other feature by feature, without a plan.

    `values` and `base` say what the numbers are, as in `fold_change`; `effects` are those between
    the two sets of rows, where they are known.

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(20, 30))
    >>> table[10:, 0] += 3.0
    >>> contrast = Contrast("a", "b", (np.arange(10), np.arange(10, 20)))
    >>> found = compare(ComparedTable(table, Groups.each(30)), contrast)
    >>> int(found.strength.argmax()), found.up_in[0]
    (0, 'b')
    """
    sides = data.sides(contrast.rows)
    if effects is None:
        effects = measure(data.table, *contrast.rows, data.weight)
    units = units_of(sides, effects, data.settings.scaling)
    effects = _without_rounding(effects, units.constant, units.centre)
    # A cost is pooled as asked for; what has a sign, or units, as a mean.
    costs = partial(pooled, data.pooling(units.constant))
    signed = partial(pooled, pooling(data.groups, units.constant, "mean"))
    means = partial(pooled, pooling(data.groups, np.zeros_like(units.constant), "mean"))
    change = np.where(units.constant, 0.0, fold_change(effects, values, base))
    t, shift = effects.t, costs(units.shift)
    return Comparison(
        contrast.name,
        contrast.first,
        contrast.second,
        sides.rows,
        effects,
        signed(t),
        signed(change),
        (means(effects.means[0]), means(effects.means[1])),
        np.sqrt(costs(np.square(effects.moderated))),
        np.sqrt(costs(np.square(t))),
        shift,
        Parts.without_plan(shift),
        Parts.without_plan(units.shift),
        np.full(len(data.groups), np.nan),
        data.constant_groups(units.constant),
        units.centre,
        units.scale,
        (len(sides.rows[0]), len(sides.rows[1])),
    )


def _without_rounding(effects: Effects, constant: np.ndarray, value: np.ndarray) -> Effects:
    """Make constants equal in both classes, to the last digit."""
    means = tuple(np.where(constant, value, mean) for mean in effects.means)
    variances = tuple(np.where(constant, 0.0, variance) for variance in effects.variances)
    return Effects((means[0], means[1]), (variances[0], variances[1]), effects.sizes)


def transport(
    found: Comparison,
    data: ComparedTable,
    watch: Watch = UNWATCHED,
    codes: np.ndarray | None = None,
) -> Comparison:
    """Find the plan and take its costs apart; also the answer of one that is interrupted.

    Between more than `PAIRS` pairs of samples it is a plan of some of them, drawn with a fixed
    seed and in the proportions of their classes, `codes` of shape (N,).

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(20, 30))
    >>> table[10:, 0] += 3.0
    >>> contrast = Contrast("a", "b", (np.arange(10), np.arange(10, 20)))
    >>> data = ComparedTable(table, Groups.each(30))
    >>> found = transport(compare(data, contrast), data)
    >>> int(found.alpha.argmax()), found.plan.shape
    (0, (10, 10))
    >>> parts = found.parts
    >>> bool(np.allclose(parts.shift + parts.shape + parts.misalignment, parts.phi))
    True
    """
    rows, sides, effects = found.rows, data.sides(found.rows), found.effects
    if len(rows[0]) * len(rows[1]) > PAIRS:
        rows = _drawn(rows, np.zeros(data.table.shape[0], int) if codes is None else codes)
        # Rows of the plan alone: the others need not be read again.
        both = np.concatenate(rows)
        part, weight = data.table[both], None if data.weight is None else data.weight[both]
        if sparse.issparse(part):
            part = part.tocsc()
        places = np.arange(len(both))
        sides = Sides.of(part, places[: len(rows[0])], places[len(rows[0]) :], weight)
        effects = None
    scaled = scale_sides(sides, data.settings.scaling, effects)
    costs = BlockedCosts(scaled, data.pooling(scaled.units.constant))
    result = _solved(costs, data, watch)
    return handed_out(result, _taken_apart(replace(found, rows=rows), costs, result))


def sort_shapes(found: Comparison, data: ComparedTable) -> Comparison:
    """Add the change of shape of every feature, over all samples: a sort, and no plan."""
    scaled = scale_sides(data.sides(found.rows), data.settings.scaling, found.effects)
    assert scaled.wasserstein is not None
    single = np.maximum(scaled.wasserstein - scaled.units.shift, 0.0)
    features = Parts.without_plan(scaled.units.shift, single)
    shape = pooled(data.pooling(scaled.units.constant), single)
    return replace(found, parts=Parts.without_plan(found.shift, shape), features=features)


def _drawn(rows: tuple[np.ndarray, np.ndarray], codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows of either side, at most `PAIRS` pairs, classes in proportion."""
    rng = np.random.default_rng(SEED)
    sizes = len(rows[0]), len(rows[1])
    fewer = min(*sizes, int(PAIRS**0.5))
    most = PAIRS // fewer
    chosen = []
    for side in rows:
        if len(side) > most:
            # Evenly spaced among samples in the order of their classes, and at random within.
            side = rng.permutation(side)
            side = side[np.argsort(codes[side], kind="stable")]
            side = np.sort(side[np.arange(most) * len(side) // most])
        chosen.append(side)
    return chosen[0], chosen[1]


def _solved(costs: BlockedCosts, data: ComparedTable, watch: Watch = UNWATCHED) -> Result:
    settings = data.settings
    rule = _eta_rule(costs, data)
    stop = {"tol": settings.tol, "max_iter": settings.max_iter}
    return solve_classes(costs, data.groups, rule, watch, settings.adversary, **stop)


def _taken_apart(found: Comparison, costs: BlockedCosts, result: Result) -> Comparison:
    scaled = costs.scaled
    assert scaled.wasserstein is not None
    single = result.phi if costs.pool is None else costs.features(result.plan)
    features = Parts.of(single, scaled.units.shift, scaled.wasserstein)
    parts = features
    if costs.pool is not None:
        single = (features.shift, features.shape, features.misalignment)
        parts = Parts(result.phi, *(costs.pooled(part) for part in single))
    return replace(
        found,
        parts=parts,
        features=features,
        combined=result.phi + costs.pooled(scaled.units.correlation),
        centre=scaled.units.centre,
        scale=scaled.units.scale,
        result=result,
    )


def statistic_of(data: ComparedTable, contrast: Contrast, name: str) -> np.ndarray:
    """Return one statistic of every group, shape (L,), doing no more than it needs."""
    if name in ("moderated", "t", "shift"):
        return compare(data, contrast).scores(name)
    sorting = name in ("shape", "wasserstein", "misalignment")
    sides = data.sides(contrast.rows)
    scaled = scale_sides(sides, data.settings.scaling, wasserstein=sorting)
    costs = BlockedCosts(scaled, data.pooling(scaled.units.constant))
    alone = scaled.wasserstein
    if name in WITHOUT_PLAN:
        assert alone is not None
        return costs.pooled(alone - (scaled.units.shift if name == "shape" else 0.0))
    result = _solved(costs, data)
    if result.status is Status.INTERRUPTED:
        # One of many: what it had so far is no answer.
        raise KeyboardInterrupt
    if alone is not None:
        return np.maximum(result.phi - costs.pooled(alone), 0.0)
    found = result.alpha if name == "alpha" else result.phi
    if name == "combined":
        found = found + costs.pooled(scaled.units.correlation)
    return np.where(data.constant_groups(scaled.units.constant), 0.0, found)


def _eta_rule(costs: BlockedCosts, data: ComparedTable) -> Eta:
    settings = data.settings
    if isinstance(settings.eta, Relative):
        a, b = costs.scaled.sides.weights
        return Eta(value=settings.eta.of(float(costs.independent(a, b).mean())))
    if settings.eta != "auto":
        return Eta(value=float(settings.eta))
    varying = int((~data.constant_groups(costs.scaled.units.constant)).sum())
    picks = varying if settings.picks is None else settings.picks
    return Eta(perplexity=target_perplexity(picks, max(varying, 1)))
