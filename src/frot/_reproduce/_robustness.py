"""Robustness to noise: FROT beside SRW, max-sliced and plain transport, as SRW's paper has it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy.stats import ortho_group

from frot._progress import counting_bar
from frot._reproduce._reproduction import Reproduction
from frot._reproduce._robustness_claims import claims
from frot._reproduce._robustness_data import CLOUDS, INFORMATIVE
from frot._reproduce._robustness_picture import draw_robustness
from frot._reproduce._robustness_runs import METHODS, PROVEN, Setting, measure, sweep

__all__ = ["robustness"]

FEATURES = 30
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
COUNTS = (0, 5, 10, 20, 40, 80)
# Shares of n at which the error is measured.
SIZES = (0.25, 0.5, 1.0, 2.0, 4.0)


def robustness(
    n: int = 100,
    seed: int = 0,
    *,
    repeats: int = 3,
    levels: Sequence[float] = LEVELS,
    counts: Sequence[int] = COUNTS,
    sizes: Sequence[float] = SIZES,
    progress: bool = False,
) -> Reproduction:
    """Sweep the noise, the features of noise and the points, on two pairs of clouds.

    Both have two informative features, and others that are normal noise: a fragmented hypercube,
    x + 2 sign(x), and a disk that becomes an annulus. A method's value is held against its own
    value on the informative features alone, and against the true one, which noise of the same
    distribution on both sides does not change.

    Parameters
    ----------
    n : int
        Points in each cloud; a quarter to four times as many where n is swept.
    seed : int
    repeats : int
        Draws of every setting, whose mean is told.
    levels, counts, sizes :
        Standard deviations and numbers of features of noise, and shares of n.
    progress : bool
        Show a bar.

    Examples
    --------
    >>> made = robustness(8, repeats=1, levels=[0.0, 0.2], counts=[0], sizes=[1.0])
    >>> made.numbers["over_level"]["hypercube"][0]["ot"]["ratio"]
    1.0
    """
    seeds = range(seed, seed + repeats)
    noise = FEATURES - INFORMATIVE
    sweeps = {
        "over_level": [Setting(n, noise, float(level)) for level in levels],
        "over_features": [Setting(n, count, 1.0) for count in counts],
        "over_n": [Setting(max(2, round(share * n)), noise, 1.0) for share in sizes],
    }
    every = list(chain.from_iterable(sweeps.values()))
    count = len(every) * len(CLOUDS) * repeats
    effort = len(CLOUDS) * repeats * float(sum(s.n * (s.noise + 20) for s in every))
    with counting_bar("robustness", count, effort, enabled=progress) as show:
        found = {name: sweep(settings, seeds, show) for name, settings in sweeps.items()}
    numbers: dict[str, Any] = {
        "figure": "robustness",
        "n": n,
        "seed": seed,
        "repeats": repeats,
        "features": FEATURES,
        "methods": METHODS,
        "measures": {
            "ratio": "value over the method's own value on the informative features alone",
            "error": "|value / true value - 1|",
            "recovered": "share of the adversary's choice on the informative features",
            "excess": "cost of the plan there: 0 is the noiseless plan of OT, 1 the plan a b^T",
        },
        "truth": {name: cloud.truth for name, cloud in CLOUDS.items()},
        **found,
        "turned": {name: _turned(name, Setting(n, noise, 1.0), seeds) for name in CLOUDS},
    }
    notes = (
        "True values do not change with noise that is the same on both sides; what changes is "
        "how far a sample of n points is from them.",
        "For FROT every feature is a group; SRW is told the right dimension, k = 2.",
        *_unsolved(found),
    )
    return Reproduction(
        "robustness", numbers, claims(numbers), lambda: draw_robustness(numbers), notes
    )


def _unsolved(found: dict[str, dict[str, list[dict[str, Any]]]]) -> list[str]:
    """Say where SRW's solver stopped early: its value there is an upper bound, no more."""
    points = [p for by_cloud in found.values() for points in by_cloud.values() for p in points]
    wide = [point["srw"]["gap"] for point in points if point["srw"]["gap"] > PROVEN]
    if not wide:
        return []
    return [
        f"SRW's solver stopped before its tolerance in {len(wide)} of {len(points)} settings, with "
        f"gaps up to {max(wide):.0%}: its values there (hollow in the picture) are upper bounds, "
        "and its choice and plan may not be the best."
    ]


def _turned(name: str, setting: Setting, seeds: Sequence[int]) -> dict[str, dict[str, float]]:
    """Measure again with all features turned at random, which mixes noise into every one."""
    cloud = CLOUDS[name]
    kept: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
    for seed in seeds:
        clean, (x, y) = setting.draw(cloud, seed)
        turn = ortho_group.rvs(x.shape[1], random_state=seed)
        for method, found in measure(cloud, clean, (x @ turn, y @ turn)).items():
            kept[method].append(found)
    return {
        method: {key: float(np.mean([run[key] for run in runs])) for key in ("ratio", "excess")}
        for method, runs in kept.items()
    }
