"""Methods to match the cells of two images (frot, uniform, nn, hpf, scot, ...)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from frot._base.arrays import Home, quiet, to_numpy
from frot._base.stopping import Interrupted, finish
from frot.api.solve import solve_costs
from frot.correspondence._transport import (
    PAPER_TOL,
    LayerPlan,
    paper_gammas,
    paper_plan,
    paper_solver,
    solve_layers,
)
from frot.correspondence.layers import LayerPair
from frot.problem.result import Result, Status
from frot.solvers import Entropic, Start

if TYPE_CHECKING:
    from frot.correspondence.cuda.pair import PairPlanner
    from frot.correspondence.settings import Settings


@dataclass(frozen=True, eq=False)
class MatchProblem:
    """What a method is given: two images' layers, the weights of their cells, and the settings.

    Parameters
    ----------
    layers : LayerPair
    a, b : arrays of shape (n,) and (m,)
    settings : Settings
    layer : int, optional
        The layer of "best-layer".
    planner : PairPlanner, optional
        What plans pairs on a device, where that is faster.
    """

    layers: LayerPair
    a: np.ndarray
    b: np.ndarray
    settings: Settings
    layer: int | None = None
    planner: PairPlanner | None = None

    @property
    def home(self) -> Home:
        """Where arrays live."""
        return self.layers.home

    @property
    def equal(self) -> np.ndarray:
        """Equal weights, (L,)."""
        count = len(self.layers.names)
        return np.full(count, 1.0 / count)

    def one_hot(self, layer: int) -> np.ndarray:
        """All weight on one layer, (L,)."""
        return np.eye(len(self.layers.names))[layer]

    @cached_property
    def q(self) -> np.ndarray | None:
        """The prior on the layers, (L,); None is the paper's entropy."""
        prior = self.settings.prior
        if not isinstance(prior, str):
            return np.asarray(prior, dtype=float)
        if prior == "uniform":
            return None
        raised = self.layers.coherences**self.settings.power
        return raised / raised.sum()

    def votes(self, plan: Any) -> Any:
        r"""Return :math:`(n \Pi)^e`, (n, m)."""
        xp, exponent = self.home.xp, self.settings.exponent
        scaled = xp.clip(plan * float(plan.shape[0]), 0.0, None)
        return xp.sqrt(scaled) if exponent == 0.5 else scaled**exponent

    def solve(self, prior: np.ndarray | None, start: Start | None = None) -> Result:
        """Feature-robust transport over all layers, from where it is known to end."""
        layers, given = self.layers, self.settings
        eps, solver = given.eps, Entropic(tol=given.tol)
        if given.steps:
            eps, solver = 0.0, paper_solver(given.steps, given.eps)
        return solve_layers(
            layers.costs, self.a, self.b, names=layers.names, eta=given.eta, eps=eps, prior=prior,
            normalise=given.normalise, solver=solver, start=start,
        )  # fmt: skip

    def planned(self, prior: np.ndarray | None) -> Outcome | None:
        """The same in less time, proven when it is asked for; None where that cannot be had."""
        found = self._quick_plan(prior)
        if found is None:
            return None
        # The paper's steps are the same wherever they start.
        start = None if self.settings.steps else Start(alpha=found.alpha, g=found.g)
        return Outcome(
            self.votes(found.plan), found.alpha, found.phi,
            lambda: self.solve(prior, start), found.plan, prior,
        )  # fmt: skip

    def _quick_plan(self, prior: np.ndarray | None) -> LayerPlan | None:
        """The plan of a device's kernels, or of the paper's steps alone."""
        if self.planner is not None:
            return self.layers.planned(self.planner, self.a, self.b, prior)
        given = self.settings
        if not given.steps or given.eps == 0.0 or given.normalise != "none":
            return None
        # The steps take a seventh of what it takes to prove how far they are from the optimum.
        terms = {"eta": given.eta, "eps": given.eps, "prior": prior, "steps": given.steps}
        found = paper_plan(self.layers.costs, self.a, self.b, **terms)
        return found if found.error <= PAPER_TOL else None

    def solve_cost(self, cost: Any, name: str) -> Result:
        """Ordinary transport at one cost, (n, m)."""
        bring = self.home.bring
        return solve_costs(
            cost[None, ...], bring(self.a), bring(self.b), eps=self.settings.eps, names=(name,),
            normalise_weights=True, solver=Entropic(tol=self.settings.tol),
        )  # fmt: skip

    def by_one_cost(
        self, cost: Any, name: str, alpha: np.ndarray, prior: np.ndarray | None = None
    ) -> Outcome:
        """The outcome of ordinary transport at one cost, (n, m), made with the weights alpha."""
        return finish(
            lambda: self.solve_cost(cost, name),
            lambda result: replace(self.transported(result.plan, alpha, result), prior=prior),
        )

    def transported(self, plan: Any, alpha: Any, result: Result | None) -> Outcome:
        """The outcome of a plan, with its cost in every layer."""
        plan = self.home.bring(plan if result is None else plan.dense())
        phi = to_numpy(self.layers.costs.inner(plan[None, ...]))[0]
        weights = to_numpy(alpha).astype(float)
        return Outcome(self.votes(plan), weights, phi.astype(float), result, plan)


