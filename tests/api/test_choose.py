"""Which solver "auto" takes, and how one is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import frot
from frot import Entropic, Exact, FrankWolfe, LinearProgram, NetworkSimplex
from frot._base.arrays import Home
from frot.api.solve import choose_solver, on_accelerator, refuse_exact
from frot.problem.options import check_problem
from frot.solvers import Solver
from frot.solvers.exact.exact import SMOOTH_GROUPS


def chosen(
    solver: Any,
    *,
    groups: int = 3,
    eta: float = 0.0,
    eps: float = 0.0,
    **limits: Any,
) -> Solver:
    shape = (groups, 2, 2)
    terms = check_problem(shape, None, None, eta, eps, None, "none", False)
    return choose_solver(solver, shape, terms, **limits)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Exact()),
        ({"eta": 0.1}, Exact()),
        ({"groups": SMOOTH_GROUPS + 1}, Exact()),
        ({"groups": SMOOTH_GROUPS, "eta": 0.1}, Exact()),
        ({"groups": SMOOTH_GROUPS + 1, "eta": 0.1}, FrankWolfe(oracle=NetworkSimplex())),
        ({"eps": 0.1}, Entropic()),
        ({"eps": 0.1, "eta": 0.1}, Entropic()),
    ],
)
def test_auto(settings, expected):
    assert chosen("auto", **settings) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("exact", Exact()), ("frank_wolfe", FrankWolfe()), ("linear_program", LinearProgram())],
)
def test_names(name, expected):
    assert chosen(name) == expected


def test_limits_are_put_in():
    assert chosen(Exact(tol=1e-3)) == Exact(tol=1e-3)
    limited = chosen(Exact(tol=1e-3), max_iter=7, time_limit=2.0)
    assert limited == Exact(tol=1e-3, max_iter=7, time_limit=2.0)


def test_limits_of_an_instance_are_checked_too():
    with pytest.raises(frot.InputError, match="tol: must be finite and >= 0, got -1"):
        chosen(Exact(tol=-1.0))
    with pytest.raises(frot.InputError, match="max_iter"):
        chosen(FrankWolfe(max_iter=0))


def test_too_many_groups_for_the_smooth_exact_solver():
    with pytest.raises(frot.InputError, match=r"Exact takes at most \d+ groups where eta > 0"):
        chosen("exact", groups=SMOOTH_GROUPS + 1, eta=0.1)


def test_a_solver_of_ones_own():
    class Own(Exact):
        """Takes what `Exact` takes."""

    assert isinstance(chosen(Own(tol=1.0)), Own)
    with pytest.raises(
        frot.InputError, match=r"solver: Exact is a class; pass a name, or a solver"
    ):
        chosen(Exact)
    with pytest.raises(frot.InputError, match=r"solver: <.*derives from frot\.solvers\.Solver"):
        chosen(lambda problem: None)


class TestEpsLeftOut:
    """eps is 0 where it is left out; what cannot be solved so is refused, not changed."""

    points = np.random.default_rng(0).normal(size=(9, 3))

    def test_small_problems_are_exact(self):
        result = frot.solve(self.points, self.points[:4])
        assert result.solver.startswith("Exact")
        assert result.eps == 0.0

    @pytest.mark.parametrize("options", [{}, {"eps": 0.0}, {"eps": 0}, {"eps": frot.relative(0.0)}])
    def test_large_ones_are_refused(self, options):
        # Refused before any work: the stack would be 290 MB, of zero strides here.
        costs = np.broadcast_to(1.0, (1, 6_001, 6_000))
        with pytest.raises(frot.InputError, match=r"6001 x 6000.*eps=frot\.relative\(0\.02\)"):
            frot.solve_costs(costs, **options)
        points = np.zeros((6_001, 2))
        for door in (frot.solve, frot.distance):
            with pytest.raises(frot.InputError, match="another objective"):
                door(points, points[1:], **options)
        with pytest.raises(frot.InputError, match=r"^eps: is 0.*another objective"):
            frot.pairwise([points, points[1:]], **options)

    def test_a_device_is_refused(self):
        torch = pytest.importorskip("torch")
        terms = check_problem((1, 2, 2))
        elsewhere = on_accelerator(Home.of(torch.zeros(1, device="meta")))
        with pytest.raises(frot.InputError, match=r"on a device.*eps=frot\.relative\(0\.02\)"):
            refuse_exact((1, 2, 2), terms, elsewhere)

    def test_a_line_is_sorted_however_long(self):
        x = np.random.default_rng(2).normal(size=(6_001, 1))
        assert frot.distance(x, x[1:] + 1.0) == pytest.approx(1.0, abs=1e-2)
        with pytest.raises(frot.InputError, match="another objective"):
            frot.solve(x, x, tau=1.0)

    def test_a_number_is_obeyed(self, monkeypatch):
        for most in (0, 10**9):
            monkeypatch.setattr("frot.api.solve.EXACT_UP_TO", most)
            costs = np.random.default_rng(1).random((2, 3, 3))
            assert frot.solve_costs(costs, eps=0.1).eps == 0.1
            assert frot.solve_costs(costs, eps=0.1).solver.startswith("Entropic")

    def test_a_solver_that_is_named_is_taken(self, monkeypatch):
        monkeypatch.setattr("frot.api.solve.EXACT_UP_TO", 0)
        result = frot.solve(self.points, self.points[:4], solver="exact")
        assert result.solver.startswith("Exact")
        with pytest.raises(frot.InputError, match="eps: Entropic needs eps > 0"):
            frot.solve(self.points, self.points[:4], solver="entropic")

    def test_what_has_no_eps_is_not_refused(self, monkeypatch):
        monkeypatch.setattr("frot.api.solve.EXACT_UP_TO", 0)
        costs = np.random.default_rng(1).random((2, 3, 3))
        assert frot.solve_costs(costs, tau=1.0, penalty="tv").eps == 0.0
        assert frot.solve_costs(costs, adversary=frot.Ellipsoid([1.0, 1.0], 0.5)).eps == 0.0
