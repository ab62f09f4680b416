"""A result as plain arrays by name, and back: what `Result.save` writes and `frot.load` reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np

from frot.groups.groups import Groups
from frot.plans.plan import Plan
from frot.problem.result import Chosen, Progress, Result
from frot.problem.status import Status

__all__ = ["arrays_of", "arrays_of_groups", "groups_in", "rebuilt"]

NUMBERS = ("value", "lower", "upper", "mean_cost", "time", "eta", "eps")
PAIRS = ("tau", "totals", "plain")
TEXTS = ("solver", "penalty")
GROUPS = ("flat", "offsets", "n_features", "listed")
GROUP_WORDS = ("names", "dropped")


def arrays_of(result: Result, *, plan: bool = True) -> dict[str, Any]:
    """Return all of a result but `rate` as arrays by name; None for what it has not."""
    host = result.numpy()
    pairs = {("f", "g"): host.potentials, ("x", "y"): host.points or (None, None)}
    arrays: dict[str, Any] = {
        "gap": host.gap,
        "status": host.status.name,
        "alpha": host.alpha,
        "phi": host.phi,
        "names": _texts(host.names),
        "iterations": host.iterations,
        "history": np.array([astuple(one) for one in host.history]).reshape(-1, 5),
        **{name: getattr(host, name) for name in (*NUMBERS, *PAIRS, *TEXTS)},
        "plain": host.plain and host.unregularised,
        **{name: one for names, pair in pairs.items() for name, one in zip(names, pair)},  # noqa: B905
    }
    if plan and host.plan.is_sparse:
        rows, cols, mass = host.plan.arcs()
        arrays |= {"plan_rows": rows, "plan_cols": cols, "plan_mass": mass}
        arrays["plan_shape"] = host.plan.shape
    elif plan:
        arrays["plan"] = host.plan.dense()
    if host.groups is not None:
        arrays |= arrays_of_groups(host.groups)
    if (chosen := host.chosen) is not None:
        arrays |= {"chosen_kind": chosen.kind, "chosen_array": chosen.array}
        arrays |= {"chosen_names": _texts(chosen.names), "chosen_weights": chosen.weights}
    return arrays


def rebuilt(arrays: Mapping[str, np.ndarray], plan: Plan | None = None) -> Result:
    """Make the result that `arrays_of` took apart; its plan is among the arrays, or given."""
    if plan is None:
        plan = _plan(arrays)
    chosen = None
    if "chosen_kind" in arrays:
        kind: Any = str(arrays["chosen_kind"])
        names = _words(arrays["chosen_names"])
        chosen = Chosen(kind, arrays["chosen_array"], names, arrays.get("chosen_weights"))
    numbers: dict[str, Any] = {name: float(arrays[name]) for name in NUMBERS}
    numbers |= {name: str(arrays[name]) for name in TEXTS}
    numbers |= {name: tuple(arrays[name].tolist()) for name in PAIRS if name in arrays}
    return Result(
        **numbers,
        status=Status[str(arrays["status"])],
        alpha=arrays["alpha"],
        phi=arrays["phi"],
        plan=plan,
        potentials=(arrays["f"], arrays["g"]),
        names=_words(arrays["names"]),
        iterations=int(arrays["iterations"]),
        history=tuple(Progress(int(row[0]), *row[1:].tolist()) for row in arrays["history"]),
        points=(arrays["x"], arrays["y"]) if "x" in arrays else None,
        groups=groups_in(arrays) if "groups_flat" in arrays else None,
        chosen=chosen,
    )


def arrays_of_groups(groups: Groups) -> dict[str, Any]:
    """Return groups as arrays by name."""
    arrays = {f"groups_{name}": getattr(groups, name) for name in GROUPS}
    return arrays | {f"groups_{name}": _texts(getattr(groups, name)) for name in GROUP_WORDS}


def groups_in(arrays: Mapping[str, np.ndarray]) -> Groups:
    """Make the groups that `arrays_of_groups` took apart."""
    parts: dict[str, Any] = {name: arrays[f"groups_{name}"] for name in GROUPS}
    parts |= {"n_features": int(parts["n_features"]), "listed": parts["listed"].tolist()}
    parts |= {name: _words(arrays[f"groups_{name}"]) for name in GROUP_WORDS}
    return Groups(**parts)


def _plan(arrays: Mapping[str, np.ndarray]) -> Plan:
    if "plan" in arrays:
        return Plan(arrays["plan"], copy=False)
    rows, cols, mass = (arrays[f"plan_{name}"] for name in ("rows", "cols", "mass"))
    n, m = arrays["plan_shape"].tolist()
    return Plan.from_arcs(rows, cols, mass, (n, m))


def _texts(names: Any) -> np.ndarray:
    return np.array(names, dtype=str)


def _words(array: np.ndarray) -> tuple[str, ...]:
    return tuple(array.tolist())
