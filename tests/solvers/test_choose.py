"""Which solver "auto" takes, and how one is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import frot
from frot import Exact, FrankWolfe, LinearProgram, NetworkSimplex, Problem, Simplex, Sinkhorn
from frot._costs import StackedCosts
from frot._solvers._choose import choose_solver
from frot._solvers._exact import SMOOTH_GROUPS


def problem(groups: int = 3, eta: float = 0.0, eps: float = 0.0) -> Problem:
    half = np.full(2, 0.5)
    return Problem(StackedCosts(np.ones((groups, 2, 2))), half, half, Simplex(eta), eps)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Exact()),
        ({"eta": 0.1}, Exact()),
        ({"groups": SMOOTH_GROUPS + 1}, Exact()),
        ({"groups": SMOOTH_GROUPS, "eta": 0.1}, Exact()),
        ({"groups": SMOOTH_GROUPS + 1, "eta": 0.1}, FrankWolfe(oracle=NetworkSimplex())),
        ({"eps": 0.1}, FrankWolfe(oracle=Sinkhorn())),
        ({"eps": 0.1, "eta": 0.1}, FrankWolfe(oracle=Sinkhorn())),
    ],
)
def test_auto(settings, expected):
    assert choose_solver("auto", problem(**settings)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("exact", Exact()),
        ("frank_wolfe", FrankWolfe()),
        ("linear_program", LinearProgram()),
    ],
)
def test_names(name, expected):
    assert choose_solver(name, problem()) == expected


def test_limits_are_put_in():
    assert choose_solver(Exact(tol=1e-3), problem()) == Exact(tol=1e-3)
    chosen = choose_solver(Exact(tol=1e-3), problem(), max_iter=7, time_limit=2.0)
    assert chosen == Exact(tol=1e-3, max_iter=7, time_limit=2.0)


def test_limits_of_an_instance_are_checked_too():
    with pytest.raises(frot.InputError, match="tol: must be finite and >= 0, got -1"):
        choose_solver(Exact(tol=-1.0), problem())
    with pytest.raises(frot.InputError, match="max_iter"):
        choose_solver(FrankWolfe(max_iter=0), problem())


def test_too_many_groups_for_the_smooth_exact_solver():
    with pytest.raises(frot.InputError, match=r"Exact takes at most \d+ groups where eta > 0"):
        choose_solver("exact", problem(groups=SMOOTH_GROUPS + 1, eta=0.1))


def test_a_solver_of_ones_own():
    class Lazy:
        tol, max_iter, time_limit = 1.0, 1, None

        def __call__(self, problem, start=None, callback=None, progress=False):
            return "answer"

        def check(self, problem):
            """Take everything."""

    lazy = Lazy()
    assert choose_solver(lazy, problem()) is lazy
