"""Search for the pose of A that suits B best, on coarse cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from frot._base.stopping import Interrupted
from frot.correspondence._features import Grid
from frot.correspondence._looks import seen_frame
from frot.correspondence._photo import MIN_SIDE
from frot.correspondence.layers import PairFeatures, PhotoFeatures
from frot.correspondence.poses import AS_IS, POSES, Pose, Taps, Turn, choose, evidence
from frot.correspondence.settings import Settings

if TYPE_CHECKING:
    from frot.correspondence._matcher import Matcher

# Poses are told apart long before plans are as sharp as they will be.
COARSE_TOL = 1e-2
# Of many poses so many are compared by their plans.
FEW_TURNS = 3


def coarse_matcher(matcher: Matcher, stride: float) -> Matcher:
    """Return what compares poses: a matcher with cells so far apart, whatever the method."""
    return matcher.with_settings(
        method="frot", stride=stride, steps=0, tol=COARSE_TOL, prior="coherence",
        eta=Settings.eta, eps=Settings.eps, normalise="none",
    )  # fmt: skip


def search_poses(
    matcher: Matcher, coarse: Matcher, pair: PairFeatures
) -> tuple[PairFeatures, Pose]:
    """Return two photographs' features with A in the pose that suits B best, and that pose.

    Poses are those that the matcher is to try. They are compared on the cells of the `coarse`
    matcher, twice as far apart, which takes a sixteenth of the work.
    """
    which = matcher.settings.poses
    found = {AS_IS: _evidence(coarse, pair.source, pair)}
    best, one = -np.inf, pair.source
    for turn in _promising(matcher, pair, POSES[which]):
        seen = matcher.turned(pair.source, turn)
        found[turn] = _evidence(coarse, seen, pair)
        if (total := sum(found[turn].values())) > best:
            best, one = total, seen
    pose = choose(found, which)
    if pose.turn == AS_IS:
        return pair, pose
    return replace(pair, source=one, layers=matcher.layer_pair(one, pair.target)), pose


def _promising(matcher: Matcher, pair: PairFeatures, turns: Sequence[Turn]) -> Sequence[Turn]:
    """The turns worth a look: where there are many, those most coherent at half the side."""
    if len(turns) <= FEW_TURNS:
        return turns
    assert matcher.settings.side is not None
    small = matcher.with_settings(side=max(matcher.settings.side // 2, MIN_SIDE))
    one, other = small.features(pair.source.photo), small.features(pair.target.photo)
    coherent = {
        turn: small.layer_pair(small.turned(one, turn), other).coherences.mean() for turn in turns
    }
    return sorted(turns, key=lambda turn: -coherent[turn])[:FEW_TURNS]


def _evidence(coarse: Matcher, one: PhotoFeatures, pair: PairFeatures) -> dict[str, float]:
    """What speaks for seeing A as it is seen here; the pair has finer cells."""
    layers = coarse.layer_pair(one, pair.target)
    fine = (pair.layers.source_grid, pair.a), (pair.layers.target_grid, pair.b)
    grids = (layers.source_grid, layers.target_grid)
    a, b = (_coarser(*side, grid) for side, grid in zip(fine, grids, strict=True))
    coarse_pair = PairFeatures(one, pair.target, layers, a, b)
    try:
        solved = coarse.solve(coarse_pair).votes
    except Interrupted:
        # Nothing that was solved so far is an answer.
        raise KeyboardInterrupt from None
    votes, grid, _ = seen_frame(coarse_pair, solved)
    return evidence(layers.coherences, votes, grid, layers.target_grid, layers.home)


def _coarser(fine: Grid, mass: np.ndarray, grid: Grid) -> np.ndarray:
    """Weights of a coarser grid's cells, sampled from those of a finer one."""
    found = Taps.of(grid.centres / fine.stride, fine, edges=True).matrix @ mass
    total = found.sum()
    return found / total if total > 0.0 else np.full(grid.count, 1.0 / grid.count)
