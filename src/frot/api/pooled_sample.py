r"""Two samples as one pool of points: what differs between its parts, under many labellings.

Costs among the N = n + m points are computed once; a labelling takes some rows and columns of them.
With :math:`F` the optimum of `solve` between the parts, and h the potentials of the pool with
itself, no point matched with itself, the statistic of all groups together is

.. math:: T = F - \tfrac{1}{n} \sum_i h(x_i) - \tfrac{1}{m} \sum_j h(y_j) .

h depends on no labels. It is the derivative of F by the masses of the points, so that T is F less
what chance adds to it first of all: with n = m that is the same under all labellings, and nothing
changes; with n and m apart it is most of what F varies by, and hides a difference.

A labelling is solved as far as it takes to prove on which side of the samples' own T it is.

A group's own statistic is the Sinkhorn divergence of its costs alone, with eps = 0 the transport
cost.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from frot._base.errors import collect_warnings
from frot.api.batch import run_batch
from frot.api.batch_result import BatchResult
from frot.api.batch_work import BatchWork
from frot.api.solve import solve_costs
from frot.costs.build import STACK_PAYS_FROM, points_costs
from frot.costs.metrics import FactoredMetric
from frot.costs.protocol import Costs
from frot.costs.stack import Stack
from frot.groups.groups import Groups
from frot.problem.adversary import Simplex
from frot.problem.result import Result
from frot.solvers.entropic.relabelled import PoolPotentials

# Sweeps of a group's divergence where eps is this share of its mean cost; where it is less there
# are more in proportion, up to a limit. With eight the statistics of 120 labellings of 200 normal
# points correlate with those of 200 sweeps to .9998 (one feature) and better, of t with two degrees
# of freedom to .989 and better.
SWEEPS, AT_EPS, MOST_SWEEPS = 8, 0.2, 200
# Entries of cost matrices that are solved together, as points and as stacks: beyond, they leave the
# cache.
POINT_ENTRIES, STACK_ENTRIES = 800_000, 1_600_000
# Relative gaps of F on the way to the one that is asked for.
ROUGH = (1e-3, 1e-4)


class Statistics(NamedTuple):
    """What labellings are compared by: the interval of T, whether it is proven, and the groups'.

    Of one labelling they are numbers and (L,), of several (B,) and (B, L).
    """

    lower: np.ndarray
    upper: np.ndarray
    proven: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Statistics:
        """Read them from rows (..., 3 + L), as they are stored."""
        return cls(rows[..., 0], rows[..., 1], rows[..., 2] == 1.0, rows[..., 3:])


@dataclass(frozen=True, eq=False)
class Factors:
    """Points whose costs factor: the metric, and what each group's cost is multiplied by, (L,)."""

    points: np.ndarray
    metric: FactoredMetric
    scale: np.ndarray


