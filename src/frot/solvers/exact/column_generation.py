r"""Column generation: the linear program over mixtures of plans, for few points and few groups.

Every plan is a mixture of vertices of the transport polytope, and the objective sees a vertex only
through its L group costs, so that eta = 0 is the small linear program

.. math:: \min_{w, v \ge 0,\, t} t + c \textstyle\sum_l v_l \quad \text{s.t.} \quad
    \textstyle\sum_k w_k \phi_l^{(k)} - v_l \le t, \quad \sum_k w_k = 1

with a column for each vertex. No group may weigh more than the cap c, so groups may cost more than
t at the price of c for each unit; where c = 1 no v is ever above zero.

The simplex method on it needs the column of least reduced cost. That is an ordinary transport
problem at the current duals alpha, which few points solve in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from frot.plans.combine import combine_plans
from frot.plans.plan import Plan
from frot.problem.adversary import simplex_of
from frot.problem.bounds import lower_bound, upper_bound
from frot.problem.problem import Problem
from frot.solvers.drive import Offer
from frot.solvers.oracles import NetworkSimplex

# Reduced costs and directions below this share of the costs are round-off.
ZERO = 1e-13


def column_generation(problem: Problem, alpha: np.ndarray | None) -> Iterator[Offer]:
    """Let plans in until none has a negative reduced cost, and offer both bounds.

    A few dozen columns are usual; of 30,000 small problems one needed more than 150.
    """
    groups = problem.shape[0]
    alpha = np.full(groups, 1.0 / groups) if alpha is None else alpha
    oracle = NetworkSimplex()
    master: Master | None = None
    plans: list[Plan] = []
    best_value, best = -np.inf, None
    for _ in range(400):
        mixed = problem.costs.mix(alpha)
        transport = oracle(mixed, problem.a, problem.b)
        phi = problem.costs.inner(transport.plan)
        value = float(alpha @ phi)
        if value > best_value:
            best_value, best = value, (alpha, transport.g, mixed)
        # The level of the master program bounds the optimum from above.
        if master is not None and master.value - value <= ZERO * abs(master.value):
            break
        plans.append(transport.plan)
        if master is None:
            master = Master(phi, problem.adversary.k)
        elif not master.enter(phi):
            break
        master.drop_negative_weights()
        alpha = master.alpha()
        yield Offer()
    assert master is not None
    assert best is not None
    used, weights = master.mixture()
    plan = combine_plans([plans[index] for index in used], weights)
    yield Offer(upper_bound(problem, plan), lower_bound(problem, *best))


class Master:
    """The simplex method's basis: L + 1 of the level t, the plans' weights and the slacks.

    Columns of the basis matrix are, in this order of variables, t: (-1, 0), a plan: (phi, 1), the
    slack of group l: (e_l, 0), what it is over the level: (-e_l, 0); the right-hand side is (0, 1).
    The first costs one and the last 1/k, the others nothing.
    """

    def __init__(self, phi: np.ndarray, k: int = 1) -> None:
        self.k, self.weights = k, simplex_of(k, 0.0, None)
        # In units of the first plan's costs: costs and weights share the basis matrix.
        self.unit = float(np.abs(phi).max()) or 1.0
        self.columns = [phi / self.unit]
        # At first the level is the largest cost of the one plan there is.
        top = int(np.argmax(phi))
        self.basis = [("level", 0), ("plan", 0)]
        self.basis += [("slack", group) for group in range(len(phi)) if group != top]
        self._matrix = np.column_stack([self._column(*variable) for variable in self.basis])
        self._invert()

    def _column(self, kind: str, index: int) -> np.ndarray:
        groups = len(self.columns[0])
        column = np.zeros(groups + 1)
        if kind == "level":
            column[:groups] = -1.0
        elif kind == "slack":
            column[index] = 1.0
        elif kind == "over":
            column[index] = -1.0
        else:
            column[:groups], column[groups] = self.columns[index], 1.0
        return column

    def _invert(self) -> None:
        self._inverse = np.linalg.inv(self._matrix)
        self._values = self._inverse[:, -1]

    @property
    def _duals(self) -> np.ndarray:
        """Duals of the groups, negative, and of the sum of the weights."""
        over = [index for index, (kind, _) in enumerate(self.basis) if kind == "over"]
        return self._inverse[0] + self._inverse[over].sum(axis=0) / self.k

    @property
    def value(self) -> float:
        """The level, and what the worst groups are over it."""
        return float(self._duals[-1]) * self.unit

    def alpha(self) -> np.ndarray:
        """The duals of the groups."""
        return self.weights.project(-self._duals[:-1])

    def enter(self, phi: np.ndarray) -> bool:
        """Let a plan into the basis; False if nothing can leave for it."""
        self.columns.append(phi / self.unit)
        return self._pivot(("plan", len(self.columns) - 1))

    def drop_negative_weights(self) -> None:
        """Let slacks in while a group would have a negative weight, or one above the cap."""
        for _ in range(2 * len(self.basis)):
            alpha = -self._duals[:-1]
            least, most = int(alpha.argmin()), int(alpha.argmax())
            below, above = float(alpha[least]), 1.0 / self.k - float(alpha[most])
            entering = ("slack", least) if self.k == 1 or below <= above else ("over", most)
            price = below if entering[0] == "slack" else above
            if price >= -ZERO or not self._pivot(entering):
                return

    def _pivot(self, entering: tuple[str, int]) -> bool:
        """Let a variable in for the one that reaches zero first; the level never leaves."""
        column = self._column(*entering)
        direction = (self._inverse @ column)[1:]
        # Values are weights of plans and costs of slacks.
        scale = max(float(np.abs(phi).max()) for phi in self.columns)
        units = [1.0 if kind == "plan" else scale for kind, _ in self.basis[1:]]
        falls = direction > ZERO * np.array(units)
        if not falls.any():
            return False
        ratios = np.full(len(falls), np.inf)
        ratios[falls] = np.maximum(self._values[1:][falls], 0.0) / direction[falls]
        leaving = 1 + int(ratios.argmin())
        self._matrix[:, leaving] = column
        self._invert()
        self.basis[leaving] = entering
        return True

    def mixture(self) -> tuple[list[int], np.ndarray]:
        """The plans in the basis and their weights."""
        used = [
            (index, value)
            for (kind, index), value in zip(self.basis, self._values.tolist(), strict=True)
            if kind == "plan" and value > 0.0
        ]
        weights = np.array([value for _, value in used])
        return [index for index, _ in used], weights / weights.sum()
