"""One comparison of two classes, as `FROTSelector` keeps it: effects of groups, and the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot.plans.plan import Plan
from frot.problem.result import Result
from frot.selection._design import Contrast
from frot.selection._effects import Effects, fold_change
from frot.selection._inputs import Prepared
from frot.selection._transport import (
    MOST_SAMPLES,
    Parts,
    Transported,
    draw_rows,
    pooling,
    transport,
)


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
    sizes : pair of int
        How many samples were compared.
    effects : Effects
        Means, differences and t of every feature, over all samples; positive is higher in the
        first class.
    feature_changes : array of shape (d,)
        Log2 fold changes of the features.
    t, log2_fold_change : arrays of shape (L,)
        Of the groups: means over their features.
    means : pair of arrays of shape (L,)
        Of the first class and the second, in the units of the table, as they would be if blocks
        were mixed alike.
    constant : array of bool, shape (L,)
        Groups in which nothing varies.
    alpha : array of shape (L,)
        Weights of the groups, summing to one; NaN where there is no plan.
    parts : Parts
        Costs of the groups, taken apart; NaN where there is no plan.
    result : Result or None
        Plan and the interval that holds the optimum; None where no plan was made.
    """

    contrast: Contrast
    rows: tuple[np.ndarray, np.ndarray]
    effects: Effects
    feature_changes: np.ndarray
    t: np.ndarray
    log2_fold_change: np.ndarray
    means: tuple[np.ndarray, np.ndarray]
    constant: np.ndarray
    alpha: np.ndarray
    parts: Parts
    result: Result | None = None

    @property
    def first(self) -> Any:
        """The first class."""
        return self.contrast.first

    @property
    def second(self) -> Any:
        """The second class; None where it is every other."""
        return self.contrast.second

    @property
    def name(self) -> str:
        """Such as "tumor vs normal"."""
        return self.contrast.name

    @property
    def labels(self) -> tuple[str, str]:
        """Both classes as text, the second one "rest" where it is every other class."""
        return self.contrast.labels

    @property
    def sizes(self) -> tuple[int, int]:
        """How many samples were compared."""
        return self.contrast.sizes

    @property
    def up_in(self) -> np.ndarray:
        """The class in which each group is higher, "all but a" for the rest; empty for neither."""
        first, second = self.labels
        second = f"all but {first}" if self.second is None else second
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
    def eta(self) -> float:
        """The eta that was used."""
        return self.solved.eta

    def with_plan(self, prepared: Prepared) -> Comparison:
        """Find the plan, on values without the effects of blocks."""
        rows = draw_rows(self.contrast.sides, prepared.codes)
        x, y = (prepared.dense(side, slice(None), self.contrast) for side in rows)
        transported: Transported = transport(
            x,
            y,
            prepared.groups,
            picks=prepared.picks,
            eta=prepared.eta,
            scaling=prepared.scaling,
        )
        return replace(
            self,
            rows=rows,
            alpha=transported.alpha,
            parts=transported.parts,
            result=transported.result,
        )


def compare(prepared: Prepared, contrast: Contrast, base: float | None = None) -> Comparison:
    """Compare two classes feature by feature, without a plan.

    `base` is that of the logarithms in log1p tables.

    Examples
    --------
    >>> from frot.selection import FROTSelector
    >>> from frot.selection._inputs import prepare
    >>> X, y = np.random.default_rng(0).normal(size=(20, 30)), np.repeat(["a", "b"], 10)
    >>> X[10:, 0] += 3.0
    >>> ready = prepare(FROTSelector(), X, y)
    >>> found = compare(ready, ready.contrasts[0])
    >>> int(np.abs(found.t).argmax()), found.up_in[0]
    (0, 'b')
    """
    effects = prepared.moments.between(*prepared.sides(contrast))
    pool = pooling(prepared.groups, effects.constant)
    everything = pooling(prepared.groups, np.zeros_like(effects.constant))

    def mean(values: np.ndarray, matrix: Any = pool) -> np.ndarray:
        return values if matrix is None else np.asarray(matrix @ values)

    changes = fold_change(effects, prepared.values, base, prepared.nonnegative)
    t, unknown = mean(effects.t), np.full(len(prepared.groups), np.nan)
    groups = prepared.groups
    return Comparison(
        contrast=contrast,
        rows=contrast.sides,
        effects=effects,
        feature_changes=changes,
        t=t,
        log2_fold_change=mean(changes),
        means=(mean(effects.means[0], everything), mean(effects.means[1], everything)),
        constant=np.logical_and.reduceat(effects.constant[groups.flat], groups.offsets[:-1]),
        alpha=unknown,
        parts=Parts(unknown, unknown, unknown, unknown),
    )


def wants_plan(prepared: Prepared, contrast: Contrast) -> bool:
    """Whether a plan is made: where it is asked for, or "auto" where samples are few."""
    if prepared.plan != "auto":
        return bool(prepared.plan)
    return max(contrast.sizes) <= MOST_SAMPLES or prepared.score == "alpha"
