"""Which solver "auto" takes, and how one is asked for."""

from __future__ import annotations

from typing import Any

import pytest

import frot
from frot import Entropic, Exact, FrankWolfe, LinearProgram, NetworkSimplex
from frot._prepare import check_terms
from frot._solvers._choose import Limits, Solver, choose_solver
from frot._solvers._exact import SMOOTH_GROUPS


def chosen(
    solver: Any,
    *,
    groups: int = 3,
    eta: float = 0.0,
    eps: float = 0.0,
    limits: Limits | None = None,
) -> Solver:
    shape = (groups, 2, 2)
    terms = check_terms(shape, None, None, eta, eps, None, "none", False)
    return choose_solver(solver, shape, terms, limits or Limits())


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
    limited = chosen(Exact(tol=1e-3), limits=Limits(max_iter=7, time_limit=2.0))
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
    class Lazy:
        tol, max_iter, time_limit = 1.0, 1, None

        def __call__(self, problem, start=None, callback=None, progress=False):
            return "answer"

        def check(self, shape, eta, eps):
            """Take everything."""

    lazy = Lazy()
    assert chosen(lazy) is lazy
