"""The driver of every solver: tolerance, limits, callback, progress bar and Ctrl-C.

An algorithm is a generator of `Offer`s. It need not know when to stop: the driver keeps the best
upper and the best lower bound seen, and ends the run.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError, warn_caller
from frot._base.stopping import DeadlineError, deadline, no_deadline, seconds_left
from frot.problem.adversary import GivenSet, SimplexFamily
from frot.problem.bounds import (
    Lower,
    Upper,
    cheap_lower_bound,
    is_rounding,
    refuse_contradiction,
    upper_bound,
)
from frot.problem.marginals import refuse_penalty
from frot.problem.problem import Problem
from frot.problem.result import Progress, Result, Status, handed_out
from frot.solvers.partial import Partial
from frot.solvers.progress import progress_bar
from frot.solvers.start import Start, first_plans

Callback = Callable[[Progress], object]

# Steps an algorithm has to find better numbers once its interval is mostly rounding.
PATIENCE = 15


class Offer(NamedTuple):
    """Bounds that a step has found; None where it has nothing new.

    An algorithm that changes eta on its way says which `problem` its bounds are about: what was
    known before is then forgotten.

    Examples
    --------
    >>> Offer()
    Offer(upper=None, lower=None, problem=None)
    """

    upper: Upper | None = None
    lower: Lower | None = None
    problem: Problem | None = None


NOTHING_NEW = Offer()


class Driven(ABC):
    """A solver that is a generator of offers; a frozen dataclass with its limits as fields."""

    tol: float
    max_iter: int
    time_limit: float | None

    @property
    def any_set(self) -> bool:
        """Whether any convex set of weights will do, besides the (capped) simplex."""
        return False

    @property
    def penalties(self) -> frozenset[str]:
        """Penalties of marginals that are not kept: partial transport is an ordinary problem."""
        return frozenset({"tv"})

    @property
    def any_library(self) -> bool:
        """Whether tensors are worked on where they are."""
        return False

    @property
    def keep_last(self) -> bool:
        """Whether the last plan is the answer rather than the best one."""
        return False

    @abstractmethod
    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Yield what each step has found."""

    def before_any(self, problem: Problem) -> Offer:
        """Return bounds that need no step, for a run that was stopped before its first."""
        return bounds_from_points(problem)

    def complete(self, problem: Problem, result: Result) -> Result:
        """Add to a result what this solver alone knows of it."""
        return result

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
        """Solve `problem`; after Ctrl-C `Interrupted` has the answer until then."""
        refuse_set(self, problem.adversary)
        refuse_penalty(self, problem.marginals)
        self.check(problem.shape, problem.adversary.eta, problem.eps)
        view, whole, start = None, problem, start or Start()
        if problem.marginals.partial:
            view = Partial.of(problem)
            whole, start = view.whole, view.start(start)
        offers = self.offers(whole, start)
        try:
            result = drive(
                offers,
                whole,
                solver=repr(self),
                tol=self.tol,
                max_iter=self.max_iter,
                time_limit=self.time_limit,
                callback=callback,
                progress=progress,
                keep_last=self.keep_last,
                before_any=self.before_any,
                view=view,
            )
        finally:
            # Generators that were not run to their end still have something to say.
            getattr(offers, "close", lambda: None)()
        return handed_out(self.complete(problem, result))


