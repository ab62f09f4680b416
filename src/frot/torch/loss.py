r"""Feature-robust transport as a loss: values and gradients for PyTorch, on CPU and CUDA.

Gradients are those of the envelope theorem: at the optimum, plan and weights can be held fixed,

.. math::
    \frac{\partial}{\partial x_i} = \sum_j \pi_{ij} \sum_l \alpha_l
        \frac{\partial c_l(x_i, y_j)}{\partial x_i}, \qquad
    \frac{\partial}{\partial a_i} = f_i, \qquad
    \frac{\partial}{\partial \varepsilon} = \mathrm{KL}(\Pi | a b^\top), \qquad
    \frac{\partial}{\partial \eta} = -\sum_l \alpha_l \log (\alpha_l / q_l) ,

so that nothing is unrolled and memory does not depend on the number of iterations. Where mass may
go (`tau`), rows keep :math:`a\, e^{-f / \tau}`, and

.. math::
    \frac{\partial}{\partial a_i} = \tau\,(1 - e^{-f_i / \tau})
    - \varepsilon\,(e^{-f_i / \tau} - |b|), \qquad
    \frac{\partial}{\partial \tau} = \mathrm{KL}(\Pi 1 | a) .
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from frot._base.arrays import device_room, find_home, refuse_odd_tensor
from frot._base.errors import InputError, brief
from frot._base.validate import check_choice, check_count, check_flag, check_number, check_prior
from frot.api.batch import batch_weights
from frot.costs import MEMORY_BUDGET, METRICS, FactoredMetric
from frot.costs.metrics import map_points
from frot.groups.groups import Groups
from frot.problem.adversary import Simplex, SimplexFamily
from frot.problem.terms import (
    DEFAULT_EPS,
    Relative,
    amount_at,
    check_amount,
    check_tau,
    eta_and_prior,
    refuse_idle_prior,
)
from frot.solvers.sinkhorn.clouds import CloudSolution
from frot.solvers.sinkhorn.dense import dense_bytes, stream_bytes
from frot.torch._divergence import SHARES, certified_at, solve_divergence
from frot.torch._solved import (
    SQUARED,
    BatchProblem,
    Envelope,
    Images,
    Solved,
    certified,
    feature_weights,
    solve_members,
)
from frot.torch._streamed import streamed_loss, streams


class FRWDLoss(nn.Module):
    r"""The entropic feature-robust transport cost between two sets of points.

    .. math::
        F(x, y) = \min_{\Pi \in U(a, b)} G_\eta(\phi(\Pi))
        + \varepsilon\,\mathrm{KL}(\Pi | a b^\top)

    or, debiased, the largest Sinkhorn divergence of a mixed cost,

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
        As in `solve`; eps is ``relative(0.02)`` if left out, as there and in `solve_batch`. A share
        of the mean cost is differentiated too. ``eps=0`` has kinks where
        the plan is not unique: it needs ``subgradient=True``, and is solved on the host.
    debias : bool
        Return D. Shares are of the mean cost between x and y, for all three terms. D is not
        concave in the weights: the steps on them go up from q, and never below S_q, but the maximum
        they end at may be a local one.
    metric : str
        "sqeuclidean", "cosine", or another name in `frot.costs.METRICS`.
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
    subgradient : bool
        Take eps = 0, and for its gradient one element of the subdifferential.
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
    """

    def __init__(
        self,
        groups: Any = None,
        eta: float | Relative = 0.0,
        eps: float | Relative = DEFAULT_EPS,
        *,
        debias: bool = False,
        metric: str = "sqeuclidean",
        prior: Any = None,
        adversary: Any = None,
        tau: Any = None,
        gradient_tol: float = 5e-3,
        max_iter: int = 2_000,
        subgradient: bool = False,
        warm_start: bool = True,
    ) -> None:
        super().__init__()
        self.groups = groups
        self.eta, self.eps = check_amount(eta, "eta"), check_amount(eps, "eps")
        self.debias = check_flag(debias, "debias")
        self.tau = check_tau(tau, "kl")
        if self.debias and self.tau is not None and self.tau[0] != self.tau[1]:
            raise InputError("tau: a debiased loss has one price for both sides; pass a number")
        self.metric = check_choice(metric, "metric", tuple(METRICS))
        self.gradient_tol = check_number(gradient_tol, "gradient_tol", strict=True)
        self.max_iter = check_count(max_iter, "max_iter")
        self.subgradient = check_flag(subgradient, "subgradient")
        self.warm_start = check_flag(warm_start, "warm_start")
        # The answers between x and y, without objectives; and what was made of them.
        self._found: tuple[Any, bool] | None = None
        self._shown: Any = None
        # What was asked for and found last: between x and y, and of each with itself.
        self._last: dict[str, tuple[BatchProblem, Any]] = {}
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
        if not subgradient and amount_at(self.eps) == 0.0:
            raise InputError(
                "eps: at eps = 0 the cost has kinks where the plan is not unique, so that there is "
                "no gradient, only subgradients; pass eps > 0, or subgradient=True to take one"
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
        found = self._found
        if found is not None:
            made, alone = found
            # On a device they are proven now.
            results = _proven(made)
            self._shown, self._found = results[0] if alone else results, None
        return self._shown

    def extra_repr(self) -> str:
        """What the module was made with."""
        text = f"eta={self.eta}, eps={self.eps}, debias={self.debias}, metric={self.metric!r}"
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
        x, y, a, b = check_tensors(*map(_from_autocast, (x, y, a, b)))
        alone = x.ndim == 2
        if alone:
            x, y = x[None], y[None]
        soft = self.tau is not None
        a, b = spread_weights(a, x, "a", soft), spread_weights(b, y, "b", soft)
        groups = Groups.parse(self.groups, x.shape[2], None)
        self.adversary.check(len(groups))
        # Autocast would have sweeps multiply in half precision.
        with torch.autocast(x.device.type, enabled=False), device_room("x, y", *_needs(x, y)):
            metric, costs = METRICS[self.metric], SQUARED
            if metric.maps or metric.scale != 1.0:
                # In double precision: the costs of single precision's points, not of their images.
                both = (x.double(), y.double())
                found = map_points(metric, *both, groups, names=("x", "y"), member=not alone)
                # Squared distances of what is left are the costs.
                root = metric.scale**0.5
                x, y, groups = root * found.X, root * found.Y, found.groups(groups.names)
                # The product with the root is one more rounding.
                costs = Images(found.error + 2.0)
            loss, result = self._costs((x, y, a, b), groups, costs)
        self._found, self._shown = (result, alone), None
        if alone and self._alpha is not None:
            self._alpha = self._alpha[0]
        return loss[0] if alone else loss

    def __getstate__(self) -> dict[str, Any]:
        # What was found last is no part of the module, and as large as the data it came from.
        return {
            **self.__dict__,
            "_found": None,
            "_shown": None,
            "_alpha": None,
            "_last": {},
            "_clouds": (),
        }

    def _costs(
        self,
        points: tuple[Tensor, Tensor, Tensor, Tensor],
        groups: Groups,
        metric: FactoredMetric,
    ) -> tuple[Tensor, Any]:
        """Return the losses of the members, (B,), and the answers between x and y."""
        x, y, a, b = points
        # Debiased or not, one eta and one eps: costs of different ones cannot be compared.
        streamed = self._streamed(points, groups, metric)
        if streamed is not None:
            return streamed
        self._clouds = ()
        level, amounts = self._amounts(points, groups)
        if self.debias and len(groups) > 1:
            loss, result = self._divergence(points, amounts, level, groups, metric)
        else:
            loss, result = self._cost("xy", points, amounts, level, groups, metric)
            if self.debias:
                for role, part, w in (("xx", x, a), ("yy", y, b)):
                    own, _ = self._cost(role, (part, part, w, w), amounts, level, groups, metric)
                    loss = loss - 0.5 * own
        if self.debias and self.tau is not None:
            loss = loss + 0.5 * amounts[1].to(loss) * (a.sum(1) - b.sum(1)) ** 2
        return loss, result

    def _divergence(
        self,
        points: tuple[Tensor, Tensor, Tensor, Tensor],
        amounts: list[Tensor],
        level: Tensor,
        groups: Groups,
        metric: FactoredMetric,
    ) -> tuple[Tensor, Any]:
        """The debiased loss of several groups, (B,), and what proves the costs between x and y."""
        (count, n, _), m = points[0].shape, points[1].shape[1]
        largest = dense_bytes(max(n, m), max(n, m))
        smooth = amounts[1].detach() > 0.0
        together = count * largest <= MEMORY_BUDGET and bool((smooth == smooth[0]).all())
        parts = [slice(0, count)] if together else [slice(at, at + 1) for at in range(count)]
        losses, weights = [], []
        proofs: list[Any] = []
        for number, part in enumerate(parts):
            loss, proof = self._at_shared_weights(
                f"shared {number}", tuple(side[part] for side in points),
                [amount[part] for amount in amounts], level[part], groups, metric,
            )  # fmt: skip
            losses.append(loss)
            proofs.append(proof)
            weights.append(self._alpha)
        self._alpha = torch.cat(weights)
        if together:
            return losses[0], proofs[0]
        return torch.cat(losses), lambda: [one for proof in proofs for one in _proven(proof)]

    def _at_shared_weights(
        self,
        role: str,
        points: Any,
        amounts: list[Tensor],
        level: Tensor,
        groups: Groups,
        metric: FactoredMetric,
    ) -> tuple[Tensor, Any]:
        """The same of members that are solved together."""
        x, y, a, b = points
        if not bool((amounts[1] > 0.0).any()):
            # Without eps a cloud costs nothing to itself, whatever the weights.
            loss, result = self._cost("xy", points, amounts, level, groups, metric)
            bonus = math.log(len(groups)) if self.prior is None else 0.0
            return loss - bonus * amounts[0].to(loss), result
        asked = self._asked(points, level, amounts, groups, metric)
        solved = solve_divergence(asked, self._last.get(role))
        kept = asked.copied()
        if self.warm_start:
            self._last = {**self._last, role: (kept, solved)}
        self._alpha = solved.alpha
        _refuse_overflow(solved.terms[0].values, x.dtype)
        # A copy: what was found in inference mode cannot be saved for a gradient.
        value: Any = -amounts[0] * solved.kl.clone()
        pairs = ((x, y, a, b), (x, x, a, a), (y, y, b, b))
        for share, pair, term in zip(SHARES, pairs, solved.terms, strict=True):
            value = value + share * _Transport.apply(*pair, *amounts, groups, term)
        return value.to(x.dtype), lambda: certified_at(kept, solved.alpha)

    def _amounts(self, points: Any, groups: Groups) -> tuple[Tensor, list[Tensor]]:
        """Return the mean costs of the members, (B,), and eta, eps and both prices of each."""
        x, y, a, b = points
        shares = (a, b)
        if self.tau is not None:
            shares = (a / a.sum(1, keepdim=True), b / b.sum(1, keepdim=True))
        level = _mean_cost(x, y, *shares, groups)
        return level, [
            amount.share * level if isinstance(amount, Relative) else torch.full_like(level, amount)
            for amount in (self.eta, self.eps, *(self.tau or (torch.inf, torch.inf)))
        ]

    def _streamed(self, points: Any, groups: Groups, metric: Any) -> tuple[Tensor, Any] | None:
        """The same by fused kernels, None where there are none or they do not get there.

        Members of a batch are solved one by one, where they are too large to be solved together.
        """
        (count, n, _), m = points[0].shape, points[1].shape[1]
        suits = count == 1 or dense_bytes(n, m) > MEMORY_BUDGET
        suits = suits and self.tau is None and self.adversary.k == 1 and streams(points[0])
        suits = suits and not (self.debias and len(groups) > 1)
        before = self._clouds
        if not suits:
            return None
        amounts: list[Any] = [[amount] * count for amount in (self.eta, self.eps)]
        if any(isinstance(amount, Relative) for amount in (self.eta, self.eps)):
            amounts = self._amounts(points, groups)[1][:2]
        prior, losses, found = check_prior(self.prior, len(groups)), [], []
        for at in range(count):
            member = tuple(part[at] for part in points)
            loss, one = streamed_loss(
                member, (amounts[0][at], amounts[1][at]), groups, prior, self.gradient_tol,
                self.max_iter, self.debias, before[at] if at < len(before) else None,
            )  # fmt: skip
            if loss is None or one is None:
                return None
            losses.append(loss)
            found.append(one)
        self._clouds = tuple(found) if self.warm_start else ()
        self._alpha = torch.as_tensor(
            np.stack([one.alpha[0] for one in found]), device=losses[0].device
        )
        # What an optimiser moves is proven as it was.
        kept = tuple(part.detach().clone() for part in points)

        def prove() -> list[Any]:
            level, asked = self._amounts(kept, groups)
            proofs = []
            for at, one in enumerate(found):
                mine = slice(at, at + 1)
                parts = tuple(part[mine] for part in kept)
                member = self._asked(parts, level[mine], [a[mine] for a in asked], groups, metric)
                proofs.append(certified(member, one.alpha[0], one.g))
            return proofs

        return torch.stack(losses), prove

    def _asked(
        self, points: Any, level: Tensor, amounts: list[Tensor], groups: Groups, metric: Any
    ) -> BatchProblem:
        (x, y, a, b), (eta, eps, *tau) = (part.detach() for part in points), amounts
        return BatchProblem(
            (x, y, a, b), (eta.detach(), eps.detach(), level.detach()), groups, self.prior,
            self.gradient_tol, self.max_iter, self.adversary.k, metric=metric,
            tau=None if self.tau is None else (tau[0].detach(), tau[1].detach()),
        )  # fmt: skip

    def _cost(
        self,
        role: str,
        points: Any,
        amounts: list[Tensor],
        level: Tensor,
        groups: Groups,
        metric: FactoredMetric,
    ) -> tuple[Tensor, Any]:
        """Return the costs of the members, (B,), and the answers they come from."""
        x, y, a, b = points
        # Solved out here, so that warnings point at the caller and not into autograd.
        asked = self._asked(points, level, amounts, groups, metric)
        asked = replace(asked, symmetric=torch.equal(x, y) and torch.equal(a, b))
        solved = solve_members(asked, self._last.get(role))
        if self.warm_start:
            self._last = {**self._last, role: (asked.copied(), solved)}
        _refuse_overflow(solved.values, points[0].dtype)
        if role == "xy":
            self._alpha = solved.alpha
        value: Any = _Transport.apply(*points, *amounts, groups, solved)
        return value.to(x.dtype), solved.results


def _proven(proof: Any) -> Any:
    """Return results, which may have to be proven first."""
    return proof() if callable(proof) else proof


def _untraced() -> Any:
    """The loss out of the compiler's sight: a search has nothing to fuse, and loops of any length.

    Made when a compiler asks for it, since the compiler takes seconds to load.
    """
    return torch.compiler.disable(FRWDLoss._loss)


class _Transport(Envelope):
    """Values found by a solver forward, the envelope backward."""

    @staticmethod
    def forward(
        ctx: Any, x, y, a, b, eta, eps, tau_a, tau_b, groups: Groups, solved: Solved
    ) -> Tensor:
        ctx.solved, ctx.groups = solved, groups
        ctx.save_for_backward(x, y, a, b, eta, eps, tau_a, tau_b)
        # A copy: what is handed out becomes part of a graph, and what is kept must not.
        return solved.values.clone()

    @staticmethod
    def envelope(ctx: Any, *grads: Any) -> list[Any]:
        """Return the derivatives by all arguments, plan and weights held fixed."""
        x, y, a, b, _, eps, *tau = ctx.saved_tensors
        solved: Solved = ctx.solved
        needs = ctx.needs_input_grad
        # Differences of points far from the origin would lose what single precision has.
        grad, a, b = grads[0].double(), a.double(), b.double()
        # By weight, so that a far point without any does not move the others away.
        shares = a / a.sum(1, keepdim=True) if solved.soft else a
        centre = shares[:, None, :] @ x.double()
        x1, y1 = x.double() - centre, y.double() - centre
        weights = 2.0 * grad[:, None, None] * feature_weights(solved.alpha, ctx.groups)[:, None, :]
        found: list[Any] = [None] * 10
        kept = _MarginalSide.of(a, solved.f, tau[0]), _MarginalSide.of(b, solved.g, tau[1])
        ahead, back = solved.products(x1 if needs[1] else None, y1 if needs[0] else None)
        if ahead is not None:
            found[0] = (weights * (kept[0].masses[:, :, None] * x1 - ahead)).to(x)
        if back is not None:
            found[1] = (weights * (kept[1].masses[:, :, None] * y1 - back)).to(x)
        for at, mine, other in ((0, kept[0], b), (1, kept[1], a)):
            if needs[2 + at]:
                by = mine.by_weight(eps.double(), other) if solved.soft else mine.potential
                found[2 + at] = (grad[:, None] * by).to(x)
            if needs[6 + at]:
                found[6 + at] = grad * mine.by_price()
        if needs[4]:
            found[4] = grad * solved.entropy
        if needs[5]:
            # What the value has besides costs and entropy of alpha is eps times the divergence.
            inner = (kept[0].masses * solved.f).sum(1) + (kept[1].masses * solved.g).sum(1)
            inner = inner - (solved.alpha * solved.phi).sum(1)
            found[5] = grad * torch.where(eps > 0.0, inner / eps, 0.0)
            if solved.soft:
                over = kept[1].masses.sum(1) - a.sum(1) * b.sum(1)
                found[5] = found[5] - grad * torch.where(eps > 0.0, over, 0.0)
        return found


class _MarginalSide(NamedTuple):
    """One side at the optimum: weights (B, n), potentials, the price of mass, and what is kept."""

    weights: Tensor
    potential: Tensor
    price: Tensor
    masses: Tensor

    @classmethod
    def of(cls, weights: Tensor, potential: Tensor, price: Tensor) -> _MarginalSide:
        """An infinite price keeps all."""
        shares = torch.exp(-potential / price[:, None].double())
        return cls(weights, potential, price[:, None].double(), weights * shares)

    def by_weight(self, eps: Tensor, other: Tensor) -> Tensor:
        """Return the derivative of the value by the weights, (B, n)."""
        soft, far = torch.isfinite(self.price), -self.potential / self.price
        price = torch.where(soft, self.price, 1.0)
        lost = torch.where(soft, -price * torch.expm1(far), self.potential)
        # The product of the weights moves too, which leaves nothing where all masses are one.
        return lost - eps[:, None] * (torch.exp(far) - other.sum(1, keepdim=True))

    def by_price(self) -> Tensor:
        """Return the derivative of the value by tau, (B,): the divergence of what is kept."""
        far = self.potential / self.price
        return (self.weights * (-torch.expm1(-far) - far * torch.exp(-far))).sum(1)


def _refuse_overflow(values: Tensor, dtype: torch.dtype) -> None:
    """Refuse to hand out a loss that the points' precision does not hold: infinite, it is none."""
    largest = float(values.abs().max())
    if largest > torch.finfo(dtype).max:
        name = str(dtype).removeprefix("torch.")
        raise InputError(
            f"x, y: the loss is {largest:.1e}, more than {name} holds; scale the points, or pass "
            "x.double() and y.double()"
        )


