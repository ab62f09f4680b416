"""The verdict on a call: what it did that it must not do, or how well it went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import frot

from .attempt import Attempt
from .case import Case, PointProblem, Problem
from .evidence import ROUNDING, UNIT, Evidence
from .judge_result import WEAK, Complaint, is_entropic, judge_result, tolerance_of
from .truth import Truth
from .truth.numbers import exactly
from .truth.relatives import box, capped, equitable, max_min, polytope

__all__ = ["OUTCOMES", "Verdict", "judge", "judge_manners"]

Relative = type(frot.relative(1.0))
# A small problem that takes longer is worth a look.
SLOW = 5.0
# From best to worst; the worst of a batch counts.
OUTCOMES = (
    *("typed error", "converged", "rounding", "limited", "wide", "not supported", "undecided"),
    *("ignored", "FAILURE"),
)


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
    found = tuple(_manners(case, attempt))
    return Verdict("FAILURE" if found else "undecided", found, attempt.seconds)


def judge(case: Case, attempt: Attempt) -> Verdict:
    """Judge what came of a call."""
    found = list(_manners(case, attempt))
    outcome = "typed error"
    if attempt.error is not None:
        if isinstance(attempt.error, frot.InputError):
            excuses = (_refuses_infinite, _has_no_regrets, _overflows)
            if not case.complaint and any(excuse(case) for excuse in excuses):
                outcome = "not supported"
            elif not case.complaint:
                found.append(Complaint("refused", f"InputError: {attempt.error}"))
        else:
            text = f"{type(attempt.error).__name__}: {attempt.error} ({attempt.where})"
            found.append(Complaint("raised", text))
    elif case.complaint:
        found.append(Complaint("accepted", f"{case.complaint} gave {attempt.answer!r:.300}"))
    else:
        with np.errstate(all="ignore"):
            outcome, more = _judge_answer(case, attempt)
        found += more
        found += _aliases(attempt)
    if found:
        return Verdict("FAILURE", tuple(found), attempt.seconds)
    return Verdict(outcome, (), attempt.seconds)


def _refuses_infinite(case: Case) -> bool:
    """Whether infinite costs are refused by name: Frank-Wolfe with Sinkhorn takes none."""
    solver = case.options.get("solver")
    return (
        any(problem.program.forbidden for problem in case.problems)
        and isinstance(solver, frot.FrankWolfe)
        and isinstance(solver.oracle, frot.Sinkhorn)
    )


def _has_no_regrets(case: Case) -> bool:
    """Whether there was a limit to the time in which the problem itself had to be computed.

    Without the optimum of every group there are no regrets, and no interval that is about them.
    """
    return case.options.get("normalise") == "regret" and "time_limit" in case.options


def _overflows(case: Case) -> bool:
    """Whether a loss is too large for the precision of its points, in which it is handed out.

    Where no cost is, no loss can be: the product of the weights is a plan without divergence.
    """
    if case.door != "FRWDLoss":
        return False
    largest = float(Evidence(case.problems[0]).costs.max())
    return largest > float(np.finfo(case.args[0].dtype).max)


def _manners(case: Case, attempt: Attempt) -> Iterator[Complaint]:
    """What no call may do, whatever it answers."""
    for text in dict.fromkeys(attempt.leaked):
        yield Complaint("warning", text)
    if attempt.printed:
        yield Complaint("printed", repr(attempt.printed[:200]))
    for name in attempt.mutated:
        yield Complaint("mutated", f"{name} was changed")
    limit = None if case.complaint else case.options.get("time_limit")
    if limit is not None and attempt.seconds > 2.0 * limit + 0.2:
        yield Complaint("time limit", f"took {attempt.seconds:.2f} s where {limit:g} s were given")
    elif attempt.seconds > SLOW:
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


def _aliases(attempt: Attempt) -> Iterator[Complaint]:
    """Arrays of the answer that are arrays of the user's, or of one another."""
    outs: list[tuple[str, Any]] = []
    for at, result in enumerate(_results(attempt.answer)):
        f, g = result.potentials
        parts = {"alpha": result.alpha, "phi": result.phi, "f": f, "g": g, "plan": result.plan}
        if result.points is not None:
            parts |= {"X": result.points[0], "Y": result.points[1]}
        for name, part in parts.items():
            outs.append((f"result {at}: {name}", np.asarray(part)))
    for at, (name, out) in enumerate(outs):
        for given, array in attempt.inputs.items():
            if np.may_share_memory(out, array):
                yield Complaint("aliased", f"{name} shares memory with {given}")
        for other, array in outs[:at]:
            if np.may_share_memory(out, array):
                yield Complaint("aliased", f"{name} shares memory with {other}")


def _judge_answer(case: Case, attempt: Attempt) -> tuple[str, list[Complaint]]:
    if case.door in ("distance", "pairwise"):
        return _judge_distances(case, attempt)
    outcomes, found = [], []
    prior = case.options.get("prior")
    results = _results(attempt.answer)
    if len(results) != len(case.problems):
        return "FAILURE", [Complaint("shape", f"{len(results)} for {len(case.problems)} problems")]
    for problem, result in zip(case.problems, results, strict=True):
        evidence = Evidence(problem, result.eta, prior)
        found += _amounts(case, evidence, result)
        if case.door in ("max_min", "equitable", "cutting_set"):
            found += _judge_relative(case, evidence, result)
        else:
            found += judge_result(evidence, result, case.door)
        outcome, more = _judge_width(case, attempt, evidence, result)
        outcomes.append(outcome)
        found += more
    if case.door == "FRWDLoss":
        found += _judge_loss(case, float(attempt.answer[0]), results[0])
    return max(outcomes, key=OUTCOMES.index), found


