"""A problem built from public names alone, and one of a user's own kind, through every solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import frot
from frot import solvers

RNG = np.random.default_rng(0)
N, M = 9, 7
X, Y = RNG.normal(size=(N, 4)), RNG.normal(size=(M, 4)) + 0.5
A, B = RNG.dirichlet(np.ones(N)), RNG.dirichlet(np.ones(M))
GROUPS = frot.Groups.parse([[0, 1], [1, 2, 3], [3]], 4)
STACK = np.stack([((X[:, None, g] - Y[:, g]) ** 2).sum(axis=2) for g in GROUPS.indices])
SOLVERS: dict[str, Any] = {
    **solvers.SOLVERS,
    "entropic": frot.Entropic(tol=1e-6),
    "frank_wolfe, sinkhorn": frot.FrankWolfe(oracle=frot.Sinkhorn(eps=0.1), tol=1e-2),
}


class Plain(frot.costs.Costs):
    """All that has to be said."""

    @property
    def shape(self) -> tuple[int, int, int]:
        return (3, N, M)

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        return np.einsum("l,lij->ij", alpha, STACK)

    def at(self, rows: Any, cols: Any) -> np.ndarray:
        return STACK[:, rows, cols]


class Signed(Plain):
    """That no cost is negative, too."""

    nonnegative = True  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]


class Rough(Plain):
    """Costs whose entries are good to six digits, and say so."""

    def rounding(self, alpha: np.ndarray) -> frot.costs.Rounding:
        return frot.costs.Rounding(0.0, np.full(N, 1e-6 * float(alpha @ self.peaks)))

    def doubt(self, phi: Any, u: Any, v: Any, entries: int | None = None) -> np.ndarray:
        return 1e-6 * self.peaks


class Elsewhere(Plain):
    """Tensors."""

    @property
    def home(self) -> Any:
        return frot.costs.Stack(torch.tensor(STACK)).home

    def mix(self, alpha: Any) -> Any:
        return (alpha[:, None, None] * torch.tensor(STACK)).sum(0)

    def at(self, rows: Any, cols: Any) -> Any:
        return torch.tensor(STACK)[:, rows, cols]


def built() -> dict[str, frot.costs.Costs]:
    home = torch.tensor(X), torch.tensor(Y)
    return {
        "points": frot.costs.build_costs(X, Y, GROUPS),
        "factored": frot.costs.Points.of(X, Y, GROUPS),
        "stack": frot.costs.Stack(STACK),
        "another library's": frot.costs.points_costs(*home, GROUPS),
        "another library's stack": frot.costs.Stack(torch.tensor(STACK)),
        "one's own on a device": Elsewhere(),
        "one's own": Plain(),
        "one's own, signed": Signed(),
    }


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", built())
@pytest.mark.parametrize("zero", [False, True])
def test_every_solver_takes_every_kind(kind: str, solver: str, zero: bool):
    eps = 0.1 if solver == "entropic" else 0.0
    a = A.copy()
    if zero:
        a[2] = 0.0
        a /= a.sum()
    adversary = frot.Simplex(eta=0.0 if eps == 0.0 and solver != "frank_wolfe" else 0.1)
    expected = frot.solve_costs(STACK, a, B, eta=adversary.eta, eps=eps, solver=SOLVERS[solver])
    problem = frot.Problem(built()[kind], a, B, adversary, eps=eps, names=GROUPS.names)
    problem = problem.support()[0]
    found = SOLVERS[solver](problem)
    close = max(2e-5, 2.0 * SOLVERS[solver].tol)
    assert float(found.value) == pytest.approx(expected.value, rel=close)
    assert float(found.lower) <= expected.upper * (1 + 1e-12)
    assert float(found.upper) >= expected.lower * (1 - 1e-12)


def test_entries_that_are_rough_widen_the_interval():
    exact = frot.Exact()(frot.Problem(Plain(), A, B))
    rough = frot.Exact(tol=1e-4)(frot.Problem(Rough(), A, B))
    assert rough.upper - rough.lower >= 1e-6 * STACK.max()
    assert rough.lower <= exact.lower
    assert rough.upper >= exact.upper


def test_what_follows_from_mix_and_at():
    """Against a stack, which says all of it itself."""
    mine, stack = Plain(), frot.costs.Stack(STACK)
    plan = frot.Plan(RNG.dirichlet(np.ones(N * M)).reshape(N, M))
    assert mine.inner(plan) == pytest.approx(stack.inner(plan))
    assert mine.product(A, B) == pytest.approx(stack.product(A, B))
    assert mine.sizes(A, B) == pytest.approx(stack.sizes(A, B))
    assert mine.peaks == pytest.approx(stack.peaks)
    rows, cols = np.array([3, 1, 4]), np.array([2, 0])
    part, expected = mine.take(rows, cols), stack.take(rows, cols)
    alpha = np.array([0.2, 0.3, 0.5])
    assert part.shape == expected.shape
    assert part.mix(alpha) == pytest.approx(expected.mix(alpha))
    assert part.at(np.array([0, 2]), np.array([1, 0])) == pytest.approx(
        expected.at(np.array([0, 2]), np.array([1, 0]))
    )
    again = part.take(np.array([2, 0]), np.array([1]))
    assert again.mix(alpha) == pytest.approx(part.mix(alpha)[[2, 0]][:, [1]])
    scaled = mine.rescaled(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5]))
    wanted = np.array([1.0, 2.0, 3.0])[:, None, None] * (
        STACK - np.array([0.0, 1.0, 0.5])[:, None, None]
    )
    assert scaled.mix(alpha) == pytest.approx(np.einsum("l,lij->ij", alpha, wanted))
    view = mine.batch()
    assert view.mix(alpha[None])[0] == pytest.approx(mine.mix(alpha))
    assert view.at(rows, cols[[0, 1, 1]])[0] == pytest.approx(mine.at(rows, cols[[0, 1, 1]]))


def test_a_class_that_says_too_little_is_refused():
    class Empty(frot.costs.Costs):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Empty()  # type: ignore[abstract]


def test_all_public_names_are_there_and_documented():
    for name in frot.costs.__all__:
        assert getattr(frot.costs, name) is not None
        if name not in ("MEMORY_BUDGET", "METRICS"):
            assert getattr(frot.costs, name).__doc__
