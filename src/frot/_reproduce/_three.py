"""The three problems of figure 1: transport on clean, on noisy data, and FROT on noisy data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frot._reproduce._matching import relative_excess, shared_mass
from frot._reproduce._runs import FW_SINKHORN, Run, run
from frot._toy import TRUE, toy

__all__ = ["NAMES", "Three", "solve_exactly", "solve_like_the_paper"]

NAMES = {
    "clean": "OT on clean data",
    "noisy": "OT on noisy data",
    "frot": "FROT on noisy data (η = 1)",
}


@dataclass(frozen=True, eq=False)
class Three:
    """The runs by name, and the two true features of the points they are on."""

    x: np.ndarray
    y: np.ndarray
    runs: dict[str, Run]

    def shared(self, name: str) -> float:
        """Mass that a plan has on the same arcs as the plan on clean data."""
        return shared_mass(self.runs[name].result.plan, self.runs["clean"].result.plan)

    def excess(self, name: str) -> float:
        """Cost of a plan on the true features: 0 the best plan's, 1 that of no matching."""
        cost = ((self.x[:, None] - self.y[None]) ** 2).sum(axis=2)
        return relative_excess(self.runs[name].result.plan, self.runs["clean"].result.plan, cost)


def solve_exactly(n: int, seed: int) -> Three:
    """Solve all three to the last digits (eps = 0; eta = 1 for FROT).

    Examples
    --------
    >>> three = solve_exactly(20, 0)
    >>> round(three.shared("frot"), 6), three.shared("noisy") < 0.5
    (1.0, True)
    """
    X, Y, groups = toy(n, seed)
    x, y = X[:, :TRUE], Y[:, :TRUE]
    runs = {
        "clean": run(x, y, "all"),
        "noisy": run(X, Y, "all"),
        "frot": run(X, Y, groups, eta=1.0),
    }
    return Three(x, y, runs)


def solve_like_the_paper(n: int, seed: int) -> Three:
    """Solve all three as the paper did: eps = 0.02, FROT by algorithm 2 with eta = 1, T = 10.

    With one group the mixed cost never changes, so that algorithm 2 is Sinkhorn's algorithm.
    """
    X, Y, groups = toy(n, seed)
    x, y = X[:, :TRUE], Y[:, :TRUE]
    paper = {"eta": 1.0, "eps": 0.02, "solver": FW_SINKHORN}
    runs = {
        "clean": run(x, y, "all", **paper, max_iter=1),
        "noisy": run(X, Y, "all", **paper, max_iter=1),
        "frot": run(X, Y, groups, **paper),
    }
    return Three(x, y, runs)
