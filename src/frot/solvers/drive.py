"""What a solver is, and the driver of all: tolerance, limits, callback, progress bar and Ctrl-C.

A `Solver` is a generator of `Offer`s: bounds that each step has proven. It need not know when to
stop: `drive` keeps the best upper and the best lower bound seen, and ends the run.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import Array, to_numpy
from frot._base.errors import InputError, warn_caller
from frot._base.stopping import DeadlineError, deadline, no_deadline, seconds_left
from frot._base.validate import read_numbers
from frot.plans.feasible import fill, round_plan
from frot.plans.plan import Plan
from frot.problem.adversary import GivenSet, SimplexFamily
from frot.problem.bounds import (
    Lower,
    Upper,
    lower_bound,
    mostly_rounding,
    refuse_contradiction,
    upper_bound,
)
from frot.problem.problem import Marginals, Problem
from frot.problem.result import Progress, Result, Status, handed_out
from frot.solvers.partial import Partial
from frot.solvers.progress import progress_bar
from frot.solvers.weightless import put_back

Callback = Callable[[Progress], object]


@dataclass(frozen=True, eq=False)
class Start:
    """Where a run begins; each part may be missing.

    Attributes
    ----------
    alpha : array of shape (L,), optional
    plan : Plan of shape (n, m), optional
        Feasible, where marginals have to be kept.
    g : array of shape (m,), optional
        Potential of the columns.
    """

    alpha: np.ndarray | None = None
    plan: Plan | None = None
    g: np.ndarray | None = None

    @staticmethod
    def check(start: Any, shape: tuple[int, ...]) -> None:
        """Refuse what is not None, a Result, weights (L,) or a plan (n, m) for the given shape.

        A `Start` comes from this library, and fits.
        """
        if start is None or isinstance(start, Start):
            return
        if isinstance(start, Result):
            Start.check(start.alpha, shape)
            Start.check(start.plan, shape)
            return
        array = None if isinstance(start, Plan) else read_numbers(start, "start")
        given = tuple(start.shape) if array is None else array.shape
        if given not in (shape[:1], shape[1:]):
            raise InputError(
                f"start: shape {given} is neither weights {shape[:1]} nor a plan "
                f"{shape[1:]}; pass one of these or a Result"
            )
        # Entries of a `Plan` are what they should be, and to form them may take too much memory.
        if array is None:
            return
        if not np.isfinite(array).all() or (array < 0.0).any() or not array.any():
            raise InputError("start: must be finite, >= 0 and not all zero")

    @classmethod
    def parse(
        cls, start: Any, problem: Problem, rows: np.ndarray, cols: np.ndarray, plans: bool = True
    ) -> Start:
        """Read what `check` lets through.

        `rows` and `cols` are the points of the user's data that `problem` still has; a solver that
        has no use for `plans` need not have them formed.
        """
        if start is None:
            return cls()
        if isinstance(start, Start):
            return replace(start, g=None if start.g is None else start.g[cols])
        if isinstance(start, Result):
            known = cls.parse(start.plan, problem, rows, cols) if plans else cls()
            alpha, g = _host(start.alpha), _host(start.potentials[1])
            return cls(alpha / alpha.sum(), known.plan, g[cols])
        if isinstance(start, Plan) and not plans:
            return cls()
        array = np.asarray(start, dtype=float) if isinstance(start, Plan) else _host(start)
        if array.ndim == 1:
            # Dividing by the largest first keeps huge weights from summing to infinity.
            array = array / array.max()
            return cls(alpha=array / array.sum())
        kept = array / array.max() if problem.marginals.balanced else array
        plan = Plan.from_arcs(*Plan(kept[np.ix_(rows, cols)]).arcs(), problem.shape[1:])
        if not problem.marginals.balanced:
            # Without fixed marginals the plan's total mass matters and is kept.
            return cls(plan=plan)
        return cls(plan=round_plan(plan, problem.a, problem.b))


def _host(values: Array) -> np.ndarray:
    """Numbers of a tensor or an array as NumPy's."""
    return np.asarray(to_numpy(values), dtype=float)


