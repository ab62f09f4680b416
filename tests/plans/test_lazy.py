"""Lazy plans: whatever is asked of them is what the dense plan would have said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import frot
from frot import FrankWolfe, Plan, Sinkhorn
from frot.plans.lazy import LazyPlan
from frot.solvers.sinkhorn import kernel as row_blocks_module
from tests.reference import quiet

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(13, 4)), RNG.normal(size=(9, 4)) + 0.5
A, B = RNG.dirichlet(np.ones(13)), RNG.dirichlet(np.ones(9))


def lazy(budget: float = 2e9, **options) -> LazyPlan:
    plan = frot.solve(X, Y, a=A, b=B, eta=0.1, eps=0.2, memory_budget=budget, **options).plan
    assert isinstance(plan, LazyPlan)
    return plan


def averaged() -> LazyPlan:
    solver = FrankWolfe(oracle=Sinkhorn(eps=0.2), step="paper", max_iter=5)
    plan = quiet(frot.solve, X, Y, a=A, b=B, eta=0.5, solver=solver).plan
    assert isinstance(plan, LazyPlan)
    return plan


@pytest.fixture(params=["whole", "blocks"])
def blocks(request, monkeypatch) -> str:
    """The same tests with kernels of one block, and with blocks of a row or two."""
    if request.param == "blocks":
        monkeypatch.setattr(row_blocks_module, "BLOCK_BYTES_ON_HOST", 2 * 8 * 9)
    return request.param


@pytest.mark.parametrize("make", [lazy, lambda: lazy(100), averaged], ids=["one", "stream", "five"])
def test_everything_is_what_the_dense_plan_says(make, blocks: str):
    plan = make()
    # Formed from a copy, so that this plan does not keep what it is compared with.
    whole = np.asarray(LazyPlan(plan.terms, plan.ranks))
    if blocks == "blocks":
        assert len(list(plan._blocks())) == 7
    V, U = RNG.normal(size=(9, 3)), RNG.normal(size=(13, 2))
    near: dict[str, Any] = {"rel": 1e-13, "abs": 1e-16}
    assert plan @ V == pytest.approx(whole @ V, rel=1e-12)
    assert plan @ V[:, 0] == pytest.approx(whole @ V[:, 0], rel=1e-12)
    assert pytest.approx(whole.T @ U, rel=1e-12) == plan.T @ U
    assert plan.T @ U[:, 0] == pytest.approx(whole.T @ U[:, 0], rel=1e-12)
    assert U.T @ plan == pytest.approx(U.T @ whole, rel=1e-12)
    assert U[:, 0] @ plan == pytest.approx(U[:, 0] @ whole, rel=1e-12)
    assert pytest.approx(V.T @ whole.T, rel=1e-12) == V.T @ plan.T
    assert plan.sum(axis=1) == pytest.approx(whole.sum(axis=1), **near)
    assert plan.sum(axis=0) == pytest.approx(whole.sum(axis=0), **near)
    assert plan.sum() == pytest.approx(1.0, abs=1e-13)
    assert plan.argmax().tolist() == whole.argmax(axis=1).tolist()
    assert plan.argmax(axis=0).tolist() == whole.argmax(axis=0).tolist()
    assert plan.argmax(axis=None) == whole.argmax()
    assert plan.rows(4) == pytest.approx(whole[4], **near)
    assert plan.rows([3, -1, 3]) == pytest.approx(whole[[3, -1, 3]], **near)
    assert plan.rows(A > 0.1) == pytest.approx(whole[A > 0.1], **near)
    assert plan.rows([]).shape == (0, 9)
    assert plan._formed is None
    assert plan.dense() == pytest.approx(whole, **near)
    assert plan._formed is not None
    assert plan @ V == pytest.approx(whole @ V, rel=1e-12)
    assert (plan * 2.0)[1] == pytest.approx(2.0 * whole[1])
    assert plan[2, 3] == pytest.approx(whole[2, 3])
    assert plan.T.dense() == pytest.approx(whole.T)
    assert np.asarray(plan.T) == pytest.approx(whole.T)
    assert plan.T.T is plan
    assert plan.shape == plan.T.shape[::-1] == (13, 9)
    rows, cols, mass = plan.arcs()
    assert mass == pytest.approx(whole[rows, cols])


def test_what_it_does_not_have():
    plan = lazy()
    with pytest.raises(IndexError):
        plan.rows(13)
    with pytest.raises(IndexError):
        plan.rows(-14)
    for ask in (plan.sum, plan.argmax):
        with pytest.raises(ValueError, match="axis 2 of a plan"):
            ask(axis=2)
        with pytest.raises(TypeError, match="takes no"):
            ask(out=np.zeros(9))


def test_products_do_not_form_the_plan(monkeypatch):
    plan = lazy()
    monkeypatch.setattr(LazyPlan, "_native", property(lambda self: pytest.fail("it was formed")))
    for product in (plan @ np.ones(9), plan.T @ np.ones(13), np.ones(13) @ plan):
        assert product.sum() == pytest.approx(1.0)
    plan.rows([0, 5])
    plan.sum(axis=0)
    plan.argmax(axis=0)
    repr(plan)


def test_a_large_plan_is_not_kept(monkeypatch):
    monkeypatch.setattr("frot.plans.lazy.KEEP_UP_TO", 10)
    plan = lazy()
    assert plan.dense().sum() == pytest.approx(1.0)
    assert plan._formed is None


class TestAverages:
    def test_five_steps_are_five_terms(self):
        plan = averaged()
        assert len(plan.terms) == 5
        assert "5 lazy plans" in repr(plan)
        assert sum(weight for weight, _ in plan.terms) == pytest.approx(1.0, abs=1e-6)
        assert plan.sum(axis=1) == pytest.approx(A, abs=1e-14)
        assert plan.sum(axis=0) == pytest.approx(B, abs=1e-14)

    def test_combining(self):
        one, other = lazy(), averaged()
        mixed = LazyPlan.combine([one, other, one], [0.25, 0.75, 0.0])
        assert isinstance(mixed, LazyPlan)
        assert len(mixed.terms) == 6
        expected = 0.25 * np.asarray(one) + 0.75 * np.asarray(other)
        assert np.asarray(mixed) == pytest.approx(expected, rel=1e-13)
        assert mixed.phi == pytest.approx(0.25 * one.phi + 0.75 * other.phi)

    def test_with_a_plan_that_is_not_lazy(self):
        product = Plan(np.outer(A, B))
        mixed = LazyPlan.combine([lazy(), product], [0.5, 0.5])
        assert not isinstance(mixed, LazyPlan)
        expected = 0.5 * np.asarray(lazy()) + 0.5 * np.outer(A, B)
        assert np.asarray(mixed) == pytest.approx(expected)


class TestFactors:
    """Whole numbers are numbers, and what comes back is no coarser than what went in."""

    def test_whole_numbers(self):
        tensors: dict[str, Any] = {"a": torch.tensor(A), "b": torch.tensor(B)}
        plan = frot.solve(torch.tensor(X), torch.tensor(Y), eps=0.2, **tensors).plan
        labels = torch.eye(9, dtype=torch.int64)
        assert np.asarray(plan @ labels) == pytest.approx(np.asarray(plan))
        assert (plan @ labels).dtype == torch.float64
        assert np.asarray(lazy() @ np.eye(9, dtype=int)) == pytest.approx(np.asarray(lazy()))

    def test_gradients_flow_through_a_factor(self):
        plan = frot.solve(torch.tensor(X), torch.tensor(Y), eps=0.2).plan
        V = torch.ones(9, dtype=torch.float64, requires_grad=True)
        (plan @ V).sum().backward()
        assert V.grad is not None
        assert V.grad.numpy() == pytest.approx(np.full(9, 1 / 9))

    def test_products_with_tensors_are_tensors(self):
        plan = frot.solve(torch.tensor(X), torch.tensor(Y), eps=0.2).plan
        C = torch.rand((13, 9), dtype=torch.float64)
        for product in (plan * C, C * plan, plan + C, plan / (1.0 + C)):
            assert isinstance(product, torch.Tensor)
        assert (plan * C).numpy() == pytest.approx(np.asarray(plan) * C.numpy())
        assert isinstance(torch.ones((2, 13), dtype=torch.float64) @ plan, torch.Tensor)
