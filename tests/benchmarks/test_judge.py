"""The judge: it has nothing to say of right answers, and sees what is spoilt in one way each."""

from __future__ import annotations

import dataclasses
import os
import warnings
from typing import Any

import numpy as np
import pytest

import frot
from benchmarks._fuzz.attempt import Attempt, make_attempt
from benchmarks._fuzz.case import Case, CostProblem, PointProblem
from benchmarks._fuzz.evidence import Evidence
from benchmarks._fuzz.judge import judge, judge_manners
from frot import Plan, Status


def clouds() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(4, 3)), rng.normal(size=(5, 3)) + 0.5


X, Y = clouds()


def cost_case(door: str = "solve_costs", **options: Any) -> Case:
    rng = np.random.default_rng(0)
    stack = rng.random((3, 4, 5))
    return Case("plain costs", door, (stack,), options, (CostProblem(stack),))


def point_case(door: str = "solve", **options: Any) -> Case:
    metric = {name: options[name] for name in ("metric", "p") if name in options}
    problem = PointProblem(X, Y, [[0], [1], [2]], **metric)
    return Case("plain points", door, (X, Y), options, (problem,))


def words(case: Case, answer: Any, **attempt: Any) -> set[str]:
    """What the judge says of an answer."""
    return {found.what for found in judge(case, Attempt(answer, **attempt)).complaints}


RIGHT = {
    "costs": cost_case(),
    "smooth costs": cost_case(eta=0.1),
    "points": point_case(),
    "a prior": point_case(eta=0.2, prior=np.array([1.0, 2.0, 3.0])),
    "a distance": point_case("distance", metric="euclidean", p=2.0),
    "Wasserstein": dataclasses.replace(
        point_case("wasserstein", metric="euclidean", p=1.0),
        problems=(
            PointProblem(X, Y, [[0, 1, 2]], metric="euclidean", p=1.0),
        ),
    ),
    "max_min": point_case("max_min"),
    "equitable": cost_case("equitable"),
    "cutting_set": cost_case("cutting_set", adversary=frot.CappedSimplex(2)),
    "a mass": cost_case(mass=0.6),
    "a mass with eta": cost_case(mass=0.6, eta=0.1),
    "a hull": cost_case(
        "cutting_set", adversary=frot.Polytope([[1.0, 0.1, 0.2], [0.2, 1.0, 0.5]])
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", RIGHT)
def test_right_answers_are_right(kind):
    case = RIGHT[kind]
    verdict = judge(case, make_attempt(case))
    assert verdict.complaints == ()
    assert verdict.outcome == "converged"


@pytest.fixture(scope="module")
def result() -> frot.Result:
    return cost_case().run()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda r: {"value": np.nan}, "not finite"),
        (lambda r: {"lower": r.upper + 1e-9}, "interval"),
        (lambda r: {"lower": r.upper + 0.1, "upper": r.upper + 0.2}, "wrong"),
        (lambda r: {"lower": r.lower - 0.2, "upper": r.lower - 0.1}, "wrong"),
        (lambda r: {"lower": r.upper * (1.0 + 1e-15), "upper": 1.0}, "wrong"),
        (lambda r: {"value": r.upper * (1.0 + 1e-9)}, "value"),
        (lambda r: {"value": r.lower * (1.0 - 1e-9)}, "value"),
        (lambda r: {"plan": Plan(np.asarray(r.plan)[::-1])}, "phi"),
        (lambda r: {"plan": Plan(np.asarray(r.plan) * (1.0 + 1e-13))}, "plan"),
        (lambda r: {"plan": Plan(np.asarray(r.plan) - 1e-18)}, "plan"),
        (lambda r: {"plan": Plan(np.asarray(r.plan)[:, :4])}, "plan shape"),
        (lambda r: {"phi": r.phi + 1e-9}, "phi"),
        (lambda r: {"alpha": r.alpha * 1.001}, "alpha"),
        (lambda r: {"potentials": (r.potentials[0] + 1e-3, r.potentials[1])}, "potentials"),
        (lambda r: {"potentials": (r.potentials[0] - 1e-3, r.potentials[1])}, "potentials"),
        (lambda r: {"status": Status.MAX_ITER}, "status"),
        (lambda r: {"lower": r.lower - 1e-4}, "status"),
        (lambda r: {"lower": r.lower / 2.0, "status": Status.STALLED}, "status"),
        (lambda r: {"eta": 0.1}, "wrong"),
    ],
)
def test_spoilt_results(result, change, word):
    case = cost_case()
    assert words(case, result) == set()
    assert word in words(case, dataclasses.replace(result, **change(result)))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda r: {"lower": r.upper + 0.1, "upper": r.upper + 0.2}, "wrong"),
        (lambda r: {"plain": (r.upper, r.upper + 0.1)}, "wrong"),
        (lambda r: {"potentials": (r.potentials[0] + 1e-2, r.potentials[1])}, "potentials"),
        (lambda r: {"value": r.value - 1e-3 * abs(r.value)}, "value"),
    ],
)
def test_spoilt_entropic_results(change, word):
    case = cost_case(eps=0.1)
    found = case.run()
    assert word not in words(case, found)
    assert word in words(case, dataclasses.replace(found, **change(found)))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda r: {"lower": r.upper + 1e-9, "upper": r.upper + 2e-9}, "wrong"),
        (lambda r: {"lower": r.lower - 2e-9, "upper": r.lower - 1e-9}, "wrong"),
        (lambda r: {"plan": Plan(np.asarray(r.plan) * (1.0 - 1e-12))}, "plan"),
        (lambda r: {"plan": Plan(np.full((4, 5), 0.6 / 20) * [2, 2, 0.5, 0.25, 0.25])}, "plan"),
        (lambda r: {"plan": Plan(np.asarray(r.plan) - 1e-18)}, "plan"),
        (lambda r: {"phi": r.phi + 1e-9}, "phi"),
        (lambda r: {"potentials": (r.potentials[0] + 1e-3, r.potentials[1])}, "potentials"),
        (lambda r: {"potentials": (np.zeros(4), r.potentials[1])}, "potentials"),
    ],
)
def test_spoilt_results_of_a_given_mass(change, word):
    case = cost_case(mass=0.6)
    found = case.run()
    assert words(case, found) == set()
    assert word in words(case, dataclasses.replace(found, **change(found)))


