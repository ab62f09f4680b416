"""How the cells of two images are matched: one function for each method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.arrays import Home, quiet, to_numpy
from frot._base.errors import InputError
from frot._base.stopping import finish
from frot.api.solve import solve_costs
from frot.correspondence.layers import LayerPair
from frot.plans.plan import Plan
from frot.problem.result import Result
from frot.solvers import Entropic, FrankWolfe
from frot.solvers.oracles import Sinkhorn

if TYPE_CHECKING:
    from frot.correspondence.settings import Settings

# What coherences are raised to: of 1 to 6, 2 and 3 were best on cars.
POWER = 2
# Cosines are sharpened by this power, as in hyperpixel flow.
SHARPENED = 3


@dataclass(frozen=True, eq=False)
class Outcome:
    """How strongly each pair of cells is matched.

    Attributes
    ----------
    votes : array of shape (n, m)
        Before Hough matching.
    alpha : array of shape (L,)
        Weights of the layers.
    phi : array of shape (L,), optional
        What the plan costs in each.
    result : Result, optional
        The transport behind it, with its interval.
    plan : array of shape (n, m), optional
    prior : array of shape (L,), optional
        The weights that the layers had beforehand, where the method took notice of some.
    """

    votes: Any
    alpha: np.ndarray
    phi: np.ndarray | None = None
    result: Result | None = None
    plan: Any = None
    prior: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class MatchProblem:
    """What a method is given: two images' layers, the weights of their cells, and the settings."""

    layers: LayerPair
    a: np.ndarray
    b: np.ndarray
    settings: Settings

    @property
    def home(self) -> Home:
        """Where arrays live."""
        return self.layers.home

    @property
    def equal(self) -> np.ndarray:
        """Equal weights, (L,)."""
        count = len(self.layers.names)
        return np.full(count, 1.0 / count)

    @cached_property
    def q(self) -> np.ndarray | None:
        """The prior on the layers, (L,); None is the paper's entropy."""
        prior = self.settings.prior
        if not isinstance(prior, str):
            return np.asarray(prior, dtype=float) / np.sum(prior)
        if prior == "uniform":
            return None
        raised = self.layers.coherences**POWER
        return raised / raised.sum()

    def transported(
        self, result: Result, alpha: Any, phi: Any = None, prior: Any = None
    ) -> Outcome:
        """The outcome of transport; without its costs phi they are summed."""
        # In the precision that votes have, and once: a lazy plan forms its costs to be seen.
        plan = to_numpy(result.plan.dense()).astype(np.float32)
        made = self.planned(self.home.bring(plan), phi)
        f, g = (to_numpy(part) for part in result.potentials)
        # A result without its costs, which take more than all else that a match keeps, knows only
        # this of the problem without eps.
        alone = replace(
            result, plan=Plan(plan, copy=False), potentials=(f, g), problem=None,
            plain=(-np.inf, result.upper),
        )  # fmt: skip
        return replace(made, alpha=to_numpy(alpha).astype(float), result=alone, prior=prior)

    def planned(self, plan: Any, phi: Any = None) -> Outcome:
        """The outcome of a plan, with its cost in every layer."""
        xp, exponent = self.home.xp, self.settings.exponent
        scaled = xp.clip(plan * float(plan.shape[0]), 0.0, None)
        votes = xp.sqrt(scaled) if exponent == 0.5 else scaled**exponent
        if phi is None:
            phi = self.layers.costs.inner(plan)
        return Outcome(votes, self.equal, to_numpy(phi).astype(float), plan=plan)

    def at_one_cost(self, cost: Any, alpha: np.ndarray, prior: Any = None) -> Outcome:
        """The outcome of ordinary transport at one cost, (n, m), made with the weights alpha."""
        given, bring = self.settings, self.home.bring
        return finish(
            lambda: solve_costs(
                cost[None, ...], bring(self.a), bring(self.b), eps=given.eps,
                normalise_weights=True, solver=Entropic(tol=given.tol),
            ),
            lambda result: self.transported(result, alpha, prior=prior),
        )  # fmt: skip


def feature_robust(problem: MatchProblem) -> Outcome:
    """The plan that is best against the worst mix of layers that is plausible under the prior."""
    given = problem.settings
    # Without eta the adversary takes the worst layer, whatever the prior.
    q = problem.q if given.eta > 0.0 else None
    layers = problem.layers
    costs, eps, solver = layers.costs, given.eps, Entropic(tol=given.tol)
    if given.steps:
        # What it leaves in wrong columns rounding puts right.
        oracle = Sinkhorn(eps=given.eps, tol=1e-3)
        # The paper's algorithm 2 stops where it ends: eps is the oracle's, and of no problem.
        eps, solver = 0.0, FrankWolfe(oracle, step="paper", tol=0.0, max_iter=given.steps)
        costs = layers.paper_costs
    return finish(
        lambda: solve_costs(
            costs, problem.a, problem.b, eta=given.eta, eps=eps, prior=q,
            names=layers.names, normalise_weights=True, solver=solver,
        ),
        lambda result: problem.transported(result, result.alpha, result.phi, q),
    )  # fmt: skip


