"""Robust transport over any convex set of costs, by cutting sets (Dhouib et al. 2020)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from frot._adversary import Simplex
from frot._arrays import find_home, to_numpy
from frot._bounds import Lower, Upper, cost_doubt, relative_gap
from frot._chosen import Chosen
from frot._costs import StackedCosts
from frot._costs._protocol import UNIT
from frot._errors import InputError, brief, hearing
from frot._interrupted import finish
from frot._plan import Plan
from frot._prepare import check_terms, make_problem
from frot._problem import Problem
from frot._relatives._pair import check_limits
from frot._relatives._uncertainty import Uncertainty
from frot._result import Result
from frot._run import Run
from frot._solvers import Exact
from frot._solvers._drive import Callback, Offer, drive
from frot._validate import check_callable, check_costs, check_flag, check_names

__all__ = ["cutting_set"]


def cutting_set(
    C: Any,
    a: Any = None,
    b: Any = None,
    *,
    uncertainty: Any = None,
    names: Any = None,
    normalise_weights: bool = False,
    tol: float = 1e-8,
    max_iter: int = 500,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Result:
    r"""Robust Kantorovich problem over a convex set of costs.

    .. math::
        \min_{\Pi \in U(a, b)} \; \max_{\alpha \in \mathcal A} \;
        \sum_l \alpha_l \langle \Pi, C_l \rangle

    Costs :math:`\sum_l \alpha_l C_l` found so far are one feature-robust problem, solved exactly;
    the set answers its plan with a new cost, until that is no worse. With the simplex it is
    `solve_costs`. The lower bound is the feature-robust one, since mixtures of answers are in
    :math:`\mathcal A`; the upper bound is the set's answer to the plan.

    Parameters
    ----------
    C : array of shape (L, n, m)
        Cost matrices; negative entries are allowed.
    a, b : arrays of shape (n,) and (m,), optional
    uncertainty : optional
        `Simplex` (the default), `CappedSimplex`, `Box`, `Ellipsoid`, `Polytope`, `Polyhedron`, or
        anything with ``best(phi) -> value, alpha`` for a convex and bounded set.
    names : sequence of str, optional
        Names of the costs.
    normalise_weights, tol, max_iter, time_limit, callback, progress :
        As in `solve_costs`; `max_iter` counts cuts.

    Returns
    -------
    Result
        ``alpha`` and ``chosen.array`` are the weights that prove `lower`, in the set.

    Examples
    --------
    >>> import frot
    >>> C = [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    >>> round(frot.cutting_set(C).value, 9)
    0.5
    >>> round(frot.cutting_set(C, uncertainty=frot.Box([0.0, 0.0], [1.0, 3.0])).value, 9)
    1.0
    """
    home = find_home(C=C, a=a, b=b)
    stack = to_numpy(check_costs(C)).astype(float)
    terms = check_terms(stack.shape, a, b, 0.0, 0.0, None, "none", normalise_weights)
    labels = check_names(names, len(stack))
    limits = check_limits(tol, max_iter, time_limit)
    check_callable(callback, "callback")
    check_flag(progress, "progress")
    reach = _reach(Simplex() if uncertainty is None else uncertainty, len(stack))
    begin = time.perf_counter()
    problem = make_problem(lambda: StackedCosts(stack), terms, labels)
    cuts = _Cuts(problem, Simplex() if uncertainty is None else uncertainty, reach, limits.tol)
    first = cuts.cut(cuts.answer(problem.independent))

    def weighed(result: Result) -> Result:
        chosen = Chosen("weights", result.alpha, labels)
        return replace(result, time=time.perf_counter() - begin, chosen=chosen).at(home)

    return finish(
        lambda: drive(
            chain([first], cuts.offers()),
            problem,
            solver=f"cutting_set({type(cuts.uncertainty).__name__})",
            tol=limits.tol,
            max_iter=limits.max_iter,
            time_limit=limits.time_limit,
            callback=callback,
            progress=progress,
        ),
        weighed,
    )


def _reach(uncertainty: Any, count: int) -> np.ndarray:
    """Check the set, and return the largest size each weight may have."""
    if not callable(getattr(uncertainty, "best", None)) or isinstance(uncertainty, type):
        raise InputError(
            f"uncertainty: {brief(uncertainty)} has no best(phi); use frot.Simplex(), "
            "frot.CappedSimplex(k), frot.Box, frot.Ellipsoid, frot.Polytope or frot.Polyhedron"
        )
    if getattr(uncertainty, "eta", 0.0) != 0.0:
        raise InputError("uncertainty: takes no entropy; use frot.solve_costs(..., eta=...)")
    if (size := getattr(uncertainty, "size", count)) != count:
        raise InputError(f"uncertainty: holds weights of {size} groups, but C has {count}")
    if callable(check := getattr(uncertainty, "check", None)):
        check(count)
    reach = np.zeros(count)
    for group in range(count):
        for sign in (1.0, -1.0):
            probe = np.zeros(count)
            probe[group] = sign
            value, alpha = uncertainty.best(probe)
            if np.shape(alpha) != (count,):
                raise InputError(
                    f"uncertainty: best(phi) returned weights of shape {np.shape(alpha)}, "
                    f"expected ({count},)"
                )
            if not np.isfinite(value) or not np.isfinite(alpha).all():
                raise InputError(
                    f"uncertainty: the set is empty or unbounded, best(phi) is {value!r} for "
                    f"group {group}"
                )
            reach[group] = max(reach[group], abs(float(value)))
    return reach


@dataclass(eq=False)
class _Cuts:
    """Answers of the set so far, and the feature-robust problem they make."""

    problem: Problem
    uncertainty: Uncertainty
    reach: np.ndarray
    tol: float
    alphas: list[np.ndarray] = field(default_factory=list)
    costs: list[np.ndarray] = field(default_factory=list)
    lower: float = -np.inf
    upper: float = np.inf
    next: np.ndarray | None = None
    plan: Plan | None = None

    def answer(self, phi: np.ndarray) -> np.ndarray:
        """The set's answer to the costs of a plan."""
        return np.asarray(self.uncertainty.best(phi)[1], dtype=float)

    def offers(self) -> Iterator[Offer]:
        """Cut until the set has no new answer."""
        idle = 0
        while self.next is not None and idle < 10:
            before = (self.lower, self.upper)
            yield self.cut(self.next)
            idle = idle + 1 if before == (self.lower, self.upper) else 0

    def cut(self, alpha: np.ndarray) -> Offer:
        """Add a cost, solve the feature-robust problem of all, and let the set answer its plan."""
        self.alphas.append(alpha)
        self.costs.append(self.problem.costs.mix(alpha))
        stack = np.stack(self.costs)
        master = Problem(self._mixed(stack), self.problem.a, self.problem.b)
        # Early plans need not be exact: they only have to point at the next cut.
        width = relative_gap(self.lower, self.upper) if np.isfinite(self.upper) else 1.0
        tol = max(min(0.1 * width, 1e-3), 0.1 * self.tol)
        with hearing():
            # Points without weight are left out on the way, and come back with potentials.
            found = Run(Exact(tol=tol), self.plan, None, False)(master)
        mixed = np.asarray(found.alpha @ np.stack(self.alphas))
        lower = Lower(found.lower, mixed, *found.potentials)
        phi = self.problem.costs.inner(found.plan)
        value, answer = self.uncertainty.best(phi)
        doubt = float(self.reach @ cost_doubt(self.problem, found.plan, phi))
        upper = Upper(float(value) + doubt, float(value), found.plan, phi)
        self.plan = found.plan
        self.lower, self.upper = max(self.lower, lower.bound), min(self.upper, upper.bound)
        known = any(np.array_equal(answer, old) for old in self.alphas)
        # The same answer again: what is left of the gap is the master's.
        self.next = None if known and tol <= 0.1 * self.tol else np.asarray(answer, dtype=float)
        if known and self.next is not None:
            self.alphas.pop()
            self.costs.pop()
            self.next = alpha
        return Offer(upper, lower)

    def _mixed(self, stack: np.ndarray) -> StackedCosts:
        """Costs that are mixtures, each right to some units of what was added up for it."""
        alphas, costs = np.stack(self.alphas), self.problem.costs
        share = 2.0 * (alphas.shape[1] + 2) * UNIT
        if (alphas >= 0.0).all() and costs.nonnegative:  # type: ignore[attr-defined]
            return StackedCosts(stack, relative=share)
        sizes = np.abs(costs.stack)  # type: ignore[attr-defined]
        rows = share * (np.abs(alphas) @ sizes.max(axis=2))
        return StackedCosts(stack, (rows, np.zeros((len(stack), stack.shape[2]))))
