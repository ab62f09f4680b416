"""Every pair in every way, on several workers, each kept on disk as soon as it is finished."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from frot._checkpoint import Checkpoint
from frot._files import make_folder
from frot._fingerprint import fingerprint
from frot._reproduce._correspondence_choices import READINGS
from frot._reproduce._networks import network
from frot._reproduce._pair_runs import Choice, errors_of, sight_of, solve_way
from frot._spread import spread
from frot.correspondence import Matcher, Pair, PairSet

__all__ = ["Runs", "match_pair", "matcher_of", "run_network"]


@dataclass(frozen=True, eq=False)
class Runs:
    """What all choices made of all pairs with one network.

    Attributes
    ----------
    errors : array of shape (pairs, choices, readings, points)
        In units of the object's size; NaN where a choice was not run.
    alpha : array of shape (pairs, choices, L)
    seconds : array of shape (pairs, choices)
        For solving; features and costs are shared.
    """

    network: str
    layers: tuple[str, ...]
    choices: tuple[str, ...]
    errors: np.ndarray
    alpha: np.ndarray
    seconds: np.ndarray


def match_pair(
    matcher: Matcher, pair: Pair, choices: Mapping[str, Choice], skipped: Sequence[str] = ()
) -> np.ndarray:
    """Return errors, weights and seconds of every choice, (choices, 4 k + L + 1) for k points."""
    sight = matcher.look(pair.source, pair.target)
    _ = sight.layers.costs
    count, names = len(pair.source_points), sight.layers.names
    found = np.full((len(choices), len(READINGS) * count + len(names) + 1), np.nan)
    for row, (name, choice) in zip(found, choices.items(), strict=True):
        if name in skipped:
            continue
        way = choice.of(matcher)
        own = sight_of(way, sight)
        outcome = solve_way(way, own)
        errors = [
            errors_of(way.having(transfer=transfer, hough=hough), own, outcome, pair)
            for transfer, hough in READINGS
        ]
        alpha = dict(zip(own.layers.names, outcome.alpha, strict=True))
        row[:-1] = np.concatenate([*errors, [alpha.get(layer, 0.0) for layer in names]])
        row[-1] = 0.0 if outcome.result is None else outcome.result.time
    return found


def run_network(
    name: str,
    pairs: PairSet,
    choices: Mapping[str, Choice],
    rare: Sequence[str] = (),
    *,
    every: int = 10,
    workers: int = 1,
    folder: Path | None = None,
    tick: Callable[[int], None] = lambda count: None,
) -> Runs:
    """Match all pairs in every way, taking up a run that was stopped.

    Parameters
    ----------
    name : str
        Of the network.
    pairs : PairSet
        Pairs of the same number of points.
    choices : mapping of str to Choice
    rare : sequence of str
        Choices for one pair in `every` only.
    workers : int
        Processes.
    folder : path, optional
        Where finished pairs are kept; without it nothing is.
    tick : callable
        Called with the number of pairs that became available, old ones at once.
    """
    matcher = matcher_of(name)
    with _kept(name, matcher, pairs, choices, rare, every, folder) as kept:
        done = {k: v for k, v in kept.done.items() if k < len(pairs.pairs)} if kept else {}
        tick(len(done))
        missing = [index for index in range(len(pairs.pairs)) if index not in done]
        work = partial(_numbered, name, pairs.pairs, dict(choices), tuple(rare), every)
        for index, found in spread(work, missing, workers, _prepare):
            if kept is not None:
                kept.add(index, found)
            done[index] = found
            tick(1)
    layers = matcher.backbone.layers
    rows = np.stack([done[index] for index in range(len(pairs.pairs))])
    points = (rows.shape[2] - len(layers) - 1) // len(READINGS)
    errors = rows[:, :, : points * len(READINGS)]
    shape = (len(rows), len(choices), len(READINGS), points)
    return Runs(
        name, layers, tuple(choices), errors.reshape(shape),
        rows[:, :, points * len(READINGS) : -1], rows[:, :, -1],
    )  # fmt: skip


def _prepare() -> None:
    """One thread a worker: they share the processors."""
    import torch

    torch.set_num_threads(1)


@cache
def matcher_of(name: str) -> Matcher:
    """The process's own matcher: a network is too large to send with every pair, or load twice."""
    return Matcher(network(name))


def _numbered(
    name: str,
    pairs: Sequence[Pair],
    choices: Mapping[str, Choice],
    rare: Sequence[str],
    every: int,
    index: int,
) -> tuple[int, np.ndarray]:
    return index, match_pair(matcher_of(name), pairs[index], choices, rare if index % every else ())


def _kept(
    name: str,
    matcher: Matcher,
    pairs: PairSet,
    choices: Mapping[str, Choice],
    rare: Sequence[str],
    every: int,
    folder: Path | None,
) -> AbstractContextManager[Checkpoint | None]:
    if folder is None:
        return nullcontext()
    ways = {key: choice.of(matcher).fingerprint for key, choice in choices.items()}
    about = fingerprint(
        ways=ways, pairs=pairs.fingerprint, readings=READINGS, rare=tuple(rare), every=every
    )
    return Checkpoint(make_folder(folder) / f"{name}-{len(pairs.pairs)}.checkpoint", about)