@dataclass(frozen=True, eq=False)
class PooledSample:
    """The pool, and what its parts are compared by.

    Attributes
    ----------
    costs : array of shape (L, N, N)
        Symmetric.
    groups : Groups
    eta, eps : float
        In units of cost.
    tol, max_iter :
        Of F: the relative gap at the end, and iterations at most.
    factors : Factors, optional
        The points, where it is faster to work on them than on `costs`.
    """

    costs: np.ndarray
    groups: Groups
    eta: float
    eps: float
    tol: float
    max_iter: int
    factors: Factors | None = None

    @cached_property
    def means(self) -> np.ndarray:
        """Mean cost between different points, (L,)."""
        count = self.costs.shape[1]
        return self.costs.sum(axis=(1, 2)) / (count * (count - 1.0))

    @cached_property
    def potentials(self) -> np.ndarray:
        """The potentials h of the pool with itself, (N,)."""
        apart = self.costs.copy()
        index = np.arange(apart.shape[1])
        # No plan of any of the groups matches a point with itself.
        apart[:, index, index] = 4.0 * (float(apart.max()) or 1.0)
        with collect_warnings():
            # Any h that does not depend on labels will do: three digits take off what matters.
            result = solve_costs(
                apart, eta=self.eta, eps=self.eps, tol=ROUGH[0], max_iter=self.max_iter
            )
        f, g = result.potentials
        return 0.5 * (np.asarray(f) + np.asarray(g))

    @cached_property
    def group_potentials(self) -> tuple[PoolPotentials, ...]:
        """The potentials of each group alone."""
        return tuple(PoolPotentials.of(cost, self.eps) for cost in self.costs)

    @cached_property
    def sweeps(self) -> list[int]:
        """Sweeps of each group's divergence."""
        more = np.maximum(1.0, AT_EPS * self.means / self.eps)
        return np.minimum(np.ceil(SWEEPS * more), MOST_SWEEPS).astype(int).tolist()

    def prepare(self) -> None:
        """Compute what does not depend on labels, before workers get copies."""
        _ = self.potentials
        if self.eps > 0.0:
            _ = self.group_potentials, self.sweeps

    def statistics(self, labels: np.ndarray, own: tuple[float, float] | None = None) -> np.ndarray:
        """Return the `Statistics` of labellings (B, N) of zeros and ones, as rows (B, 3 + L).

        An interval is proven if it is as narrow as asked for, or apart from the interval `own` of
        the samples as they are.
        """
        first, second = _members(labels, 0), _members(labels, 1)
        offset = self.potentials[first].mean(axis=1) + self.potentials[second].mean(axis=1)
        statistics = np.empty((len(labels), 3 + len(self.costs)))
        if self.eps == 0.0:
            for row, sources, targets in zip(statistics, first, second, strict=True):
                row[:] = self._exactly(sources, targets)
        else:
            tile = self._tile(first.shape[1] * second.shape[1])
            for start in range(0, len(labels), tile):
                part = slice(start, start + tile)
                apart = None if own is None else np.add.outer(offset[part], own)
                statistics[part, :3] = self._together(first[part], second[part], apart)
            inside = (labels == 0).T
            for group, (cost, base) in enumerate(
                zip(self.costs, self.group_potentials, strict=True)
            ):
                statistics[:, 3 + group] = base.divergences(cost, inside, self.sweeps[group])
        statistics[:, :2] -= offset[:, None]
        return statistics

    def between(self, sources: np.ndarray, targets: np.ndarray) -> Result:
        """Solve between two parts alone, to the solver's own tolerance."""
        stack = self.costs[:, sources[:, None], targets]
        return solve_costs(stack, eta=self.eta, eps=self.eps, names=self.groups.names)

    def group_intervals(
        self, sources: np.ndarray, targets: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Prove intervals of the groups' own statistics between two parts, (L,) each."""
        lower, upper = self._alone(sources, targets)
        if self.eps > 0.0:
            for part in (sources, targets):
                low, high = self._alone(part, part)
                lower, upper = lower - 0.5 * high, upper - 0.5 * low
        return lower, upper

    def _tile(self, entries: int) -> int:
        """How many labellings are solved together."""
        if self.factors is not None:
            return max(1, POINT_ENTRIES // entries)
        return max(1, STACK_ENTRIES // (entries * len(self.costs)))

    def _exactly(self, sources: np.ndarray, targets: np.ndarray) -> list[float]:
        """Return the interval of F, whether it converged, and the groups' costs, without eps."""
        stack = self.costs[:, sources[:, None], targets]
        limits = {"tol": self.tol, "max_iter": self.max_iter}
        with collect_warnings():
            whole = solve_costs(stack, eta=self.eta, **limits)
            alone = [solve_costs(cost[None], **limits).value for cost in stack]
        return [whole.lower, whole.upper, float(whole.status.ok), *alone]

    def _together(
        self, first: np.ndarray, second: np.ndarray, apart: np.ndarray | None
    ) -> np.ndarray:
        """Return the interval of F and whether it is good enough for labellings (B, n), (B, m).

        It is if it is narrow, or beside the interval of `apart`, (B, 2).
        """
        costs, intervals = self._costs_of(first, second), np.empty((len(first), 3))
        left, start = np.arange(len(first)), None
        rough = () if apart is None else (gap for gap in ROUGH if gap > self.tol)
        for tol in (*rough, self.tol):
            solved = self._solve(costs, self.groups, self.eta, tol, start)
            ok = np.array([status.ok for status in solved.status])
            intervals[left] = np.column_stack([solved.lower, solved.upper, ok & (tol == self.tol)])
            if apart is None:
                break
            meets = (solved.upper >= apart[left, 0]) & (solved.lower <= apart[left, 1])
            intervals[left[~meets], 2] = 1.0
            again = np.flatnonzero(meets)
            if not len(again):
                break
            left, costs = left[again], costs.members(again)
            start = np.asarray(solved.alpha)[again], np.asarray(solved.duals[1])[again]
        return intervals

    def _costs_of(self, first: np.ndarray, second: np.ndarray) -> Costs:
        if (factors := self.factors) is not None:
            X, Y = factors.points[first], factors.points[second]
            return points_costs(X, Y, self.groups, factors.metric).rescaled(factors.scale)
        shape = (len(first), len(self.costs), first.shape[1], second.shape[1])
        stack, flat = np.empty(shape), self.costs.reshape(len(self.costs), -1)
        pairs = first[:, :, None] * self.costs.shape[1] + second[:, None, :]
        for member, places in zip(stack, pairs, strict=True):
            flat.take(places, axis=1, out=member, mode="clip")
        return Stack(stack)

    def _alone(self, sources: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Prove intervals of each group's cost alone: every group is a member of a batch."""
        stack = self.costs[:, sources[:, None], targets]
        if self.eps == 0.0:
            with collect_warnings():
                results = [solve_costs(cost[None]) for cost in stack]
            ends = np.array([(result.lower, result.upper) for result in results])
            return ends[:, 0], ends[:, 1]
        tol = max(self.tol, ROUGH[-1])
        solved = self._solve(Stack(stack[:, None]), Groups.all(1), 0.0, tol)
        return np.asarray(solved.lower), np.asarray(solved.upper)

    def _solve(
        self,
        costs: Costs,
        groups: Groups,
        eta: float,
        tol: float,
        start: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> BatchResult:
        """Solve a batch of problems with uniform weights."""
        count, _, n, m = costs.shape
        a, b = np.full((count, n), 1.0 / n), np.full((count, m), 1.0 / m)
        amounts = np.full(count, eta), np.full(count, self.eps)
        work = BatchWork(tol, self.max_iter, None, time.perf_counter())
        return run_batch(
            (costs, costs), (a, b), Simplex(), amounts, costs.sizes(a, b), groups, None,
            work, start=start,
        )  # fmt: skip


def _members(labels: np.ndarray, label: int) -> np.ndarray:
    """Return which points have a label in each labelling, (B, n)."""
    return np.nonzero(labels == label)[1].reshape(len(labels), -1)


def works_on_points(groups: Groups, factored: FactoredMetric | None) -> bool:
    """Whether a mixed cost is made faster from points than from the groups' costs."""
    return factored is not None and len(groups.flat) <= STACK_PAYS_FROM * len(groups)


def chunk_size(n: int, m: int) -> int:
    """Return how many labellings are a task: products of matrices want many, memory few.

    Examples
    --------
    >>> chunk_size(100, 100), chunk_size(1000, 1000), chunk_size(10_000, 10_000)
    (128, 4, 1)
    """
    return math.ceil(min(128.0, 4e6 / (n * m)))
