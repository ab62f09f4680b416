"""What must hold of every answer, checked against costs and a linear program made without frot."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import frot
from _fuzz_cases import Case

__all__ = ["complaints"]

# Larger programs are left to the tests; this many entries take HiGHS some 20 ms.
REFERENCE_SIZE = 6_000


def complaints(case: Case, answer: Any) -> list[str]:
    """Return all that is wrong with an answer to a well-formed case."""
    assert case.stack is not None
    assert case.a is not None
    assert case.b is not None
    if case.call == "distance":
        return _distance_complaints(case, answer)
    found = _number_complaints(answer)
    if found:
        return found
    found += _interval_complaints(case, answer)
    found += _plan_complaints(case, answer)
    found += _dual_complaints(case, answer)
    found += _status_complaints(case, answer)
    found += _reference_complaints(case, answer.lower, answer.upper)
    return found


def _distance_complaints(case: Case, answer: float) -> list[str]:
    if not np.isfinite(answer) or answer < 0.0:
        return [f"distance {answer}"]
    assert case.stack is not None
    if case.stack.size > REFERENCE_SIZE:
        return []
    truth = max(_linear_program(case), 0.0)
    off = abs(answer**case.power - truth)
    return [] if off <= 1e-7 * np.abs(case.stack).max() else [f"distance off by {off:.3g}"]


def _number_complaints(result: frot.Result) -> list[str]:
    arrays = {
        "value": result.value,
        "lower": result.lower,
        "upper": result.upper,
        "gap": result.gap,
        "alpha": result.alpha,
        "phi": result.phi,
        "f": result.potentials[0],
        "g": result.potentials[1],
        "plan": result.plan.arcs()[2],
    }
    return [f"{name} is not finite" for name, x in arrays.items() if not np.isfinite(x).all()]


def _interval_complaints(case: Case, result: frot.Result) -> list[str]:
    assert case.stack is not None
    found = []
    slack = 1e-13 * float(np.abs(case.stack).max())
    if not result.lower <= result.upper:
        found.append(f"lower {result.lower!r} > upper {result.upper!r}")
    if not result.lower - slack <= result.value <= result.upper:
        found.append(f"value {result.value!r} outside [{result.lower!r}, {result.upper!r}]")
    uppers = [now.upper for now in result.history]
    lowers = [now.lower for now in result.history]
    if lowers != sorted(lowers):
        found.append("history: the lower bound falls")
    if "paper" not in result.solver and uppers != sorted(uppers, reverse=True):
        found.append("history: the upper bound rises")
    return found


def _plan_complaints(case: Case, result: frot.Result) -> list[str]:
    assert case.stack is not None
    assert case.a is not None
    assert case.b is not None
    stack = case.stack
    plan = np.asarray(result.plan)
    if plan.shape != stack.shape[1:]:
        return [f"plan has shape {plan.shape}"]
    found = []
    if plan.min() < 0.0:
        found.append(f"plan has a negative entry {plan.min():.3g}")
    for name, have, want in (("a", plan.sum(axis=1), case.a), ("b", plan.sum(axis=0), case.b)):
        # Relative to the point's own weight, but for the unit roundoff of the whole mass.
        off = np.abs(have - want) - 1e-12 * want
        if off.max() > 1e-15:
            found.append(f"marginal {name} is off by {off.max():.3g}")
    phi = np.einsum("lij,ij->l", stack, plan)
    reach = np.einsum("lij,ij->l", np.abs(stack), plan)
    off = np.abs(phi - result.phi) - 1e-11 * reach
    if (off > 1e-13 * np.abs(stack).max() + case.tiny).any():
        found.append(f"phi is off by {off.max():.3g}")
    return found


def _dual_complaints(case: Case, result: frot.Result) -> list[str]:
    assert case.stack is not None
    alpha = result.alpha
    found = []
    if alpha.min() < 0.0 or abs(alpha.sum() - 1.0) > 1e-12:
        found.append(f"alpha is off the simplex (min {alpha.min():.3g}, sum {alpha.sum():.17g})")
    if "paper" in result.solver:
        # The paper returns the weights of the last plan, which the potentials do not go with.
        return found
    mixed = np.einsum("l,lij->ij", alpha, case.stack)
    f, g = result.potentials
    # Terms may be much larger than their sum where costs are of both signs.
    terms = float(alpha @ np.abs(case.stack).max(axis=(1, 2)))
    reach = terms + np.abs(f).max() + np.abs(g).max() + result.mean_cost
    over = float((f[:, None] + g - mixed).max())
    if over > 1e-12 * reach + case.tiny:
        found.append(f"potentials are infeasible by {over:.3g}")
    return found


def _status_complaints(case: Case, result: frot.Result) -> list[str]:
    tol = case.options.get("tol")
    solver = case.options["solver"]
    if tol is None:
        default = frot.Exact() if result.solver.startswith("Exact") else frot.LinearProgram()
        default = frot.FrankWolfe() if result.solver.startswith("Frank") else default
        tol = default.tol if isinstance(solver, str) else solver.tol
    if result.status.ok != (result.gap <= tol):
        return [f"status {result.status} with gap {result.gap:.3g} for tol {tol:.3g}"]
    return []


def _reference_complaints(case: Case, lower: float, upper: float) -> list[str]:
    """Compare with the truth: exactly where that can be had, else with HiGHS."""
    assert case.stack is not None
    found = []
    exact = _exact_optimum(case)
    if exact is not None and not Fraction(lower) <= exact <= Fraction(upper):
        miss = max(Fraction(lower) - exact, exact - Fraction(upper))
        found.append(f"[{lower!r}, {upper!r}] misses {float(exact)!r} by {float(miss):.3g}")
    if case.stack.size > REFERENCE_SIZE:
        return found
    slack = 1e-8 * float(np.abs(case.stack).max())
    least = most = _linear_program(case)
    eta = case.options.get("eta", 0.0)
    if eta > 0.0:
        # max <= G_eta <= max + eta log L; a prior q takes the place of 1 in the sum.
        prior = case.options.get("prior")
        log_q = np.zeros(len(case.stack)) if prior is None else np.log(prior / prior.sum())
        least += eta * float(log_q.min())
        most += eta * float(np.log(np.exp(log_q).sum()))
        slack += 1e-10 * eta
    if lower > most + slack:
        found.append(f"lower {lower!r} > optimum {most!r}")
    if upper < least - slack:
        found.append(f"upper {upper!r} < optimum {least!r}")
    return found


def _linear_program(case: Case) -> float:
    """Solve the paper's program min t, <P, C_l> <= t, by SciPy's HiGHS on scaled numbers."""
    assert case.stack is not None
    assert case.a is not None
    assert case.b is not None
    count, n, m = case.stack.shape
    unit = float(np.abs(case.stack).max()) or 1.0
    mass = 1.0 / max(n, m)
    ones = sparse.eye_array(n), sparse.eye_array(m)
    rows = sparse.kron(ones[0], np.ones((1, m)))
    cols = sparse.kron(np.ones((1, n)), ones[1])
    marginals = sparse.hstack([sparse.vstack([rows, cols]), sparse.csr_array((n + m, 1))])
    groups = np.hstack([case.stack.reshape(count, -1) / unit, -np.ones((count, 1))])
    # One marginal follows from the others; with it, rounding may make the program infeasible.
    targets = np.concatenate([case.a, case.b]) / mass
    kept = np.delete(np.arange(n + m), np.argmax(targets))
    solved = linprog(
        np.append(np.zeros(n * m), 1.0),
        A_ub=groups,
        b_ub=np.zeros(count),
        A_eq=marginals.tocsr()[kept],
        b_eq=targets[kept],
        bounds=[(0.0, None)] * (n * m) + [(None, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solved.status != 0:
        raise AssertionError(f"the reference program failed: {solved.message}")
    return float(solved.fun * unit * mass)


def _exact_optimum(case: Case) -> Fraction | None:
    """The optimum in rational arithmetic, where one number decides the plan and eta = 0."""
    assert case.stack is not None
    assert case.a is not None
    assert case.b is not None
    n, m = case.stack.shape[1:]
    if n > 2 or m > 2 or case.options.get("eta") or case.call != "solve_costs":
        return None
    a, b = [Fraction(x) for x in case.a.tolist()], [Fraction(x) for x in case.b.tolist()]
    if sum(a) != 1 or sum(b) != 1:
        return None
    costs = [[[Fraction(x) for x in row] for row in group] for group in case.stack.tolist()]
    if n == 1 or m == 1:
        pairs = [(i, j) for i in range(n) for j in range(m)]
        return max(
            sum((a[i] * b[j] * group[i][j] for i, j in pairs), Fraction(0)) for group in costs
        )

    # pi_00 = x decides all: phi_l is base_l + x slope_l on an interval.
    def phi(group: list[list[Fraction]], x: Fraction) -> Fraction:
        return (
            x * group[0][0]
            + (a[0] - x) * group[0][1]
            + (b[0] - x) * group[1][0]
            + (a[1] - b[0] + x) * group[1][1]
        )

    low, high = max(Fraction(0), a[0] - b[1]), min(a[0], b[0])
    lines = [(phi(group, low), phi(group, low + 1) - phi(group, low)) for group in costs]
    knots = {low, high}
    for i, (base, slope) in enumerate(lines):
        for other_base, other_slope in lines[:i]:
            if slope != other_slope:
                knots.add(low + (other_base - base) / (slope - other_slope))
    inside = [x for x in knots if low <= x <= high]
    return min(max(base + slope * (x - low) for base, slope in lines) for x in inside)
