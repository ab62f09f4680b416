r"""Feature-robust transport as a loss: values and gradients for PyTorch, on CPU and CUDA.

Gradients are those of the envelope theorem: at the optimum, plan and weights can be held fixed,

.. math::
    \frac{\partial}{\partial x_i} = \sum_j \pi_{ij} \sum_l \alpha_l
        \frac{\partial c_l(x_i, y_j)}{\partial x_i}, \qquad
    \frac{\partial}{\partial a_i} = f_i, \qquad
    \frac{\partial}{\partial \varepsilon} = \mathrm{KL}(\Pi | a b^\top), \qquad
    \frac{\partial}{\partial \eta} = -\sum_l \alpha_l \log (\alpha_l / q_l) ,

and likewise by the parameters of a cost of one's own: nothing is unrolled, and memory does not
depend on the number of iterations. Where mass may go (`tau`), rows keep
:math:`a\, e^{-f / \tau}`, and

.. math::
    \frac{\partial}{\partial a_i} = \tau\,(1 - e^{-f_i / \tau})
    - \varepsilon\,(e^{-f_i / \tau} - |b|), \qquad
    \frac{\partial}{\partial \tau} = \mathrm{KL}(\Pi 1 | a) .
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from frot._base.arrays import device_room
from frot._base.errors import InputError, brief
from frot._base.validate import (
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_prior,
    metric_name,
)
from frot.api.batch_result import BatchResult
from frot.costs import MEMORY_BUDGET, METRICS
from frot.costs.distances import NORMS
from frot.costs.metrics import map_points
from frot.groups.groups import Groups
from frot.problem.adversary import Simplex, SimplexFamily
from frot.problem.options import (
    DEFAULT_EPS,
    Relative,
    amount_at,
    check_amount,
    check_tau,
    eta_and_prior,
    refuse_idle_prior,
)
from frot.solvers.entropic.clouds import CloudSolution
from frot.solvers.entropic.dense import dense_bytes, stream_bytes
from frot.torch._costs import DistanceCosts, Images, LossCosts, SquaredCosts
from frot.torch._divergence import certified_at, solve_divergence
from frot.torch._own_cost import OwnCost, own_costs
from frot.torch._shared_ascent import SHARES
from frot.torch._solved import BatchProblem, Results, certified, solve_members
from frot.torch._streamed import streamed_loss, streams
from frot.torch._tensors import check_tensors, from_autocast, refuse_recording, spread_weights
from frot.torch._transport import Amounts, value_of

Weights = tuple[Tensor, Tensor]
# Answers between x and y, or a function that proves them when they are asked for.
Proof = Results | Callable[[], Results]


class FRWDLoss(nn.Module):
    r"""The entropic feature-robust transport cost between two sets of points.

    .. math::
        F(x, y) = \min_{\Pi \in U(a, b)} G_\eta(\phi(\Pi))
        + \varepsilon\,\mathrm{KL}(\Pi | a b^\top)

    or, debiased, the largest Sinkhorn divergence (Feydy et al. 2019; with `tau` Séjourné et al.
    2019) of a mixed cost,

    .. math::
        D(x, y) = \max_\alpha\; S_\alpha(x, y) - \eta\,\mathrm{KL}(\alpha | q), \qquad
        S_\alpha(x, y) = W_\alpha(x, y) - \tfrac12 W_\alpha(x, x) - \tfrac12 W_\alpha(y, y) ,

    with :math:`W_\alpha` the entropic cost of :math:`\sum_l \alpha_l C_l` and q the prior. All
    three terms have the same weights, so that D is a divergence: :math:`D \ge S_q \ge 0`, and zero
    for equal sets only.

    Parameters
    ----------
    groups : optional
        What `Groups.parse` reads; one group per feature if left out.
    eta, eps : float or `relative`
        As in `solve`, with eps > 0, ``relative(0.02)`` if left out: without it the cost has kinks
        where the plan is not unique. A share of the mean cost is differentiated too.
    debias : bool
        Return D. Shares are of the mean cost between x and y, for all three terms. D is not
        concave in the weights: the steps on them go up from q, and never below S_q, but the maximum
        they end at may be a local one. Of costs that are not conditionally negative definite
        ("chebyshev" of three features or more, most of one's own) D may be negative.
    metric : str or callable
        "sqeuclidean", "cosine", or another name in `frot.costs.METRICS`; "euclidean", "cityblock"
        or "chebyshev", whose gradient is zero where points coincide; or a cost of your own,
        ``cost(x, y)`` in PyTorch: it is called for one pair of clouds at a time, of shape (n, d)
        and (m, d) (of a batch for one member after another; debiased for each cloud with itself,
        too), and returns (n, m), or (L, n, m) for L groups, of any sign. Its autograd gets
        :math:`\alpha_l \Pi`, so that parameters of the cost have gradients, too.
    prior : array of shape (L,), optional
        As in `solve`.
    adversary : Simplex or CappedSimplex, optional
        As in `solve`.
    tau : float, `relative` or a pair of these, optional
        As in `solve` with ``penalty="kl"``: weights may sum to anything. Debiased, both sides have
        one price, and :math:`\tfrac\varepsilon2 (|a| - |b|)^2` is added, without which it may be
        negative.
    gradient_tol : float
        Relative error of the gradient by the points, :math:`\|\delta\| / \|\nabla F\|`: an
        estimate, kept by a factor of two on all kinds of clouds, and of ten on most. The proven
        interval of ``self.result`` is no wider than that either, relative to its value; the loss
        itself, a dual value, is far closer, about its square. A debiased gradient is a
        difference, whose error counts relative to its parts: where the clouds all but agree, ask
        for less.
    max_iter : int
        Steps of the solver at most.
    warm_start : bool
        Begin with the last call's potentials and weights where shapes agree and points have moved
        little, and do not solve again what has not changed. What comes out is certified either way,
        and the same to `gradient_tol`.

    Notes
    -----
    `torch.compile` runs the loss as it is, between compiled parts. Autocast does not reach into it:
    points that come in half precision are taken in single there, as by PyTorch's own losses, and
    refused elsewhere. There are no second derivatives, and none inside `torch.func`; batches take
    the place of `torch.vmap`.

    ``self.result`` is the certified answer between x and y. Of a debiased loss with several groups
    that is the cost between x and y at the shared weights ``self.alpha``, mixed into one group; D
    itself has no interval: what is returned is :math:`S_\alpha - \eta\,\mathrm{KL}(\alpha | q)` at
    the weights that were found, below D up to the errors of its three dual values.

    On CUDA with Triton the costs of a loss that is not debiased, or has one group, are solved by
    fused kernels that keep no matrix (`eps` > 0, no `tau`, a `gradient_tol` of 1e-4 or more, and
    `eta` > 0 with several groups; all else is solved as on a CPU, and so are batches whose members'
    matrices fit). The interval is proven when ``self.result`` is asked for, and so it is of a
    debiased loss with several groups.

    Examples
    --------
    >>> import torch, frot.torch
    >>> x = torch.tensor([[0.0, 0.0], [1.0, 1.0]], requires_grad=True)
    >>> y = torch.tensor([[1.0, 3.0], [0.0, 2.0]])
    >>> loss = frot.torch.FRWDLoss(eta=0.1, eps=0.05)
    >>> loss(x, y).backward()
    >>> x.grad[:, 1] < 0
    tensor([True, True])

    A cost of one's own, with a parameter that is learnt:

    >>> scale = torch.ones(2, requires_grad=True)
    >>> def cost(x, y):
    ...     gaps = (x[:, None] - y[None]).abs()
    ...     return torch.stack([scale[0] * gaps[..., 0], scale[1] * gaps[..., 1] ** 2])
    >>> frot.torch.FRWDLoss(metric=cost, eta=1.0, eps=0.1)(x, y).backward()
    >>> bool((scale.grad > 0).all())
    True
    """

    def __init__(
        self,
        groups: Any = None,
        eta: float | Relative = 0.0,
        eps: float | Relative = DEFAULT_EPS,
        *,
        debias: bool = False,
        metric: str | OwnCost = "sqeuclidean",
        prior: Any = None,
        adversary: Any = None,
        tau: Any = None,
        gradient_tol: float = 5e-3,
        max_iter: int = 2_000,
        warm_start: bool = True,
    ) -> None:
        super().__init__()
        self.groups = groups
        self.eta, self.eps = check_amount(eta, "eta"), check_amount(eps, "eps")
        self.debias = check_flag(debias, "debias")
        self.tau = check_tau(tau, "kl")
        if self.debias and self.tau is not None and self.tau[0] != self.tau[1]:
            raise InputError("tau: a debiased loss has one price for both sides; pass a number")
        self.metric = metric if callable(metric) else check_choice(metric, "metric", _names())
        if callable(metric) and groups is not None:
            raise InputError(
                "groups: a cost of one's own has the groups that it returns, (L, n, m); leave "
                "groups out"
            )
        self.gradient_tol = check_number(gradient_tol, "gradient_tol", strict=True)
        self.max_iter = check_count(max_iter, "max_iter")
        self.warm_start = check_flag(warm_start, "warm_start")
        # The answers between x and y or a function that proves them, and whether there is one
        # member; and what was made of them.
        self._proof: tuple[Proof, bool] | None = None
        self._result: Any = None
        # What was asked for and answered last: between x and y, and of each with itself.
        self._last: dict[str, tuple[Any, Any]] = {}
        self._alpha: Tensor | None = None
        # The same of fused kernels, of every member.
        self._clouds: tuple[CloudSolution, ...] = ()
        if not isinstance(adversary, SimplexFamily | None):
            raise InputError(
                f"adversary: FRWDLoss does not take {brief(adversary)}; use frot.CappedSimplex(k)"
            )
        self.adversary = adversary or Simplex()
        self.eta, log_prior = eta_and_prior(self.adversary, self.eta, prior)
        self.prior = log_prior if log_prior is prior else np.exp(np.asarray(log_prior))
        refuse_idle_prior(self.prior, self.eta)
        if amount_at(self.eps) == 0.0:
            raise InputError(
                "eps: at eps = 0 the cost has kinks where the plan is not unique, so that there is "
                "no gradient; pass eps > 0"
            )

    @property
    def alpha(self) -> Tensor | None:
        """The weights of the groups at the last call, (L,), or (B, L) of a batch; None before."""
        return self._alpha

    @property
    def result(self) -> Any:
        """The certified answer that the last cost between x and y came from, or the batch of them.

        None before the first call. Of a debiased loss with several groups it is that of the one
        cost that ``self.alpha`` mixes.
        """
        if self._proof is not None:
            proof, alone = self._proof
            results, metric = _proven(proof), metric_name(self.metric)
            if isinstance(results, BatchResult):
                results = replace(results, metric=metric)
            else:
                results = [replace(result, metric=metric) for result in results]
            self._result, self._proof = results[0] if alone else results, None
        return self._result

    def extra_repr(self) -> str:
        """What the module was made with."""
        metric = self.metric
        named = repr(metric) if isinstance(metric, str) else type(metric).__name__
        text = f"eta={self.eta}, eps={self.eps}, debias={self.debias}, metric={named}"
        text += "" if self.tau is None else f", tau={self.tau}"
        return text + ("" if self.adversary.k == 1 else f", k={self.adversary.k}")

    def forward(self, x: Tensor, y: Tensor, a: Tensor | None = None, b: Tensor | None = None):
        """Return the loss.

        Parameters
        ----------
        x, y : tensors of shape (n, d) and (m, d), or (B, n, d) and (B, m, d)
            On one device and of one dtype, float32 or float64.
        a, b : tensors of shape (n,) and (m,), optional
            Weights that sum to one; with a batch of every member, or (B, n) and (B, m).

        Returns
        -------
        Tensor
            A scalar, or one per member of the batch: dual values. ``self.result`` is the certified
            answer, or the batch of them, that the last cost between x and y came from. It keeps the
            detached points and potentials, not the plan, until the next call, and so do warm
            starts; copies, pickles and ``state_dict`` leave both out.
        """
        refuse_recording()
        if torch.compiler.is_compiling():
            return _untraced()(self, x, y, a, b)
        return self._loss(x, y, a, b)

    def _loss(self, x: Tensor, y: Tensor, a: Tensor | None, b: Tensor | None) -> Tensor:
        x, y, a, b = check_tensors(*map(from_autocast, (x, y, a, b)))
        alone = x.ndim == 2
        if alone:
            x, y = x[None], y[None]
        any_mass = self.tau is not None
        weights = spread_weights(a, x, "a", any_mass), spread_weights(b, y, "b", any_mass)
        # A network of the user's own may well be meant to run in half precision.
        own = None if isinstance(self.metric, str) else self._own_costs(self.metric, x, y)
        # Autocast would have sweeps multiply in half precision.
        with torch.autocast(x.device.type, enabled=False), device_room("x, y", *_needs(x, y)):
            costs = own or self._named_costs(x, y, named=not alone)
            self.adversary.check(len(costs[0].groups))
            loss, proof = self._solve(costs, weights)
        self._proof, self._result = (proof, alone), None
        if alone and self._alpha is not None:
            self._alpha = self._alpha[0]
        loss = loss.to(x.dtype)
        return loss[0] if alone else loss

    def _own_costs(self, cost: OwnCost, x: Tensor, y: Tensor) -> tuple[LossCosts, ...]:
        """What a callable returns for x and y and, debiased, for each with itself."""
        pairs = ((x, y), (x, x), (y, y)) if self.debias else ((x, y),)
        costs = tuple(own_costs(cost, *pair) for pair in pairs)
        counts = sorted({len(part.groups) for part in costs})
        if len(counts) > 1:
            raise InputError(
                f"metric: the cost returned {counts[0]} groups for one pair of clouds and "
                f"{counts[-1]} for another; return as many for all"
            )
        return costs

    def _named_costs(self, x: Tensor, y: Tensor, named: bool) -> tuple[LossCosts, ...]:
        """The costs of a metric's name, of the same pairs."""
        metric = self.metric
        assert isinstance(metric, str)
        groups = Groups.parse(self.groups, x.shape[2], None)
        if metric in NORMS:
            costs: LossCosts = DistanceCosts(groups, x, y, metric)
        else:
            factored = METRICS[metric]
            costs = SquaredCosts(groups, x, y)
            if factored.maps or factored.scale != 1.0:
                # In double precision: the costs of single precision's points, not of their images.
                both = (x.double(), y.double())
                mapped = map_points(factored, *both, groups, names=("x", "y"), member=named)
                # Squared distances of what is left are the costs.
                x, y = (factored.scale**0.5 * points for points in (mapped.X, mapped.Y))
                # The product with the root is one more rounding.
                images = Images(mapped.error + 2.0)
                costs = SquaredCosts(mapped.groups(groups.names), x, y, images)
        return (costs, costs.having(x, x), costs.having(y, y)) if self.debias else (costs,)

    def __getstate__(self) -> dict[str, Any]:
        # The last answer is no part of the module, and as large as the data it came from.
        empty = {"_proof": None, "_result": None, "_alpha": None, "_last": {}, "_clouds": ()}
        return self.__dict__ | empty

    def _solve(self, costs: tuple[LossCosts, ...], weights: Weights) -> tuple[Tensor, Proof]:
        """Return the losses of the members, (B,), and the answers between x and y.

        Debiased or not, there is one eta and one eps: costs of different ones cannot be compared.
        """
        amounts = self._amounts(costs[0], weights)
        streamed = self._streamed(costs[0], weights, amounts)
        if streamed is not None:
            return streamed
        self._clouds = ()
        a, b = weights
        if self.debias and len(costs[0].groups) > 1:
            loss, proof = self._divergence(costs, weights, amounts)
        else:
            loss, proof = self._cost("xy", costs[0], weights, amounts)
            if self.debias:
                for role, own, w in (("xx", costs[1], a), ("yy", costs[2], b)):
                    loss = loss - 0.5 * self._cost(role, own, (w, w), amounts)[0]
        if self.debias and self.tau is not None:
            loss = loss + 0.5 * amounts.eps * (a.sum(1) - b.sum(1)) ** 2
        return loss, proof

    def _divergence(
        self, costs: tuple[LossCosts, ...], weights: Weights, amounts: Amounts
    ) -> tuple[Tensor, Proof]:
        """The debiased loss of several groups, (B,), and what proves the costs between x and y."""
        count, n, m = costs[0].shape
        together = count * dense_bytes(max(n, m), max(n, m)) <= MEMORY_BUDGET
        parts = [slice(0, count)] if together else [slice(k, k + 1) for k in range(count)]
        losses, alphas, proofs = [], [], []
        for number, part in enumerate(parts):
            loss, proof = self._at_shared_weights(
                f"shared {number}", tuple(cost.member(part) for cost in costs),
                (weights[0][part], weights[1][part]), amounts.members(part),
            )  # fmt: skip
            losses.append(loss)
            proofs.append(proof)
            alphas.append(self._alpha)
        self._alpha = torch.cat(alphas)
        return torch.cat(losses), proofs[0] if together else partial(_all_proven, proofs)

    def _at_shared_weights(
        self, role: str, costs: tuple[LossCosts, ...], weights: Weights, amounts: Amounts
    ) -> tuple[Tensor, Proof]:
        """The same of members that are solved together."""
        a, b = weights
        pairs = ((a, b), (a, a), (b, b))
        xy, xx, yy = (self._asked(*part, amounts) for part in zip(costs, pairs, strict=True))
        solved = solve_divergence((xy, xx, yy), self._last.get(role))
        asked = xy.copied()
        if self.warm_start:
            self._last = {**self._last, role: ((asked, xx.copied(), yy.copied()), solved)}
        self._alpha = solved.alpha
        _refuse_overflow(solved.terms[0].values, weights[0].dtype)
        # A copy: what was made in inference mode cannot be saved for a gradient.
        value = -amounts.eta * solved.kl.clone()
        for share, cost, pair, term in zip(SHARES, costs, pairs, solved.terms, strict=True):
            value = value + share * value_of(cost, pair, amounts, term)
        return value, partial(certified_at, asked, solved.alpha)

    def _amounts(self, costs: LossCosts, weights: Weights) -> Amounts:
        """Return the mean costs of the members, and eta, eps and both prices of each."""
        a, b = weights
        if self.tau is not None:
            a, b = a / a.sum(1, keepdim=True), b / b.sum(1, keepdim=True)
        level = costs.mean(a, b)
        # If all costs are zero, shares are taken of one, as in `solve`.
        unit = torch.where(level > 0.0, level, 1.0)

        def amount(given: float | Relative, unit: Tensor) -> Tensor:
            if isinstance(given, Relative):
                return given.share * unit
            return torch.full_like(level, given)

        tau_a, tau_b = self.tau or (torch.inf, torch.inf)
        return Amounts(
            level, amount(self.eta, level), amount(self.eps, unit), amount(tau_a, unit),
            amount(tau_b, unit),
        )  # fmt: skip

    def _streamed(
        self, costs: LossCosts, weights: Weights, amounts: Amounts
    ) -> tuple[Tensor, Proof] | None:
        """The same by fused kernels, None where there are none or they do not get there.

        Members of a batch are solved one by one, where they are too large to be solved together.
        """
        count, n, m = costs.shape
        suits = count == 1 or dense_bytes(n, m) > MEMORY_BUDGET
        suits = suits and self.tau is None and self.adversary.k == 1
        suits = suits and not (self.debias and len(costs.groups) > 1)
        if not suits or not isinstance(costs, SquaredCosts) or not streams(costs.x):
            return None
        (a, b), groups = weights, costs.groups
        last: list[Any] = [*self._clouds, *[None] * count]
        prior, losses, solutions = check_prior(self.prior, len(groups)), [], []
        for k in range(count):
            loss, solution = streamed_loss(
                (costs.x[k], costs.y[k], a[k], b[k]), (amounts.eta[k], amounts.eps[k]), groups,
                prior, self.gradient_tol, self.max_iter, self.debias, last[k],
            )  # fmt: skip
            if loss is None or solution is None:
                return None
            losses.append(loss)
            solutions.append(solution)
        self._clouds = tuple(solutions) if self.warm_start else ()
        alpha = np.stack([solution.alpha[0] for solution in solutions])
        self._alpha = torch.as_tensor(alpha, device=losses[0].device)
        # A copy: an optimiser changes the points in place before the proof is asked for.
        asked = self._asked(costs, weights, amounts).copied()
        return torch.stack(losses), partial(_certified_streams, asked, solutions)

    def _asked(self, costs: LossCosts, weights: Weights, amounts: Amounts) -> BatchProblem:
        """What is to be solved, without a graph."""
        a, b = (part.detach() for part in weights)
        level, eta, eps, tau_a, tau_b = amounts.detached()
        return BatchProblem(
            costs.detached(), (a, b), (eta, eps, level), self.prior, self.gradient_tol,
            self.max_iter, self.adversary.k, symmetric=costs.symmetric(a, b),
            tau=None if self.tau is None else (tau_a, tau_b),
        )  # fmt: skip

    def _cost(
        self, role: str, costs: LossCosts, weights: Weights, amounts: Amounts
    ) -> tuple[Tensor, Proof]:
        """Return the costs of the members, (B,), and the answers they come from."""
        # Solved out here, so that warnings point at the caller and not into autograd.
        asked = self._asked(costs, weights, amounts)
        solved = solve_members(asked, self._last.get(role))
        if self.warm_start:
            self._last = {**self._last, role: (asked.copied(), solved)}
        _refuse_overflow(solved.values, weights[0].dtype)
        if role == "xy":
            self._alpha = solved.alpha
        return value_of(costs, weights, amounts, solved), solved.results


def _names() -> tuple[str, ...]:
    """The metrics that can be differentiated."""
    return (*METRICS, *NORMS)


def _proven(proof: Proof) -> Results:
    """Return results, which may have to be proven first."""
    return proof() if callable(proof) else proof


def _all_proven(proofs: list[Proof]) -> Results:
    """Return the results of members that were solved apart."""
    return [result for proof in proofs for result in _proven(proof)]


def _certified_streams(asked: BatchProblem, solutions: list[CloudSolution]) -> Results:
    """Prove intervals of the members from the weights and potentials that kernels have found."""
    pairs = enumerate(solutions)
    return [certified(asked, k, solution.alpha[0], solution.g) for k, solution in pairs]


def _untraced() -> Any:
    """The loss out of the compiler's sight: a search has nothing to fuse, and loops of any length.

    Made when a compiler asks for it, since the compiler takes seconds to load.
    """
    return torch.compiler.disable(FRWDLoss._loss)


def _refuse_overflow(values: Tensor, dtype: torch.dtype) -> None:
    """Refuse to hand out a loss that the points' precision does not hold: infinite, it is none."""
    largest = float(values.abs().max())
    if largest > torch.finfo(dtype).max:
        name = str(dtype).removeprefix("torch.")
        raise InputError(
            f"x, y: the loss is {largest:.1e}, more than {name} holds; scale the points, or pass "
            "x.double() and y.double()"
        )


def _needs(x: Tensor, y: Tensor) -> tuple[float, str]:
    """Return the bytes that batches x and y need about, and the way out where they are missing."""
    (count, n, d), m = x.shape, y.shape[1]
    dense = dense_bytes(n, m)
    if dense <= MEMORY_BUDGET:
        held = min(count * dense, MEMORY_BUDGET)
        return float(held), "pass fewer members at once, or fewer points"
    return float(stream_bytes(n, m, d)), "pass fewer points"
