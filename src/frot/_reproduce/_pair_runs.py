"""One pair of photographs, looked at once and matched in many ways, with and without Hough."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from frot._errors import InputError, hearing
from frot.correspondence._matcher import Matcher
from frot.correspondence._methods import Outcome
from frot.correspondence._pair import Pair
from frot.correspondence._score import point_errors
from frot.correspondence._sight import Sight

__all__ = ["Choice", "PairRun", "errors_of", "run_pair", "sight_of", "solve_way"]

# Settings by which photographs are looked at, once for all choices.
LOOKING = ("side", "enlarge", "mass", "stride")


@dataclass(frozen=True)
class Choice:
    """A way to match.

    Parameters
    ----------
    label : str
        For tables and pictures.
    method : str
        One of `frot.correspondence`'s.
    overrides : dict
        Settings that differ from the matcher's, ``layer`` for "best-layer", and ``layers`` where
        not all are used.

    Examples
    --------
    >>> Choice("FROT as in the paper", "frot", {"steps": 3, "prior": "uniform"}).method
    'frot'
    """

    label: str
    method: str
    overrides: dict[str, Any] = field(default_factory=dict)

    def of(self, matcher: Matcher) -> Matcher:
        """The matcher with this choice, without Hough matching."""
        if seen := [name for name in LOOKING if name in self.overrides]:
            raise InputError(f"choices: {self.label!r} changes {seen[0]}, which choices share")
        settings = {key: value for key, value in self.overrides.items() if key != "layers"}
        way = matcher.having(method=self.method, hough=False, **settings)
        return way.with_layers(self.overrides["layers"]) if "layers" in self.overrides else way


@dataclass(frozen=True, eq=False)
class PairRun:
    """What a choice made of a pair.

    Attributes
    ----------
    plain, hough : arrays of shape (k,)
        Errors of the points in units of the object's size, without and with Hough matching.
    alpha : array of shape (L,)
        Weights of the layers.
    seconds : float
        For solving and reading off; features and costs, which choices share, are not counted.
    status : str
        How the solver ended; empty for methods without one.
    """

    plain: np.ndarray
    hough: np.ndarray
    alpha: np.ndarray
    seconds: float
    status: str


def run_pair(matcher: Matcher, pair: Pair, choices: Mapping[str, Choice]) -> dict[str, PairRun]:
    """Match a pair in every way; features and costs are computed once.

    Parameters
    ----------
    matcher : Matcher
        Network and settings; choices override the latter.
    pair : Pair
    choices : mapping of str to Choice
        None of them may change how photographs are looked at (side, stride, mass).

    Returns
    -------
    dict of str to PairRun

    Raises
    ------
    KeyboardInterrupt
        As soon as a solver was interrupted, so that no half-solved pair is kept.
    """
    ways = {key: choice.of(matcher) for key, choice in choices.items()}
    sight = matcher.look(pair.source, pair.target)
    # Costs are made when first asked for; not on the first choice's clock.
    _ = sight.layers.costs
    return {key: _run(way, sight_of(way, sight), pair) for key, way in ways.items()}


def sight_of(way: Matcher, sight: Sight) -> Sight:
    """Return what a way sees of two photographs that were seen with all layers."""
    names = way.backbone.layers
    if names == sight.layers.names:
        return sight
    one, other = (
        replace(seen, maps=tuple(layer for layer in seen.maps if layer.name in names))
        for seen in (sight.source, sight.target)
    )
    return way.sight(one, other, way.layer_pair(one, other))


def solve_way(way: Matcher, sight: Sight) -> Outcome:
    """Solve, unless it is interrupted; runs that stop at their limit say so in their status."""
    with hearing():
        return way.solve(sight)


def errors_of(way: Matcher, sight: Sight, outcome: Outcome, pair: Pair) -> np.ndarray:
    """Return the errors of the pair's points, (k,), read off as the matcher is set."""
    moved = way.match(sight, outcome).transfer(pair.source_points).points
    return point_errors(moved, pair.target_points, pair.length)


def _run(way: Matcher, sight: Sight, pair: Pair) -> PairRun:
    began = time.perf_counter()
    outcome = solve_way(way, sight)
    status = "" if outcome.result is None else outcome.result.status.name
    plain, hough = (errors_of(one, sight, outcome, pair) for one in (way, way.having(hough=True)))
    return PairRun(plain, hough, outcome.alpha, time.perf_counter() - began, status)