class Offer(NamedTuple):
    """Bounds that a step has proven; None where it has nothing new.

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


class Solver(ABC):
    """A solver: a frozen dataclass with its limits as fields, `offers` and `check`.

    It declares what it takes besides the ordinary problem: `any_set` of weights, `penalties` of
    marginals that are not kept, arrays of `any_library`. What it does not declare is refused by
    name.

    Examples
    --------
    >>> import frot
    >>> from frot.problem.bounds import lower_bound, upper_bound
    >>> @dataclass(frozen=True)
    ... class OneStep(frot.solvers.Solver):
    ...     "Ordinary transport at equal weights."
    ...     tol: float = 1e-6
    ...     max_iter: int = 1
    ...     time_limit: float | None = None
    ...     def check(self, shape, eta, eps):
    ...         assert eps == 0.0
    ...     def offers(self, problem, start):
    ...         alpha = np.full(problem.shape[0], 1.0 / problem.shape[0])
    ...         mixed = problem.costs.mix(alpha)
    ...         plan, f, g, _ = frot.NetworkSimplex()(mixed, problem.a, problem.b)
    ...         upper = upper_bound(problem, plan)
    ...         yield frot.solvers.Offer(upper, lower_bound(problem, alpha, g, mixed))
    >>> frot.solve([[0.0], [1.0]], [[1.0], [3.0]], groups=[[0], [0]], solver=OneStep()).value
    2.5
    """

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
    def leaves_costs(self) -> bool:
        """Whether costs are worked on where they are, rather than brought to the host."""
        return self.any_library

    @property
    def keep_last(self) -> bool:
        """Whether the last plan is the answer rather than the best one."""
        return False

    @abstractmethod
    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Yield what each step has proven."""

    @abstractmethod
    def check(self, shape: tuple[int, ...], eta: float, eps: float) -> None:
        """Refuse what this solver cannot do."""

    def before_any(self, problem: Problem) -> Offer:
        """Return bounds for a run that was stopped before its first."""
        return first_bounds(problem)

    def complete(self, problem: Problem, result: Result) -> Result:
        """Add to a result what this solver alone knows of it."""
        return result

    def __call__(
        self,
        problem: Problem,
        start: Any = None,
        callback: Callback | None = None,
        progress: bool = False,
    ) -> Result:
        """Solve `problem`; after Ctrl-C `Interrupted` has the answer until then.

        Points without weight are left out, and put back after. `start` is what `frot.solve` takes.
        """
        refuse_set(self, problem.adversary)
        refuse_penalty(self, problem.marginals)
        self.check(problem.shape, problem.adversary.eta, problem.eps)
        small, rows, cols = problem.support()
        begin = Start.parse(start, small, rows, cols, plans=not self.any_library)
        result = self.complete(small, self._solve(small, begin, callback, progress))
        if small is not problem:
            result = put_back(problem, result, rows, cols)
        return handed_out(result)

    def _solve(
        self, problem: Problem, start: Start, callback: Callback | None, progress: bool
    ) -> Result:
        """Solve a problem of points that all have weight."""
        if not self.leaves_costs:
            problem = problem.on_host()
        view, whole = None, problem
        if problem.marginals.partial:
            view = Partial.of(problem)
            whole, start = view.whole, view.start(start)
        return drive(
            self.offers(whole, start),
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


def refuse_set(solver: Any, adversary: SimplexFamily | GivenSet) -> None:
    """Refuse a set of weights that a solver does not declare to take (`any_set`)."""
    if not (adversary.on_simplex or solver.any_set):
        raise InputError(
            f"adversary: {type(solver).__name__} does not take {adversary.name}; use "
            "solver=frot.CuttingSet(), with eps = 0, or frot.CappedSimplex(k)"
        )


def refuse_penalty(solver: Any, marginals: Marginals) -> None:
    """Refuse marginals that a solver does not declare to take (`penalties`)."""
    if marginals.balanced:
        return
    takes = getattr(solver, "penalties", frozenset())
    if marginals.penalty not in takes:
        side = "tau" if marginals.mass is None else "mass"
        others = "; it takes " + ", ".join(map(repr, sorted(takes))) if takes else ""
        raise InputError(
            f"{side}: {type(solver).__name__} does not take {marginals.name}{others}; use "
            f"solver='auto', or leave {side} out"
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
    known = _Interval(problem, view, keep_last)
    history: list[Progress] = []
    iteration = rounded = 0
    status = Status.STALLED
    bar = progress_bar(tol) if progress else nullcontext(None)
    try:
        with deadline(time_limit), bar as show:
            for offer in offers:
                iteration += 1
                known.take(offer)
                now = known.progress(iteration, begin)
                if known.upper is not None and known.lower is not None:
                    if offer.upper is not None or offer.lower is not None:
                        history.append(now)
                    if show is not None:
                        show(now)
                    rounded += mostly_rounding(known.upper, known.lower)
                answer = callback(now) if callback is not None else None
                # Once the interval is mostly rounding, 15 more steps may still narrow it.
                if now.gap <= tol or rounded >= 15:
                    break
                # Only a bool stops the run, not any other truthy value a callback returns.
                if isinstance(answer, bool | np.bool_) and answer:
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
    if known.upper is None or known.lower is None:
        with no_deadline():
            known.complete((before_any or first_bounds)(known.problem))
    problem, upper, lower = known.problem, known.upper, known.lower
    assert upper is not None
    assert lower is not None
    refuse_contradiction(lower.bound, upper.bound, solver)
    last = known.progress(iteration, begin)
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
        weights=(problem.a, problem.b),
        groups=problem.groups,
        adversary=problem.adversary.describe(),
        tol=tol,
        **problem.owed,
    )
    result = result if view is None else view.result(result)
    # With tol = 0 a fixed number of the paper's steps was asked for: no warning at max_iter.
    as_asked = keep_last and tol == 0.0 and status is Status.MAX_ITER
    if status not in (Status.CONVERGED, Status.INTERRUPTED) and not as_asked:
        warn_unfinished(result, tol)
    return result


class _Interval:
    """The best bounds offered so far, as they hold of the problem that was asked for."""

    def __init__(self, problem: Problem, view: Partial | None, keep_last: bool) -> None:
        self.problem, self.view, self.keep_last = problem, view, keep_last
        self.upper: Upper | None = None
        self.lower: Lower | None = None

    def _of_view(self, offer: Offer) -> tuple[Upper | None, Lower | None]:
        """The bounds of an offer; about another problem, those of the old one are forgotten."""
        if offer.problem is not None:
            self.problem, self.upper, self.lower = offer.problem, None, None
        if self.view is None:
            return offer.upper, offer.lower
        return self.view.proven(offer.upper, offer.lower)

    def take(self, offer: Offer) -> None:
        """Keep the lower of two upper bounds, or the last one, and the higher of two lower ones.

        Of equal bounds the later one counts: its value may be nearer to them.
        """
        upper, lower = self._of_view(offer)
        if upper is not None and (
            self.upper is None or self.keep_last or upper.bound <= self.upper.bound
        ):
            self.upper = upper
        self._raise(lower)

    def complete(self, offer: Offer) -> None:
        """Take an upper bound only where there is none."""
        upper, lower = self._of_view(offer)
        self.upper = self.upper or upper
        self._raise(lower)

    def _raise(self, lower: Lower | None) -> None:
        if lower is not None and (self.lower is None or lower.bound > self.lower.bound):
            self.lower = lower

    def progress(self, iteration: int, begin: float) -> Progress:
        """Where the run stands, in the units of the problem that was asked for."""
        elapsed = time.perf_counter() - begin
        if self.upper is None or self.lower is None:
            return Progress(iteration, elapsed, -np.inf, np.inf, 1.0)
        gap = self.problem.gap(self.lower.bound, self.upper.bound)
        now = Progress(iteration, elapsed, self.lower.bound, self.upper.bound, gap)
        return now if self.view is None else self.view.tell(now)


def warn_unfinished(result: Result, tol: float) -> None:
    """Say why a run ended before its tolerance, and what is proven all the same."""
    warn_caller(
        f"{result.solver}: {result.status.sentence} The optimum lies in "
        f"[{result.lower:.8g}, {result.upper:.8g}], gap {result.gap:.1e} where {tol:.1e} was "
        "asked for."
    )


def first_bounds(problem: Problem) -> Offer:
    """Return bounds that take no step: of a plan that is filled in some order, and of g = 0.

    The weights answer the product of a and b.
    """
    marginals, (_, n, m) = problem.marginals, problem.shape
    rows, cols, mass = fill(*problem.shares)
    if marginals.unbalanced:
        # A side that is kept gets its whole mass; if none is, nothing is moved.
        sides = ((marginals.tau_a, problem.a), (marginals.tau_b, problem.b))
        mass = mass * max(float(side.sum()) if tau == np.inf else 0.0 for tau, side in sides)
    _, alpha = problem.adversary.best(problem.independent)
    upper = upper_bound(problem, Plan.from_arcs(rows, cols, mass, (n, m)))
    return Offer(upper, lower_bound(problem, alpha, np.zeros(m)))
