"""Cutting sets: any convex set of weights, by feature-robust problems (Dhouib et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from frot._base.arrays import UNIT
from frot._base.errors import InputError, collect_warnings
from frot.costs import Stack
from frot.costs.stack import stack_of
from frot.problem.adversary import SimplexFamily
from frot.problem.bounds import Lower, upper_bound
from frot.problem.problem import Problem
from frot.solvers.drive import Offer, Solver, Start
from frot.solvers.exact.exact import Exact


@dataclass(frozen=True)
class CuttingSet(Solver):
    r"""Solve the problem for any convex and bounded set of weights, eta = 0.

    .. math::
        \min_{\Pi \in U(a, b)} \; \max_{\alpha \in \mathcal A} \;
        \sum_l \alpha_l \langle \Pi, C_l \rangle

    Costs :math:`\sum_l \alpha_l C_l` found so far are one feature-robust problem, which `Exact`
    solves; the set answers its plan with new weights, until they are no worse. The lower bound
    is the feature-robust one, since mixtures of weights of a convex set are in it; the upper bound
    is the set's answer to the plan. All that a set has to know is ``best(phi)``; it keeps all
    costs.

    Parameters
    ----------
    tol : float
        Relative gap at which to stop.
    max_iter : int
        Answers of the set at most.
    time_limit : float, optional
        Seconds.

    Examples
    --------
    >>> import frot
    >>> hull = frot.Polytope([[1.0, 0.5], [0.0, 0.5]])
    >>> frot.solve([[0.0, 0.0]], [[1.0, 2.0]], adversary=hull, solver=frot.CuttingSet()).value
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
        adversary, costs = problem.adversary, _stacked(problem)
        problem = problem.having(costs=costs)
        _, answer = adversary.best(problem.independent)
        alphas = [answer]
        mixed = [costs.mix(answer)]
        finest = 0.1 * self.tol
        tol, plan = 1e-3, None
        while True:
            weights = np.stack(alphas)
            master = Problem(_mixed(costs, weights, np.stack(mixed)), problem.a, problem.b)
            with collect_warnings():
                result = Exact(tol=max(tol, finest))(master, Start(plan=plan))
            alpha = np.asarray(result.alpha @ weights)
            if isinstance(adversary, SimplexFamily) and not adversary.contains(alpha):
                # Sums of weights are one, and none is above the cap, but for their last places.
                alpha = adversary.project(alpha)
            upper = upper_bound(problem, result.plan)
            yield Offer(upper, Lower(result.lower, alpha, *result.potentials))
            plan = upper.plan
            _, answer = adversary.best(upper.phi)
            if not any(np.array_equal(answer, known) for known in alphas):
                alphas.append(answer)
                mixed.append(costs.mix(answer))
                tol = min(tol, 0.1 * problem.gap(result.lower, upper.bound))
            elif tol > finest:
                # What is left of the gap is that of the restricted problem.
                tol = 0.1 * tol
            else:
                return


def _stacked(problem: Problem) -> Stack:
    """The costs as a stack that knows its errors: weights may be negative, or of any sum."""
    costs = problem.costs
    if isinstance(costs, Stack):
        return costs
    count, n, m = problem.shape
    if 8 * count * n * m > problem.memory_budget:
        raise InputError(
            f"adversary: with {problem.adversary.name} all {count} x {n} x {m} costs have to be "
            f"kept, {8e-9 * count * n * m:.1f} GB; raise memory_budget, give fewer points, or use "
            "frot.CappedSimplex"
        )
    return stack_of(costs)


def _mixed(base: Stack, alphas: np.ndarray, stack: np.ndarray) -> Stack:
    """Costs that are mixtures, each right to some units of what was added up for it."""
    share = 2.0 * (alphas.shape[1] + 2) * UNIT
    sizes = np.abs(alphas)
    count, n, m = stack.shape
    rows, cols = np.zeros((count, n)), np.zeros((count, m))
    if base.error is not None:
        rows, cols = sizes @ base.error[0], sizes @ base.error[1]
    if (alphas >= 0.0).all() and base.nonnegative:
        return Stack(stack, share + base.relative, (rows, cols))
    added = np.tensordot(sizes, np.abs(base.C), axes=1)
    return Stack(stack, 0.0, (rows + (share + base.relative) * added.max(axis=2), cols))