def _mean_cost(x: Tensor, y: Tensor, a: Tensor, b: Tensor, groups: Groups) -> Tensor:
    """The mean over groups of a^T C_l b, (B,), as a function of the points and weights."""
    a, b = a.double(), b.double()
    # Squares are expanded, which takes points near the origin.
    centre = a.detach()[:, None, :] @ x.detach().double()
    x, y = x.double() - centre, y.double() - centre
    weights = feature_weights(x.new_full((1, len(groups)), 1.0 / len(groups)), groups)
    mean_x, mean_y = (a[:, None, :] @ x)[:, 0], (b[:, None, :] @ y)[:, 0]
    squares = (a[:, None, :] @ x**2)[:, 0] * b.sum(1, keepdim=True)
    squares = squares + (b[:, None, :] @ y**2)[:, 0] * a.sum(1, keepdim=True)
    return ((squares - 2.0 * mean_x * mean_y) * weights).sum(1).clamp(min=0.0)


def refuse_recording() -> None:
    """Refuse to be recorded: what a search does depends on the numbers."""
    # Versions of PyTorch before 2.7 cannot tell.
    exporting = getattr(torch.compiler, "is_exporting", bool)
    tracing = torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    if tracing or exporting():
        raise RuntimeError(
            "FRWDLoss cannot be traced or exported: how it gets to its value depends on the "
            "numbers. Trace or export the model without its loss; torch.compile takes both"
        )


