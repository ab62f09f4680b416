"""Oracle calls of one run: warm potentials, feasible plans, and how many failed."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import to_numpy
from frot._base.errors import InputError
from frot.plans.feasible import round_plan
from frot.plans.plan import Plan
from frot.problem.bounds import Lower, lower_bound
from frot.problem.problem import Problem
from frot.solvers.oracles import Oracle, Transport, keeps_potentials
from frot.solvers.sinkhorn.certificate import certify
from frot.solvers.sinkhorn.run import EntropicRun

__all__ = ["Found", "OracleRun"]


class Found(NamedTuple):
    """A feasible plan and its group costs."""

    plan: Plan
    phi: np.ndarray


class OracleRun:
    """Transport at changing weights, each call starting where the last one ended."""

    def __init__(self, problem: Problem, oracle: Oracle) -> None:
        if oracle.entropic and problem.costs.forbidden is not None:
            # Rounding a plan of potentials would put mass on arcs that may carry none.
            raise InputError(
                f"C: infinite costs are not for {oracle!r} as an oracle; use solver='entropic', or "
                "eps=0"
            )
        self.problem, self.oracle = problem, oracle
        self.calls = self.failures = 0
        self._g: Any = None

    def vertex(self, alpha: np.ndarray) -> tuple[Found, Lower]:
        """Transport at the weights `alpha`: a feasible plan with its costs, and a lower bound."""
        self.calls += 1
        if keeps_potentials(self.oracle):
            return self._lazy_vertex(alpha)
        problem = self.problem
        mixed = problem.costs.mix(alpha)
        warm = self._g if self.oracle.entropic else None
        transport: Transport = self.oracle(mixed, problem.a, problem.b, problem.eps, warm)
        self._g = transport.g
        self.failures += not transport.converged
        plan = transport.plan
        if self.oracle.entropic:
            plan = round_plan(plan, problem.a, problem.b)
        lower = lower_bound(problem, alpha, transport.g, mixed)
        return Found(plan, problem.costs.inner(plan)), lower

    @cached_property
    def _entropic(self) -> EntropicRun:
        sweeps: Any = self.oracle
        return EntropicRun(self.problem, sweeps.tol)

    def _lazy_vertex(self, alpha: np.ndarray) -> tuple[Found, Lower]:
        """Keep the plan as its potentials, so that an average of T plans costs T of these."""
        run = self._entropic
        oracle: Any = self.oracle
        engine = run.engine
        weights = engine.terms.home.bring(alpha[None, :])
        g = engine.start(weights).g if self._g is None else self._g
        at = engine.sweep(weights, g, oracle.tol, oracle.max_iter)
        self._g = at.g
        self.failures += not float(at.error[0]) <= oracle.tol
        proof = certify(engine, at.alpha, at.g)
        found = Found(run.plan(proof), to_numpy(proof.phi[0, :]))
        lower, terms = run.plain_lower(proof), engine.double().terms
        xp = terms.home.xp
        proven = xp.vecdot(terms.a, proof.plain_f) + xp.vecdot(terms.b, proof.plain_g)
        if self.problem.costs.nonnegative and float(proven[0]) < 0.0:
            # Where no cost is negative, nothing proves more than these do.
            lower = replace(lower, f=xp.zeros_like(lower.f), g=xp.zeros_like(lower.g))
        return found, lower