def test_the_last_unit_of_a_light_weight_counts():
    case = point_case(a=np.array([1e-12, 0.5, 0.25, 0.25 - 1e-12]))
    case = dataclasses.replace(
        case, problems=(dataclasses.replace(case.problems[0], a=case.options["a"]),)
    )
    found = case.run()
    plan = np.array(found.plan)
    plan[0] *= 1.0 + 1e-13
    assert "plan" in words(case, dataclasses.replace(found, plan=Plan(plan)))


@pytest.mark.parametrize("off", [1e-7, -1e-7])
def test_spoilt_distances(off):
    case = RIGHT["a distance"]
    value = case.run()
    assert words(case, value) == set()
    assert words(case, value * (1.0 + off)) == {"wrong"}
    warned = judge(case, Attempt(value * (1.0 + off), warned=("not there yet",)))
    assert warned.outcome == "wide"
    assert words(case, float("nan")) == {"not finite"}


def test_spoilt_tables_of_distances():
    rng = np.random.default_rng(0)
    clouds = [rng.normal(size=(k, 2)) for k in (2, 3, 2)]
    pairs = [(0, 1), (0, 2), (1, 2)]
    problems = tuple(
        PointProblem(clouds[i], clouds[j], [[0], [1]], "euclidean", 2.0) for i, j in pairs
    )
    options = {"metric": "euclidean", "p": 2.0}
    case = Case("plain points", "pairwise", (clouds,), options, problems)
    table = case.run()
    assert words(case, table) == set()
    off = table.copy()
    off[0, 1] = off[1, 0] = 1.01 * off[0, 1]
    assert words(case, off) == {"wrong"}
    off[1, 0] = 0.0
    assert words(case, off) == {"shape"}
    assert words(case, table[:2]) == {"shape"}


def test_spoilt_batches():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 4, 2))
    problems = tuple(PointProblem(x, y, [[0], [1]]) for x, y in zip(X, Y, strict=True))
    case = Case("plain points", "solve_batch", (X, Y), {"eps": 0.5, "eta": 0.1}, problems)
    results = list(case.run())
    before = words(case, results)
    assert "wrong" not in before
    assert "wrong" in words(case, results[::-1])
    assert words(case, results[:1]) == {"shape"}
    other = dataclasses.replace(case, options={"eps": 0.51, "eta": 0.1})
    assert "amounts" in words(other, results)


def test_shares_of_the_mean_cost_are_checked():
    case = cost_case(eta=frot.relative(0.1))
    found = case.run()
    assert words(case, found) == set()
    other = dataclasses.replace(case, options={"eta": frot.relative(0.2)})
    assert "amounts" in words(other, found)


class TestManners:
    def test_a_mistake_that_is_accepted(self, result):
        case = dataclasses.replace(cost_case(), sentence="nothing, really")
        assert words(case, result) == {"accepted"}
        assert words(case, None, error=frot.InputError("another sentence")) == {"refused"}
        attempt = Attempt(error=frot.InputError("this is nothing, really"))
        assert judge(case, attempt).outcome == "refused"

    def test_a_wide_answer_needs_a_status_and_a_warning(self, result):
        wide = dataclasses.replace(result, lower=result.lower / 2.0, status=Status.STALLED)
        assert judge(cost_case(), Attempt(wide, warned=("not there yet",))).outcome == "wide"
        assert "status" in words(cost_case(), wide)

    def test_a_sound_call_that_is_refused(self):
        assert words(cost_case(), None, error=frot.InputError("no")) == {"refused"}

    def test_an_error_of_another_type(self):
        assert words(cost_case(), None, error=IndexError("deep inside")) == {"raised"}
        malformed = dataclasses.replace(cost_case(), sentence="anything")
        assert words(malformed, None, error=IndexError("deep inside")) == {"raised"}

    @pytest.mark.parametrize(
        ("attempt", "word"),
        [
            ({"leaked": ("RuntimeWarning: overflow",)}, "warning"),
            ({"printed": "hello"}, "printed"),
            ({"mutated": ("a",)}, "mutated"),
            ({"seconds": 100.0}, "slow"),
        ],
    )
    def test_what_no_call_may_do(self, result, attempt, word):
        assert words(cost_case(), result, **attempt) == {word}