def _needs(x: Tensor, y: Tensor) -> tuple[float, str]:
    """Return the bytes that batches x and y need about, and the way out where they are missing."""
    (count, n, d), m = x.shape, y.shape[1]
    dense = dense_bytes(n, m)
    if dense <= MEMORY_BUDGET:
        held = min(count * dense, MEMORY_BUDGET)
        return float(held), "pass fewer members at once, or fewer points"
    return float(stream_bytes(n, m, d)), "pass fewer points"


def _from_autocast(part: Any) -> Any:
    """Return what autocast has made half precision in single, as its own losses take it."""
    if not isinstance(part, Tensor) or part.dtype not in (torch.float16, torch.bfloat16):
        return part
    return part.float() if torch.is_autocast_enabled(part.device.type) else part


def _refuse_transform(part: Tensor, name: str) -> None:
    """Refuse tensors that stand for others: those of vmap have no numbers of their own."""
    try:
        part.untyped_storage()
    except (NotImplementedError, RuntimeError):
        raise InputError(
            f"{name}: is a tensor inside a transform of torch.func; in place of vmap pass a batch, "
            "(B, n, d), and in place of grad use loss(x, y).backward() or torch.autograd.grad"
        ) from None


def check_tensors(x: Any, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
    """Refuse what is not tensors of one device and dtype, or not finite."""
    named = {"x": x, "y": y, "a": a, "b": b}
    for name, part in named.items():
        if part is None and name in "ab":
            continue
        if not isinstance(part, Tensor):
            raise InputError(f"{name}: is {type(part).__name__}, not a tensor; use torch.as_tensor")
        refuse_odd_tensor(part, name)
        _refuse_transform(part, name)
    parts = {name: part.detach() for name, part in named.items() if part is not None}
    find_home(**parts)
    if x.ndim not in (2, 3) or x.ndim != y.ndim:
        raise InputError(
            f"x, y: have shapes {tuple(x.shape)} and {tuple(y.shape)}; expected (points, "
            "features), or a batch of such"
        )
    if x.ndim == 3 and x.shape[0] != y.shape[0]:
        raise InputError(
            f"x, y: are batches of {x.shape[0]} and {y.shape[0]}; they must be as many"
        )
    if x.shape[-1] != y.shape[-1]:
        raise InputError(f"x, y: have {x.shape[-1]} and {y.shape[-1]} features")
    for name, part in parts.items():
        if part.numel() == 0:
            raise InputError(f"{name}: is empty (shape {tuple(part.shape)})")
        # A sum is quickly had, and says it in most cases.
        if not math.isfinite(float(part.sum())) and not bool(torch.isfinite(part).all()):
            member = ""
            if x.ndim == 3 and part.ndim > 1:
                member = f"[{int(torch.nonzero(~torch.isfinite(part))[0, 0])}]"
            raise InputError(f"{name}{member}: has NaN or infinite entries; clip or drop them")
    return x, y, a, b


def spread_weights(
    weights: Tensor | None, points: Tensor, name: str, any_mass: bool = False
) -> Tensor:
    """Return weights of every member, (B, n)."""
    count, size = points.shape[:2]
    if weights is None:
        return points.new_full((count, size), 1.0 / size)
    checked = batch_weights(weights.detach(), count, size, name, normalise=False, any_mass=any_mass)
    spread = weights if weights.ndim == 2 else weights.expand(count, size)
    light = torch.as_tensor(checked == 0.0, device=spread.device) & (spread > 0.0)
    return torch.where(light, 0.0, spread) if bool(light.any()) else spread
