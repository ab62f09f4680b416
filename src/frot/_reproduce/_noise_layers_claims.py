"""What layers of noise are said to do, put to the numbers."""

from __future__ import annotations

from typing import Any

from frot._reproduce._verdict import Check, Verdict

__all__ = ["claims"]

# Weight on noise that does no harm, and how many standard errors make a difference.
LITTLE, BEYOND = 0.01, 2.0


def claims(numbers: dict[str, Any]) -> tuple[Verdict, ...]:
    """Return the verdicts: the trap, what does not repair it, and what does."""
    made = numbers["networks"]
    count = numbers["noise_layers"]
    trap, scaled, repaired = [], [], []
    for name, network in made.items():
        choices = network["choices"]
        share = count / (count + len(network["layers"]))
        for key in ("paper", "optimum", "sharp"):
            trap += [_drawn(name, choices[key], share), _lost(name, choices[key])]
        for key in ("mean", "regret"):
            if key in choices:
                scaled += [_drawn(name, choices[key], share), _behind(name, choices[key])]
        repaired += [
            _kept_off(name, choices["coherence"]),
            *(_unharmed(name, choices["coherence"], way) for way in ("plain", "hough")),
            *(_behind(name, choices[key]) for key in ("paper", "optimum", "sharp", "uniform")),
        ]
    return (
        _verdict(
            "the trap",
            "The adversary rewards large costs: layers of noise draw more than their share of the "
            "weight, and matches get worse.",
            trap,
        ),
        _verdict(
            "normalising",
            "Costs divided by their means, or less their optima, do not repair it: the noise draws "
            "more than its share, and matches are worse than with the coherence prior.",
            scaled,
        ),
        _verdict(
            "the coherence prior",
            "A prior by coherence keeps the weight off the noise and the matches as they were; "
            "with noise it is ahead of FROT without it, and of uniform weights.",
            repaired,
        ),
    )


def _verdict(name: str, claim: str, checks: list[Check]) -> Verdict:
    return Verdict(name, claim, tuple(checks), "Noise layers,")


def _drawn(name: str, part: dict[str, Any], share: float) -> Check:
    mass = part["noise"]["value"]
    text = f"{name}: {part['label']} puts {mass:.1%} on the noise, whose share is {share:.1%}"
    return Check(text, mass > share)


def _kept_off(name: str, part: dict[str, Any]) -> Check:
    mass = part["noise"]["value"]
    return Check(f"{name}: {part['label']} puts {mass:.2%} on the noise", mass <= LITTLE)


def _lost(name: str, part: dict[str, Any]) -> Check:
    change = part["plain"]["change"]
    text = f"{name}: {part['label']} changes by {points(change)} with noise, without Hough"
    return Check(text, change["value"] < -BEYOND * _error(change))


def _unharmed(name: str, part: dict[str, Any], way: str) -> Check:
    change = part[way]["change"]
    how = "without" if way == "plain" else "with"
    text = f"{name}: {part['label']} changes by {points(change)} with noise, {how} Hough"
    return Check(text, change["value"] >= -BEYOND * _error(change))


def _behind(name: str, part: dict[str, Any]) -> Check:
    ahead = part["plain"]["ahead"]
    text = f"{name}: with noise the coherence prior is {points(ahead)} ahead of {part['label']}"
    return Check(f"{text}, without Hough", ahead["value"] > BEYOND * _error(ahead))


def points(found: dict[str, float | None]) -> str:
    """Write a difference in points of a hundred, with its standard error.

    Examples
    --------
    >>> points({"value": -0.031, "error": 0.012}), points({"value": 0.1, "error": None})
    ('-3.1 ± 1.2', '+10.0')
    """
    value, error = found["value"], found["error"]
    assert value is not None
    return f"{100 * value:+.1f}" + ("" if error is None else f" ± {100 * error:.1f}")


def _error(found: dict[str, float | None]) -> float:
    """A single pair proves nothing."""
    return float("inf") if found["error"] is None else found["error"]
