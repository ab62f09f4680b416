r"""Parts of a problem between which no plan moves anything, though arcs there may be allowed.

Where costs are infinite, some arcs that are not may be empty in every plan that is left: with n
points on each side and all arcs (i, j) with j < i forbidden, all but the diagonal is. Potentials
that keep such an arc empty are infinite, and an interior point that looks for them never ends.
An arc can carry mass if and only if a cycle of the residual graph of some plan uses it: there every
allowed arc may be used forwards, and those with mass backwards. Its strongly connected parts are
therefore solved without the arcs between them, which make no cycle. Proofs are about all arcs:
adding a constant to the potentials of a part's rows and taking it off those of its columns changes
nothing inside, and such constants, growing along the arcs between the parts, empty them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.special import logsumexp

from frot.costs import Costs, ForbiddenCosts
from frot.costs.protocol import UNIT
from frot.problem.problem import Problem
from frot.solvers.forbidden import allowed_plan

__all__ = ["Apart"]

# Mass of an arc, over the weights of its points, that is rounding and no more.
ROUNDING = 64.0 * UNIT
# Arcs so many eps above their potentials are empty: exp(-50) is nothing next to one.
EMPTY = 50.0


@dataclass(frozen=True, eq=False)
class Apart:
    """To which part every row and column belongs, (n,) and (m,), and all costs.

    Examples
    --------
    >>> costs = ForbiddenCosts.of_stack(np.array([[[0.0, 1.0], [np.inf, 0.0]]]))
    >>> half = np.array([0.5, 0.5])
    >>> parts = Apart.of(Problem(costs, half, half, eps=1.0))
    >>> parts.inside.tolist()
    [[True, False], [False, True]]
    >>> parts.cut(Problem(costs, half, half, eps=1.0)).costs.forbidden
    array([[False,  True],
           [ True, False]])
    """

    costs: Costs
    rows: np.ndarray
    cols: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> Apart | None:
        """The parts of a problem, all of whose points have weight; None if no arc is forbidden."""
        shut = problem.costs.forbidden
        if shut is None:
            return None
        n, m = shut.shape
        i, j, mass = allowed_plan(shut, problem.a, problem.b).arcs()
        used = mass > ROUNDING * np.minimum(problem.a[i], problem.b[j])
        rows, cols = np.nonzero(~shut)
        tails = np.concatenate([rows, n + j[used]])
        heads = np.concatenate([n + cols, i[used]])
        graph = sparse.csr_array((np.ones(len(tails)), (tails, heads)), shape=(n + m, n + m))
        _, part = csgraph.connected_components(graph, directed=True, connection="strong")
        return cls(problem.costs, part[:n], part[n:])

    @property
    def inside(self) -> np.ndarray:
        """Whether arcs are within a part, (n, m)."""
        return self.rows[:, None] == self.cols

    def cut(self, problem: Problem) -> Problem:
        """The problem without arcs between the parts; its plans are the same."""
        shut = self.costs.forbidden
        assert shut is not None
        base = self.costs.base if isinstance(self.costs, ForbiddenCosts) else self.costs
        # What costs are like is known from the problem as it was given.
        return problem.having(costs=ForbiddenCosts(base, shut | ~self.inside))

    def move(self, alpha: np.ndarray, f: np.ndarray, problem: Problem) -> np.ndarray:
        r"""Return the rows' potentials, parts so far apart that arcs between them are empty.

        A constant c a part, with :math:`c_T \ge c_S + f_i + g_j - M_{ij}` and some eps more for
        every allowed arc from a row of S to a column of T: the longest path of each.
        """
        mixed, eps, inside = self.costs.mix(alpha), problem.eps, self.inside
        scores = np.where(inside, (f[:, None] - mixed) / eps, -np.inf)
        g = -eps * np.asarray(logsumexp(scores, axis=0, b=problem.a[:, None]))
        i, j = np.nonzero(~inside & np.isfinite(mixed))
        over = f[i] + g[j] - mixed[i, j] + EMPTY * eps
        tails, heads = self.rows[i], self.cols[j]
        found = np.zeros(max(self.rows.max(), self.cols.max()) + 1)
        for _ in range(len(found)):
            ahead = found.copy()
            np.maximum.at(ahead, heads, found[tails] + over)
            if (ahead == found).all():
                break
            found = ahead
        return f + found[self.rows]
