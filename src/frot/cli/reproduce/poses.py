"""Poses: birds that face either way, objects that do not, and photographs turned by any angle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import collect_warnings
from frot.cli.reproduce.experiment import (
    Check,
    Experiment,
    ExperimentTable,
    Reproduction,
    RunOptions,
    Verdict,
    finish,
    open_store,
    standard_error,
    verdicts_of,
    with_error,
    work_fingerprint,
)
from frot.cli.reproduce.pairs import network
from frot.correspondence import (
    Matcher,
    Pair,
    Photo,
    Turn,
    load_pairs,
    pf_willow,
    point_errors,
    read_photo,
)
from frot.correspondence.poses import frame_of, turned_image
from frot.show.style import BLUE, GREY, ORANGE, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THRESHOLD = 0.1
# Settings were chosen on these, and on the cars of PF-WILLOW.
TUNED_SPECIES = (
    "Vermilion Flycatcher",
    "Gray Kingbird",
    "Warbling Vireo",
    "Red cockaded Woodpecker",
)
ANGLES = tuple(22.5 * k for k in range(9))
# Photographs that are turned, spread over PF-WILLOW.
TURNED = 10
# What poses may win and lose, in points of PCK.
WON, LOST = 8.0, -0.5


# In the order of tables and pictures.
PARTS = (
    "birds, held out",
    "birds, chosen on",
    "PF-WILLOW without cars",
    "ducks",
    "motorbikes",
    "wine bottles",
    "cars",
)


def part_of(pair: Pair) -> str:
    """Return what pairs a pair is scored with."""
    if _is_bird(pair):
        return "birds, chosen on" if pair.category in TUNED_SPECIES else "birds, held out"
    name = pair.category.split("(")[0]
    return f"{name}s" if name != "winebottle" else "wine bottles"


def _is_bird(pair: Pair) -> bool:
    """PF-WILLOW's folders are called car(G), duck(S) and so on."""
    return "(" not in pair.category


@cache
def matcher_of(name: str) -> Matcher:
    """The process's own matcher: a network is too large to send with every pair."""
    return Matcher(network(name))


def match_poses(matcher: Matcher, pair: Pair) -> dict[str, Any]:
    """Match a pair as it is and with A mirrored where that is better."""
    with collect_warnings():
        best = matcher.with_settings(poses="mirror")(pair.source, pair.target)
        # As it is, it is the same match.
        turned = best.pose.turn.mirror
        plain = matcher(pair.source, pair.target) if turned else best
    errors = [_errors(match, pair) for match in (plain, best)]
    return {"none": errors[0], "poses": errors[1], "turned": turned, "gain": best.pose.statistic}


def match_turned(matcher: Matcher, pair: Pair, angle: float) -> dict[str, Any]:
    """Match a photograph with itself, turned, without and with a search over all poses."""
    photo = read_photo(pair.source)
    frame = frame_of(photo.size, Turn(angle=angle), (1.0,))
    target = Photo(np.clip(turned_image(photo.pixels, frame), 0.0, 1.0), "turned")
    truth = pair.source_points @ frame.affine()[:, :2].T + frame.affine()[:, 2]
    length = float(np.ptp(pair.source_points, axis=0).max())
    known = Pair("turned", pair.source, pair.source, pair.source_points, truth, "", length)
    found: dict[str, Any] = {}
    with collect_warnings():
        for key, which in (("none", "none"), ("poses", "all")):
            match = matcher.with_settings(poses=which)(photo, target)
            found[key] = _errors(match, known)
    return {**found, "turned": str(match.pose)}


def _errors(match: Any, pair: Pair) -> list[float]:
    moved = match.transfer(pair.source_points).points
    return point_errors(moved, pair.target_points, pair.length).tolist()


def _do(name: str, sets: Mapping[str, Pair], key: str) -> dict[str, Any]:
    kind, which = key.split(" ", 1)
    if kind == "pair":
        return match_poses(matcher_of(name), sets[which])
    angle, which = which.split(" ", 1)
    return match_turned(matcher_of(name), sets[which], float(angle))


