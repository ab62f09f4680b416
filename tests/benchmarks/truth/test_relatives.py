from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from benchmarks._fuzz.truth import Program, optimum, transport
from benchmarks._fuzz.truth.partial import partial
from benchmarks._fuzz.truth.relatives import capped, equitable, max_min, polytope


def draw(seed: int, count: int = 3) -> Program:
    rng = np.random.default_rng(seed)
    return Program.of_stack(
        rng.random((count, 4, 5)), rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(5))
    )


@pytest.mark.parametrize("seed", range(5))
def test_choosing_first_is_worth_less(seed):
    program = draw(seed)
    robust = optimum(program)
    first = max_min(program)
    assert first.high <= robust.high
    assert max_min(program.only([1])) == optimum(program.only([1]))


@pytest.mark.parametrize("seed", range(5))
def test_a_given_mass_is_a_part_of_the_whole(seed):
    program = draw(seed)
    values = [partial(program, mass).high for mass in (0.25, 0.5, 0.75, 1.0)]
    assert values[-1] == optimum(program).high
    assert values == sorted(values)
    # Convex in the mass, and of twice the mass twice the optimum.
    assert values[1] <= (values[0] + values[2]) / 2
    assert partial(program, 1.0, (2, 2)).high == 2 * values[1]


@pytest.mark.parametrize("costs", [(1.0, 3.0), (2.0, 2.0, 2.0), (0.0, 5.0)])
def test_agents_at_one_point_share_by_their_costs(costs):
    found = equitable(Program.of_stack([[[cost]] for cost in costs]))
    free = 0.0 in costs
    assert found.high == (0 if free else 1 / sum(1 / Fraction(cost) for cost in costs))


@pytest.mark.parametrize("seed", range(5))
def test_sharing_costs_less_than_any_one_pays(seed):
    program = draw(seed)
    alone = [optimum(program.only([group])).high for group in range(3)]
    shared = equitable(program).high
    assert shared <= min(alone)
    # Each of three could carry a third of its own best plan.
    assert shared <= max(alone) / 3
    assert equitable(program.only([0])).high == alone[0]


@pytest.mark.parametrize("seed", range(5))
def test_sets_between_the_simplex_and_the_mean(seed):
    program = draw(seed)
    values = [polytope(program, capped(3, k)).high for k in (1, 2, 3)]
    assert values[0] == transport(program).value
    third = [Fraction(1, 3)] * 3
    assert values[2] == transport(program.mixed([third])).value
    assert values == sorted(values, reverse=True)