def uniform(problem: MatchProblem) -> Outcome:
    """Transport with the mean of the layers' costs."""
    return problem.at_one_cost(problem.layers.mixed(problem.equal), problem.equal)


def weighted(problem: MatchProblem) -> Outcome:
    """Transport with the mean of the layers' costs, weighted by the prior: no adversary."""
    alpha = problem.equal if problem.q is None else problem.q
    return problem.at_one_cost(problem.layers.mixed(alpha), alpha, problem.q)


def concatenated(problem: MatchProblem) -> Outcome:
    """Transport with the cosine of all layers put end to end: layers of long vectors weigh more."""
    return problem.at_one_cost(2.0 - 2.0 * problem.layers.end_to_end, problem.equal)


def nearest(problem: MatchProblem) -> Outcome:
    """Cosine nearest neighbours, all layers alike: the mean over layers of the cosine, cubed."""
    votes = problem.home.xp.clip(problem.layers.mean_cosine, 0.0, None) ** SHARPENED
    # Where there is a plan it has nothing from and for cells without mass by itself.
    votes = votes_between(votes, problem.a > 0.0, problem.b > 0.0, problem.home)
    return Outcome(votes, problem.equal)


def users_own(problem: MatchProblem) -> Outcome:
    """What a user's function makes of the layers and the weights of their cells: a plan."""
    method, layers = problem.settings.method, problem.layers
    found = method(layers, problem.a, problem.b)
    if isinstance(found, Result):
        if len(found.alpha) == len(layers.names):
            return problem.transported(found, found.alpha, found.phi)
        # Of one cost, say, that it mixed itself.
        return problem.transported(found, problem.equal)
    shape = tuple(np.shape(found))
    if shape != (len(problem.a), len(problem.b)):
        raise InputError(
            f"method: {method_name(method)} returned what has the shape {shape}; return a plan of "
            f"shape {(len(problem.a), len(problem.b))}, or a frot.Result"
        )
    return problem.planned(problem.home.bring(found))


def votes_between(votes: Any, rows: np.ndarray, columns: np.ndarray, home: Home) -> Any:
    """Return votes, (n, m), with zeros outside some rows, (n,), and columns, (m,)."""
    if rows.all() and columns.all():
        return votes
    left, right = (home.bring(side.astype(float)) for side in (rows, columns))
    return votes * left[:, None] * right[None, :]


def scot(layers: LayerPair, a: np.ndarray, b: np.ndarray, eps: float = 0.05) -> Any:
    """OT-HPF (Liu et al. 2020): layers end to end, one minus the cosine, one Sinkhorn sweep."""
    xp, bring = layers.home.xp, layers.home.bring
    kernel = (xp.clip(layers.end_to_end, 0.0, None) - 1.0) / eps
    with quiet():
        left, right = xp.log(bring(a)), xp.log(bring(b))
    # In logarithms: at a small eps the kernel has zeros in single precision.
    kernel = kernel + (right - _log_sum_exp(xp, kernel - float(np.log(len(a))), axis=0))[None, :]
    return xp.exp(kernel + (left - _log_sum_exp(xp, kernel, axis=1))[:, None])


def hpf(layers: LayerPair, a: np.ndarray, b: np.ndarray) -> Any:
    """Hyperpixel flow (Min et al. 2019a): the cosine of all layers put end to end, cubed."""
    votes = layers.home.xp.clip(layers.end_to_end, 0.0, None) ** SHARPENED
    return votes_between(votes, a > 0.0, b > 0.0, layers.home)


def _log_sum_exp(xp: Any, values: Any, axis: int) -> Any:
    top = xp.max(values, axis=axis, keepdims=True)
    return xp.squeeze(top, axis=axis) + xp.log(xp.sum(xp.exp(values - top), axis=axis))


METHODS: dict[str, Callable[[MatchProblem], Outcome]] = {
    "frot": feature_robust,
    "weighted": weighted,
    "uniform": uniform,
    "ot": concatenated,
    "nn": nearest,
}


def method_name(method: Any) -> str:
    """Return what a method is called in tables: its own name where it is a function.

    Examples
    --------
    >>> method_name("frot"), method_name(hpf)
    ('frot', 'hpf')
    """
    return method if isinstance(method, str) else getattr(method, "__name__", type(method).__name__)


def match_cells(problem: MatchProblem) -> Outcome:
    """Return what the settings' method makes of two photographs."""
    method = problem.settings.method
    return METHODS[method](problem) if isinstance(method, str) else users_own(problem)
