"""A time limit that reaches every loop below it, however deep, without an argument on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["DeadlineError", "check_deadline", "deadline", "no_deadline", "seconds_left"]

# When to stop, on the clock of `time.perf_counter`.
_UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)


class DeadlineError(Exception):
    """The time limit of the innermost `deadline` has passed."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Give what runs inside so many seconds; None gives it as long as whoever is outside has.

    Nothing is interrupted: long loops call `check_deadline`, which raises `DeadlineError`.

    Examples
    --------
    >>> with deadline(1e-9):
    ...     check_deadline()
    Traceback (most recent call last):
    ...
    frot._base.deadline.DeadlineError
    """
    until = math.inf if seconds is None else time.perf_counter() + seconds
    token = _UNTIL.set(min(until, _UNTIL.get()))
    try:
        yield
    finally:
        _UNTIL.reset(token)


@contextmanager
def no_deadline() -> Iterator[None]:
    """Let what runs inside finish: the last proof of a run that has been stopped."""
    token = _UNTIL.set(math.inf)
    try:
        yield
    finally:
        _UNTIL.reset(token)


def seconds_left() -> float:
    """Return the seconds left, infinity without a limit, and never less than zero.

    Examples
    --------
    >>> seconds_left()
    inf
    """
    return max(0.0, _UNTIL.get() - time.perf_counter())


def check_deadline() -> None:
    """Raise `DeadlineError` if the time is up; cheap enough for every block of a long loop."""
    if time.perf_counter() >= _UNTIL.get():
        raise DeadlineError
