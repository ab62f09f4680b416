"""Lazy plans compute a block at a time, and the whole only where it is asked for."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from frot import LazyPlan
from frot._base.arrays import to_numpy
from frot.plans.lazy import _runs
from frot.solvers.entropic import kernel as row_blocks_module
from tests.plans.test_plan import LAZY, MAKERS, M, N, lazy


@pytest.mark.parametrize("name", LAZY)
def test_what_is_asked_of_a_part_does_not_form_the_whole(name, monkeypatch):
    plan = MAKERS[name][1]()
    monkeypatch.setattr(LazyPlan, "_native", lambda self: pytest.fail("it was formed"))
    for turned in (plan, plan.T):
        n, m = turned.shape
        turned.rows([0, 2])
        for axis in (0, 1):
            turned.sum(axis=axis)
            turned.argmax(axis=axis)
        for product in (turned @ np.ones(m), np.ones(n) @ turned, turned.T @ np.ones(n)):
            assert to_numpy(product).sum() == pytest.approx(1.0, rel=1e-6)
        assert "lazy" in repr(turned)


def test_a_sum_takes_no_more_memory_than_a_block(monkeypatch):
    """Blocks that were looked at are not held on to."""
    monkeypatch.setattr(row_blocks_module, "BLOCK_BYTES_ON_HOST", 8 * M)
    plan, held, most = lazy(), set(), []

    class Block(np.ndarray):
        def __del__(self) -> None:
            held.discard(id(self))

    compute = LazyPlan._blocks

    def counted(self, parts=None):
        for part, whole in compute(self, parts):
            block = whole.view(Block)
            held.add(id(block))
            most.append(len(held))
            yield part, block
            del block

    monkeypatch.setattr(LazyPlan, "_blocks", counted)
    for ask in (lambda: plan.T.rows(1), plan.sum, lambda: plan @ np.ones(M)):
        most.clear()
        ask()
        assert len(most) == N
        assert max(most) <= 2


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 5))
def test_runs_are_the_rows_in_their_order(rows, most):
    parts = _runs(np.array(rows, dtype=int), most) if rows else []
    assert [row for part in parts for row in range(part.start, part.stop)] == rows
    assert all(part.stop - part.start <= most for part in parts)


def test_runs_are_as_long_as_they_can_be():
    assert _runs(np.arange(10), 4) == [slice(0, 4), slice(4, 8), slice(8, 10)]