class TestAttempt:
    @pytest.fixture
    def case(self, monkeypatch) -> Case:
        def misbehave(stack: np.ndarray, kind: str = "") -> float:
            if kind == "warn":
                warnings.warn("overflow", RuntimeWarning, stacklevel=2)
                warnings.warn("not there yet", frot.ConvergenceWarning, stacklevel=2)
            if kind == "print":
                # As a library in C does, past what Python knows of.
                os.write(1, b"hello\n")
            if kind == "mutate":
                stack[0] = 7.0
            if kind == "raise":
                raise IndexError("deep inside")
            return 1.0

        monkeypatch.setattr(frot, "solve_costs", misbehave)
        return Case("plain costs", "solve_costs", (np.ones(3),))

    def attempt(self, case: Case, kind: str) -> Attempt:
        return make_attempt(dataclasses.replace(case, options={"kind": kind}))

    def test_nothing(self, case):
        found = self.attempt(case, "")
        assert (found.answer, found.error, found.leaked, found.printed) == (1.0, None, (), "")
        assert found.mutated == ()

    def test_warnings(self, case):
        found = self.attempt(case, "warn")
        assert found.warned == ("not there yet",)
        assert "RuntimeWarning: overflow" in found.leaked[0]

    def test_output(self, case):
        assert self.attempt(case, "print").printed == "hello\n"

    def test_mutated_arguments(self, case):
        assert self.attempt(case, "mutate").mutated == ("argument 0",)

    def test_errors(self, case):
        assert isinstance(self.attempt(case, "raise").error, IndexError)


@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_potentials_of_points_without_weight_prove_nothing(eps):
    stack = np.random.default_rng(0).random((2, 3, 3))
    evidence = Evidence(CostProblem(stack, a=np.array([0.0, 0.5, 0.5])))
    alpha, g = np.array([0.5, 0.5]), np.zeros(3)
    proven = [evidence.proven(alpha, np.array([f, 0.0, 0.0]), g, eps) for f in (0.0, 1e300)]
    assert proven[0] == proven[1]
    assert np.isfinite(proven[0])


def test_a_call_is_undecided_before_the_referee():
    case = cost_case()
    attempt = make_attempt(case)
    assert judge_manners(case, attempt).outcome == "undecided"
    loud = dataclasses.replace(attempt, printed="hello")
    assert [found.what for found in judge_manners(case, loud).complaints] == ["printed"]


def test_no_time_for_regrets_is_no_failure():
    case = point_case(normalise="regret", time_limit=1e-9)
    assert judge(case, make_attempt(case)).outcome == "refused"


def loss_case(size: float) -> Case:
    x, y = (np.float32(size) * part.astype(np.float32) for part in (X, Y))
    problem = PointProblem(x.astype(float), y.astype(float), [[0], [1], [2]])
    options = {"groups": "each", "eps": frot.relative(0.5)}
    return Case("scales", "FRWDLoss", (x, y), options, (problem,))


@pytest.mark.parametrize(("eps", "shift"), [(0.0, 0.0), (0.3, 2.0)])
def test_spoilt_two_sample_tests(eps, shift):
    problem = PointProblem(X, Y[:4] + shift, [[0], [1, 2]])
    options = {"groups": [1, 2], "eps": eps, "normalise": "none", "permutations": 9, "tol": 1e-5}
    args = (problem.X, problem.Y)
    case = Case("two samples", "two_sample_test", args, {**options, "random_state": 3}, (problem,))
    attempt = make_attempt(case)
    test = attempt.answer
    assert judge(case, attempt).outcome == "converged"
    result = test.result
    for changes, word in (
        ({"p": test.p - 0.1}, "p"),
        ({"p": test.p + 0.1}, "p"),
        ({"result": dataclasses.replace(result, lower=result.upper + 0.1)}, "wrong"),
    ):
        assert words(case, dataclasses.replace(test, **changes)) == {word}


def test_spoilt_divergences():
    pytest.importorskip("torch")
    problem = PointProblem(X, Y, [[0], [1, 2]])
    options = {"groups": [1, 2], "eta": 0.2, "eps": 0.5, "debias": True, "gradient_tol": 1e-5}
    case = Case("divergence", "divergence", (X, Y, None, None), options, (problem,))
    attempt = make_attempt(case)
    value, alpha, itself = attempt.answer
    assert judge(case, attempt).outcome == "converged"
    assert words(case, (value + 1e-3, alpha, itself)) == {"value"}
    assert words(case, (value, alpha, 1e-3)) == {"value"}
    assert "optimum" in words(case, (value, np.array([0.5, 0.5]), itself))