def poses(
    networks: Sequence[str] = ("efficientnet-lite2",),
    pairs: int | None = None,
    *,
    data: Path | None = None,
    workers: int = 1,
    folder: Path | None = None,
    progress: bool = False,
) -> Reproduction:
    """Score pairs and turned photographs without and with a search over poses.

    Arguments as in `RunOptions`; `pairs` are so many of birds and of PF-WILLOW, by default all 240
    and 900.
    """
    chosen = [*load_pairs("birds", data).first(pairs), *pf_willow(data).first(pairs)]
    photos = list({pair.source: pair for pair in chosen if not _is_bird(pair)}.values())
    photos = photos[:: max(1, len(photos) // TURNED)][:TURNED]
    sets = {pair.id: pair for pair in chosen}
    keys = [f"pair {name}" for name in sets]
    keys += [f"angle {angle:g} {pair.id}" for angle in ANGLES for pair in photos]
    made: dict[str, Any] = {}
    with open_store(folder) as kept:
        for name in networks:
            work = work_fingerprint(
                matcher=matcher_of(name).fingerprint, threshold=THRESHOLD, tried="mirror, all"
            )
            do, bar = partial(_do, name, sets), {"what": name, "progress": progress}
            found = finish(kept, work, keys, do, workers=workers, **bar)
            made[name] = summary(found, sets)
    numbers = {"pairs": len(sets), "photographs": len(photos), "networks": made}
    return Reproduction(
        "poses", numbers, claims(numbers), partial(draw_poses, numbers), NOTES, tables(numbers)
    )


NOTES = (
    "Settings were chosen on the car folders of PF-WILLOW and on four species of birds.",
    "Turned photographs are matched with themselves: features differ only by the turn.",
)


def summary(found: Mapping[str, Mapping[str, Any]], sets: Mapping[str, Pair]) -> dict[str, Any]:
    """Return PCK of every part of the pairs, and of every angle, without and with poses."""
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for key, one in found.items():
        kind, which = key.split(" ", 1)
        if kind == "pair":
            pair = sets[which]
            parts.setdefault(part_of(pair), []).append(one)
            if not _is_bird(pair) and not pair.category.startswith("car"):
                parts.setdefault("PF-WILLOW without cars", []).append(one)
        else:
            parts.setdefault(f"{which.split(' ', 1)[0]}°", []).append(one)
    names = [*(name for name in PARTS if name in parts), *(name for name in parts if "°" in name)]
    return {name: _scores(parts[name]) for name in names}


def _scores(those: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    hits = {
        key: 100.0 * np.array([np.mean(np.array(one[key]) <= THRESHOLD) for one in those])
        for key in ("none", "poses")
    }
    gain = hits["poses"] - hits["none"]
    turned = float(np.mean([one["turned"] not in (False, "as is") for one in those]))
    means = {key: float(values.mean()) for key, values in hits.items()}
    return {"count": len(those), **means, "gain": float(gain.mean()),
            "error": standard_error(gain), "turned": turned}  # fmt: skip


def _scores_text(one: Mapping[str, Any]) -> str:
    gain = with_error(one["gain"], one["error"], "+.1f")
    return f"{one['none']:.1f} → {one['poses']:.1f} ({gain})"


def tables(numbers: Mapping[str, Any]) -> tuple[ExperimentTable, ...]:
    """Return a table of the pairs and one of the angles."""
    made = numbers["networks"]
    found = []
    for title, angles in (
        ("Pairs, A mirrored where it helps", False),
        ("Photographs turned", True),
    ):
        rows = dict.fromkeys(
            name for one in made.values() for name in one if name.endswith("°") == angles
        )
        lines = [
            [
                name,
                *(
                    f"{_scores_text(one[name])}; {one[name]['turned']:.0%} of {one[name]['count']}"
                    for one in made.values()
                ),
            ]
            for name in rows
        ]
        found.append(ExperimentTable(title, ["", *made], lines, NOTE))
    return tuple(found)


NOTE = (
    "PCK at .1 per image in percent, as it is → with poses (difference and its standard error); "
    "how many were turned."
)


def claims(numbers: Mapping[str, Any]) -> tuple[Verdict, ...]:
    """Hold the scores against what poses are for."""
    asked = (
        ("birds", "birds that nothing was chosen on gain 8 points", "birds, held out", WON),
        ("rigid", "what does not turn loses no more than half a point", "PF-WILLOW without cars",
         LOST),
    )  # fmt: skip
    made = numbers["networks"]
    claims = [
        (figure, claim, [Check(f"{name}: {_scores_text(one[part])}", one[part]["gain"] >= least)
                         for name, one in made.items() if part in one])
        for figure, claim, part, least in asked
    ]  # fmt: skip
    turned = [
        Check(f"{name}, {angle}: {_scores_text(one[angle])}", one[angle]["gain"] > 0.0)
        for name, one in made.items()
        for angle in one
        if angle.endswith("°") and float(angle[:-1]) >= 45.0
    ]
    claim = "photographs turned by 45 degrees and more are matched better"
    return verdicts_of("Claim", *claims, ("turned", claim, turned))


def draw_poses(numbers: Mapping[str, Any]) -> Figure:
    """Draw PCK against the angle, and of every part of the pairs, before and after."""
    made = numbers["networks"]
    figure: Any = new_figure(10.5, 3.6 * len(made))
    panels = figure.subplots(len(made), 2, squeeze=False)
    # The former is larger, so that it is seen where both are the same.
    ways = (("none", ORANGE, "o", 9.0, "as it is"), ("poses", BLUE, "s", 4.5, "with poses"))
    for (left, right), (name, one) in zip(panels, made.items(), strict=True):
        angles = [part for part in one if part.endswith("°")]
        parts = [part for part in one if not part.endswith("°")]
        for key, colour, marker, size, label in ways:
            left.plot(
                [float(angle[:-1]) for angle in angles], [one[angle][key] for angle in angles],
                marker=marker, markersize=size, color=colour, label=label,
            )  # fmt: skip
            right.plot(
                [one[part][key] for part in parts], range(len(parts)),
                marker=marker, markersize=size, color=colour, linestyle="none",
            )  # fmt: skip
        for line in range(len(parts)):
            right.axhline(line, color=GREY, alpha=0.18, linewidth=0.8, zorder=0)
        left.set_xlabel("degrees that the photograph is turned by")
        left.set_ylabel("PCK at .1, percent")
        left.set_ylim(0.0, 102.0)
        left.set_xticks(np.arange(0.0, 181.0, 45.0))
        left.set_title(name, fontsize=11, loc="left")
        left.legend(frameon=False)
        right.set_yticks(range(len(parts)), [f"{part} ({one[part]['count']})" for part in parts])
        right.invert_yaxis()
        right.set_xlabel("PCK at .1, percent")
        for axes in (left, right):
            tidy(axes)
    return figure


def _check(options: RunOptions) -> None:
    load_pairs("birds", options.data)
    pf_willow(options.data)


EXPERIMENT = Experiment(
    "poses",
    "birds that face the other way are matched mirrored, turned photographs turned back",
    poses,
    _check,
    needs="birds with their parts, and PF-WILLOW",
    pieces="pairs",
    papers=False,
)
