"""The verdict on a call: what it did that it must not do, or how well it went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

import frot

from .attempt import Attempt
from .case import Case, PointProblem, Problem
from .divergence import judge_divergence
from .evidence import Evidence
from .judge_result import Complaint, judge_result, tolerance_of
from .partial import PartialEvidence
from .truth import Truth
from .truth.numbers import exactly
from .truth.relatives import capped, equitable, max_min, polytope
from .two_samples import judge_two_samples

FOURTH_POWER = "is the fourth power of distances"

__all__ = ["OUTCOMES", "Verdict", "judge", "judge_manners"]

Relative = type(frot.relative(1.0))
# A small problem that takes longer is worth a look.
SLOW = 20.0
# From best to worst; the worst of a batch counts.
OUTCOMES = (*("refused", "converged", "limited", "wide", "undecided", "ignored", "FAILURE"),)


@dataclass(frozen=True)
class Verdict:
    """How a case went: one of `OUTCOMES`, and why it failed."""

    outcome: str
    complaints: tuple[Complaint, ...] = ()
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the library did something it must not do."""
        return bool(self.complaints)


def judge_manners(case: Case, attempt: Attempt) -> Verdict:
    """Judge a call without computing its answer again: undecided, if it did nothing wrong."""
    found = tuple(_manners(attempt))
    return Verdict("FAILURE" if found else "undecided", found, attempt.seconds)


def judge(case: Case, attempt: Attempt) -> Verdict:
    """Judge what came of a call."""
    found, outcome = list(_manners(attempt)), "refused"
    if isinstance(attempt.error, frot.InputError):
        # Without the optimum of every group there are no regrets to speak of.
        hurried = "time_limit" in case.options and case.options.get("normalise") == "regret"
        if case.sentence not in str(attempt.error) or not (case.sentence or hurried):
            found.append(Complaint("refused", f"InputError: {attempt.error}"))
    elif attempt.error is not None:
        text = f"{type(attempt.error).__name__}: {attempt.error} ({attempt.where})"
        found.append(Complaint("raised", text))
    elif case.sentence:
        found.append(Complaint("accepted", f"{case.sentence!r} expected: {attempt.answer!r:.300}"))
    else:
        with np.errstate(all="ignore"):
            outcome, more = _judge_answer(case, attempt)
        found += more
    if found:
        return Verdict("FAILURE", tuple(found), attempt.seconds)
    return Verdict(outcome, (), attempt.seconds)


def _manners(attempt: Attempt) -> Iterator[Complaint]:
    """What no call may do, whatever it answers."""
    for text in dict.fromkeys(attempt.leaked):
        # Some calls ask for the fourth power of distances, and are told so.
        if FOURTH_POWER not in text:
            yield Complaint("warning", text)
    if attempt.printed:
        yield Complaint("printed", repr(attempt.printed[:200]))
    for name in attempt.mutated:
        yield Complaint("mutated", f"{name} was changed")
    if attempt.seconds > SLOW:
        yield Complaint("slow", f"took {attempt.seconds:.1f} s")


def _results(answer: Any) -> list[frot.Result]:
    """The results that an answer consists of."""
    if isinstance(answer, tuple):
        answer = answer[1]
    if isinstance(answer, frot.Result):
        return [answer]
    if isinstance(answer, frot.BatchResult | list):
        return list(answer)
    return []


def _judge_answer(case: Case, attempt: Attempt) -> tuple[str, list[Complaint]]:
    if case.door in ("distance", "pairwise"):
        return _judge_distances(case, attempt)
    if case.door == "divergence":
        return judge_divergence(case, attempt)
    if case.door == "two_sample_test":
        return judge_two_samples(case, attempt)
    outcomes, found = [], []
    results = _results(attempt.answer)
    if len(results) != len(case.problems):
        return "FAILURE", [Complaint("shape", f"{len(results)} for {len(case.problems)} problems")]
    for problem, result in zip(case.problems, results, strict=True):
        evidence = _evidence_of(case, problem, result.eta)
        found += _amounts(case, evidence, result)
        if case.door in ("max_min", "equitable", "cutting_set"):
            found += _judge_relative(case, evidence, result)
        else:
            found += judge_result(evidence, result, case.door)
        outcome, more = _judge_width(case, attempt, result)
        outcomes.append(outcome)
        found += more
    if case.door == "FRWDLoss":
        found += _judge_loss(case, float(attempt.answer[0]), results[0])
    return max(outcomes, key=OUTCOMES.index), found


def _evidence_of(case: Case, problem: Problem, eta: float) -> Evidence:
    """The problem of a call, with the mass that was asked for."""
    options, prior = case.options, case.options.get("prior")
    if "mass" not in options:
        return Evidence(problem, eta, prior)
    first, second = (
        Fraction(1) if options.get(side) is None else sum(exactly(np.asarray(options[side])))
        for side in ("a", "b")
    )
    # Weights whose sum is one to five digits stand for their quotients.
    totals = tuple(Fraction(1) if abs(total - 1) < 1e-5 else total for total in (first, second))
    return PartialEvidence(problem, eta, prior, options["mass"], totals)  # type: ignore[arg-type]


