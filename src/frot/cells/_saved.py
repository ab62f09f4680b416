"""Couplings as arrays and numbers: what checkpoints and AnnData keep, and how it is read back.

A plan with entropy is not kept, but its potentials are: n + m numbers, from which one pass of the
solver makes the same plan and proves its interval anew. Plans without are kept as arcs.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from frot.cells._blocks import join
from frot.cells._couple import Settings, make_coupling
from frot.cells._coupling import Coupling, GroupSummary
from frot.cells._input import Side
from frot.plans.plan import Plan
from frot.problem.result import Result
from frot.problem.status import Status

__all__ = ["pack", "unpack"]

NUMBERS = ("value", "lower", "upper", "mean_cost", "eta", "eps", "iterations", "time")
# How much wider than it was an interval may be that is proven anew.
SLACK = 1.5


def pack(coupling: Coupling) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a coupling as JSON values and arrays."""
    result = coupling.result
    facts = {name: getattr(result, name) for name in NUMBERS}
    facts |= {"tau": list(result.tau), "totals": list(result.totals), "solver": result.solver}
    facts |= {"status": result.status.name, "about": [asdict(one) for one in coupling.about]}
    f, g = result.potentials
    arrays = {"alpha": result.alpha, "phi": result.phi, "f": f, "g": g}
    if result.plan.is_sparse:
        arrays |= dict(zip(("rows", "cols", "mass"), result.plan.arcs(), strict=True))
    return facts, arrays


def unpack(
    facts: dict[str, Any],
    arrays: dict[str, np.ndarray],
    data: Any,
    key: str,
    first: Side,
    second: Side,
    settings: Settings,
) -> Coupling:
    """Return the coupling that was packed."""
    about = tuple(GroupSummary(**one) for one in facts["about"])
    weights = (settings.weights(data, first), np.full(len(second), 1.0 / len(second)))
    found = {block.name: block for block in settings.blocks(data, first, second, weights)[0]}
    passed = [found[one.name] for one in about if one.passed]
    X, Y, blocks = join(settings.denoised(passed, weights))
    shape = (len(first), len(second))
    rows, cols, mass = (arrays.get(name, np.empty(0)) for name in ("rows", "cols", "mass"))
    result = Result(
        **{name: facts[name] for name in NUMBERS},
        status=Status[facts["status"]],
        alpha=arrays["alpha"],
        phi=arrays["phi"],
        plan=Plan.from_arcs(rows, cols, mass, shape),
        potentials=(arrays["f"], arrays["g"]),
        names=tuple(block.name for block in blocks),
        solver=facts["solver"],
        tau=(facts["tau"][0], facts["tau"][1]),
        totals=(facts["totals"][0], facts["totals"][1]),
    )
    if "mass" not in arrays:
        again = replace(
            settings, eta=result.eta, eps=result.eps, tau=result.tau, tol=SLACK * result.gap
        )
        proven = again.solve(X, Y, blocks, weights, start=result)
        result = replace(
            proven, status=result.status, iterations=result.iterations, time=result.time
        )
    return make_coupling(key, first, second, about, blocks, data, settings, result)
