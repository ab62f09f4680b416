"""`Problem`: one feature-robust transport problem, validated, frozen, ready for any solver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np

from frot._base.arrays import Home
from frot._base.contract import gap_floor, relative_gap
from frot.costs import MEMORY_BUDGET, Costs
from frot.costs.protocol import blocks
from frot.groups.groups import Groups
from frot.problem.adversary import GivenSet, Simplex, SimplexFamily, as_adversary
from frot.problem.marginals import KEPT, Marginals, unit_mass

# What is computed once, a pass over all features, from costs and weights alone.
KNOWN = ("independent", "mass_error", "mean_cost", "sizes", "typical_cost")
# Entries looked at to tell a typical cost.
SAMPLED_COSTS = 200_000
# Memory that they may take at a time.
SAMPLE_BYTES = 5_000_000


@dataclass(frozen=True, eq=False)
class Problem:
    r"""The problem every solver takes.

    .. math::
        \min_{\Pi \in U(a, b)} \; \max_{\alpha \in \mathcal A} \;
        \sum_l \alpha_l \langle \Pi, C_l \rangle - \eta \sum_l \alpha_l \log \alpha_l

    Parameters
    ----------
    costs : Costs
        The L cost matrices, in whatever form.
    a, b : arrays of shape (n,) and (m,)
        Weights >= 0 that sum to one each, or to anything where `marginals` are not kept.
    adversary : Simplex, CappedSimplex or any other Adversary
        The weights alpha may take, and eta. What is neither of the first two is wrapped in a
        `GivenSet`, which knows what bounds have to ask.
    eps : float
        Entropic regularisation of the plan, for the oracles that have one.
    marginals : Marginals
        Whether plans keep a and b, or what they pay for what they do not.
    names : tuple of str
        Names of the groups.
    points : pair of arrays, optional
        The points behind the costs, kept for pictures only.
    groups : Groups, optional
        The groups of their features, likewise.
    memory_budget : float
        Bytes that matrices of the problem's size may take together.

    Examples
    --------
    >>> from frot.costs import StackedCosts
    >>> costs = StackedCosts(np.ones((3, 1, 2)))
    >>> Problem(costs, np.ones(1), np.full(2, 0.5)).mean_cost
    1.0
    """

    costs: Costs
    a: np.ndarray
    b: np.ndarray
    adversary: SimplexFamily | GivenSet = Simplex()
    eps: float = 0.0
    names: tuple[str, ...] = ()
    points: tuple[np.ndarray, np.ndarray] | None = None
    groups: Groups | None = None
    memory_budget: float = MEMORY_BUDGET
    marginals: Marginals = KEPT

    def __post_init__(self) -> None:
        object.__setattr__(self, "adversary", as_adversary(self.adversary, self.costs.shape[0]))

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return self.costs.shape

    @cached_property
    def independent(self) -> np.ndarray:
        """Group costs of the product plan a b^T of unit mass, shape (L,)."""
        small = self._present
        return small.costs.independent(*small.shares)

    @cached_property
    def _present(self) -> Problem:
        """The problem without points of zero weight, whose costs may be anything."""
        return self.support()[0]

    @cached_property
    def sizes(self) -> np.ndarray:
        """Mean sizes of the costs of each group under a b^T, shape (L,)."""
        if self.costs.nonnegative:
            return self.independent
        small = self._present
        return small.costs.magnitudes(*small.shares)

    @property
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights as shares of the mass of their side."""
        if self.marginals.kept:
            return self.a, self.b
        return unit_mass(self.a), unit_mass(self.b)

    @cached_property
    def mean_cost(self) -> float:
        """Mean size of the costs over points and groups: the unit that tolerances are meant in."""
        return float(self.sizes.sum()) / len(self.sizes)

    @property
    def largest_cost(self) -> float:
        """A bound on the size of all costs between points with weight."""
        return float(self._present.costs.peaks.max())

    def gap(self, lower: float, upper: float) -> float:
        """Return the relative width of an interval of this problem."""
        terms = self.marginals
        floor = gap_floor(self.mean_cost, self.adversary.eta, self.eps, terms.tau_a, terms.tau_b)
        if not terms.kept:
            floor *= min(fsum(self.a.tolist()), fsum(self.b.tolist()))
        return relative_gap(lower, upper, floor)

    @cached_property
    def mass_error(self) -> float:
        """By how much a or b sum to anything else than one."""
        return max(abs(fsum([*side.tolist(), -1.0])) for side in (self.a, self.b))

    @cached_property
    def typical_cost(self) -> float:
        """The mean cost, or the median of a sample where a few huge costs make the mean.

        Outliers, and large numbers that stand for forbidden arcs, are everyday.
        """
        count = self.shape[0]
        draws = int(np.clip(SAMPLED_COSTS // count, 32, 1024))
        rng = np.random.default_rng(0)
        rows, cols = np.flatnonzero(self.a), np.flatnonzero(self.b)
        drawn = rng.integers(len(rows), size=draws) * len(cols) + rng.integers(
            len(cols), size=draws
        )
        # Of few points every arc is drawn many times, and costs of many features are dear.
        arcs, again = np.unique(drawn, return_inverse=True)
        means = np.empty(len(arcs))
        for part in blocks(len(arcs), 24 * count, SAMPLE_BYTES):
            some = arcs[part]
            found = self.costs.at(rows[some // len(cols)], cols[some % len(cols)])
            means[part] = np.abs(found).mean(axis=0)
        median = float(np.median(means[again]))
        rare = 1e-20 * self.mean_cost < median < 0.1 * self.mean_cost
        return median if rare else self.mean_cost

    @property
    def simplex(self) -> SimplexFamily:
        """The adversary, for solvers that take a (capped) simplex only."""
        assert isinstance(self.adversary, SimplexFamily)
        return self.adversary

    @property
    def scale(self) -> float:
        """The scale of the objective: the mean cost, or eta or eps where these are larger."""
        return max(self.mean_cost, self.adversary.eta, self.eps)

    @property
    def owed(self) -> dict[str, Any]:
        """What a `Result` says of marginals that need not be kept."""
        terms = self.marginals
        if terms.kept:
            return {}
        totals = fsum(self.a.tolist()), fsum(self.b.tolist())
        return {"tau": (terms.tau_a, terms.tau_b), "penalty": terms.penalty, "totals": totals}

    def having(self, **changes: Any) -> Problem:
        """Return the problem with other fields than costs and weights, keeping what is known."""
        problem = replace(self, **changes)
        problem.__dict__.update(
            {name: self.__dict__[name] for name in KNOWN if name in self.__dict__}
        )
        return problem

    def support(self) -> tuple[Problem, np.ndarray, np.ndarray]:
        """Return the problem without points of zero weight, and the rows and columns it kept."""
        n, m = len(self.a), len(self.b)
        if np.count_nonzero(self.a) == n and np.count_nonzero(self.b) == m:
            return self, np.arange(n), np.arange(m)
        rows, cols = np.flatnonzero(self.a), np.flatnonzero(self.b)
        return self.part(rows, cols), rows, cols

    def part(self, rows: np.ndarray, cols: np.ndarray) -> Problem:
        """Return the problem of some of the points, with the weights they have."""
        points = self.points
        return replace(
            self,
            costs=self.costs.take(rows, cols),
            a=self.a[rows],
            b=self.b[cols],
            points=None if points is None else (_taken(points[0], rows), _taken(points[1], cols)),
        )


def _taken(points: Any, index: np.ndarray) -> Any:
    """Some rows of points of any library."""
    if isinstance(points, np.ndarray):
        return points[index]
    home = Home.of(points)
    return home.xp.take(points, home.indices(index), axis=0)
