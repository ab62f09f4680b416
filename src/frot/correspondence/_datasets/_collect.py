"""Pairs read one by one; what is broken costs itself alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from frot.correspondence._datasets._annotation import BrokenAnnotationError
from frot.correspondence._pair import Pair

__all__ = ["collect"]


def collect(
    tasks: Iterable[tuple[str, Callable[[], Pair] | partial[Pair]]],
) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    """Return the pairs that could be read, and a sentence for each that could not.

    Parameters
    ----------
    tasks : iterable of (name, function)
        What to call an annotation in a sentence, and what reads it.

    Examples
    --------
    >>> def read():
    ...     raise BrokenAnnotationError("it has no points")
    >>> collect([("cat-12", read)])
    ((), ('cat-12 was skipped: it has no points',))
    """
    pairs: dict[str, Pair] = {}
    skipped = []
    for name, read in tasks:
        try:
            pair = read()
            if pair.id in pairs:
                raise BrokenAnnotationError(f"{pair.id} was there before")
            pairs[pair.id] = pair
        except BrokenAnnotationError as broken:
            skipped.append(f"{name} was skipped: {broken}")
    return tuple(pairs.values()), tuple(skipped)