def refuse_set(solver: Any, adversary: SimplexFamily | GivenSet) -> None:
    """Refuse a set of weights that a solver does not declare to take (`any_set`)."""
    if not (adversary.on_simplex or solver.any_set):
        raise InputError(
            f"adversary: {type(solver).__name__} does not take {adversary.name}; use "
            "solver=frot.CuttingSet(), with eps = 0, or frot.CappedSimplex(k)"
        )


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
    view: Partial | None = None,
) -> Result:
    """Run an algorithm until its interval is within `tol` or a limit is met.

    A callback is called once an iteration, with an infinite interval as long as there is none; one
    that returns True stops the run. Ctrl-C ends it, too: the result then has the status
    INTERRUPTED, and whoever hands it out raises `Interrupted` with it (`handed_out`). `keep_last`
    returns the last plan and the weights that answer it instead of the best ones. `view` is the
    problem that `problem` stands for, where it does.
    """
    begin = time.perf_counter()
    known = _BestBounds(keep_last)
    history: list[Progress] = []
    iteration = rounded = 0
    status = Status.STALLED
    try:
        with deadline(time_limit), progress_bar(tol, enabled=progress) as show:
            for offer in offers:
                iteration += 1
                problem = known.take(offer) or problem
                now = Progress(iteration, time.perf_counter() - begin, -np.inf, np.inf, 1.0)
                if known.complete:
                    now = known.progress(problem, iteration, time.perf_counter() - begin, view)
                    if offer != NOTHING_NEW:
                        history.append(now)
                    show(now)
                    rounded += known.is_rounding
                stopped = callback is not None and _is_true(callback(now))
                if known.complete and (now.gap <= tol or rounded >= PATIENCE):
                    break
                if stopped:
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
    if not known.complete:
        with no_deadline():
            problem = known.complete_by((before_any or bounds_from_points)(problem)) or problem
    upper, lower = known.bounds
    refuse_contradiction(lower.bound, upper.bound, solver)
    last = known.progress(problem, iteration, time.perf_counter() - begin, view)
    if not history or history[-1].gap != last.gap:
        history.append(last)
    if status is not Status.INTERRUPTED and last.gap <= tol:
        status = Status.CONVERGED
    result = Result(
        value=upper.value,
        lower=lower.bound,
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
        time=last.elapsed,
        history=tuple(history),
        eta=problem.adversary.eta,
        eps=problem.eps,
        points=problem.points,
        groups=problem.groups,
        adversary=problem.adversary.name,
        tol=tol,
        **problem.owed,
    )
    result = result if view is None else view.result(result)
    # The paper's algorithm is a number of steps, and without a tolerance no more was asked for.
    as_asked = keep_last and tol == 0.0 and status is Status.MAX_ITER
    if status not in (Status.CONVERGED, Status.INTERRUPTED) and not as_asked:
        warn_unfinished(result, tol)
    return result


class _BestBounds:
    """The best bounds offered so far, or the last plan where that is the answer."""

    def __init__(self, keep_last: bool) -> None:
        self.keep_last = keep_last
        self.upper: Upper | None = None
        self.lower: Lower | None = None

    def take(self, offer: Offer) -> Problem | None:
        """Keep what is better than what was known; return the offer's problem if that is new."""
        upper, lower, problem = offer.upper, offer.lower, offer.problem
        if problem is not None:
            self.upper, self.lower = None, None
        if upper is not None:
            known = self.upper
            if self.keep_last or known is None or upper.bound < known.bound:
                self.upper = upper
        if lower is not None and (self.lower is None or lower.bound > self.lower.bound):
            self.lower = lower
        return problem

    def complete_by(self, offer: Offer) -> Problem | None:
        """Take what is still unknown from an offer that needed no algorithm."""
        if offer.problem is not None:
            return self.take(offer)
        return self.take(Offer(offer.upper if self.upper is None else None, offer.lower))

    @property
    def complete(self) -> bool:
        """Whether there is an interval."""
        return self.upper is not None and self.lower is not None

    @property
    def bounds(self) -> tuple[Upper, Lower]:
        """The interval and what proves it."""
        assert self.upper is not None
        assert self.lower is not None
        return self.upper, self.lower

    @property
    def is_rounding(self) -> bool:
        """Whether most of the interval is what rounding may have done to its two ends."""
        upper, lower = self.bounds
        doubt = upper.bound - upper.value + lower.slack
        return is_rounding(upper.bound - lower.bound, doubt)

    def progress(
        self, problem: Problem, iteration: int, elapsed: float, view: Partial | None
    ) -> Progress:
        """Where the run stands, in the units of the problem that was asked for."""
        upper, lower = self.bounds
        gap = problem.gap(lower.bound, upper.bound)
        now = Progress(iteration, elapsed, lower.bound, upper.bound, gap)
        return now if view is None else view.tell(now)


def _is_true(answer: object) -> bool:
    """True or NumPy's; whatever else a callback happens to return does not stop a run."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


def warn_unfinished(result: Result, tol: float) -> None:
    """Say why a run ended before its tolerance, and what is proven all the same."""
    warn_caller(
        f"{result.solver}: {result.status.sentence} The optimum lies in "
        f"[{result.lower:.8g}, {result.upper:.8g}], gap {result.gap:.1e} where {tol:.1e} was "
        "asked for."
    )


def bounds_from_points(problem: Problem) -> Offer:
    """Return bounds that need no step and no pass over the costs, for a run that had no time.

    The better of some plans that need no solver, and what the points alone prove.
    """
    uppers = [upper_bound(problem, plan) for plan in first_plans(problem)]
    return Offer(min(uppers, key=lambda one: one.bound), cheap_lower_bound(problem))
