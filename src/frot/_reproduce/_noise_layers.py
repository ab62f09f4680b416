"""Layers of noise among the real ones: where alpha goes, and what it does to the matches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frot._errors import InputError
from frot._progress import counting_bar
from frot._reproduce._networks import network
from frot._reproduce._noise_layers_claims import claims
from frot._reproduce._noise_layers_picture import draw_noise_layers
from frot._reproduce._noise_layers_runs import CHOICES, Told, run_noisy
from frot._reproduce._noise_layers_tables import noise_layers_tables
from frot._reproduce._reproduction import Reproduction
from frot.correspondence._datasets import PairSet, pf_willow
from frot.correspondence._score import Estimate, pck, pck_difference

__all__ = ["noise_layers"]

THRESHOLD = 0.1
NOISE = 3
# Below this many pairs not even the standard errors are known.
FEW = 10


def noise_layers(
    pairs: int = 20,
    seed: int = 0,
    *,
    networks: Sequence[str] = ("efficientnet-lite2",),
    regret: bool = False,
    root: str | os.PathLike[str] | None = None,
    folder: Path | None = None,
    progress: bool = False,
) -> Reproduction:
    """Plant three layers of noise in a network and match pairs of PF-WILLOW in every way.

    Parameters
    ----------
    pairs : int
        How many of the 900, spread evenly over the classes.
    seed : int
        Of the noise.
    networks : sequence of str
        Of `frot._reproduce._networks.NETWORKS`.
    regret : bool
        Whether costs less their own optima are tried too, which takes longer than all the rest.
    root : path, optional
        Where PF-WILLOW is, as for `frot.correspondence.pf_willow`.
    folder : path, optional
        Where finished pairs are kept, so that a stopped run can be taken up.
    progress : bool
        Whether to show a bar.

    Returns
    -------
    Reproduction
    """
    names = list(dict.fromkeys(networks))
    if not names:
        raise InputError("networks: is empty; name at least one")
    data = pf_willow(root)
    # All of them first: a missing file is told before an hour's work.
    backbones = {name: network(name, root) for name in names}
    keys = [key for key in CHOICES if regret or key != "regret"]
    count = len(data.first(pairs))
    made: dict[str, Any] = {}
    with counting_bar("pairs", count * len(names), count * len(names), enabled=progress) as show:
        for name, backbone in backbones.items():
            found = run_noisy(
                backbone,
                data,
                count,
                keys,
                noise=NOISE,
                seed=seed,
                folder=folder,
                tick=lambda: show(1, 1.0),
            )
            made[name] = {"layers": list(backbone.layers), **summary(found)}
    numbers: dict[str, Any] = {
        "figure": "noise-layers",
        "pairs": count,
        "classes": _classes(data, count),
        "seed": seed,
        "noise_layers": NOISE,
        "threshold": THRESHOLD,
        "measures": {
            "noise": "weight of the layers of noise, alpha, mean over the pairs",
            "quiet, noisy": "PCK per image without and with the layers of noise",
            "change": "noisy less quiet, on the same pairs",
            "ahead": "coherence prior less this choice, with the layers of noise",
        },
        "networks": made,
    }
    told, notes = claims(numbers), _notes(numbers)
    return Reproduction(
        "noise-layers",
        numbers,
        told,
        lambda: draw_noise_layers(numbers),
        notes,
        noise_layers_tables(numbers, told, notes),
    )


def summary(found: dict[str, list[Told]]) -> dict[str, Any]:
    """Return weights and scores of every choice, with standard errors over the pairs."""
    best = found["coherence"]
    choices: dict[str, Any] = {}
    for key, those in found.items():
        part: dict[str, Any] = {"label": CHOICES[key].label}
        masses = np.array([told.noisy.alpha[-NOISE:].sum() for told in those])
        alone = len(masses) < 2
        part["noise"] = {
            "value": float(masses.mean()),
            "error": None if alone else float(masses.std(ddof=1) / np.sqrt(len(masses))),
        }
        part["alpha"] = {
            "quiet": np.mean([told.quiet.alpha for told in those], axis=0).tolist(),
            "noisy": np.mean([told.noisy.alpha for told in those], axis=0).tolist(),
        }
        for way in ("plain", "hough"):
            quiet = [getattr(told.quiet, way) for told in those]
            noisy = [getattr(told.noisy, way) for told in those]
            theirs = [getattr(told.noisy, way) for told in best]
            part[way] = {
                "quiet": _estimate(pck(quiet, THRESHOLD)),
                "noisy": _estimate(pck(noisy, THRESHOLD)),
                "change": _estimate(pck_difference(noisy, quiet, THRESHOLD)),
                "ahead": _estimate(pck_difference(theirs, noisy, THRESHOLD)),
            }
        part["seconds"] = float(np.mean([told.noisy.seconds for told in those]))
        part["unconverged"] = sum(told.noisy.status != "CONVERGED" for told in those)
        choices[key] = part
    return {"choices": choices}


def _estimate(found: Estimate) -> dict[str, float | None]:
    """For JSON, which has no NaN: a single pair has no spread."""
    error = found.standard_error
    return {"value": found.value, "error": None if np.isnan(error) else error}


def _classes(data: PairSet, count: int) -> dict[str, int]:
    return data.first(count).counts


def _notes(numbers: dict[str, Any]) -> tuple[str, ...]:
    counts = numbers["classes"]
    notes = [
        f"{numbers['pairs']} pairs of PF-WILLOW, of {len(counts)} classes; ± is the standard error "
        "over them, of differences that of paired ones.",
        f"{numbers['noise_layers']} layers of independent Gaussian noise for every photograph, of "
        "the shapes of the network's own maps; the claims are not the paper's.",
    ]
    if numbers["pairs"] < FEW:
        notes.append(
            f"Of fewer than {FEW} pairs standard errors are themselves guesses: take no verdict "
            "for granted."
        )
    for name, made in numbers["networks"].items():
        if "regret" not in made["choices"]:
            notes.append("Regret was left out; --regret adds it, at 15 s to 30 s a solve.")
        short = {
            part["label"]: part["unconverged"]
            for key, part in made["choices"].items()
            if key != "paper" and part["unconverged"]
        }
        for label, count in short.items():
            notes.append(f"{name}: {label} stopped before its tolerance on {count} pairs.")
    return tuple(dict.fromkeys(notes))
