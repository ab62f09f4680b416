"""Ellipsoid and polytope: what is best, and what is in."""

from __future__ import annotations

import re

import numpy as np
import pytest

import frot
from frot.problem.adversary import KNOWN

RNG = np.random.default_rng(0)
VERTICES = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0]])
DISC = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
# Sets, and members drawn from them.
SETS = {
    "ball": (
        frot.Ellipsoid([1.0, 1.0, 1.0], 0.5),
        lambda u: 1.0 + 0.5 * u / max(1.0, np.linalg.norm(u)),
    ),
    "disc": (
        frot.Ellipsoid([1.0, 0.0, -1.0], DISC),
        lambda u: np.array([1.0, 0.0, -1.0]) + DISC @ (u[:2] / max(1.0, np.linalg.norm(u[:2]))),
    ),
    "point": (frot.Ellipsoid([1.0, 2.0, 3.0], 0.0), lambda u: np.array([1.0, 2.0, 3.0])),
    "polytope": (
        frot.Polytope(VERTICES),
        lambda u: np.abs([*u, 1.0]) / np.abs([*u, 1.0]).sum() @ VERTICES,
    ),
}


def test_every_set_that_messages_name_has_its_members_here():
    named = {*re.findall(r"frot\.(\w+)", KNOWN)} - {"Simplex", "CappedSimplex"}
    assert {type(weights).__name__ for weights, _ in SETS.values()} == named


@pytest.mark.parametrize("kind", SETS)
def test_nothing_in_the_set_is_better_than_the_best_answer(kind):
    weights, member = SETS[kind]
    for phi in RNG.normal(size=(30, 3)):
        value, alpha = weights.best(phi)
        assert alpha @ phi == pytest.approx(value, abs=1e-12)
        for u in RNG.normal(size=(20, 3)) * 3.0:
            assert member(u) @ phi <= value + 1e-12


def test_the_best_answer_is_in_the_set():
    ball, polytope = SETS["ball"][0], SETS["polytope"][0]
    for phi in RNG.normal(size=(30, 3)):
        assert np.linalg.norm(ball.best(phi)[1] - 1.0) == pytest.approx(0.5)
        assert (polytope.best(phi)[1] == VERTICES).all(axis=1).any()
    assert ball.best(np.zeros(3))[1].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: frot.Polytope([]), r"vertices: .*empty"),
        (lambda: frot.Polytope([1.0]), r"vertices: has shape"),
        (lambda: frot.Polytope([[np.inf]]), r"vertices: .* infinite"),
        (lambda: frot.Ellipsoid([0.0], np.ones((2, 2))), r"shape: has 2 rows"),
    ],
)
def test_sets_that_are_none(make, message):
    with pytest.raises(frot.InputError, match=message):
        make()
