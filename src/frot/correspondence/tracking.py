"""Points through the frames of a video, with the features of each frame worked out once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError
from frot._base.validate import check_choice, check_flag
from frot.solvers.progress import counting_bar

if TYPE_CHECKING:
    from frot.correspondence._matcher import Matcher
    from frot.correspondence.match import Match

__all__ = ["Tracked", "track_points"]


@dataclass(frozen=True, eq=False)
class Tracked:
    """Where points are in a frame.

    Attributes
    ----------
    frame : int
        Its number; the one that the points are given in is 0.
    points : array of shape (k, 2)
        x and y in pixels of the frame.
    confidence : array of shape (k,)
        From 0 to 1; of points that go from frame to frame the least of all steps until here.
    match : Match, optional
        The match of this frame; None for the first frame.
    """

    frame: int
    points: np.ndarray
    confidence: np.ndarray
    match: Match | None


def track_points(
    matcher: Matcher, frames: Iterable[Any], points: Any, follow: str, progress: bool
) -> Iterator[Tracked]:
    """Follow points through frames; see `Matcher.track`."""
    check_choice(follow, "follow", ("first", "previous"))
    check_flag(progress, "progress")
    if isinstance(frames, str | bytes) or not isinstance(frames, Iterable):
        raise InputError(
            f"frames: {type(frames).__name__} is not a list of photographs; give paths or "
            "arrays, such as imageio.v3.imiter(path) reads from a video"
        )
    count = len(frames) if isinstance(frames, Sized) else None
    return _tracked(matcher, iter(frames), points, follow == "previous", count, progress)


def _tracked(
    matcher: Matcher, frames: Iterator[Any], points: Any, chained: bool, count: int | None,
    progress: bool,
) -> Iterator[Tracked]:  # fmt: skip
    with counting_bar("frames", count or 0, count or 0, enabled=progress and bool(count)) as show:
        first, seen, now = None, None, None
        for number, frame in enumerate(frames):
            began = time.perf_counter()
            found = matcher.features(frame)
            if first is None or seen is None or now is None:
                places = found.photo.check_points(points)
                first = now = Tracked(0, places, np.ones(len(places)), None)
                seen = found
            else:
                match = matcher.matched(matcher.join(seen, found), began)
                start = now if chained else first
                moved = match.transfer(start.points)
                sure = np.minimum(start.confidence, moved.confidence)
                now = Tracked(number, moved.points, sure, match)
                seen = found if chained else seen
            show(1, 1.0)
            yield now
