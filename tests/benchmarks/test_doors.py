"""Cases: the same ones for the same numbers, well-formed, and Python that makes them again."""

from __future__ import annotations

import numpy as np
import pytest

import frot
from benchmarks._fuzz.case import Case
from benchmarks._fuzz.doors import KINDS, draw_case, taxi
from benchmarks._fuzz.options import stop_at_second
from benchmarks._fuzz.outside import OUTSIDE, outside_case
from benchmarks._fuzz.truth import transport

NAMES = {"np": np, "frot": frot, "taxi": taxi, "stop_at_second": stop_at_second}


def arrays(case: Case) -> list[np.ndarray]:
    return [part for part in case.args if isinstance(part, np.ndarray)]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_stand_for_cases(kind):
    one, same, other = (draw_case(np.random.default_rng([0, k]), kind) for k in (5, 5, 6))
    assert one.code() == same.code()
    assert one.code() != other.code()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "time limit"])
def test_problems_are_meant_as_they_are_passed(kind):
    for number in range(6):
        case = draw_case(np.random.default_rng([1, number]), kind)
        assert case.kind == kind
        for problem in case.problems:
            program = problem.program
            assert program.shape == problem.shape
            assert sum(program.a) == sum(program.b) == 1
            assert transport(program).mass


@pytest.mark.parametrize("kind", ["plain points", "metrics", "big costs", "single point"])
def test_code_makes_the_call_again(kind, monkeypatch):
    for number in range(8):
        case = draw_case(np.random.default_rng([2, number]), kind)
        if case.door in ("FRWDLoss", "divergence", "cutting_set"):
            continue
        seen = []

        def record(*args, seen=seen, **options):
            seen.append((args, options))

        with monkeypatch.context() as patch:
            patch.setattr(frot, case.door, record)
            case.run()
            eval(case.code(), NAMES)
        (args, options), (again, same) = seen
        assert options.keys() == same.keys()
        for one, other in zip(args, again, strict=True):
            np.testing.assert_array_equal(one, other)
        for name in ("a", "b", "eta", "eps", "prior", "groups", "start"):
            np.testing.assert_equal(options.get(name), same.get(name))


def test_code_of_a_loss_names_tensors():
    case = Case("plain points", "FRWDLoss", (np.ones((1, 1)), np.ones((1, 1)), None, None))
    made = "torch.as_tensor(np.array([[1.]]))"
    assert case.code() == f"frot.torch.FRWDLoss()({made}, {made}, None, None)"


def test_every_call_outside_is_drawn_and_has_a_sentence():
    drawn = {outside_case(np.random.default_rng(seed)).sentence for seed in range(2000)}
    assert drawn == {sentence for _, _, sentence in OUTSIDE.values()}
