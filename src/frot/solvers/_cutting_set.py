"""Cutting sets: any convex set of weights, by feature-robust problems (Dhouib et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from frot._base.errors import InputError, collect_warnings
from frot.costs import StackedCosts
from frot.costs.protocol import UNIT
from frot.costs.stack import stack_of
from frot.plans.plan import Plan
from frot.problem.adversary import GivenSet, SimplexFamily, admit
from frot.problem.bounds import Lower, upper_bound
from frot.problem.problem import Problem
from frot.solvers.drive import Driven, Offer
from frot.solvers.exact.exact import Exact
from frot.solvers.start import Start

# Answers in a row that bring nothing before a run ends.
PATIENCE = 10


# Columns lighter than these shares of the heaviest may have to bear what is large in them.
LIGHT = 10.0 ** np.arange(-15.0, 0.0, 3.0)


@dataclass(frozen=True)
class CuttingSet(Driven):
    r"""Solve the problem for any convex and bounded set of weights, eta = 0.

    .. math::
        \min_{\Pi \in U(a, b)} \; \max_{\alpha \in \mathcal A} \;
        \sum_l \alpha_l \langle \Pi, C_l \rangle

    Costs :math:`\sum_l \alpha_l C_l` found so far are one feature-robust problem, which `Exact`
    solves; the set answers its plan with new weights, until they are no worse [1]_. The lower bound
    is the feature-robust one, since mixtures of weights of a convex set are in it; the upper bound
    is the set's answer to the plan. It keeps all costs.

    Parameters
    ----------
    tol : float
        Relative gap at which to stop.
    max_iter : int
        Answers of the set at most.
    time_limit : float, optional
        Seconds.

    References
    ----------
    .. [1] S. Dhouib, I. Redko, T. Kerdoncuff, R. Emonet and M. Sebban, A swiss army knife for
       minimax optimal transport, ICML 2020.

    Examples
    --------
    >>> import frot
    >>> box = frot.Box([0.0, 0.5], [1.0, 0.5])
    >>> frot.solve([[0.0, 0.0]], [[1.0, 2.0]], adversary=box, solver=frot.CuttingSet()).value
    3.0
    """

    tol: float = 1e-8
    max_iter: int = 500
    time_limit: float | None = None

    @property
    def any_set(self) -> bool:
        """Any convex and bounded set of weights is supported."""
        return True

    def check(self, shape: tuple[int, ...], eta: float, eps: float) -> None:
        """Refuse what this solver cannot do."""
        if eta > 0.0 or eps > 0.0:
            raise InputError(
                "solver: CuttingSet solves eta = 0 and eps = 0; drop them, or use frot.Simplex or "
                "frot.CappedSimplex with another solver"
            )

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Cut until the set has no new answer; a start is not used."""
        cuts = _Cuts(problem.having(costs=_stacked(problem)), self.tol)
        _, alpha = problem.adversary.best(problem.independent)
        idle = 0
        cut: np.ndarray | None = alpha
        while cut is not None and idle < PATIENCE:
            before = (cuts.lower, cuts.upper)
            yield cuts.cut(cut)
            idle = idle + 1 if before == (cuts.lower, cuts.upper) else 0
            cut = cuts.next


def _stacked(problem: Problem) -> StackedCosts:
    """The costs as a stack that knows its errors: weights may be negative, or of any sum."""
    costs = problem.costs
    if isinstance(costs, StackedCosts):
        return costs
    count, n, m = problem.shape
    if 8 * count * n * m > problem.memory_budget:
        raise InputError(
            f"adversary: with {problem.adversary.name} all {count} x {n} x {m} costs have to be "
            f"kept, {8e-9 * count * n * m:.1f} GB; raise memory_budget, give fewer points, or use "
            "frot.CappedSimplex"
        )
    return stack_of(costs)


