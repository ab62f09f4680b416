"""`choose_solver`: a solver by name, or by what the problem is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from frot._base.errors import InputError, brief
from frot._base.stopping import check_limits
from frot.problem.marginals import refuse_penalty
from frot.problem.problem import Problem
from frot.problem.result import Result
from frot.problem.terms import ProblemTerms
from frot.solvers._cutting_set import CuttingSet
from frot.solvers._linear_program import LinearProgram
from frot.solvers.drive import Callback, refuse_set
from frot.solvers.entropic.entropic import Entropic
from frot.solvers.exact.exact import SMOOTH_GROUPS, Exact
from frot.solvers.frank_wolfe import FrankWolfe
from frot.solvers.oracles import NetworkSimplex
from frot.solvers.start import Start


class Solver(Protocol):
    """A frozen dataclass with ``tol``, ``max_iter`` and ``time_limit`` that can be called.

    It declares what it takes: `any_set` of weights besides the (capped) simplex, arrays of
    `any_library`. What it does not declare is refused by name. One that has `penalties` takes
    problems whose marginals need not be kept, too.
    """

    @property
    def tol(self) -> float:
        """Relative gap at which to stop."""
        ...

    @property
    def max_iter(self) -> int:
        """Iterations at most."""
        ...

    @property
    def time_limit(self) -> float | None:
        """Seconds at most."""
        ...

    @property
    def any_set(self) -> bool:
        """Whether any convex set of weights will do, besides the (capped) simplex."""
        ...

    @property
    def any_library(self) -> bool:
        """Whether tensors are worked on where they are."""
        ...

    def __call__(
        self,
        problem: Problem,
        start: Start | None = None,
        callback: Callback | None = None,
        progress: bool = False,
    ) -> Result:
        """Solve `problem`."""
        ...

    def check(self, shape: tuple[int, ...], eta: float, eps: float) -> None:
        """Raise InputError if such a problem is not for this solver."""
        ...


# What a solver has, besides that it can be called with a problem.
PARTS = (
    "tol", "max_iter", "time_limit", "check", "any_set", "any_library",
)  # fmt: skip

SOLVERS: dict[str, Solver] = {
    "exact": Exact(),
    "entropic": Entropic(),
    "frank_wolfe": FrankWolfe(oracle=NetworkSimplex()),
    "linear_program": LinearProgram(),
    "cutting_set": CuttingSet(),
}


# Pairs of points up to which "auto" takes `Exact`: a minute at worst.
EXACT_UP_TO = 36_000_000


def refuse_exact(
    shape: tuple[int, ...], terms: ProblemTerms, on_device: bool, on_a_line: bool = False
) -> None:
    """Refuse eps = 0 where "auto" would take `Exact` and it is too slow, or cannot use the device.

    Partial transport and other sets of weights have no eps, and run on the host; points on a line
    are sorted, however many there are.

    Examples
    --------
    >>> from frot.problem.terms import check_terms
    >>> shape = (1, 6_100, 6_000)
    >>> refuse_exact(shape, check_terms(shape), on_device=False)
    Traceback (most recent call last):
    ...
    frot.InputError: eps: is 0, and 6100 x 6000 points are too many for solver='auto' ...
    >>> refuse_exact(shape, check_terms(shape, eps=0.1), on_device=False)
    """
    if terms.regularisation[1] > 0.0 or not terms.adversary.on_simplex or terms.penalty == "tv":
        return
    _, n, m = shape
    sorts = on_a_line and terms.tau is None and terms.normalise == "none"
    if on_device:
        why = "the arrays are on a device, where there is no exact solver"
        other = "pass arrays of the host"
    elif n * m > EXACT_UP_TO and not sorts:
        why = (
            f"{n} x {m} points are too many for solver='auto' to solve exactly (36 million pairs "
            "at most)"
        )
        other = "solver='exact' tries all the same"
    else:
        return
    raise InputError(
        f"eps: is 0, and {why}; pass eps=frot.relative(0.02) to frot.solve, which is another "
        "objective: it adds the entropy of the plan, with 2 % of the mean cost as eps, and "
        f"result.unregularised is an interval for eps = 0. Or {other}"
    )


def choose_solver(
    solver: Any, shape: tuple[int, ...], terms: ProblemTerms, **limits: float | None
) -> Solver:
    """Return the solver asked for, or for "auto" the one that suits the problem.

    `limits` override its own `tol`, `max_iter` and `time_limit`, unless they are None.

    "auto" takes `Exact` for eps = 0, unless eta > 0 and there are more than 3000 groups: then
    `FrankWolfe` with fully corrective steps. For eps > 0 it takes `Entropic`, and for sets of
    weights that are neither `Simplex` nor `CappedSimplex` always `CuttingSet`.
    """
    eta, eps = terms.regularisation
    if isinstance(solver, str):
        if solver == "auto" and not terms.adversary.on_simplex:
            solver = "cutting_set"
        solver = _by_name(solver, shape, eta, eps)
    if isinstance(solver, type):
        raise InputError(f"solver: {solver.__name__} is a class; pass {solver.__name__}()")
    if not callable(solver):
        raise InputError(f"solver: {brief(solver)} is neither a name nor a solver like Exact()")
    if missing := [part for part in PARTS if not hasattr(solver, part)]:
        raise InputError(
            f"solver: {brief(solver)} has no {missing[0]}; a solver has {', '.join(PARTS)}, as "
            "frot.Exact has"
        )
    changes = {name: limit for name, limit in limits.items() if limit is not None}
    chosen: Any = replace(solver, **changes) if changes else solver  # type: ignore[type-var]
    chosen = _with_numbers(chosen)
    refuse_set(chosen, terms.adversary)
    refuse_penalty(chosen, terms.marginals())
    chosen.check(shape, eta, eps)
    return chosen


def _by_name(name: str, shape: tuple[int, ...], eta: float, eps: float) -> Solver:
    if name == "auto":
        many = eta > 0.0 and shape[0] > SMOOTH_GROUPS
        name = "entropic" if eps > 0.0 else "frank_wolfe" if many else "exact"
    if name not in SOLVERS:
        names = ", ".join(map(repr, ["auto", *SOLVERS]))
        raise InputError(f"solver: {brief(name)} is none of {names}, nor a solver like Exact()")
    return SOLVERS[name]


def _with_numbers(solver: Any) -> Any:
    """Return the solver with its limits as plain numbers; refuse what cannot be meant."""
    limits = check_limits(solver.tol, solver.max_iter, solver.time_limit)._asdict()
    odd = {
        name: limit
        for name, limit in limits.items()
        if type(getattr(solver, name)) is not type(limit)
    }
    return replace(solver, **odd) if odd else solver
