"""`Problem`: one feature-robust transport problem, validated, frozen, ready for any solver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, inf, prod
from typing import Any

import numpy as np

from frot._base.arrays import Array, Home, blocks, to_numpy
from frot._base.contract import gap_floor, relative_gap
from frot._base.errors import InputError
from frot.costs import MEMORY_BUDGET, Costs
from frot.costs.protocol import HOST
from frot.groups.groups import Groups
from frot.problem.adversary import GivenSet, Simplex, SimplexFamily, as_adversary
from frot.problem.marginals import MarginalPrice, unit_mass

# Cached properties that depend on costs and weights alone: a pass over all features each.
KNOWN = ("independent", "mean_cost", "sizes", "typical_cost")


@dataclass(frozen=True)
class Marginals:
    """How both sides' marginals bind, and what a plan pays for what it does not keep.

    Parameters
    ----------
    tau_a, tau_b : float
        Price of a unit of divergence, in units of cost; infinite for a side that is kept.
    penalty : {"kl", "tv"}
    mass : float, optional
        The mass that plans have, at most that of either side; prices are then infinite and the
        penalty is "tv".
    """

    tau_a: float = inf
    tau_b: float = inf
    penalty: str = "kl"
    mass: float | None = None

    @property
    def balanced(self) -> bool:
        """Whether both sides are kept: the ordinary problem."""
        return self.tau_a == inf and self.tau_b == inf and self.mass is None

    @property
    def unbalanced(self) -> bool:
        """Whether mass may be created and destroyed at the price of a divergence."""
        return self.penalty == "kl" and not self.balanced

    @property
    def partial(self) -> bool:
        """Whether mass may be left out."""
        return self.penalty == "tv" and not self.balanced

    @property
    def name(self) -> str:
        """What a user would have written."""
        return f"penalty={self.penalty!r}" if self.mass is None else f"mass={self.mass:.6g}"

    @property
    def sides(self) -> tuple[MarginalPrice, MarginalPrice]:
        """The prices of rows and columns under the KL penalty."""
        return MarginalPrice(self.tau_a), MarginalPrice(self.tau_b)


BALANCED = Marginals()


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
    >>> from frot.costs import Stack
    >>> costs = Stack(np.ones((3, 1, 2)))
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
    marginals: Marginals = BALANCED

    def __post_init__(self) -> None:
        object.__setattr__(self, "adversary", as_adversary(self.adversary, self.costs.shape[0]))

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        count, n, m = self.costs.shape
        return count, n, m

    @cached_property
    def independent(self) -> np.ndarray:
        """Group costs of the product plan a b^T of unit mass, shape (L,)."""
        small = self._present
        costs = small.costs
        return to_numpy(costs.product(*map(costs.home.bring, small.shares)))

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
        costs = small.costs
        return to_numpy(costs.sizes(*map(costs.home.bring, small.shares)))

    @property
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights as shares of the mass of their side."""
        if self.marginals.balanced:
            return self.a, self.b
        return unit_mass(self.a), unit_mass(self.b)

    @cached_property
    def mean_cost(self) -> float:
        """Mean size of the costs over points and groups: the unit that tolerances are meant in."""
        return float(self.sizes.sum()) / len(self.sizes)

    @property
    def largest_cost(self) -> float:
        """A bound on the size of all costs between points with weight."""
        return float(to_numpy(self._present.costs.peaks).max())

    def gap(self, lower: float, upper: float) -> float:
        """Return the relative width of an interval of this problem."""
        marginals = self.marginals
        floor = gap_floor(
            self.mean_cost, self.adversary.eta, self.eps, marginals.tau_a, marginals.tau_b
        )
        if not marginals.balanced:
            floor *= min(fsum(self.a.tolist()), fsum(self.b.tolist()))
        return relative_gap(lower, upper, floor)

    @cached_property
    def mass_error(self) -> float:
        """By how much a or b miss a sum of one, where they have to have it."""
        if not self.marginals.balanced:
            return 0.0
        return max(abs(fsum([*side.tolist(), -1.0])) for side in (self.a, self.b))

    @cached_property
    def typical_cost(self) -> float:
        """The mean cost; where a few huge costs make it, its geometric mean with the median.

        Outliers, and large numbers that stand for forbidden arcs, are everyday. In this unit the
        interior point takes a fifth fewer steps over 300 problems of heavy tails and outliers than
        in the mean; in the median it stalls where eta is a share of the mean.
        """
        count, rng = self.shape[0], np.random.default_rng(0)
        # About a thousand arcs are enough for a median; fewer with many groups, as each costs O(L).
        draws = int(np.clip(200_000 // count, 32, 1024))
        rows, cols = np.flatnonzero(self.a), np.flatnonzero(self.b)
        place = rng.integers(len(rows), size=draws) * len(cols)
        place = place + rng.integers(len(cols), size=draws)
        # With few points arcs are drawn repeatedly: each is computed once.
        arcs, again = np.unique(place, return_inverse=True)
        means = np.empty(len(arcs))
        for part in blocks(len(arcs), 24 * count):
            i, j = np.divmod(arcs[part], len(cols))
            means[part] = np.abs(to_numpy(self.costs.at(rows[i], cols[j]))).mean(axis=0)
        median = float(np.median(means[again]))
        rare = 1e-20 * self.mean_cost < median < 0.1 * self.mean_cost
        return float(np.sqrt(median * self.mean_cost)) if rare else self.mean_cost

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
        marginals = self.marginals
        if marginals.balanced:
            return {}
        totals = fsum(self.a.tolist()), fsum(self.b.tolist())
        prices = (marginals.tau_a, marginals.tau_b)
        return {
            "tau": prices,
            "penalty": marginals.penalty,
            "totals": totals,
            "fixed_mass": marginals.mass,
        }

    def having(self, **changes: Any) -> Problem:
        """Return the problem with other fields, but as large costs and the same weights."""
        problem = replace(self, **changes)
        problem.__dict__.update(
            {name: self.__dict__[name] for name in KNOWN if name in self.__dict__}
        )
        return problem

    def on_host(self) -> Problem:
        """Return the problem with its costs in NumPy, in double precision."""
        bytes_needed = 8 * prod(self.costs.shape)
        if self.costs.home.library != "numpy" and bytes_needed > self.memory_budget:
            raise InputError(
                f"costs: are on a device, and the solver needs them on the host, "
                f"{bytes_needed / 1e9:.1f} GB; raise memory_budget, or use frot.Entropic"
            )
        costs = self.costs.to(HOST)
        return self if costs is self.costs else self.having(costs=costs)

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


def _taken(points: Array, index: np.ndarray) -> Array:
    """Some rows of points of any library."""
    if isinstance(points, np.ndarray):
        return points[index]
    home = Home.of(points)
    return home.xp.take(points, home.indices(index), axis=0)
