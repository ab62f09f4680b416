from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from benchmarks._fuzz.truth import Program


def test_weights_sum_to_one_exactly():
    program = Program.of_stack(
        np.zeros((1, 3, 2)), [0.1, 0.2, 0.7], np.array([0.3, 0.7], dtype=np.float32)
    )
    assert sum(program.a) == sum(program.b) == 1
    assert program.a[0] / program.a[1] == Fraction(1, 2)


def test_points_make_the_costs_of_their_groups():
    X, Y = np.array([[1e8, 0.1], [1e8 + 1.0, 0.3]]), np.array([[1e8 + 3.0, 0.1]])
    program = Program.of_points(X, Y, [[0], [0, 1]])
    assert program.costs[0] == ((9,), (4,))
    assert program.costs[1][1][0] == 4 + (Fraction(0.3) - Fraction(0.1)) ** 2
    assert 0 < program.doubt < Fraction(1, 10**50)


def test_infinite_costs_of_one_group_close_the_arc_in_all():
    program = Program.of_stack([[[1.0, np.inf]], [[2.0, 3.0]]])
    assert program.forbidden == {(0, 1)}
    assert list(program.arcs()) == [(0, 0)]


def test_support_leaves_out_points_and_arcs():
    stack = np.arange(6.0).reshape(1, 2, 3)
    stack[0, 1, 2] = np.inf
    small = Program.of_stack(stack, [0.0, 1.0], [0.5, 0.0, 0.5]).support()
    assert small.shape == (1, 1, 2)
    assert small.forbidden == {(0, 1)}
    assert small.costs[0][0][0] == 3


def test_mixtures():
    program = Program.of_stack([[[1.0]], [[4.0]]])
    assert program.mixed([[Fraction(1, 2), Fraction(1, 4)]]).costs == (((Fraction(3, 2),),),)


@pytest.mark.parametrize("size", [False, True])
def test_means(size):
    program = Program.of_stack([[[1.0, -3.0]]], None, [0.25, 0.75])
    assert program.means(size=size) == [Fraction(5, 2) if size else -2]
