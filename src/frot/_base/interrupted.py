"""Ctrl-C: the interrupt reaches whoever called, and brings the best certified answer along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Interrupted", "finish"]

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
        found = work()
    except Interrupted as stop:
        raise Interrupted(then(stop.result)) from stop.__cause__
    return then(found)
