"""The linear program on some arcs."""

from __future__ import annotations

import numpy as np
import pytest

from frot._base.stopping import DeadlineError, deadline
from frot.solvers.exact.vertex import solve_vertex
from tests.reference import linear_program

RNG = np.random.default_rng(0)
STACK = RNG.random((3, 6, 5))
A, B = np.full(6, 1 / 6), np.full(5, 1 / 5)
ROWS, COLS = np.divmod(np.arange(30), 5)


@pytest.mark.parametrize("method", ["simplex", "ipm"])
@pytest.mark.parametrize("presolve", [True, False])
def test_all_arcs_give_the_optimum(method, presolve):
    flat = STACK.reshape(3, -1)
    found = solve_vertex(A, B, ROWS, COLS, flat, method=method, presolve=presolve)
    assert found is not None
    assert (flat @ found.mass).max() == pytest.approx(linear_program(STACK, A, B), rel=1e-8)
    assert found.alpha.sum() == pytest.approx(1.0, rel=1e-12)
    assert np.bincount(ROWS, found.mass) == pytest.approx(A, abs=1e-9)
    assert np.count_nonzero(found.mass > 1e-12) <= 6 + 5 + 3


def test_arcs_that_admit_no_plan():
    keep = COLS != 2
    costs = STACK.reshape(3, -1)[:, keep]
    assert solve_vertex(A, B, ROWS[keep], COLS[keep], costs) is None


def test_no_time():
    rng = np.random.default_rng(1)
    rows, cols = np.divmod(np.arange(150 * 150), 150)
    uniform = np.full(150, 1 / 150)
    with deadline(1e-3), pytest.raises(DeadlineError):
        solve_vertex(uniform, uniform, rows, cols, rng.random((8, 150 * 150)))
