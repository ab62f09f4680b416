"""What the exit codes of the command line mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frot._status import Status

__all__ = ["BAD_INPUT", "FAILED", "INTERRUPTED", "NOT_CONVERGED", "exit_code"]

FAILED = 1
BAD_INPUT = 2
NOT_CONVERGED = 3
# What shells report for a process that Ctrl-C ended.
INTERRUPTED = 130


def exit_code(status: Status) -> int:
    """Return 0 for an answer as good as asked for, and otherwise why it is not.

    Examples
    --------
    >>> import frot
    >>> [exit_code(status) for status in (frot.Status.CONVERGED, frot.Status.TIME_LIMIT)]
    [0, 3]
    """
    if status.ok:
        return 0
    return INTERRUPTED if status.name == "INTERRUPTED" else NOT_CONVERGED
