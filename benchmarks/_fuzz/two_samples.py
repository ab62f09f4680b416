"""Two-sample tests: drawn, and their p held against the optima under the same labellings.

Samples are of one size, so that the potentials of the pool take off the same under all labellings
and T is the optimum up to a constant: p has to count every labelling whose optimum is above that of
the samples, and none that is below by more than the tolerance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from frot.api.permutations import permuted_labels

from .attempt import Attempt
from .case import Case, PointProblem
from .draw import Rng, chance, groups, pick
from .evidence import Evidence
from .judge_result import Complaint
from .options import amounts, level
from .points import POINTS, Shape
from .truth import Truth

__all__ = ["draw_two_samples", "judge_two_samples"]

DATA = ("plain points", "plain points", "clusters", "grid", "offset", "near-duplicates", "scales")
# Points of a sample: fewer allow too few labellings to reject, which is said in a warning.
LEAST, MOST = 3, 7
ROUNDING = 1e-12


def draw_two_samples(rng: Rng, kind: str) -> Case:
    """Two samples of one size, any groups, eta and eps, and a few permutations."""
    while True:
        n = int(rng.integers(LEAST, MOST + 1))
        clouds = POINTS[pick(rng, *DATA)](rng, Shape(n, n, int(rng.integers(1, 5))))
        X, Y = (points.astype(float) for points in clouds[:2])
        if len(X) == len(Y) >= LEAST:
            break
    spec, members = groups(rng, X.shape[1])
    metric = {"metric": pick(rng, "euclidean", "cityblock")} if chance(rng, 0.3) else {}
    problem = PointProblem(X, Y, members, **metric)
    drawn = amounts(rng, problem, kind, entropic=chance(rng, 0.8))
    unit = level(problem)
    options = {"eps": 0.0, "normalise": "none", "permutations": int(rng.integers(4, 10))}
    options |= {
        name: getattr(drawn[name], "share", 0.0) * unit or drawn[name]
        for name in ("eta", "eps")
        if name in drawn
    }
    options |= {"groups": spec, **metric, "tol": float(pick(rng, 1e-5, 1e-5, 1e-3, 1e-7))}
    options["random_state"] = int(rng.integers(1000))
    return Case(kind, "two_sample_test", (X, Y), options, (problem,))


def judge_two_samples(case: Case, attempt: Attempt) -> tuple[str, list[Complaint]]:
    """Solve again under every labelling, and count."""
    test, options = attempt.answer, case.options
    (problem,) = case.problems
    assert isinstance(problem, PointProblem)
    n, pool = len(problem.X), np.concatenate([problem.X, problem.Y])
    codes, count = np.repeat([0, 1], n), options["permutations"]
    blocks = np.zeros(2 * n, dtype=int)
    drawn = permuted_labels(codes, blocks, options["random_state"], range(count))
    truths: list[Truth] = []
    for labels in (codes, *drawn):
        labelled = replace(problem, X=pool[labels == 0], Y=pool[labels == 1])
        truth = Evidence(labelled, options.get("eta", 0.0)).truth(options["eps"])
        if truth is None:
            return "undecided", []
        truths.append(truth)
    own, others = truths[0], truths[1:]
    size = max(Evidence(problem).mean_cost, *(abs(float(truth)) for truth in truths))
    found, outcome = [], "converged"
    if (miss := own.misses(test.result.lower, test.result.upper)) > ROUNDING * size:
        found.append(Complaint("wrong", f"the samples' interval misses the optimum by {miss:.2g}"))
    above = sum(float(truth.low - own.high) > ROUNDING * size for truth in others)
    if test.p < (1.0 + above) / (1.0 + count) - ROUNDING:
        found.append(Complaint("p", f"p is {test.p!r}, and {above} of {count} are above"))
    near = (2.0 * options["tol"] + ROUNDING) * size
    beside = sum(float(own.low - truth.high) <= near for truth in others)
    most = test.p_interval[0] if attempt.warned else test.p
    if most > (1.0 + beside) / (1.0 + count) + ROUNDING:
        text = f"p is {most!r} at least, and {beside} of {count} are no further below than tol"
        found.append(Complaint("p", text))
    if attempt.warned:
        outcome = "limited" if test.short else "FAILURE"
    return outcome, found