def _judge_loss(case: Case, value: float, result: frot.Result) -> Iterator[Complaint]:
    """Whether a loss is what its certified answer says; less half of each side's own, debiased."""
    single = case.args[0].dtype == np.float32
    if not case.options.get("debias"):
        off = (1e-6 if single else 1e-12) * max(abs(result.lower), abs(result.upper))
        if not result.lower - off <= value <= result.upper + off:
            text = f"the loss is {value!r}, not in [{result.lower!r}, {result.upper!r}]"
            yield Complaint("value", text)
        return
    problem = case.problems[0]
    assert isinstance(problem, PointProblem)
    expected, size = result.value, abs(result.value)
    # All three costs share what is relative to that of x against y.
    shared = Evidence(problem).mean_cost
    for points, weights in ((problem.X, problem.a), (problem.Y, problem.b)):
        own = Evidence(replace(problem, X=points, Y=points, a=weights, b=weights))
        eta, eps = (
            asked.share * shared if isinstance(asked, Relative) else asked
            for asked in (case.options.get("eta", 0.0), case.options["eps"])
        )
        truth = Evidence(own.problem, eta, case.options.get("prior")).truth(eps)
        if truth is None:
            return
        expected, size = expected - 0.5 * float(truth), size + 0.5 * abs(float(truth))
    width = result.upper - result.lower
    if abs(value - expected) > 2.0 * width + tolerance_of(result, case.options) * size:
        yield Complaint("value", f"the debiased loss is {value!r}, not {expected!r}")


def _amounts(case: Case, evidence: Evidence, result: frot.Result) -> Iterator[Complaint]:
    """Whether eta and eps are what was asked for."""
    problem = evidence.problem
    # A mean of regrets is said nowhere; what is left of cosines may be rounding.
    plain = problem.normalise != "regret"
    plain = plain and evidence.mean_cost > 1e-6 * evidence.subtracted
    for name in ("eta", "eps"):
        asked, used = case.options.get(name), getattr(result, name)
        if asked is None or (name == "eps" and result.eps == 0.0):
            continue
        if isinstance(asked, Relative):
            if not plain:
                continue
            asked = asked.share * evidence.mean_cost
        # The loss takes its mean with weights as they are: to seven digits of sum one.
        if abs(used - asked) > (1e-6 if case.door == "FRWDLoss" else 1e-9) * asked:
            yield Complaint("amounts", f"{name} is {used!r}, asked for was {asked!r}")


def _judge_relative(case: Case, evidence: Evidence, result: frot.Result) -> list[Complaint]:
    program = evidence.problem.program
    if case.door == "max_min":
        chosen = int(np.argmax(result.alpha))
        return judge_result(
            evidence, result, case.door, lambda _: max_min(program), lambda phi: float(phi[chosen])
        )
    if case.door == "equitable":
        return judge_result(evidence, result, case.door, lambda _: equitable(program))
    vertices = _vertices(case.options["adversary"], len(program.costs))
    wide = np.array([[float(w) for w in vertex] for vertex in vertices], dtype=np.longdouble)

    def truth(_: float) -> Truth:
        return polytope(program, vertices)

    return judge_result(evidence, result, case.door, truth, lambda phi: float((wide @ phi).max()))


def _vertices(uncertainty: Any, count: int) -> list[Any]:
    if isinstance(uncertainty, frot.CappedSimplex):
        return capped(count, uncertainty.k)
    if isinstance(uncertainty, frot.Polytope):
        return [exactly(vertex) for vertex in uncertainty.vertices]
    return capped(count, 1)


def _judge_width(case: Case, attempt: Attempt, result: frot.Result) -> tuple[str, list[Complaint]]:
    """Whether the interval is within the tolerance; if not, the status has to say so."""
    tol, gap, status = tolerance_of(result, case.options), result.gap, result.status
    if status.ok != (gap <= tol):
        return "FAILURE", [Complaint("status", f"{status} with gap {gap:.3g} for tol {tol:.3g}")]
    if status.ok:
        return "converged", []
    paper = isinstance(case.options.get("solver"), frot.FrankWolfe)
    if not (attempt.warned or paper):
        return "FAILURE", [Complaint("status", f"{status} without a warning")]
    # No interval is of no width: with a tolerance of zero a run ends where its digits do.
    limited = status.name in ("MAX_ITER", "TIME_LIMIT", "STOPPED") or paper or tol == 0.0
    return ("limited" if limited else "wide"), []


def _judge_distances(case: Case, attempt: Attempt) -> tuple[str, list[Complaint]]:
    """Distances have no interval: a warning, or they are right to the solver's tolerance."""
    p, found, outcome = case.options["p"], [], "converged"
    values: Iterable[float] = [attempt.answer]
    if case.door == "pairwise":
        table, count = attempt.answer, len(case.args[0])
        if table.shape != (count, count) or (table != table.T).any():
            return "FAILURE", [Complaint("shape", f"no symmetric table: shape {table.shape}")]
        values = table[np.triu_indices(count, 1)]
    for problem, value in zip(case.problems, values, strict=True):
        evidence = Evidence(problem)
        truth = evidence.truth(0.0)
        if not np.isfinite(value) or value < 0.0:
            found.append(Complaint("not finite", f"distance {value!r}"))
        elif truth is not None:
            # The tolerance of `Exact`, relative to no less than the floor of gaps.
            off = abs(float(value) ** p - float(truth))
            if off > 4e-9 * max(float(truth), 1e-6 * evidence.mean_cost):
                outcome = "wide"
                if not attempt.warned:
                    found.append(Complaint("wrong", f"distance {value!r}, off by {off:.2g}"))
    return outcome, found
