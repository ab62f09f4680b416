"""Why a solver stopped."""

from __future__ import annotations

from enum import Enum

__all__ = ["Status"]


class Status(Enum):
    """Named reasons for stopping; ``status.sentence`` says what each one means.

    Examples
    --------
    >>> Status.CONVERGED.ok
    True
    >>> print(Status.MAX_ITER.sentence)
    Stopped at max_iter before the interval was within the tolerance.
    """

    CONVERGED = "The interval is within the tolerance."
    MAX_ITER = "Stopped at max_iter before the interval was within the tolerance."
    TIME_LIMIT = "Stopped at time_limit before the interval was within the tolerance."
    INTERRUPTED = "Interrupted; this is the best certified answer found until then."
    STOPPED = "Stopped by the callback; this is the best certified answer found until then."
    PRECISION = "The interval is as narrow as the precision of costs of this range allows."
    STALLED = "The algorithm cannot narrow the interval any further."
    UNDECIDED = "The linear program was solved, but not well enough to tell the optimum."
    LOWER_BOUND = (
        "The search is not convex: the value is a lower bound of the truth, and the best one found."
    )
    ESTIMATE = "The value is an average over random slices; the interval holds the truth."

    @property
    def sentence(self) -> str:
        """What the status means, in a sentence."""
        return self.value

    @property
    def ok(self) -> bool:
        """Whether the result meets the tolerance that was asked for."""
        return self is Status.CONVERGED

    def __repr__(self) -> str:
        return f"Status.{self.name}"

    def __str__(self) -> str:
        return self.name