def _judge_loss(case: Case, value: float, result: frot.Result) -> Iterator[Complaint]:
    """Whether a loss is what its certified answer says; less half of each side's own, debiased."""
    single = case.args[0].dtype == np.float32
    if not case.options.get("debias"):
        off = (1e-6 if single else 1e-12) * max(abs(result.lower), abs(result.upper))
        # Below the smallest normal number of a precision digits are lost one by one.
        off += float(np.finfo(case.args[0].dtype).smallest_subnormal)
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
    # A mean of regrets, or over arcs of which some are none, is said nowhere; what is left of
    # cosines is rounding where it is that little.
    plain = problem.normalise != "regret" and not problem.program.forbidden
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
    if isinstance(uncertainty, frot.Box):
        return box(uncertainty.low, uncertainty.high)
    if isinstance(uncertainty, frot.Polytope):
        return [exactly(vertex) for vertex in uncertainty.vertices]
    return capped(count, 1)


def _judge_width(
    case: Case, attempt: Attempt, evidence: Evidence, result: frot.Result
) -> tuple[str, list[Complaint]]:
    """Whether the interval is as narrow as it should be, and the status says why not."""
    tol, gap, status = tolerance_of(result, case.options), result.gap, result.status
    width = result.upper - result.lower
    found = []
    if status.ok != (gap <= tol):
        zero = case.door == "max_min" and width <= 1e-13 * evidence.mean_cost
        if not zero:
            text = f"status {status} with gap {gap:.3g} for tol {tol:.3g}"
            found.append(Complaint("status", text))
    if gap <= tol:
        if attempt.warned and case.door not in ("solve_batch", "FRWDLoss"):
            asked = case.options.get("solver")
            if not isinstance(asked, frot.FrankWolfe):
                found.append(Complaint("status", f"converged, but warned: {attempt.warned[0]}"))
        return "converged", found
    if status.name in case.excused:
        return "limited", found
    if gap <= WEAK:
        return "wide", found
    rounding = 1e-14 * evidence.mean_cost
    if case.door != "equitable":
        rounding = evidence.rounding(result.numpy(), result.eps if is_entropic(result) else 0.0)
    truth = None if result.eta or result.eps else evidence.truth(0.0)
    if truth is not None and case.door == "cutting_set":
        vertices = _vertices(case.options["adversary"], evidence.problem.shape[0])
        truth = polytope(evidence.problem.program, vertices)
    if truth is not None and truth.low <= 0 <= truth.high:
        # No interval around zero is narrow, relatively.
        rounding = max(rounding, 1e-13 * evidence.mean_cost)
    # Both bounds are widened by more than rounding does on average.
    if status is frot.Status.STALLED and width <= 4.0 * rounding:
        return "rounding", found
    text = (
        f"{status}, gap {gap:.2g}, width {width:.2g} where rounding explains {rounding:.2g}, "
        f"{result.solver}"
    )
    return "FAILURE", [*found, Complaint("weak", text)]


def _judge_distances(case: Case, attempt: Attempt) -> tuple[str, list[Complaint]]:
    """Distances have no interval: a warning, or they are right to the solver's tolerance."""
    p = case.options["p"]
    values: Iterable[float] = [attempt.answer]
    found = []
    if case.door == "pairwise":
        table = np.asarray(attempt.answer)
        count = len(case.args[0])
        if table.shape != (count, count):
            return "FAILURE", [Complaint("shape", f"{table.shape}")]
        if not np.array_equal(table, table.T) or np.diag(table).any():
            found.append(Complaint("shape", "not symmetric with a diagonal of zeros"))
        values = table[np.triu_indices(count, 1)]
    outcome = "converged"
    for problem, value in zip(case.problems, values, strict=True):
        if not np.isfinite(value) or value < 0.0:
            found.append(Complaint("not finite", f"distance {value!r}"))
            continue
        off, allowed = _distance_error(problem, float(value), p)
        if off <= allowed:
            continue
        text = f"distance {value!r} is off by {off:.2g} of it in its power {p:g}"
        if not attempt.warned:
            found.append(Complaint("wrong", text))
        elif off > WEAK:
            found.append(Complaint("weak", f"{text}; {attempt.warned[0]}"))
        else:
            outcome = "wide"
    return outcome, found


def _distance_error(problem: Problem, value: float, p: float) -> tuple[float, float]:
    """How far a distance is off, relatively, and how far it may be."""
    evidence = Evidence(problem)
    truth = evidence.truth(0.0)
    if truth is None:
        return 0.0, 0.0
    exact, have = float(truth), value**p
    # The tolerance of `Exact`, and what rounding may do to sums of potentials.
    slack = ROUNDING * UNIT * (evidence.exact_size + abs(exact))
    if exact == 0.0:
        return have, slack
    return abs(have - exact) / exact, 2e-9 + slack / exact