@dataclass(eq=False)
class _Cuts:
    """Answers of the set so far, and the feature-robust problem they make."""

    problem: Problem
    tol: float
    alphas: list[np.ndarray] = field(default_factory=list)
    costs: list[np.ndarray] = field(default_factory=list)
    lower: float = -np.inf
    upper: float = np.inf
    next: np.ndarray | None = None
    plan: Plan | None = None

    @property
    def adversary(self) -> SimplexFamily | GivenSet:
        """The set."""
        return self.problem.adversary

    def cut(self, alpha: np.ndarray) -> Offer:
        """Add a cost, solve the feature-robust problem of all, and let the set answer its plan."""
        # Only weights of the set prove anything about it, whatever its answers are.
        alpha = admit(self.adversary, alpha)
        self.alphas.append(alpha)
        self.costs.append(self.problem.costs.mix(alpha))
        stack = np.stack(self.costs)
        master = Problem(self._mixed(stack), self.problem.a, self.problem.b)
        # Early plans need not be exact: they only have to point at the next cut.
        width = self.problem.gap(self.lower, self.upper) if np.isfinite(self.upper) else 1.0
        tol = max(min(0.1 * width, 1e-3), 0.1 * self.tol)
        with collect_warnings():
            found = Exact(tol=tol)(master, Start(plan=self.plan))
        alphas = np.stack(self.alphas)
        mixed = admit(self.adversary, np.asarray(found.alpha @ alphas))
        lower = Lower(found.lower, mixed, *found.potentials)
        best = upper_bound(self.problem, found.plan)
        value, answer = self.adversary.best(best.phi)
        # What is known to be in the set is an answer, too.
        value = max(value, float((alphas @ best.phi).max()))
        upper = replace(best, bound=max(best.bound, value), value=value)
        self.plan = upper.plan
        self.lower, self.upper = max(self.lower, lower.bound), min(self.upper, upper.bound)
        answer = admit(self.adversary, answer)
        known = any(np.array_equal(answer, old) for old in self.alphas)
        # The same answer again: what is left of the gap is the master's.
        self.next = None if known and tol <= 0.1 * self.tol else answer
        if known and self.next is not None:
            self.alphas.pop()
            self.costs.pop()
            self.next = alpha
        return Offer(upper, lower)

    def _mixed(self, stack: np.ndarray) -> StackedCosts:
        """Costs that are mixtures, each right to some units of what was added up for it."""
        alphas, base = np.stack(self.alphas), self.problem.costs
        assert isinstance(base, StackedCosts)
        share = 2.0 * (alphas.shape[1] + 2) * UNIT
        sizes, shape = np.abs(alphas), (len(stack), stack.shape[2])
        rows, cols = np.zeros((len(stack), stack.shape[1])), np.zeros(shape)
        if base.error is not None:
            rows, cols = sizes @ base.error[0], sizes @ base.error[1]
        if (alphas >= 0.0).all() and base.nonnegative:
            return StackedCosts(stack, (rows, cols), share + base.relative)
        off = share + base.relative
        for cut, added in enumerate(np.tensordot(sizes, np.abs(base.stack), axes=1)):
            over = cover(added, self.problem.a, self.problem.b)
            rows[cut] += off * over[0]
            cols[cut] += off * over[1]
        return StackedCosts(stack, (rows, cols))


def cover(sizes: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return r and c with r_i + c_j no less than the entries, and a @ r + b @ c small.

    What is large in a light column alone is that column's, and no row's.

    Examples
    --------
    >>> cover(np.array([[1.0, 900.0], [2.0, 800.0]]), np.ones(2), np.array([1.0, 1e-9]))
    (array([1., 2.]), array([  0., 899.]))
    """
    found = []
    for least in np.append(0.0, b.max() * LIGHT):
        rows = sizes[:, b >= least].max(axis=1)
        found.append((rows, np.maximum((sizes - rows[:, None]).max(axis=0), 0.0)))
    return min(found, key=lambda one: float(a @ one[0] + b @ one[1]))
