"""Subspace-robust transport (Paty and Cuturi 2019), by projected supergradient steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from frot._base.arrays import UNIT
from frot._base.stopping import check_limits
from frot._base.validate import check_callable, check_count, check_flag, second_names
from frot.costs import Points
from frot.groups.groups import Groups
from frot.plans.feasible import round_plan
from frot.plans.plan import Plan
from frot.problem.bounds import Upper
from frot.problem.problem import Problem
from frot.problem.result import Chosen, Result, handed_out
from frot.relatives.displacement import Displacements
from frot.relatives.pair import ProvenPlan, check_pair, transport_at
from frot.solvers.drive import Callback, Offer, drive, first_bounds

# How much later steps count more in averages, by the power of their number that is one less: on
# hypercubes 2 takes 17 to 19 steps and 4 takes 7 or 8, and on noise the gap is a tenth larger.
RECENT = 4.0


@second_names
def srw(
    X: Any,
    Y: Any,
    k: int,
    *,
    a: Any = None,
    b: Any = None,
    normalise_weights: bool = False,
    tol: float = 1e-3,
    max_iter: int = 1000,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Result:
    r"""Subspace-robust transport: the plan that is best where the worst k directions count.

    .. math::
        \mathrm{SRW}_k^2 = \min_{\Pi \in U(a, b)} \;
        \max_{0 \preceq \Omega \preceq I,\; \mathrm{tr}\, \Omega = k} \langle \Omega, V_\Pi \rangle,
        \qquad V_\Pi = \sum_{ij} \pi_{ij} (x_i - y_j)(x_i - y_j)^\top

    `value` is this squared cost, as everywhere in frot; its root is the distance. k = d is
    :math:`W_2^2`; k = 1 bounds `max_sliced`. With the maximum, over single subspaces, outside of
    the minimum it is projection-robust transport (Lin et al. 2020; Huang et al. 2021), which is not
    convex, and whose sampling error is known where only few directions differ (Niles-Weed and
    Rigollet 2022).

    The projected supergradient method (algorithm 1 of Paty and Cuturi 2019): transport exactly at
    :math:`\Omega_t`, step along :math:`V_{\Pi_t}`, which is a supergradient of the transport cost
    in :math:`\Omega`, and project on the set of :math:`\Omega`. Steps are :math:`\sqrt{k / 2}` over
    the root of :math:`\sum_s \|V_{\Pi_s} - V_{\Pi_{s-1}}\|_F^2`. Each transport is a lower bound,
    and so is one at the average of the :math:`\Omega_t`. The upper bound is the sum of the k
    largest eigenvalues of V at the average of the plans, to which later ones count more. Without
    structure in the data, many directions are nearly as good, and the gap falls slowly, as
    :math:`1 / \sqrt t`.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), or DataFrames
    k : int
        Dimension of the subspace, from 1 to d.
    a, b : arrays of shape (n,) and (m,), optional
        Weights that sum to one; uniform if left out.
    normalise_weights : bool
        Divide a and b by their sums.
    tol : float
        Relative gap at which to stop.
    max_iter : int
        Steps at most, each with one transport.
    time_limit : float, optional
        Seconds.
    callback, progress :
        As in `solve`.

    Returns
    -------
    Result
        ``chosen.array`` holds the directions of :math:`\Omega`, shape (d, s), and
        ``chosen.weights`` its eigenvalues. ``alpha`` are these divided by k, and ``phi`` is k
        times the cost of the plan along each direction, so that their product is what
        :math:`\Omega` makes of the plan.

    Examples
    --------
    >>> import frot
    >>> res = frot.srw([[0.0, 0.0]], [[3.0, 4.0]], k=1)
    >>> round(res.value, 9), abs(res.chosen.array[:, 0]).round(3)
    (25.0, array([0.6, 0.8]))
    """
    pair = check_pair(X, Y, a, b, normalise_weights)
    k = check_count(k, "k", most=pair.X.shape[1], of=" (the number of features)")
    limits = check_limits(tol, max_iter, time_limit)
    check_callable(callback, "callback")
    check_flag(progress, "progress")
    begin = time.perf_counter()
    moments = Displacements.of(pair)
    # In fewer coordinates than k the subspace holds them all.
    ascent = _Ascent(moments, min(k, moments.features))
    result = drive(
        ascent.offers(),
        pair.problem,
        solver=f"srw(k={k})",
        tol=limits.tol,
        max_iter=limits.max_iter,
        time_limit=limits.time_limit,
        callback=callback,
        progress=progress,
        before_any=ascent.before_any,
    )
    seconds = time.perf_counter() - begin
    result = replace(ascent.describe(result, seconds), adversary=f"Fantope(k={k})")
    return handed_out(result.at(pair.home))


def project_fantope(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the nearest :math:`\Omega` with :math:`0 \preceq \Omega \preceq I` and trace k.

    As eigenvalues, (d,), and eigenvectors, (d, d): the eigenvalues are those of the matrix less a
    level, cut to [0, 1], with the level that makes their sum k.

    Examples
    --------
    >>> project_fantope(np.diag([5.0, 0.75, 0.25]), 2)[0].round(3)
    array([0.25, 0.75, 1.  ])
    """
    values, vectors = np.linalg.eigh(matrix)
    if k == len(values):
        return np.ones(k), vectors
    # The sum falls with the level, linearly between the levels where a value meets 0 or 1.
    levels = np.sort(np.concatenate([values, values - 1.0]))
    sums = np.clip(values - levels[:, None], 0.0, 1.0).sum(axis=1)
    right = int(np.searchsorted(-sums, -float(k)))
    share = (sums[right - 1] - k) / (sums[right - 1] - sums[right])
    level = levels[right - 1] + share * (levels[right] - levels[right - 1])
    return np.clip(values - level, 0.0, 1.0), vectors


