"""The fuzzer: a small run of it finds nothing, and it would find what it looks for."""

from __future__ import annotations

import dataclasses
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import frot
from frot import Plan, Status

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "fuzz.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def test_a_small_run_finds_nothing():
    done = run("--n", "60", "--seed", "0")
    assert "failures 0" in done.stdout, done.stdout + done.stderr
    assert "typed errors" in done.stdout
    assert done.returncode == 0


def test_one_case_can_be_repeated():
    done = run("--seed", "0", "--only", "0")
    assert "certified, converged" in done.stdout or "typed error" in done.stdout
    assert done.returncode == 0


class TestItWouldSee:
    """Spoil a right answer in one way each; the checks must complain."""

    @pytest.fixture
    def checks(self, monkeypatch):
        monkeypatch.syspath_prepend(BENCHMARKS)
        cases = importlib.import_module("_fuzz_cases")
        checks = importlib.import_module("_fuzz_checks")
        rng = np.random.default_rng(0)
        stack = rng.random((3, 4, 5))
        a, b = np.full(4, 0.25), np.full(5, 0.2)
        options = {"solver": "linear_program"}
        case = cases.Case("solve_costs", (stack,), options, stack=stack, a=a, b=b)
        return case, checks.complaints

    @pytest.fixture
    def result(self, checks) -> frot.Result:
        return checks[0].run()

    def test_nothing_where_nothing_is_wrong(self, checks, result):
        case, complaints = checks
        assert complaints(case, result) == []

    @pytest.mark.parametrize(
        ("change", "complaint"),
        [
            (lambda r: {"value": np.nan}, "value is not finite"),
            (lambda r: {"lower": r.upper + 1e-9}, "> upper"),
            (lambda r: {"lower": r.upper + 0.1, "upper": r.upper + 0.2}, "> optimum"),
            (lambda r: {"lower": r.lower - 0.2, "upper": r.lower - 0.1}, "< optimum"),
            (lambda r: {"plan": Plan(np.asarray(r.plan)[::-1])}, "phi is off"),
            (lambda r: {"plan": Plan(np.asarray(r.plan) * (1 + 1e-9))}, "marginal a is off"),
            (lambda r: {"plan": Plan(np.asarray(r.plan)[:, :4])}, "plan has shape"),
            (lambda r: {"phi": r.phi + 1e-9}, "phi is off"),
            (lambda r: {"alpha": r.alpha * 1.001}, "alpha is off the simplex"),
            (lambda r: {"potentials": (r.potentials[0] + 1e-3, r.potentials[1])}, "infeasible"),
            (lambda r: {"status": Status.MAX_ITER}, "status MAX_ITER with gap"),
        ],
    )
    def test_it(self, checks, result, change, complaint):
        case, complaints = checks
        spoilt = dataclasses.replace(result, **change(result))
        assert complaint in "; ".join(complaints(case, spoilt))

    def test_a_mistake_that_is_accepted(self, checks):
        fuzz = importlib.import_module("fuzz")
        case = dataclasses.replace(checks[0], complaint="nothing, really")
        assert fuzz.try_case(case).kind == "FAILURE: accepted"
        assert fuzz.try_case(checks[0]).kind == "certified, converged"

    def test_an_error_of_another_type(self, checks, monkeypatch):
        fuzz = importlib.import_module("fuzz")

        def fail(*args, **options):
            raise IndexError("deep inside")

        monkeypatch.setattr(frot, "solve_costs", fail)
        assert fuzz.try_case(checks[0]).kind == "FAILURE: raised"
