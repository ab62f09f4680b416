"""Frank-Wolfe on the plan: the paper's algorithm 2, and two better rules for its steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from frot._base.arrays import quiet, to_numpy
from frot._base.contract import check_eps_range
from frot._base.errors import InputError, brief, warn_caller
from frot._base.validate import check_choice
from frot.costs import Costs
from frot.plans.combine import combine_plans
from frot.plans.feasible import round_plan
from frot.plans.lazy import LazyPlan
from frot.plans.plan import Plan
from frot.problem.adversary import GivenSet, SimplexFamily
from frot.problem.bounds import Lower, Upper, lower_bound, upper_bound
from frot.problem.problem import Problem
from frot.problem.result import Result, Status
from frot.problem.unregularised import plain_lower
from frot.solvers.drive import Offer, Solver, Start
from frot.solvers.entropic.certificate import certify
from frot.solvers.entropic.entropic import EntropicRun
from frot.solvers.exact.interior import step_length
from frot.solvers.oracles import NetworkSimplex, Oracle, Transport, keeps_potentials


class CostedPlan(NamedTuple):
    """A feasible plan and its group costs."""

    plan: Plan
    phi: np.ndarray


class OracleRun:
    """Transport at changing weights, each call starting where the last one ended."""

    def __init__(self, problem: Problem, oracle: Oracle) -> None:
        self.problem, self.oracle = problem, oracle
        self._g: Any = None
        self._warned = False

    def vertex(self, alpha: np.ndarray) -> tuple[CostedPlan, Lower]:
        """Transport at the weights `alpha`: a feasible plan with its costs, and a lower bound."""
        if keeps_potentials(self.oracle):
            return self._lazy_vertex(alpha)
        problem = self.problem
        mixed = problem.costs.mix(alpha)
        transport: Transport = self.oracle(mixed, problem.a, problem.b, self._g)
        self._g = transport.g
        self._watch(transport.converged)
        plan = round_plan(transport.plan, problem.a, problem.b)
        lower = lower_bound(problem, alpha, transport.g, mixed)
        return CostedPlan(plan, problem.costs.inner(plan)), lower

    def _watch(self, converged: bool) -> None:
        """Say so once if the oracle does not reach its tolerance."""
        if not (converged or self._warned):
            self._warned = True
            warn_caller(
                f"{self.oracle!r} did not reach its tolerance; raise its max_iter or eps. The "
                "interval holds all the same."
            )

    @cached_property
    def _entropic(self) -> EntropicRun:
        sweeps: Any = self.oracle
        check_eps_range(self.problem.mean_cost, sweeps.eps)
        return EntropicRun(self.problem.having(eps=sweeps.eps), sweeps.tol)

    def _lazy_vertex(self, alpha: np.ndarray) -> tuple[CostedPlan, Lower]:
        """Keep the plan as its potentials, so that an average of T plans costs T of these."""
        run = self._entropic
        oracle: Any = self.oracle
        engine = run.engine
        weights = engine.problem.home.bring(alpha[None, :])
        g = engine.start(weights).g if self._g is None else self._g
        point = engine.sweep(weights, g, oracle.tol, oracle.max_iter)
        self._g = point.g
        self._watch(float(point.error[0]) <= oracle.tol)
        proof = certify(engine, point.alpha, point.g)
        vertex = CostedPlan(run.plan(proof), to_numpy(proof.phi[0, :]))
        plain = plain_lower(self.problem, to_numpy(proof.alpha[0, :]), to_numpy(point.g[0, :]))
        bring = engine.double().problem.home.bring
        lower = Lower(plain.bound, proof.alpha[0, :], bring(plain.f), bring(plain.g))
        return vertex, lower


StepRule = Literal["paper", "line_search", "fully_corrective"]


@dataclass(frozen=True)
class FrankWolfe(Solver):
    r"""Minimise :math:`G_\eta(\Pi)` by linearising it (the paper's algorithm 2).

    .. math::
        \hat\Pi = \arg\min_{\Pi \in U(a, b)} \langle \Pi, M_{\alpha^{(t)}} \rangle,
        \qquad \Pi^{(t+1)} = (1 - \gamma)\, \Pi^{(t)} + \gamma\, \hat\Pi,
        \qquad \alpha^{(t)} = \mathrm{softmax}(\phi(\Pi^{(t)}) / \eta)

    from :math:`\Pi^{(0)} = a b^\top`. Since :math:`\phi` is linear in the plan it is updated, never
    recomputed. Every oracle call also proves a lower bound.

    Parameters
    ----------
    oracle : Oracle
        ``NetworkSimplex()`` (the paper's FW-EMD) or ``Sinkhorn(eps=...)`` (its FW-Sinkhorn). With
        the latter the subproblem is not solved exactly, so the gap does not close; the interval
        says how far the plan is from the optimum of :math:`G_\eta`, which has no eps. Or an
        `Oracle` of your own.
    step : {"fully_corrective", "line_search", "paper"}
        "paper": :math:`\gamma = 2 / (2 + t)`, and the last plan is returned, as in the paper. With
        ``tol=0`` it takes `max_iter` steps and gives no `ConvergenceWarning`.
        "line_search": the best :math:`\gamma`. "fully_corrective": the best mixture of all plans
        found so far (Lacoste-Julien and Jaggi 2015), the fastest by far and the only one that also
        takes eta = 0.
    tol : float
        Relative gap at which to stop.
    max_iter : int
        Oracle calls at most; the paper's T.
    time_limit : float, optional
        Seconds.

    Examples
    --------
    >>> import frot
    >>> X, Y = [[0.0, 0.0], [1.0, 1.0]], [[1.0, 3.0], [0.0, 2.0]]
    >>> res = frot.solve(X, Y, eta=0.1, solver=frot.FrankWolfe())
    >>> round(res.value, 6), res.status
    (4.0, Status.CONVERGED)
    """

    oracle: Oracle = field(default_factory=NetworkSimplex)
    step: StepRule = "fully_corrective"
    tol: float = 1e-6
    max_iter: int = 1000
    time_limit: float | None = None

    @property
    def leaves_costs(self) -> bool:
        """Whether the oracle works on them where they are."""
        return keeps_potentials(self.oracle)

    @property
    def keep_last(self) -> bool:
        """Whether the last plan is returned, as in the paper, even if an earlier one was better."""
        return self.step == "paper"

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Step by the chosen rule."""
        rule = {
            "paper": _paper_steps,
            "line_search": _line_search_steps,
            "fully_corrective": _corrective_steps,
        }[self.step]
        return rule(OracleRun(problem, self.oracle), start)

    def complete(self, problem: Problem, result: Result) -> Result:
        """The result knows how far off proposition 3 says it may be."""
        costs, eta = problem.costs, problem.adversary.eta
        # Mixture weights are optimal to a tolerance only, and so are Sinkhorn's plans.
        exact = isinstance(self.oracle, NetworkSimplex) and self.step != "fully_corrective"
        whole = result.status is not Status.TIME_LIMIT and problem.marginals.balanced
        if exact and whole and costs.nonnegative and eta > 0.0:
            return replace(result, rate=partial(rate_bound, costs, eta))
        return result

    def check(self, shape: tuple[int, ...], eta: float, eps: float) -> None:
        """Refuse what this solver cannot do."""
        if isinstance(self.oracle, type) or not callable(self.oracle):
            raise InputError(
                f"oracle: {brief(self.oracle)} is not an oracle; use frot.NetworkSimplex() or "
                "frot.Sinkhorn(eps=...)"
            )
        check_choice(self.step, "step", get_args(StepRule))
        if eps > 0.0:
            raise InputError(
                "eps: FrankWolfe solves eps = 0. For the problem with eps use "
                "solver=frot.Entropic(); for the paper's FW-Sinkhorn drop eps and use "
                "solver=frot.FrankWolfe(oracle=frot.Sinkhorn(eps=...))"
            )
        if eta == 0.0 and self.step != "fully_corrective":
            raise InputError(
                f"eta: Frank-Wolfe with step={self.step!r} needs eta > 0, since max is not smooth; "
                "pass eta=..., step='fully_corrective', or use solver=frot.Exact()"
            )


def _begin(run: OracleRun, start: Start) -> tuple[np.ndarray, Upper | None]:
    """Group costs of the first plan (a b^T unless one is given), and the plan if it was given."""
    problem = run.problem
    if start.plan is None:
        return problem.independent, None
    upper = upper_bound(problem, start.plan)
    return upper.phi, upper


def _moved(problem: Problem, start: Upper | None, end: CostedPlan, gamma: float) -> Upper:
    """Return the plan a share gamma of the way; None stands for a plan that gamma = 1 discards."""
    if start is None or gamma == 1.0:
        return upper_bound(problem, end.plan, end.phi)
    plan = combine_plans([start.plan, end.plan], [1.0 - gamma, gamma])
    phi = (1.0 - gamma) * start.phi + gamma * end.phi
    return upper_bound(problem, plan, phi)


def _paper_steps(run: OracleRun, start: Start) -> Iterator[Offer]:
    phi, current = _begin(run, start)
    alpha = start.alpha
    for step in count():
        if alpha is None:
            _, alpha = run.problem.adversary.best(phi)
        vertex, lower = run.vertex(alpha)
        # The first step is of length one, so the first plan never has to be formed.
        current = _moved(run.problem, current, vertex, 2.0 / (2.0 + step))
        phi, alpha = current.phi, current.alpha
        yield Offer(current, lower)


def _line_search_steps(run: OracleRun, start: Start) -> Iterator[Offer]:
    problem = run.problem
    phi, current = _begin(run, start)
    alpha = start.alpha
    while True:
        if alpha is None:
            _, alpha = problem.adversary.best(phi)
        vertex, lower = run.vertex(alpha)
        gamma = 1.0
        if current is not None:
            gamma = line_search(problem.adversary, current.phi, vertex.phi)
        current = _moved(problem, current, vertex, gamma)
        phi, alpha = current.phi, current.alpha
        yield Offer(current, lower)
        if gamma == 0.0:
            return


def _corrective_steps(run: OracleRun, start: Start) -> Iterator[Offer]:
    """Call the oracle at weights near those that answer the best mixture of all plans so far.

    While few plans are known that answer jumps from group to group, away from a good start too. The
    oracle is asked between it and the weights with the best lower bound: dual smoothing, as for
    column generation (Wentges 1997).
    """
    problem = run.problem
    phi, first = _begin(run, start)
    known = [] if first is None else [CostedPlan(first.plan, first.phi)]
    alpha = start.alpha
    if alpha is None:
        # At eta = 0 the adversary's answer to a b^T is a single group; all of them say more.
        smooth = problem.adversary.eta or 0.1 * problem.mean_cost or 1.0
        _, alpha = problem.simplex.having(smooth, problem.adversary.log_prior).best(phi)
    unit = problem.typical_cost or 1.0
    best_lower, best_upper, centre = -np.inf, np.inf, alpha
    idle = 0
    while True:
        vertex, lower = run.vertex(alpha)
        known.append(vertex)
        improved = lower.bound > best_lower
        if improved:
            best_lower, centre = lower.bound, alpha
        phis = np.column_stack([vertex.phi for vertex in known])
        width = (best_upper - best_lower) / unit
        # Rough mixtures keep alpha inside the simplex while the bounds are far apart.
        accuracy = 1e-10 if not np.isfinite(width) else min(1e-3, max(1e-2 * width, 1e-13))
        weights, answer = best_mixture(phis, problem.simplex, unit, accuracy)
        # Half of each takes 30 % fewer calls on random stacks than the answer alone, or 15 % of it.
        alpha = 0.5 * centre + 0.5 * answer
        mixed_phi = phis @ weights
        value, _ = problem.adversary.best(mixed_phi)
        improved = improved or value < best_upper
        upper = None
        if value < best_upper:
            best_upper = value
            used = weights > 1e-14
            shares = weights[used] / weights[used].sum()
            plan = combine_plans(
                [vertex.plan for vertex, keep in zip(known, used, strict=True) if keep], shares
            )
            # A lazy plan's costs would take a pass over all entries.
            lazy = isinstance(plan, LazyPlan)
            phi = phis[:, used] @ shares if lazy else problem.costs.inner(plan)
            upper = upper_bound(problem, plan, phi)
        yield Offer(upper, lower)
        idle = 0 if improved else idle + 1
        if idle >= 20 or best_lower >= best_upper:
            return
        if len(known) > 500:
            known = [plan for plan, weight in zip(known, weights, strict=True) if weight > 1e-9]


def line_search(
    adversary: SimplexFamily | GivenSet, start: np.ndarray, end: np.ndarray, accuracy: float = 1e-15
) -> float:
    r"""Minimise :math:`G_\eta((1 - \gamma) \phi + \gamma \hat\phi)` over gamma in [0, 1].

    The derivative :math:`\langle \alpha_\gamma, \hat\phi - \phi \rangle` grows with gamma, so its
    zero is bisected, to `accuracy`; each look costs O(L).

    Examples
    --------
    >>> from frot import Simplex
    >>> line_search(Simplex(eta=0.1), np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    0.5
    """
    direction = end - start

    def slope(gamma: float) -> float:
        return float(adversary.best(start + gamma * direction)[1] @ direction)

    low, high = 0.0, 1.0
    slope_low, slope_high = slope(low), slope(high)
    if slope_low >= 0.0:
        return 0.0
    if slope_high <= 0.0:
        return 1.0
    for turn in range(60):
        # A secant step finds a smooth zero fast; every third look halves, which bounds the rest.
        secant = low - slope_low * (high - low) / (slope_high - slope_low)
        middle = secant if turn % 3 and low < secant < high else 0.5 * (low + high)
        slope_middle = slope(middle)
        if slope_middle == 0.0 or high - low < accuracy:
            return middle
        if slope_middle < 0.0:
            low, slope_low = middle, slope_middle
        else:
            high, slope_high = middle, slope_middle
    return 0.5 * (low + high)


def rate_bound(costs: Costs, eta: float, steps: int | np.ndarray, delta: float = 0.0) -> np.ndarray:
    r"""Bound the error of Frank-Wolfe after so many steps (the paper's proposition 3).

    .. math::
        G_\eta(\Pi^{(t)}) - G_\eta(\Pi^*)
        \le \frac{4\, \sigma_{\max}(\Phi^\top \Phi)}{\eta\, (t + 2)} (1 + \delta),
        \qquad \Phi = (\mathrm{vec}(C_1), \ldots, \mathrm{vec}(C_L))^\top

    It holds from the first step on for the paper's steps and for a line search, from any start
    (Jaggi 2013, theorem 1): :math:`G_\eta` has a gradient with the Lipschitz constant
    :math:`\sigma_{\max} / \eta`, and two plans are at most :math:`\sqrt 2` apart. The constant is
    large; in practice the interval of the run is narrower by orders of magnitude.

    Parameters
    ----------
    costs : Costs
        Of shape (L, n, m), none below zero.
    eta : float
        Above zero.
    steps : int or array of int
        t, from 1.
    delta : float
        Accuracy to which the transport problems are solved, in Jaggi's sense; 0 for
        `NetworkSimplex`.

    Returns
    -------
    array of the shape of `steps`
        The eigenvalue in it is never underestimated, and overestimated by little.

    Examples
    --------
    >>> from frot.costs import Stack
    >>> costs = Stack(np.ones((3, 1, 2)))
    >>> rate_bound(costs, eta=2.0, steps=np.array([1, 4])).round(6).tolist()
    [4.0, 2.0]
    """
    if not costs.nonnegative:
        raise InputError("costs: must be 0 or more; add a constant to all of them")
    if not eta > 0.0:
        raise InputError(f"eta: {eta!r} has no rate, since max is not smooth; give eta > 0")
    return 4.0 * _largest_eigenvalue(costs) / (eta * (np.asarray(steps) + 2.0)) * (1.0 + delta)


def _largest_eigenvalue(costs: Costs, passes: int = 8, accuracy: float = 1e-3) -> float:
    r"""Return the largest eigenvalue of :math:`\Phi \Phi^\top`, or a bit more.

    Its entries :math:`\langle C_l, C_k \rangle` are not negative, so that for any positive v no
    eigenvalue is above :math:`\max_l (\Phi \Phi^\top v)_l / v_l` (Collatz and Wielandt). The
    matrix is never formed: a pass is one mixture of the costs, and its products with each.
    """
    v = np.ones(costs.shape[0])
    bound = np.inf
    for _ in range(passes):
        image = costs.inner(Plan(costs.mix(v)))
        top = float(image.max())
        if top == 0.0:
            return 0.0
        bound = min(bound, float((image / v).max()))
        # The Rayleigh quotient is a lower bound of the eigenvalue.
        if bound <= (1.0 + accuracy) * float(v @ image) / float(v @ v):
            break
        # Entries of groups with zero cost are raised: v has to stay positive.
        v = np.maximum(image / top, 1e-9)
    return bound


def best_mixture(
    phis: np.ndarray, adversary: SimplexFamily, unit: float, tol: float = 1e-10, max_iter: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    r"""Minimise :math:`G_\eta(\Phi w)` over the simplex: the best mixture of plans that are known.

    A plan enters the objective only through its L group costs, so mixing k plans is a problem on
    the k-simplex. It is solved by the interior point of :mod:`frot.solvers.exact.interior`, with k
    weights in the place of arcs, and reduced to a k x k system since here the groups may be many.

    `phis`, (L, k), are the group costs of k plans, `unit` their scale, and `tol` the duality gap at
    which to stop, in units of it. Returns the weights, (k,), and the adversary's at the saddle
    point, (L,).

    Examples
    --------
    >>> from frot import Simplex
    >>> w, alpha = best_mixture(np.array([[1.0, 0.0], [0.0, 1.0]]), Simplex(), unit=1.0)
    >>> w.round(6), alpha.round(6)
    (array([0.5, 0.5]), array([0.5, 0.5]))
    """
    if phis.shape[1] == 1:
        return np.ones(1), adversary.best(phis[:, 0])[1]
    if adversary.single(len(phis)):
        return np.eye(phis.shape[1])[int(np.argmin(phis.mean(axis=0)))], np.full(
            len(phis), adversary.cap
        )
    mixture = _Mixture(phis / unit, adversary.eta / unit, adversary.log_prior, adversary.cap)
    for _ in range(max_iter):
        if mixture.complementarity <= tol or not mixture.step():
            break
    return mixture.w / mixture.w.sum(), adversary.project(mixture.alpha)


class _Mixture:
    """An interior iterate: weights w with reduced costs z, alpha with slacks s, levels y and t.

    With a cap, alpha has room r up to it, of price v.
    """

    def __init__(
        self, costs: np.ndarray, eta: float, log_prior: np.ndarray | None, cap: float = 1.0
    ) -> None:
        groups, count = costs.shape
        self.costs, self.eta = costs, eta
        self.log_prior = np.zeros(groups) if log_prior is None else log_prior
        self.w = np.full(count, 1.0 / count)
        self.alpha = np.full(groups, 1.0 / groups)
        reduced = self.alpha @ costs
        self.y = float(reduced.min()) - 0.1
        self.z = reduced - self.y
        free = costs @ self.w - eta * (np.log(self.alpha) - self.log_prior)
        self.t = float(free.max()) + 0.1
        self.s = self.t - free
        self.capped = cap < 1.0
        self.r = cap - self.alpha if self.capped else np.zeros(0)
        self.v = 0.1 * np.ones(len(self.r))
        if self.capped:
            self.s = self.s + self.v

    @property
    def complementarity(self) -> float:
        """The duality gap of the mixture problem, once feasible."""
        return float(self.w @ self.z + self.alpha @ self.s + self.r @ self.v)

    def step(self) -> bool:
        """Take one predictor-corrector step; False if nothing moves any more."""
        # A slack that rounds to zero gives a non-finite direction, which is checked for below.
        with quiet():
            return self._step()

    def _step(self) -> bool:
        total = self.complementarity
        mu = total / (len(self.w) + len(self.alpha) + len(self.r))
        try:
            self._factor()
            probe = self._direction(-self.w * self.z, -self.alpha * self.s, -self.r * self.v)
            length = self._length(probe, 1.0)
            ahead = (self.w + length * probe[0]) @ (self.z + length * probe[1])
            ahead += (self.alpha + length * probe[2]) @ (self.s + length * probe[3])
            ahead += (self.r + length * probe[4]) @ (self.v + length * probe[5])
            sigma = min(1.0, max((ahead / total) ** 3, 1e-6))
            move = self._direction(
                sigma * mu - self.w * self.z - probe[0] * probe[1],
                sigma * mu - self.alpha * self.s - probe[2] * probe[3],
                sigma * mu - self.r * self.v - probe[4] * probe[5],
            )
        except (LinAlgError, ValueError):
            return False
        if not all(np.isfinite(part).all() for part in move):
            return False
        length = self._length(move, max(0.9, 1.0 - mu))
        self.w, self.z = self.w + length * move[0], self.z + length * move[1]
        self.alpha, self.s = self.alpha + length * move[2], self.s + length * move[3]
        self.r, self.v = self.r + length * move[4], self.v + length * move[5]
        self.y, self.t = self.y + length * move[6], self.t + length * move[7]
        return length > 1e-8

    def _length(self, move: tuple, share: float) -> float:
        values = (self.w, self.z, self.alpha, self.s, self.r, self.v)
        pairs = zip(values, move[:6], strict=True)
        return min(step_length(value, change, share) for value, change in pairs)

    def _factor(self) -> None:
        """Factor diag(z / w) + Phi^T diag(ease) Phi and solve for the two borders."""
        # How far alpha gives way when a group's cost rises by one.
        self._ease = self.alpha / (self.eta + self.s)
        if self.capped:
            self._ease = 1.0 / (1.0 / self._ease + self.v / self.r)
        matrix = self.costs.T @ (self.costs * self._ease[:, None])
        diagonal = np.einsum("ii->i", matrix)
        diagonal += self.z / self.w
        self._scale = 1.0 / np.sqrt(diagonal)
        matrix *= self._scale[:, None]
        matrix *= self._scale
        diagonal[:] = 1.0 + 1e-14
        self._cholesky = cho_factor(matrix, lower=True, overwrite_a=True)
        self._pull = self._ease @ self.costs
        self._sides = self._back(np.column_stack([np.ones(len(self.w)), self._pull]))

    def _back(self, right: np.ndarray) -> np.ndarray:
        scaled = right * self._scale[:, None]
        return cho_solve(self._cholesky, scaled) * self._scale[:, None]

    def _direction(self, wz: np.ndarray, alphas: np.ndarray, rooms: np.ndarray) -> tuple:
        off_z = self.alpha @ self.costs - self.y - self.z
        off_s = self.t - self.costs @ self.w - self.s
        if self.eta > 0.0:
            off_s += self.eta * (np.log(self.alpha) - self.log_prior)
        if self.capped:
            off_s += self.v
        level = alphas / self.alpha - off_s
        if self.capped:
            level -= rooms / self.r
        eased = self._ease * level
        base = self._back((wz / self.w - off_z - eased @ self.costs)[:, None])[:, 0]
        # dw = base + dy sides_0 + dt sides_1, with sum dw and sum dalpha what is still missing.
        pull, sides = self._pull, self._sides
        system = np.stack([sides.sum(axis=0), pull @ sides])
        system[1, 1] -= self._ease.sum()
        missing = np.array(
            [
                1.0 - self.w.sum() - base.sum(),
                1.0 - self.alpha.sum() - eased.sum() - pull @ base,
            ]
        )
        dy, dt = np.linalg.solve(system, missing)
        dw = base + sides @ np.array([dy, dt])
        dalpha = self._ease * (level - dt + self.costs @ dw)
        dz = off_z + dalpha @ self.costs - dy
        ds = (alphas - self.s * dalpha) / self.alpha
        dr, dv = self.r, self.v
        if self.capped:
            dr, dv = -dalpha, (rooms + self.v * dalpha) / self.r
        return dw, dz, dalpha, ds, dr, dv, dy, dt
