"""What is claimed of robust transports under noise, put to the numbers."""

from __future__ import annotations

import math
from typing import Any

from frot._reproduce._robustness_data import CLOUDS
from frot._reproduce._robustness_runs import METHODS, PROVEN
from frot._reproduce._verdict import Check, Verdict

__all__ = ["claims"]

ROBUST = ("frot", "srw", "max_sliced")
# What counts as found, and as a plan about as good as without noise.
FOUND, GOOD = 0.9, 0.1
# Noise at which choices and plans are judged: no louder than what the clouds move by.
LEVEL = 1.0


def claims(numbers: dict[str, Any]) -> tuple[Verdict, ...]:
    """Return the verdicts: values, errors, choices, plans, and what a rotation does."""
    level, features = numbers["over_level"], numbers["over_features"]
    return (
        _verdict("values under louder noise", "Robust values move less under noise than OT's.",
                 _values(level, lambda p: f"noise of {p['level']:g}")),
        _verdict("values under more noise", "And with the number of features of noise.",
                 _values(features, lambda p: f"{p['noise_features']} features of noise")),
        _verdict("FROT and SRW", "FROT's value moves no more under noise than SRW's.",
                 _against_srw(level)),
        _verdict("errors", "With n points the error of robust values is below that of OT's, and "
                 "is less with the most than with the fewest.", _errors(numbers["over_n"])),
        _verdict("choices", "The adversaries find the two informative features.",
                 _choices(level)),
        _verdict("plans", "Robust plans are about as good on these features as without noise.",
                 _plans(level)),
        _verdict("rotation", "Values of robust methods do not depend on the coordinates.",
                 _rotation(numbers)),
    )  # fmt: skip


def _verdict(name: str, claim: str, checks: list[Check]) -> Verdict:
    return Verdict(name, claim, tuple(checks), "Robustness,")


def _moved(point: dict[str, Any], method: str) -> float:
    return abs(math.log(point[method]["ratio"]))


def _values(sweep: dict[str, Any], where: Any) -> list[Check]:
    checks = []
    for cloud, what in CLOUDS.items():
        last = sweep[cloud][-1]
        told = ", ".join(f"{METHODS[m]} x{last[m]['ratio']:.2f}" for m in METHODS)
        noisy = [point for point in sweep[cloud] if point["level"] and point["noise_features"]]
        holds = all(_moved(p, m) < _moved(p, "ot") for p in noisy for m in ROBUST)
        checks.append(Check(f"{what.name}: at {where(last)} {told}", holds))
    return checks


def _against_srw(sweep: dict[str, Any]) -> list[Check]:
    checks = []
    for cloud, what in CLOUDS.items():
        # Where SRW is not solved, nothing can be said.
        solved = [point for point in sweep[cloud] if point["srw"]["gap"] <= PROVEN]
        own = {m: max(_moved(p, m) for p in solved) for m in ("frot", "srw")}
        text = f"FROT by at most {math.expm1(own['frot']):.1%}, SRW by {math.expm1(own['srw']):.1%}"
        level = max(point["level"] for point in solved)
        checks.append(
            Check(f"{what.name}: {text}, for noise up to {level:g}", own["frot"] <= own["srw"])
        )
    return checks


def _errors(sweep: dict[str, Any]) -> list[Check]:
    checks = []
    for cloud, what in CLOUDS.items():
        for method in ROBUST:
            ends = [sweep[cloud][place][method]["error"] for place in (0, -1)]
            sizes = [sweep[cloud][place]["n"] for place in (0, -1)]
            less = all(p[method]["error"] < p["ot"]["error"] for p in sweep[cloud])
            text = " to ".join(f"{e:.1%} (n = {n})" for e, n in zip(ends, sizes, strict=True))
            plain = f"OT's last is {sweep[cloud][-1]['ot']['error']:.0%}"
            checks.append(
                Check(f"{what.name}: {METHODS[method]} {text}; {plain}", less and ends[1] < ends[0])
            )
    return checks


def _judged(sweep: dict[str, Any], cloud: str) -> list[dict[str, Any]]:
    return [point for point in sweep[cloud] if 0.0 < point["level"] <= LEVEL]


def _choices(sweep: dict[str, Any]) -> list[Check]:
    checks = []
    for cloud, what in CLOUDS.items():
        for method in ROBUST:
            least = min(point[method]["recovered"] for point in _judged(sweep, cloud))
            text = f"{METHODS[method]} has at least {least:.1%} on them for noise up to {LEVEL:g}"
            last = sweep[cloud][-1]
            text += f" ({last[method]['recovered']:.1%} at {last['level']:g})"
            checks.append(Check(f"{what.name}: {text}", least >= FOUND))
    return checks


def _plans(sweep: dict[str, Any]) -> list[Check]:
    checks = []
    for cloud, what in CLOUDS.items():
        worst = {m: max(p[m]["excess"] for p in _judged(sweep, cloud)) for m in METHODS}
        for method in ROBUST:
            text = (
                f"{METHODS[method]}'s plan is {worst[method]:.1%} of the way to no matching for "
                f"noise up to {LEVEL:g}, OT's {worst['ot']:.1%}"
            )
            good = worst[method] <= GOOD and worst[method] < worst["ot"]
            checks.append(Check(f"{what.name}: {text}", good))
    return checks


def _rotation(numbers: dict[str, Any]) -> list[Check]:
    checks = []
    for cloud, what in CLOUDS.items():
        points = numbers["over_level"][cloud]
        straight = min(points, key=lambda point: abs(point["level"] - LEVEL))
        for method in ROBUST:
            before, after = straight[method]["ratio"], numbers["turned"][cloud][method]["ratio"]
            text = f"{METHODS[method]} x{before:.2f}, and x{after:.2f} after a random rotation"
            checks.append(Check(f"{what.name}: {text}", abs(after / before - 1.0) <= 0.05))
    return checks
