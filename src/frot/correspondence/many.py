"""Many pairs of photographs with one matcher, the next ones read meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

from frot._base.errors import InputError
from frot._base.validate import check_count, check_flag
from frot.correspondence._photo import Photo
from frot.solvers.progress import counting_bar

if TYPE_CHECKING:
    from frot.correspondence._matcher import Matcher
    from frot.correspondence.match import Match


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
        # Decoding leaves the interpreter's lock; more would wait for the network anyway.
        ThreadPoolExecutor(4) as threads,
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