@dataclass(eq=False)
class _Ascent:
    """The steps, and the best answer of the adversary so far."""

    moments: Displacements
    k: int
    weights: np.ndarray = field(init=False)
    directions: np.ndarray = field(init=False)
    lower: float = -np.inf

    def __post_init__(self) -> None:
        size = self.moments.features
        self.weights, self.directions = np.full(size, self.k / size), np.eye(size)

    def before_any(self, problem: Problem) -> Offer:
        """Bounds that need no transport: of plain transport, and its share in (k / d) I."""
        plain = first_bounds(problem)
        assert plain.lower is not None
        share = (1.0 - 4.0 * UNIT) * self.k / self.moments.features
        lower = replace(plain.lower, bound=share * max(plain.lower.bound, 0.0))
        return Offer(plain.upper, lower)

    def offers(self) -> Iterator[Offer]:
        """Step by step: transport at Omega, bounds, and the next Omega."""
        moments, k = self.moments, self.k
        size = moments.features
        weights, vectors = self.weights, self.directions
        mean_omega, mean_V = np.zeros((size, size)), np.zeros((size, size))
        mean_plan = np.zeros(moments.pair.costs.shape[1:])
        # As in AdaGrad (Duchi et al. 2011), steps are as long as the gradients are alike: the
        # leading directions, in which all plans agree, have their weight at once.
        before, changes, step = None, 0.0, 0
        while True:
            plan, lower = self._transport(weights, vectors)
            plan = round_plan(plan, moments.a, moments.b)
            V = moments.matrix(plan)
            # Averages in which step t weighs about t^3.
            new = RECENT / (step + RECENT)
            omega = (vectors * weights) @ vectors.T
            mean_omega = (1.0 - new) * mean_omega + new * omega
            mean_V = (1.0 - new) * mean_V + new * V
            mean_plan = (1.0 - new) * mean_plan + new * plan.dense()
            average = Plan(mean_plan, copy=False)
            leading = moments.leading(average, k, mean_V, averaged=step)
            upper = Upper(leading.bound, leading.value, average, np.array([leading.value]))
            if step % 10 == 9:
                # Where the steps go to and fro, their average is nearer to the optimum.
                central = self._transport(*project_fantope(mean_omega, k)).lower
                lower = central if central.bound > lower.bound else lower
            yield Offer(upper, lower)
            step += 1
            changes += 0.0 if before is None else float(((V - before) ** 2).sum())
            scale = np.sqrt(changes) if changes > 0.0 else np.linalg.norm(V)
            if scale == 0.0:
                return
            before, length = V, np.sqrt(0.5 * k) / scale
            weights, vectors = project_fantope(omega + length * V, k)

    def _transport(self, weights: np.ndarray, vectors: np.ndarray) -> ProvenPlan:
        """Transport exactly at the Omega of these eigenvalues and eigenvectors."""
        moments = self.moments
        used = weights > 0.0
        weights, vectors = weights[used], vectors[:, used]
        # Eigenvectors are orthonormal, and the trace is k, to units in the last place: a little
        # less costs next to nothing and is in the set.
        room = 1.0 - 16.0 * len(vectors) * UNIT
        factor = vectors * np.sqrt(weights * room)
        X, Y = moments.X @ factor, moments.Y @ factor
        costs = Points.of(X, Y, Groups.parse("all", X.shape[1], None))
        plan, lower = transport_at(Problem(costs, moments.a, moments.b))
        # Products with the factor are right to units of the points' own size.
        slack = 8.0 * UNIT * float(np.sqrt(moments.features)) * moments.squares
        bound = max(lower.bound - slack, 0.0)
        if bound > self.lower:
            self.lower, self.weights, self.directions = bound, weights, vectors
        return ProvenPlan(plan, replace(lower, bound=bound, slack=lower.slack + slack))

    def describe(self, result: Result, seconds: float) -> Result:
        """Say which directions were chosen, in the features that came in."""
        moments = self.moments
        # What rounding leaves in a direction is no choice.
        used = self.weights > 1e-9
        weights, directions = self.weights[used], self.directions[:, used]
        X, Y = moments.X @ directions, moments.Y @ directions
        each = Points.of(X, Y, Groups.each(len(weights)))
        return replace(
            result,
            alpha=weights / weights.sum(),
            phi=weights.sum() * each.inner(result.plan),
            names=tuple(f"direction {number + 1}" for number in range(len(weights))),
            time=seconds,
            metric="sqeuclidean",
            chosen=Chosen("subspace", moments.back(directions), moments.pair.names, weights),
        )