def votes_between(votes: Any, rows: np.ndarray, columns: np.ndarray, home: Home) -> Any:
    """Return votes, (n, m), with zeros outside some rows, (n,), and columns, (m,)."""
    if rows.all() and columns.all():
        return votes
    left, right = (home.bring(side.astype(float)) for side in (rows, columns))
    return votes * left[:, None] * right[None, :]


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
    transport : Result or callable, optional
        The transport behind it, or what proves it when it is asked for.
    plan : array of shape (n, m), optional
    prior : array of shape (L,), optional
        The weights that the layers had beforehand, where the method took notice of some.
    """

    votes: Any
    alpha: np.ndarray
    phi: np.ndarray | None = None
    transport: Result | Callable[[], Result] | None = None
    plan: Any = None
    prior: np.ndarray | None = None

    @property
    def proven(self) -> Result | None:
        """The transport where it is proven already, else None."""
        return None if callable(self.transport) else self.transport


def feature_robust(problem: MatchProblem) -> Outcome:
    """The plan that is best against the worst mix of layers that is plausible under the prior."""
    # Without eta the adversary takes the worst layer, whatever the prior.
    q = problem.q if problem.settings.eta > 0.0 else None
    if (planned := problem.planned(q)) is not None:
        return planned
    return finish(
        lambda: problem.solve(q),
        lambda found: replace(problem.transported(found.plan, found.alpha, found), prior=q),
    )


def uniform(problem: MatchProblem) -> Outcome:
    """Transport with the mean of the layers' costs."""
    cost = problem.layers.mixed(problem.equal)
    return problem.by_one_cost(cost, "mean of layers", problem.equal)


def weighted(problem: MatchProblem) -> Outcome:
    """Transport with the mean of the layers' costs, weighted by the prior: no adversary."""
    alpha = problem.equal if problem.q is None else problem.q / problem.q.sum()
    cost = problem.layers.mixed(alpha)
    return problem.by_one_cost(cost, "weighted mean of layers", alpha, problem.q)


def concatenated(problem: MatchProblem) -> Outcome:
    """Transport with the cosine of all layers put end to end: layers of long vectors weigh more."""
    layers = problem.layers
    xp = problem.home.xp
    cost = 2.0 - 2.0 * layers.concatenated
    squares = [to_numpy(xp.mean(norms**2, axis=1)).astype(float) for norms in layers.norms]
    shares = np.sqrt(squares[0] * squares[1])
    return problem.by_one_cost(cost, "layers end to end", shares / shares.sum())


