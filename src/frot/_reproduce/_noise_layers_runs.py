"""Every pair with and without layers of noise, in every way; what is finished is on the disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from frot._checkpoint import Checkpoint
from frot._files import make_folder
from frot._fingerprint import fingerprint
from frot._reproduce._pair_runs import Choice, PairRun, run_pair
from frot.correspondence._backbone import Backbone
from frot.correspondence._backbones._noise import NoisyBackbone
from frot.correspondence._datasets import PairSet
from frot.correspondence._matcher import Matcher
from frot.correspondence._pair import Pair

__all__ = ["CHOICES", "Told", "run_noisy"]

# The paper's entropy and its eta, whatever the library's own are.
PLAIN = {"prior": "uniform", "eta": 0.3}
CHOICES: dict[str, Choice] = {
    "uniform": Choice("OT, uniform mean", "uniform"),
    "paper": Choice("FROT of the paper, T = 3, η = .3", "frot", {**PLAIN, "steps": 3}),
    "optimum": Choice("FROT, optimum, η = .3", "frot", PLAIN),
    "sharp": Choice("FROT, optimum, η = .1", "frot", {**PLAIN, "eta": 0.1}),
    "mean": Choice("FROT, mean-normalised, η = .3", "frot", {**PLAIN, "normalise": "mean"}),
    "regret": Choice("FROT, regret, η = .3", "frot", {**PLAIN, "normalise": "regret"}),
    "weighted": Choice("OT, weighted by coherence", "weighted"),
    "coherence": Choice("FROT, coherence prior (default)", "frot"),
}


@dataclass(frozen=True, eq=False)
class Told:
    """What a choice made of a pair, without noise and with it.

    Attributes
    ----------
    quiet, noisy : PairRun
    """

    quiet: PairRun
    noisy: PairRun

    def packed(self) -> np.ndarray:
        """As one array, for a checkpoint: a row each, the weights of absent layers zero."""
        absent = len(self.noisy.alpha) - len(self.quiet.alpha)
        rows = []
        for run, more in ((self.quiet, absent), (self.noisy, 0)):
            head = [float(len(run.plain)), float(absent), run.seconds, run.status == "CONVERGED"]
            rows.append(np.concatenate([head, run.plain, run.hough, run.alpha, np.zeros(more)]))
        return np.stack(rows)

    @staticmethod
    def unpacked(array: np.ndarray) -> Told:
        """The reverse; of the status only whether it was reached is kept."""
        points, absent = (int(x) for x in array[0, :2])
        runs = []
        for row, cut in zip(array, (absent, 0), strict=True):
            plain, hough, alpha = np.split(row[4:], [points, 2 * points])
            status = "CONVERGED" if row[3] else ""
            runs.append(PairRun(plain, hough, alpha[: len(alpha) - cut], float(row[2]), status))
        return Told(*runs)


def run_noisy(
    backbone: Backbone,
    pairs: PairSet,
    count: int,
    keys: Sequence[str],
    *,
    noise: int = 3,
    seed: int = 0,
    folder: Path | None = None,
    tick: Callable[[], None] = lambda: None,
) -> dict[str, list[Told]]:
    """Match pairs in every way asked for, taking up a run that was stopped.

    Parameters
    ----------
    backbone : Backbone
    pairs : PairSet
        All of them.
    count : int
        How many are matched, spread over the set.
    keys : sequence of str
        Of `CHOICES`.
    noise, seed : int
        Layers of noise, and what they are drawn from.
    folder : path, optional
        Where finished pairs are kept.
    tick : callable
        Called for every pair that is done.

    Returns
    -------
    dict of str to list of Told
        For every choice, the pairs in their order.
    """
    matcher = Matcher(NoisyBackbone(backbone, noise, seed))
    numbers = {pair.id: number for number, pair in enumerate(pairs)}
    places = {key: place for place, key in enumerate(CHOICES)}
    found: dict[str, list[Told]] = {key: [] for key in keys}
    with _kept(backbone.name, matcher, pairs, folder) as kept:
        for pair in pairs.first(count):
            # Numbers do not depend on how many pairs or choices are asked for this time.
            at = {key: numbers[pair.id] * len(CHOICES) + places[key] for key in keys}
            done = {} if kept is None else kept.done
            known = {key: Told.unpacked(done[k]) for key, k in at.items() if k in done}
            if missing := [key for key in keys if key not in known]:
                made = _both(matcher, backbone.layers, pair, missing)
                for key, told in made.items():
                    if kept is not None:
                        kept.add(at[key], told.packed())
                known |= made
            for key in keys:
                found[key].append(known[key])
            tick()
    return found


def _both(
    matcher: Matcher, real: Sequence[str], pair: Pair, keys: Sequence[str]
) -> dict[str, Told]:
    """Match with noise, and without it from the same features."""
    choices = {key: CHOICES[key] for key in keys}
    noisy = run_pair(matcher, pair, choices)
    quiet = run_pair(matcher.with_layers(real), pair, choices)
    return {key: Told(quiet[key], noisy[key]) for key in keys}


def _kept(
    name: str, matcher: Matcher, pairs: PairSet, folder: Path | None
) -> AbstractContextManager[Checkpoint | None]:
    """What the errors depend on names the file."""
    if folder is None:
        return nullcontext()
    from frot import __version__

    about = fingerprint(
        matcher=matcher.fingerprint, pairs=pairs.fingerprint, choices=CHOICES, version=__version__
    )
    return Checkpoint(make_folder(folder) / f"{name}-{about[:8]}.checkpoint", about)
