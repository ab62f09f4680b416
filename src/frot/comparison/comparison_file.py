"""A comparison as plain arrays by name, and back: what `Comparison.save` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from frot.comparison._comparison import Comparison, Row
from frot.problem import result as result_file
from frot.problem.result import arrays_of_groups, groups_in

ROW = tuple(field.name for field in fields(Row) if field.name != "result")
WORDS = ("k", "measure", "interrupted", "paid", "feature_names")


@dataclass(frozen=True)
class SavedSet:
    """What a file keeps of an adversary: what the relations between methods depend on."""

    name: str
    on_simplex: bool
    k: int


def arrays_of(comparison: Comparison) -> dict[str, Any]:
    """Return all of a comparison as arrays by name, a result's with its row's number before."""
    X, Y = comparison.points
    weigher = comparison.adversary
    about = {name: getattr(comparison, name) for name in WORDS}
    about["rows"] = [{name: getattr(row, name) for name in ROW} for row in comparison.rows]
    if weigher is not None:
        about["adversary"] = [weigher.name, weigher.on_simplex, weigher.k]
    arrays = {"X": X, "Y": Y, **arrays_of_groups(comparison.groups)}
    for at, row in enumerate(comparison.rows):
        if row.result is None:
            continue
        known = result_file.arrays_of(row.result)
        if all(np.array_equal(known[name], side) for name, side in (("x", X), ("y", Y))):
            # The points of all are written once.
            known |= {"x": None, "y": None}
            about["rows"][at]["points"] = True
        arrays |= {f"{at}_{name}": array for name, array in known.items()}
    return arrays | {"about": json.dumps(about, default=int)}


def rebuilt(arrays: Mapping[str, np.ndarray]) -> Comparison:
    """Make the comparison that `arrays_of` took apart."""
    about = json.loads(str(arrays["about"]))
    points = (arrays["X"], arrays["Y"])
    rows = []
    for at, saved in enumerate(about.pop("rows")):
        start = f"{at}_"
        known = {
            name.removeprefix(start): array
            for name, array in arrays.items()
            if name.startswith(start)
        }
        if saved.pop("points", False):
            known |= {"x": points[0], "y": points[1]}
        saved["warnings"] = tuple(saved["warnings"])
        rows.append(Row(**saved, result=result_file.rebuilt(known) if known else None))
    weigher = about.pop("adversary", None)
    about["feature_names"] = tuple(about["feature_names"])
    kept: Any = None if weigher is None else SavedSet(*weigher)
    return Comparison(tuple(rows), points, groups_in(arrays), adversary=kept, **about)