def most_coherent(problem: MatchProblem) -> Outcome:
    """Transport with one layer: the one that was named, else the most coherent one."""
    chosen = problem.layer
    if chosen is None:
        chosen = int(np.argmax(problem.layers.coherences))
    alpha = problem.one_hot(chosen)
    cost, name = problem.layers.mixed(alpha), problem.layers.names[chosen]
    return problem.by_one_cost(cost, name, alpha)


def scot(problem: MatchProblem) -> Outcome:
    """OT-HPF (Liu et al. 2020): layers end to end, one minus the cosine, one Sinkhorn sweep."""
    home = problem.home
    xp = home.xp
    cost = 1.0 - xp.clip(problem.layers.concatenated, 0.0, None)
    # In logarithms: at a small eps the kernel has zeros in single precision.
    kernel = -cost / problem.settings.eps
    with quiet():
        a, b = (xp.log(home.bring(weights)) for weights in (problem.a, problem.b))
    right = b - _log_sum_exp(xp, kernel - float(np.log(len(problem.a))), axis=0)
    kernel = kernel + right[None, :]
    left = a - _log_sum_exp(xp, kernel, axis=1)
    return problem.transported(xp.exp(kernel + left[:, None]), problem.equal, None)


def _log_sum_exp(xp: Any, values: Any, axis: int) -> Any:
    top = xp.max(values, axis=axis, keepdims=True)
    return xp.squeeze(top, axis=axis) + xp.log(xp.sum(xp.exp(values - top), axis=axis))


def worst_layer(problem: MatchProblem) -> Outcome:
    r"""The paper's appendix: one-hot weights on the layer whose own transport costs most.

    Any plan bounds the transport of every layer from above,

    .. math:: \min_{\Pi'} \langle \Pi', C_l \rangle + \varepsilon\, \mathrm{KL}(\Pi' | a b^\top)
        \;\le\; \langle \Pi, C_l \rangle + \varepsilon\, \mathrm{KL}(\Pi | a b^\top),

    so layers that cannot be the costliest are not solved.
    """
    layers, home = problem.layers, problem.home
    product = home.bring(problem.a)[:, None] * home.bring(problem.b)[None, :]
    uppers = to_numpy(layers.costs.inner(product[None, ...]))[0].astype(float)
    lowers = np.full(len(uppers), -np.inf)
    left = set(range(len(uppers)))
    found: tuple[int, Result] | None = None
    interrupt: Interrupted | None = None
    # The most promising first: its plan is the one that rules most others out.
    while left and uppers[layer := max(left, key=lambda k: uppers[k])] > lowers.max():
        left.discard(layer)
        cost = layers.mixed(problem.one_hot(layer))
        try:
            result = problem.solve_cost(cost, layers.names[layer])
        except Interrupted as stop:
            result, interrupt = stop.result, stop
        phi = to_numpy(layers.costs.inner(home.bring(result.plan.dense())[None, ...]))[0]
        entropy = result.value - float(phi[layer])
        np.minimum(uppers, phi + entropy, out=uppers)
        lowers[layer], uppers[layer] = result.lower, result.upper
        # Only the costliest is kept: plans are large.
        if found is None or result.value > found[1].value:
            found = (layer, result)
        if interrupt is not None:
            found = (found[0], replace(found[1], status=Status.INTERRUPTED))
            break
    assert found is not None
    worst, result = found
    result = replace(result, lower=float(lowers.max()), upper=float(uppers.max()))
    outcome = problem.transported(result.plan, problem.one_hot(worst), result)
    if interrupt is not None:
        raise Interrupted(outcome) from interrupt
    return outcome


# Steps from plan to directions and back where `steps` asks for none, as in the paper's comparison.
STEPS = 3
# Up to this many features the second moments are formed.
DENSE_UP_TO = 1500


