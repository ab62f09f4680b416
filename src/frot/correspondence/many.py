"""Many photographs with one matcher: pairs after pairs, and the frames of a video."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError
from frot._base.validate import check_choice, check_count, check_flag
from frot.correspondence._photo import Photo
from frot.solvers.progress import counting_bar

if TYPE_CHECKING:
    from frot.correspondence._matcher import Matcher
    from frot.correspondence.layers import PhotoFeatures
    from frot.correspondence.match import Match

# Decoding leaves the interpreter's lock; more threads would wait for the network anyway.
THREADS = 4


def match_many(
    matcher: Matcher, pairs: Iterable[tuple[Any, Any]], ahead: int, progress: bool
) -> Iterator[Match]:
    """Match pairs in their order; see `Matcher.many`."""
    check_flag(progress, "progress")
    check_count(ahead, "ahead")
    count = _count(pairs, "pairs", "pairs; give (source, target) tuples of paths or arrays")
    return _matched(matcher, enumerate(pairs), count, ahead, progress)


def _count(values: Any, name: str, what: str) -> int:
    """Return the length of a list, 0 for an iterator, and refuse what is neither."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"{name}: {type(values).__name__} is not a list of {what}")
    return len(values) if isinstance(values, Sized) else 0


def _matched(
    matcher: Matcher, pairs: Iterator[tuple[int, Any]], count: int, ahead: int, progress: bool
) -> Iterator[Match]:
    with (
        ThreadPoolExecutor(THREADS) as threads,
        counting_bar("pairs", count, count, enabled=progress and count > 0) as show,
    ):
        waiting: deque[Future[tuple[Photo, Photo]]] = deque()

        def fill(most: int) -> None:
            waiting.extend(threads.submit(_read, matcher, *one) for one in islice(pairs, most))

        fill(ahead)
        try:
            while waiting:
                both = waiting.popleft().result()
                fill(1)
                found = matcher(*both)
                show(1, 1.0)
                yield found
        finally:
            # Whoever stops early does not wait for photographs that nobody will see.
            for one in waiting:
                one.cancel()


def _read(matcher: Matcher, number: int, pair: Any) -> tuple[Photo, Photo]:
    if isinstance(pair, str | bytes) or not isinstance(pair, Collection) or len(pair) != 2:
        raise InputError(
            f"pairs: number {number} is not a pair; give (source, target) tuples of paths or arrays"
        )
    source, target = map(matcher.photo, pair)
    return source, target


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
    """Follow points through frames, whose features are worked out once; see `Matcher.track`."""
    check_choice(follow, "follow", ("first", "previous"))
    check_flag(progress, "progress")
    count = _count(
        frames,
        "frames",
        "photographs; give paths or arrays, such as imageio.v3.imiter(path) reads from a video",
    )
    return _tracked(matcher, iter(frames), points, follow == "previous", count, progress)


def _tracked(
    matcher: Matcher, frames: Iterator[Any], points: Any, chained: bool, count: int, progress: bool
) -> Iterator[Tracked]:
    with counting_bar("frames", count, count, enabled=progress and count > 0) as show:
        start: tuple[PhotoFeatures, Tracked] | None = None
        for number, frame in enumerate(frames):
            began = time.perf_counter()
            found = matcher.features(frame)
            if start is None:
                places = found.photo.check_points(points)
                now = Tracked(0, places, np.ones(len(places)), None)
            else:
                seen, then = start
                match = matcher.matched(matcher.join(seen, found), began)
                moved = match.transfer(then.points)
                sure = np.minimum(then.confidence, moved.confidence)
                now = Tracked(number, moved.points, sure, match)
            if start is None or chained:
                start = found, now
            show(1, 1.0)
            yield now
