"""When to stop: limits, deadlines that reach every loop, and Ctrl-C.

An interrupt reaches whoever called, and brings the best certified answer along.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from frot._base.validate import check_count, check_number


class StoppingLimits(NamedTuple):
    """The relative gap, the iterations and the seconds at which to stop."""

    tol: float
    max_iter: int
    time_limit: float | None


def check_limits(tol: Any, max_iter: Any, time_limit: Any) -> StoppingLimits:
    """Check the tolerance, the iterations and the seconds."""
    gap, steps = check_number(tol, "tol"), check_count(max_iter, "max_iter")
    seconds = None if time_limit is None else check_number(time_limit, "time_limit", strict=True)
    return StoppingLimits(gap, steps, seconds)


# When to stop, on the clock of `time.perf_counter`.
_UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)


class DeadlineError(Exception):
    """The time limit of the innermost `deadline` has passed."""


class deadline:  # noqa: N801 - used as a function is
    """Give what runs inside so many seconds; None gives it as long as whoever is outside has.

    Nothing is interrupted: long loops call `check_deadline`, which raises `DeadlineError`.
    """

    __slots__ = ("_token", "_until")

    def __init__(self, seconds: float | None) -> None:
        until = math.inf if seconds is None else time.perf_counter() + seconds
        self._until = min(until, _UNTIL.get())

    def __enter__(self) -> None:
        self._token = _UNTIL.set(self._until)

    def __exit__(self, *error: object) -> None:
        _UNTIL.reset(self._token)


class no_deadline(deadline):  # noqa: N801
    """Let what runs inside finish: the last proof of a run that has been stopped."""

    __slots__ = ()

    def __init__(self) -> None:
        self._until = math.inf


def seconds_left() -> float:
    """Return the seconds left, infinity without a limit, and never less than zero."""
    return max(0.0, _UNTIL.get() - time.perf_counter())


def check_deadline() -> None:
    """Raise `DeadlineError` if the time is up; cheap enough for every block of a long loop."""
    if time.perf_counter() >= _UNTIL.get():
        raise DeadlineError


Found = TypeVar("Found")
Finished = TypeVar("Finished")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with the best certified answer found until then.

    It is a `KeyboardInterrupt`, so that it ends the caller's loops as any other does. A second
    Ctrl-C, while the answer is put together, ends that too. In an interactive session the answer
    is ``sys.last_value.result``.

    Attributes
    ----------
    result : Result
        What would have been returned, with the status INTERRUPTED and an interval that holds the
        truth. `frot.compare` puts its `Comparison` here, and a `Matcher` its `Match`.

    Examples
    --------
    >>> import frot
    >>> def ctrl_c(progress):
    ...     raise KeyboardInterrupt
    >>> try:
    ...     found = frot.solve_costs([[[0.0, 1.0], [1.0, 0.0]]], callback=ctrl_c)
    ... except frot.Interrupted as stop:
    ...     found = stop.result
    >>> found.status, found.lower <= 0.0 <= found.upper
    (Status.INTERRUPTED, True)
    """

    __module__ = "frot"

    def __init__(self, result: Any) -> None:
        # The one argument, so that a pickle has it.
        super().__init__(result)
        self.result = result

    def __str__(self) -> str:
        return (
            "the best certified answer until then is kept: catch frot.Interrupted as stop, and "
            "take stop.result (sys.last_value.result in an interactive session)"
        )


def finish(work: Callable[[], Found], then: Callable[[Found], Finished]) -> Finished:
    """Return ``then(work())``; the answer of work that is interrupted goes through `then`, too.

    Examples
    --------
    >>> def work():
    ...     raise Interrupted(2)
    >>> try:
    ...     finish(work, lambda found: 10 * found)
    ... except Interrupted as stop:
    ...     print(stop.result)
    20
    """
    try:
        result = work()
    except Interrupted as stop:
        raise Interrupted(then(stop.result)) from stop.__cause__
    return then(result)
