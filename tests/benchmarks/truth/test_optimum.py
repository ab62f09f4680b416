"""The referee against closed forms, invariances, and itself by other roads."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from benchmarks._fuzz.truth import NoPlanError, Program, Truth, optimum, transport
from benchmarks._fuzz.truth.linear import inner
from benchmarks._fuzz.truth.numbers import exact, exactly, to_mp
from benchmarks._fuzz.truth.program import weights
from tests.reference import sinkhorn_plan

AMOUNTS = [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2), (0.3, 0.2), (1e-9, 0.0), (0.0, 1e-4), (50.0, 30.0)]
NARROW = 1e-15


def draw(seed: int, shape: tuple[int, int, int] = (3, 4, 5)) -> tuple[np.ndarray, Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.random(shape), rng.dirichlet(np.ones(shape[1])), rng.dirichlet(np.ones(shape[2]))


def close(one: Truth, other: Truth, rel: float = 1e-15) -> bool:
    """Whether two intervals may hold the same number, but for a rounding of the problem."""
    slack = exact(rel) * max(abs(one.high), abs(other.high), exact(1e-30))
    return one.low - slack <= other.high and other.low - slack <= one.high


@pytest.mark.parametrize("eta", [0.1, 1.0, 1e-3, 1e4])
def test_one_plan_is_all_there_is(eta):
    # With one point on a side phi is known, and G is a logarithm of exponentials.
    stack, _, b = draw(0, (3, 1, 4))
    shares = weights(b, 4)
    phi = [inner(shares, exactly(group[0])) for group in stack]
    with mpmath.workdps(80):
        unit = mpmath.mpf(eta)
        expected = unit * mpmath.log(mpmath.fsum(mpmath.exp(to_mp(x) / unit) for x in phi))
        found = optimum(Program.of_stack(stack, None, b), eta=eta, eps=0.7)
        assert to_mp(found.low) <= expected <= to_mp(found.high)
        assert found.width < 1e-40


@pytest.mark.parametrize("eps", [1e-3, 0.1, 1.0, 1e5])
def test_two_points_swapped(eps):
    # min over x of 2x + eps KL is -eps log((1 + exp(-1/eps)) / 2).
    found = optimum(Program.of_stack([[[0.0, 1.0], [1.0, 0.0]]]), eps=eps)
    with mpmath.workdps(80):
        unit = mpmath.mpf(eps)
        expected = -unit * mpmath.log((1 + mpmath.exp(-1 / unit)) / 2)
        assert to_mp(found.low) <= expected <= to_mp(found.high)
    assert found.width < NARROW


@pytest.mark.parametrize("eta", [1e-6, 0.5, 1e3])
def test_groups_that_mirror_each_other(eta):
    # By symmetry the plan is a b^T and the weights are equal.
    stack = [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    found = optimum(Program.of_stack(stack), eta=eta)
    with mpmath.workdps(80):
        expected = mpmath.mpf(0.5) + mpmath.mpf(eta) * mpmath.log(2)
        assert to_mp(found.low) <= expected <= to_mp(found.high)
    assert found.width < NARROW


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("eps", [0.05, 0.5])
def test_sinkhorn_agrees(seed, eps):
    stack, a, b = draw(seed, (1, 4, 5))
    plan = sinkhorn_plan(stack[0], a, b, eps)
    value = (plan * stack[0]).sum() + eps * (plan * np.log(plan / np.outer(a, b))).sum()
    assert value == pytest.approx(float(optimum(Program.of_stack(stack, a, b), eps=eps)), rel=1e-9)


@pytest.mark.parametrize(("eta", "eps"), AMOUNTS)
def test_units_do_not_matter(eta, eps):
    stack, a, b = draw(1)
    small = optimum(Program.of_stack(stack, a, b), eta, eps)
    large = optimum(Program.of_stack(2.0**40 * stack, a, b), 2.0**40 * eta, 2.0**40 * eps)
    assert close(Truth(small.low * 2**40, small.high * 2**40), large)
    assert small.width < NARROW


@pytest.mark.parametrize(("eta", "eps"), AMOUNTS)
def test_a_constant_is_added(eta, eps):
    stack, a, b = draw(2)
    # Eighths, so that nothing is rounded.
    stack = np.round(8.0 * stack) / 8.0
    found = optimum(Program.of_stack(stack, a, b), eta, eps)
    moved = optimum(Program.of_stack(stack + 2.0, a, b), eta, eps)
    assert close(Truth(found.low + 2, found.high + 2), moved)


@pytest.mark.parametrize(("eta", "eps"), AMOUNTS)
def test_sides_and_orders_do_not_matter(eta, eps):
    stack, a, b = draw(3)
    found = optimum(Program.of_stack(stack, a, b), eta, eps)
    assert close(found, optimum(Program.of_stack(stack.transpose(0, 2, 1), b, a), eta, eps))
    assert close(found, optimum(Program.of_stack(stack[::-1, ::-1], a[::-1], b), eta, eps))


@pytest.mark.parametrize(("eta", "eps"), AMOUNTS)
def test_a_point_may_be_split(eta, eps):
    stack, a, b = draw(4)
    halves = np.concatenate([[a[0] / 2.0, a[0] / 2.0], a[1:]])
    split = np.concatenate([stack[:, :1], stack], axis=1)
    found = optimum(Program.of_stack(stack, a, b), eta, eps)
    assert close(found, optimum(Program.of_stack(split, halves, b), eta, eps))


@pytest.mark.parametrize(("eta", "eps"), [(0.3, 0.0), (0.3, 0.2), (50.0, 0.1)])
def test_copies_of_groups_are_a_prior(eta, eps):
    stack, a, b = draw(5)
    copies = stack[[0, 0, 1, 2, 2, 2]]
    found = optimum(Program.of_stack(copies, a, b), eta, eps)
    weighed = optimum(Program.of_stack(stack, a, b), eta, eps, prior=[2.0, 1.0, 3.0])
    with mpmath.workdps(80):
        shift = exact(mpmath.mpf(eta) * mpmath.log(6))
    assert close(Truth(weighed.low + shift, weighed.high + shift), found)
    # Nearly the same, which is not merged, is nearly the same.
    noisy = copies * (1.0 + 1e-12 * np.random.default_rng(0).normal(size=copies.shape))
    assert close(found, optimum(Program.of_stack(noisy, a, b), eta, eps), rel=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_entropies_bound_what_they_change(seed):
    stack, a, b = draw(seed)
    program = Program.of_stack(stack, a, b)
    plain = transport(program).value
    eta, eps = 0.05, 0.03
    smooth, entropic = optimum(program, eta), optimum(program, 0.0, eps)
    assert plain <= smooth.high <= plain + exact(eta * np.log(3.0)) + exact(1e-12)
    assert plain <= entropic.high <= plain + exact(eps * np.log(20.0) * 2.0)
    both = optimum(program, eta, eps)
    assert both.high >= max(smooth.low, entropic.low)


@pytest.mark.parametrize("eta", [1e-15, 1e-12])
def test_a_vanishing_eta_leaves_the_linear_program(eta):
    stack, a, b = draw(6)
    program = Program.of_stack(stack, a, b)
    found, plain = optimum(program, eta), transport(program).value
    assert plain <= found.high
    assert found.low <= plain + exact(eta) * 2


HARD = {
    "light": lambda rng: (rng.random((2, 5, 6)), np.array([1e-300, 1e-12, 0.3, 0.3, 0.4]), None),
    "light on both sides": lambda rng: (
        rng.random((2, 3, 3)),
        np.array([1e-300, 1e-9, 1.0]),
        np.array([1.0, 1e-300, 1e-14]),
    ),
    "dear": lambda rng: (
        np.where(rng.random((3, 6, 6)) < 0.3, 1e12, rng.random((3, 6, 6))), None, None,
    ),
    "ties": lambda rng: (rng.integers(0, 3, (4, 5, 5)).astype(float), None, None),
    "signed": lambda rng: (rng.normal(size=(3, 6, 4)), rng.dirichlet(np.ones(6)), None),
    "scales": lambda rng: (
        rng.random((3, 5, 5)) * 10.0 ** np.array([-8.0, 0.0, 8.0])[:, None, None], None, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("eta", [0.0, 1e-9, 0.1, 1e6])
@pytest.mark.parametrize("eps", [0.0, 1e-5, 0.1, 1e6])
def test_hard_problems_have_narrow_bounds(kind, eta, eps):
    stack, a, b = HARD[kind](np.random.default_rng(0))
    unit = float(np.abs(stack).mean())
    found = optimum(Program.of_stack(stack, a, b), eta * unit, eps * unit)
    assert found.low <= found.high
    assert found.width < NARROW


@pytest.mark.parametrize(("eta", "eps"), AMOUNTS)
def test_forbidden_arcs(eta, eps):
    stack, _, _ = draw(7, (2, 4, 4))
    stack[0, ~np.eye(4, dtype=bool)] = np.inf
    found = optimum(Program.of_stack(stack), eta, eps)
    # The diagonal is the only plan; its divergence from the product is log 4.
    phi = np.diagonal(stack, axis1=1, axis2=2).mean(axis=1)
    worst = phi.max() if eta == 0.0 else eta * np.log(np.exp((phi - phi.max()) / eta).sum())
    worst += 0.0 if eta == 0.0 else phi.max()
    assert float(found) == pytest.approx(worst + eps * np.log(4.0), rel=1e-13)
    stack[:, 0] = np.inf
    with pytest.raises(NoPlanError):
        optimum(Program.of_stack(stack), eta, eps)


def test_doubt_about_costs_is_doubt_about_the_optimum():
    stack, a, b = draw(8)
    program = Program.of_stack(stack, a, b)
    vague = dataclasses.replace(program, doubt=Fraction(1, 100))
    for eta in (0.0, 0.1):
        sure, unsure = optimum(program, eta), optimum(vague, eta)
        assert unsure.low == sure.low - Fraction(1, 100)
        assert unsure.high == sure.high + Fraction(1, 100)


class TestMisses:
    truth = Truth(Fraction(1), Fraction(1) + Fraction(1, 10**20))

    @pytest.mark.parametrize("interval", [(1.0, 1.0), (0.5, 2.0), (1.0, 1.0 + 1e-16)])
    def test_nothing(self, interval):
        assert self.truth.misses(*interval) == 0.0

    @pytest.mark.parametrize(
        ("interval", "miss"),
        [((0.5, 0.75), 0.25), ((2.0, 3.0), 1.0), ((1.0 + 2.0**-52, 2.0), 2.0**-52)],
    )
    def test_by_how_much(self, interval, miss):
        assert self.truth.misses(*interval) == pytest.approx(miss, rel=1e-3)
