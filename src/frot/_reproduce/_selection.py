"""Feature selection on gene expression: the paper's figure of accuracies and its table of times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frot._errors import InputError
from frot._progress import counting_bar
from frot._reproduce._reproduction import Reproduction
from frot._reproduce._selection_claims import paired, verdicts
from frot._reproduce._selection_methods import METHODS
from frot._reproduce._selection_picture import draw_selection
from frot._reproduce._selection_protocol import KS
from frot._reproduce._selection_runs import run_splits
from frot._reproduce._selection_tables import selection_tables
from frot._reproduce._selection_times import PAPER_TIMES, agreement, seconds
from frot.datasets import Expression, available, load_expression

__all__ = ["PAPER_SETS", "selection"]

PAPER_SETS = ("colon", "leukemia", "prostate_ge", "gli_85")
STAND_IN = "chowdary"


def selection(
    sets: Sequence[str] | None = None,
    splits: int = 50,
    seed: int = 0,
    *,
    root: Path | None = None,
    workers: int = 1,
    folder: Path | None = None,
    progress: bool = False,
) -> Reproduction:
    """Compute the figure and the table on every set that is there.

    Parameters
    ----------
    sets : sequence of str, optional
        Names of `frot.datasets.NAMES`; all that are on disk by default. Where ``gli_85`` is not,
        ``chowdary``, measured on the same chip, takes its place in the verdicts.
    splits : int
    seed : int
    root : path, optional
        Where the data is; see `frot.datasets.load_expression`.
    workers : int
        Processes.
    folder : path, optional
        Where finished splits are kept, so that a stopped run can be taken up.
    progress : bool
        Whether to show a bar.

    Returns
    -------
    Reproduction
    """
    names = _names(sets, root)
    data = [load_expression(name, root=root) for name in names]
    made: dict[str, Any] = {}
    # A split takes about as long as its set has features.
    effort = float(splits * sum(each.shape[1] for each in data))
    with counting_bar("splits", splits * len(data), effort, enabled=progress) as show:
        for each in data:
            found = run_splits(
                each,
                splits,
                seed,
                workers=workers,
                folder=folder,
                tick=lambda count, size=each.shape[1]: show(count, count * size),
            )
            made[each.name] = _numbers(each, found, "gli_85" in names)
        for each in data:
            made[each.name]["seconds"] = seconds(each.X, each.y, seed)
            made[each.name]["agreement"] = agreement(each.X, each.y, seed)
    numbers = {"figure": "selection", "splits": splits, "seed": seed, "ks": list(KS), "sets": made}
    of_paper = [made[name] for name in _papers(names)]
    told, notes = verdicts(of_paper), _notes(numbers, names)
    return Reproduction(
        "selection",
        numbers,
        told,
        lambda: draw_selection(numbers),
        notes,
        selection_tables(numbers, told, notes),
    )


def _names(sets: Sequence[str] | None, root: Path | None) -> list[str]:
    if sets is not None:
        return list(dict.fromkeys(sets))
    there = available(root)
    if not there:
        raise InputError(
            "none of the data sets is there; set FROT_DATA to the folder that has them, or load "
            "one with frot.datasets.load_expression(name, download=True)"
        )
    return [*_papers(there), *(name for name in there if name not in _papers(there))]


def _papers(names: Sequence[str]) -> list[str]:
    """The paper's sets among `names`, with the stand-in where GLI_85 is not."""
    found = [name for name in PAPER_SETS if name in names]
    return found + [STAND_IN] * (STAND_IN in names and "gli_85" not in names)


def _numbers(data: Expression, found: np.ndarray, with_gli: bool) -> dict[str, Any]:
    keys = list(METHODS)
    by_key = {key: found[:, row] for row, key in enumerate(keys)}
    label = of_paper = data.name
    if label == STAND_IN and not with_gli:
        label, of_paper = "chowdary (in place of GLI_85)", "gli_85"
    return {
        "label": label,
        "n": data.shape[0],
        "d": data.shape[1],
        "classes": {str(key): count for key, count in data.counts.items()},
        "source": data.source,
        "paper_seconds": PAPER_TIMES.get(of_paper, {}),
        "accuracy": {
            key: {
                "mean": [float(value) for value in rows.mean(axis=0)],
                "deviation": [float(value) for value in rows.std(axis=0)],
            }
            for key, rows in by_key.items()
        },
        "differences": {k: paired(by_key["frot_paper"], by_key[k]) for k in keys[1:]},
        "differences_of_defaults": {
            key: paired(by_key["frot"], by_key[key]) for key in keys if key != "frot"
        },
    }


def _notes(numbers: dict[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    sets = numbers["sets"].values()
    notes = [
        "± is the standard error over the splits, which overlap: it says how well the mean over "
        "such splits is known, not how another set of patients would turn out.",
    ]
    shared = [made["agreement"] for made in sets]
    notes.append(
        "FROT as in the paper is its algorithm with frot's factored costs; of the 50 best features "
        f"it has at least {min(shared):.0%} in common with the algorithm as written, which forms a "
        "stack of d cost matrices."
    )
    notes.append("Linear correlation ranks two classes as f_classif does; their lines coincide.")
    missing = [name for name in PAPER_SETS if name not in names]
    if "gli_85" in missing and STAND_IN in names:
        notes.append(
            "GLI_85 was not there; chowdary, of the same chip and d = 22,283 but of other tumours, "
            "stands in its place."
        )
        missing.remove("gli_85")
    if missing:
        notes.append(f"Not among the sets of this run: {', '.join(missing)}.")
    for rival, name in (("f_classif", "f_classif"), ("frot_paper", "FROT as in the paper")):
        found = [made["differences_of_defaults"][rival] for made in sets]
        above = sum(each["mean"] > 2.0 * each["error"] for each in found)
        below = sum(each["mean"] < -2.0 * each["error"] for each in found)
        notes.append(
            f"FROT with frot's defaults is above {name} by more than two standard errors on "
            f"{above} of {len(found)} sets, below on {below}."
        )
    return tuple(notes)
