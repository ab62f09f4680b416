"""The loop around every algorithm: tolerance, limits, callback, progress bar and Ctrl-C.

An algorithm is a generator of `Offer`s. It need not know when to stop: the driver keeps the best
upper and the best lower bound seen, and ends the run.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from frot._bounds import Lower, Upper, lower_bound, relative_gap, upper_bound
from frot._deadline import DeadlineError, deadline, no_deadline, seconds_left
from frot._errors import SolverError, warn_caller
from frot._feasible import fill
from frot._plan import Plan
from frot._problem import Problem
from frot._progress import progress_bar
from frot._result import Progress, Result
from frot._solvers._start import Start
from frot._status import Status

__all__ = ["Callback", "Driven", "Offer", "drive"]

Callback = Callable[[Progress], object]

# An interval narrower than this share of a typical cost, around zero, is rounding and no more.
NOTHING = 1e-13


class Offer(NamedTuple):
    """What an algorithm has after a step; None where it has nothing new."""

    upper: Upper | None = None
    lower: Lower | None = None


class Driven(ABC):
    """A solver that is a generator of offers; a frozen dataclass with its limits as fields."""

    tol: float
    max_iter: int
    time_limit: float | None

    @property
    def keep_last(self) -> bool:
        """Whether the last plan is the answer rather than the best one."""
        return False

    @abstractmethod
    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Yield what each step has found."""

    def before_any(self, problem: Problem) -> Offer:
        """Return bounds that need no step, for a run that was stopped before its first."""
        return Offer(_any_upper(problem), _any_lower(problem))

    @abstractmethod
    def check(self, shape: tuple[int, ...], eta: float, eps: float) -> None:
        """Refuse what this solver cannot do."""

    def __call__(
        self,
        problem: Problem,
        start: Start | None = None,
        callback: Callback | None = None,
        progress: bool = False,
    ) -> Result:
        """Solve `problem`."""
        self.check(problem.shape, problem.adversary.eta, problem.eps)
        offers = self.offers(problem, start or Start())
        try:
            return drive(
                offers,
                problem,
                solver=repr(self),
                tol=self.tol,
                max_iter=self.max_iter,
                time_limit=self.time_limit,
                callback=callback,
                progress=progress,
                keep_last=self.keep_last,
                before_any=self.before_any,
            )
        finally:
            # Generators that were not run to their end still have something to say.
            getattr(offers, "close", lambda: None)()


def drive(
    offers: Iterator[Offer],
    problem: Problem,
    *,
    solver: str,
    tol: float,
    max_iter: int,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    keep_last: bool = False,
    before_any: Callable[[Problem], Offer] | None = None,
) -> Result:
    """Run an algorithm until its interval is within `tol` or a limit is met.

    A callback that returns True stops the run; Ctrl-C ends it with the best answer so far.
    `keep_last` returns the last plan and the weights that answer it instead of the best ones.
    """
    begin = time.perf_counter()
    upper: Upper | None = None
    lower: Lower | None = None
    plain = [-np.inf, np.inf]
    history: list[Progress] = []
    iteration = 0
    status = Status.STALLED
    try:
        with deadline(time_limit), progress_bar(tol, enabled=progress) as show:
            for offer in offers:
                iteration += 1
                if offer.upper is not None and (
                    keep_last or upper is None or offer.upper.bound < upper.bound
                ):
                    upper = offer.upper
                if offer.lower is not None and (lower is None or offer.lower.bound > lower.bound):
                    lower = offer.lower
                if offer.upper is not None and offer.upper.plain is not None:
                    plain[1] = min(plain[1], offer.upper.plain)
                if offer.lower is not None and offer.lower.plain is not None:
                    plain[0] = max(plain[0], offer.lower.plain)
                elapsed = time.perf_counter() - begin
                if upper is not None and lower is not None:
                    gap = relative_gap(lower.bound, upper.bound)
                    now = Progress(iteration, elapsed, lower.bound, upper.bound, gap)
                    if offer.upper is not None or offer.lower is not None:
                        history.append(now)
                    show(now)
                    if gap <= tol:
                        status = Status.CONVERGED
                        break
                    if callback is not None and _is_true(callback(now)):
                        status = Status.STOPPED
                        break
                if iteration >= max_iter:
                    status = Status.MAX_ITER
                    break
                if seconds_left() == 0.0:
                    status = Status.TIME_LIMIT
                    break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except DeadlineError:
        status = Status.TIME_LIMIT
    if upper is None or lower is None:
        with no_deadline():
            known = (
                before_any(problem)
                if before_any
                else Offer(_any_upper(problem), _any_lower(problem))
            )
        upper, lower = upper or known.upper, lower or known.lower
    assert upper is not None
    assert lower is not None
    gap = relative_gap(lower.bound, upper.bound)
    elapsed = time.perf_counter() - begin
    width = upper.bound - lower.bound
    if width < -1e-9 * max(abs(upper.bound), abs(lower.bound)):
        raise SolverError(
            f"{solver}: the bounds [{lower.bound!r}, {upper.bound!r}] contradict each other; "
            "please report this problem"
        )
    if status is not Status.INTERRUPTED and gap <= tol:
        status = Status.CONVERGED
    elif status is Status.STALLED and width <= 8.0 * (upper.bound - upper.value + lower.slack):
        status = Status.PRECISION
    if not history or history[-1].gap != gap:
        history.append(Progress(iteration, elapsed, lower.bound, upper.bound, gap))
    result = Result(
        value=upper.value,
        lower=min(lower.bound, upper.bound),
        upper=upper.bound,
        status=status,
        alpha=problem.adversary.best(upper.phi)[1] if keep_last else lower.alpha,
        phi=upper.phi,
        plan=upper.plan,
        potentials=(lower.f, lower.g),
        mean_cost=problem.mean_cost,
        names=problem.names,
        solver=solver,
        iterations=iteration,
        time=elapsed,
        history=tuple(history),
        eta=problem.adversary.eta,
        eps=problem.eps,
        points=problem.points,
        groups=problem.groups,
        plain=(plain[0], plain[1]) if np.isfinite(plain).all() else None,
    )
    # An optimum of zero cannot be had to a relative tolerance, and is right all the same.
    zero = status is Status.PRECISION and width <= NOTHING * max(
        problem.typical_cost, problem.adversary.eta, problem.eps
    )
    if not status.ok and not zero:
        _warn(result, tol)
    return result


def _is_true(answer: object) -> bool:
    """True or NumPy's; whatever else a callback happens to return does not stop a run."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


def _warn(result: Result, tol: float) -> None:
    warn_caller(
        f"{result.solver}: {result.status.sentence} The optimum lies in "
        f"[{result.lower:.8g}, {result.upper:.8g}], gap {result.gap:.1e} where {tol:.1e} was "
        "asked for."
    )


def _any_upper(problem: Problem) -> Upper:
    """A feasible plan that needs no solver, for a run that was stopped before its first step."""
    plan = Plan.from_arcs(*fill(problem.a, problem.b), problem.shape[1:])
    return upper_bound(problem, plan)


def _any_lower(problem: Problem) -> Lower:
    """Uniform weights and zero potentials, for a run that was stopped before its first step."""
    groups, _, m = problem.shape
    return lower_bound(problem, np.full(groups, 1.0 / groups), np.zeros(m))