def subspace_robust(problem: MatchProblem) -> Outcome:
    r"""Entropic SRW as the paper compares itself with it: k directions, `steps` Frank-Wolfe steps.

    .. math::
        \Pi \leftarrow (1 - \gamma) \Pi + \gamma \arg\min_{\Pi'}
        \langle \Pi', \|U^\top (x_i - y_j)\|^2 \rangle + \varepsilon \mathrm{KL}, \qquad
        U = \text{top } k \text{ eigenvectors of } V_\Pi

    The vectors are those of all layers, each of unit length, put end to end.
    """
    X, Y = (to_numpy(side).astype(float) for side in problem.layers.vectors())
    k = min(problem.settings.rank, X.shape[1])
    plan, U = np.outer(problem.a, problem.b), np.zeros((X.shape[1], k))
    for gamma in paper_gammas(problem.settings.steps or STEPS):
        U = _directions(X, Y, plan, k)
        P, Q = X @ U, Y @ U
        cost = (P**2).sum(axis=1)[:, None] + (Q**2).sum(axis=1)[None, :] - 2.0 * P @ Q.T
        cost = problem.home.bring(np.maximum(cost, 0.0))
        try:
            result = problem.solve_cost(cost, f"{k} directions")
        except Interrupted:
            # There is no interval to say how far a plan is that was cut short: it is no answer.
            raise KeyboardInterrupt from None
        plan = (1.0 - gamma) * plan + gamma * to_numpy(result.plan.dense()).astype(float)
    # Layers share the directions: their part is the length of the directions in their features.
    ends = np.cumsum([layer.channels for layer in problem.layers.source])[:-1]
    shares = np.array([part.sum() for part in np.split((U**2).sum(axis=1), ends)])
    return problem.transported(plan, shares / shares.sum(), None)


def _directions(X: np.ndarray, Y: np.ndarray, plan: np.ndarray, k: int) -> np.ndarray:
    """The leading eigenvectors of the plan's second moment of displacements, (d, k)."""
    rows, cols = plan.sum(axis=1), plan.sum(axis=0)
    d = X.shape[1]
    if d <= max(DENSE_UP_TO, 2 * k):
        cross = X.T @ (plan @ Y)
        moments = X.T @ (rows[:, None] * X) + Y.T @ (cols[:, None] * Y) - cross - cross.T
        return eigh(moments, subset_by_index=[d - k, d - 1])[1]

    def times(v: np.ndarray) -> np.ndarray:
        left, right = X @ v, Y @ v
        return X.T @ (rows * left - plan @ right) + Y.T @ (cols * right - plan.T @ left)

    operator = LinearOperator((d, d), matvec=times, dtype=float)  # type: ignore[call-arg]
    start = np.random.default_rng(0).normal(size=d)
    return eigsh(operator, k=k, v0=start, tol=1e-3)[1]  # pyright: ignore[reportArgumentType]


# Cosines are sharpened by this power, as in hyperpixel flow.
POWER = 3


def nearest(problem: MatchProblem) -> Outcome:
    """Cosine nearest neighbours, all layers alike: the mean over layers of the cosine, cubed."""
    return _voted(problem, 1.0 - 0.5 * problem.layers.mixed(problem.equal))


def hyperpixel(problem: MatchProblem) -> Outcome:
    """Hyperpixel flow (Min et al. 2019): the cosine of all layers put end to end, cubed."""
    return _voted(problem, problem.layers.concatenated)


def _voted(problem: MatchProblem, cosines: Any) -> Outcome:
    votes = problem.home.xp.clip(cosines, 0.0, None) ** POWER
    # Where there is a plan it has nothing from and for cells without mass by itself.
    votes = votes_between(votes, problem.a > 0.0, problem.b > 0.0, problem.home)
    return Outcome(votes, problem.equal)


METHODS: dict[str, Callable[[MatchProblem], Outcome]] = {
    "frot": feature_robust,
    "ot": concatenated,
    "uniform": uniform,
    "weighted": weighted,
    "nn": nearest,
    "best-layer": most_coherent,
    "hpf": hyperpixel,
    "scot": scot,
    "srw": subspace_robust,
    "max-min": worst_layer,
}
