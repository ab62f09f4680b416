"""What must hold of a `frot.Result`, checked against the problem and its truth."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import fsum
from typing import Any, NamedTuple

import numpy as np

import frot

from .evidence import UNIT, Evidence
from .partial import PartialEvidence
from .truth import Truth

__all__ = ["Complaint", "is_entropic", "judge_result", "tolerance_of"]

# Marginals are right to this many units in the last place of each weight.
MARGIN = 64.0


class Complaint(NamedTuple):
    """What is wrong, in a word for the table and in a sentence."""

    what: str
    detail: str


class _Kind(NamedTuple):
    """Which parts of a result mean what: differs between solvers and relatives."""

    eps: float
    potentials: bool
    simplex: bool
    phi: bool


def judge_result(
    evidence: Evidence,
    result: frot.Result,
    door: str = "solve",
    truth: Callable[[float], Truth | None] | None = None,
    value: Callable[[np.ndarray], float] | None = None,
) -> list[Complaint]:
    """Return all that is wrong with a result, but for its status.

    `truth` gives the optimum for an eps, and `value` the objective of group costs, where they are
    not those of feature-robust transport.
    """
    result = result.numpy()
    found = _numbers(result)
    if found:
        return found
    kind = _kind_of(result, door)
    plan = np.asarray(result.plan)
    found += _interval(result)
    found += _against_truth(result, kind, truth or evidence.truth)
    if isinstance(evidence, PartialEvidence):
        found += _partial_plan(evidence, plan)
    else:
        found += _plan(evidence, plan, kind.eps)
    if found and found[-1].what == "plan shape":
        return found
    with np.errstate(all="ignore"):
        if kind.phi:
            found += _objective(evidence, result, plan, kind, value)
        found += _weights(result, kind)
        if kind.potentials:
            found += _potentials(evidence, result, kind)
    return found


def is_entropic(result: frot.Result) -> bool:
    """Whether the objective has an entropy of the plan."""
    return any(name in result.solver for name in ("Entropic(", "solve_batch(", "FRWDLoss("))


def _kind_of(result: frot.Result, door: str) -> _Kind:
    entropic = is_entropic(result)
    paper = "'paper'" in result.solver
    return _Kind(
        eps=result.eps if entropic else 0.0,
        potentials=not paper and door != "equitable",
        simplex=door != "cutting_set",
        phi=door != "equitable",
    )


def tolerance_of(result: frot.Result, options: dict[str, Any]) -> float:
    """The relative gap that was asked for."""
    if (asked := options.get("tol")) is not None:
        return asked
    # "Exact(tol=1e-09, ...)": the outermost comes last where oracles have tolerances, too.
    shown = re.findall(
        r"(?<![a-z])tol=([^,)]+)", re.sub(r"oracle=[A-Za-z]+\([^)]*\)", "", result.solver)
    )
    if shown:
        return float(shown[-1])
    return 1e-9 if result.solver.startswith("max_min") else 1e-8


def _numbers(result: frot.Result) -> list[Complaint]:
    parts = {
        "value": result.value,
        "lower": result.lower,
        "upper": result.upper,
        "alpha": result.alpha,
        "phi": result.phi,
        "f": result.potentials[0],
        "g": result.potentials[1],
        "plan": np.asarray(result.plan),
    }
    return [
        Complaint("not finite", f"{name} is not finite")
        for name, part in parts.items()
        if not np.isfinite(part).all()
    ]


def _interval(result: frot.Result) -> list[Complaint]:
    found = []
    if not result.lower <= result.upper:
        found.append(Complaint("interval", f"lower {result.lower!r} > upper {result.upper!r}"))
    if not result.value <= result.upper:
        found.append(Complaint("value", f"value {result.value!r} > upper {result.upper!r}"))
    if not result.lower <= result.value + 4.0 * UNIT * abs(result.value):
        found.append(Complaint("value", f"value {result.value!r} < lower {result.lower!r}"))
    lowers, uppers = ([getattr(now, side) for now in result.history] for side in ("lower", "upper"))
    if lowers != sorted(lowers):
        found.append(Complaint("history", "the lower bound falls"))
    if "'paper'" not in result.solver and uppers != sorted(uppers, reverse=True):
        found.append(Complaint("history", "the upper bound rises"))
    return found


def _against_truth(
    result: frot.Result, kind: _Kind, truth_of: Callable[[float], Truth | None]
) -> list[Complaint]:
    found = []
    truth = truth_of(kind.eps)
    if truth is None:
        return found
    if miss := truth.misses(result.lower, result.upper):
        found.append(Complaint("wrong", _missed(result.lower, result.upper, truth, miss)))
    if kind.eps:
        plain = truth_of(0.0)
        if plain is not None and (miss := plain.misses(*result.unregularised)):
            missed = _missed(*result.unregularised, plain, miss)
            found.append(Complaint("wrong", f"unregularised {missed}"))
    return found


def _missed(lower: float, upper: float, truth: Truth, miss: float) -> str:
    value = float(truth)
    share = miss / abs(value) if value else np.inf
    return f"[{lower!r}, {upper!r}] misses {value!r} by {miss:.2g}, {share:.2g} of it"


def _plan(evidence: Evidence, plan: np.ndarray, eps: float) -> list[Complaint]:
    if plan.shape != evidence.problem.shape[1:]:
        return [Complaint("plan shape", f"plan has shape {plan.shape}")]
    found = []
    # Entries of an entropic plan are exponentials, as right as their scores are to units.
    margin = MARGIN + (float(np.abs(evidence.costs).max()) / eps if eps > 0.0 else 0.0)
    if plan.min() < 0.0:
        found.append(Complaint("plan", f"plan has a negative entry {plan.min():.3g}"))
    for name, rows, want in zip("ab", (plan, plan.T), evidence.weights, strict=True):
        # The sum is rounded once, and the weight is.
        off = np.array([abs(fsum(row) - w) for row, w in zip(rows, want, strict=True)])
        with np.errstate(all="ignore"):
            places = np.where(off > 0.0, off / (UNIT * want), 0.0)
        at = int(np.argmax(places))
        if places[at] > margin:
            found.append(
                Complaint(
                    "plan",
                    f"marginal {name}[{at}] is off by {float(off[at]):.2g}, weight "
                    f"{float(want[at]):.2g}, {float(places[at]):.2g} units in the last place",
                )
            )
    return found


def _partial_plan(evidence: PartialEvidence, plan: np.ndarray) -> list[Complaint]:
    """Whether no point has more than its weight, and all together the mass."""
    if plan.shape != evidence.problem.shape[1:]:
        return [Complaint("plan shape", f"plan has shape {plan.shape}")]
    found = []
    if plan.min() < 0.0:
        found.append(Complaint("plan", f"plan has a negative entry {plan.min():.3g}"))
    for name, rows, most in zip("ab", (plan, plan.T), evidence.weights, strict=True):
        over = np.array([fsum(row) for row in rows]) - most
        if (over > MARGIN * UNIT * most).any():
            at = int(np.argmax(over))
            text = f"marginal {name}[{at}] is {float(over[at]):.2g} above {float(most[at]):.2g}"
            found.append(Complaint("plan", text))
    off = abs(fsum(plan.ravel()) - evidence.mass)
    if off > MARGIN * UNIT * sum(float(side.sum()) for side in evidence.weights):
        found.append(Complaint("plan", f"the mass is off {evidence.mass:.3g} by {off:.2g}"))
    return found


def _objective(
    evidence: Evidence,
    result: frot.Result,
    plan: np.ndarray,
    kind: _Kind,
    value: Callable[[np.ndarray], float] | None,
) -> list[Complaint]:
    found = []
    phi, size = evidence.phi(plan)
    off = np.abs(phi - result.phi)
    least = evidence.tiny_square + 4e-15 * evidence.subtracted
    if kind.eps:
        # Squares of differences are expanded there.
        least += 1e-15 * evidence.mean_cost
    if (off > 1e-11 * size + least).any():
        at = int(np.argmax(off / np.maximum(size, 1e-300)))
        found.append(Complaint("phi", f"phi[{at}] = {result.phi[at]!r} is {float(phi[at])!r}"))
    have = evidence.objective(plan, phi, kind.eps) if value is None else value(phi)
    scale = float(size.max()) + evidence.eta * (1.0 + float(np.abs(evidence.log_prior).max()))
    scale += kind.eps + abs(have)
    if kind.eps:
        f, g = result.potentials
        scale += evidence.size(f, g)
    if abs(have - result.value) > 1e-10 * scale + least:
        # With eps it is what the certificate has summed: the objective, or a bound of it.
        bound = kind.eps and have < result.value <= have + (result.upper - result.lower)
        if not bound:
            text = f"value {result.value!r}, but the plan has {have!r}"
            found.append(Complaint("value", text))
    return found


def _weights(result: frot.Result, kind: _Kind) -> list[Complaint]:
    alpha = result.alpha
    if kind.simplex and (alpha.min() < 0.0 or abs(fsum(alpha) - 1.0) > 1e-14 * len(alpha)):
        text = f"alpha is off the simplex (least {alpha.min():.3g}, sum {fsum(alpha)!r})"
        return [Complaint("alpha", text)]
    return []


def _potentials(evidence: Evidence, result: frot.Result, kind: _Kind) -> list[Complaint]:
    found = []
    f, g = result.potentials
    if kind.eps and 0.05 * kind.eps < UNIT * (np.abs(f).max() + np.abs(g).max()):
        # No potential in double precision can prove much where its last place is near eps.
        return found
    proven = evidence.proven(result.alpha, f, g, kind.eps)
    size = evidence.size(f, g) + evidence.eta + kind.eps + abs(result.lower)
    least = 4e-15 * (evidence.mean_cost + evidence.subtracted)
    if result.eps:
        # Potentials were scores in units of eps.
        least += 16.0 * UNIT * result.eps
    if not proven >= result.lower - 1e-11 * size - least:
        text = f"alpha and potentials prove {proven!r}, not lower = {result.lower!r}"
        found.append(Complaint("potentials", text))
    if kind.eps == 0.0:
        mixed = evidence.mixed(result.alpha)
        over = f[:, None] + g - mixed
        reach = np.abs(f)[:, None] + np.abs(g) + np.abs(mixed)
        on = np.isfinite(mixed)
        # Potentials of points without weight are right to what the costs of all points are.
        rows, cols = (np.asarray(part, dtype=float) > 0.0 for part in evidence.weights)
        reach = np.where(rows[:, None] & cols, reach, reach[on].max())
        worst = (over[on] - 1e-10 * reach[on] - 4.0 * least).max()
        if worst > 0.0:
            text = f"potentials are infeasible by {float(over[on].max()):.3g}"
            found.append(Complaint("potentials", text))
    return found
