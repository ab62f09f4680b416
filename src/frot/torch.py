r"""Feature-robust transport as a loss: values and gradients for PyTorch, on CPU and CUDA.

Gradients are those of the envelope theorem: at the optimum, plan and weights can be held fixed,

.. math::
    \frac{\partial}{\partial x_i} = \sum_j \pi_{ij} \sum_l \alpha_l
        \frac{\partial c_l(x_i, y_j)}{\partial x_i}, \qquad
    \frac{\partial}{\partial a_i} = f_i, \qquad
    \frac{\partial}{\partial \varepsilon} = \mathrm{KL}(\Pi | a b^\top), \qquad
    \frac{\partial}{\partial \eta} = -\sum_l \alpha_l \log \alpha_l ,

so that nothing is unrolled and memory does not depend on the number of iterations.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from frot._adversary import Simplex
from frot._arrays import find_home
from frot._costs import MEMORY_BUDGET
from frot._entropic._device import device_points
from frot._entropic._run import DENSE_MATRICES
from frot._errors import ConvergenceWarning, InputError, warn_caller
from frot._groups import Groups
from frot._problem import Problem
from frot._relative import Relative
from frot._result import Result
from frot._solve import solve
from frot._solvers import Entropic
from frot._validate import check_choice, check_number, check_prior, check_weights

__all__ = ["FRWDLoss"]

DEFAULT_EPS = Relative(0.05)
METRICS = ("sqeuclidean", "cosine")
# Gradients err by the root of the gap, so that the gap is asked for to the square of `tol`, down to
# what double precision can prove.
NARROWEST = 1e-12


class FRWDLoss(nn.Module):
    r"""The entropic feature-robust transport cost between two sets of points.

    .. math::
        F(x, y) = \min_{\Pi \in U(a, b)} G_\eta(\phi(\Pi))
        + \varepsilon\,\mathrm{KL}(\Pi | a b^\top)

    or, debiased, :math:`F(x, y) - \tfrac12 F(x, x) - \tfrac12 F(y, y)`, which is zero where the
    sets are the same.

    Parameters
    ----------
    groups : optional
        What `Groups.parse` reads; one group per feature if left out.
    eta, eps : float or `relative`
        As in `solve`. A share of the mean cost is differentiated too. ``eps=0`` has kinks where
        the plan is not unique: it needs ``subgradient=True``, and is solved on the host.
    debias : bool
    metric : {"sqeuclidean", "cosine"}
    prior : array of shape (L,), optional
        As in `solve`.
    tol : float
        Accuracy of the gradient, relative. The value is far closer, within about tol squared.
    max_iter : int
        Steps of the solver at most.
    subgradient : bool
        Take eps = 0, and for its gradient one element of the subdifferential.

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
        tol: float = 1e-4,
        max_iter: int = 2_000,
        subgradient: bool = False,
    ) -> None:
        super().__init__()
        self.groups = groups
        self.eta = eta if isinstance(eta, Relative) else check_number(eta, "eta")
        self.eps = eps if isinstance(eps, Relative) else check_number(eps, "eps")
        self.debias = debias
        self.metric = check_choice(metric, "metric", METRICS)
        self.prior = prior
        self.tol = check_number(tol, "tol", strict=True)
        self.max_iter = max_iter
        self.subgradient = subgradient
        self.result: Result | None = None
        if not subgradient and not (isinstance(self.eps, Relative) or self.eps > 0.0):
            raise InputError(
                "eps: at eps = 0 the cost has kinks where the plan is not unique, so that there is "
                "no gradient, only subgradients; pass eps > 0, or subgradient=True to take one"
            )

    def extra_repr(self) -> str:
        """What the module was made with."""
        return f"eta={self.eta}, eps={self.eps}, debias={self.debias}, metric={self.metric!r}"

    def forward(self, x: Tensor, y: Tensor, a: Tensor | None = None, b: Tensor | None = None):
        """Return the loss.

        Parameters
        ----------
        x, y : tensors of shape (n, d) and (m, d), or (B, n, d) and (B, m, d)
            On one device and of one dtype, float32 or float64.
        a, b : tensors of shape (n,) and (m,), optional
            Weights that sum to one; with a batch, of every member.

        Returns
        -------
        Tensor
            A scalar, or one a member of the batch. ``self.result`` is the certified answer that the
            last cost between x and y came from.
        """
        x, y, a, b = _check(x, y, a, b)
        if x.ndim == 3:
            if x.shape[0] != y.shape[0]:
                raise InputError(
                    f"x, y: are batches of {x.shape[0]} and {y.shape[0]}; they must be as many"
                )
            each = [self._one(x[at], y[at], a, b, f"[{at}]") for at in range(x.shape[0])]
            return torch.stack(each)
        return self._one(x, y, a, b)

    def _one(self, x: Tensor, y: Tensor, a: Any, b: Any, member: str = "") -> Tensor:
        n, m = len(x), len(y)
        _check_mass(a, n, f"a{member}")
        _check_mass(b, m, f"b{member}")
        a = x.new_full((n,), 1.0 / n) if a is None else a
        b = y.new_full((m,), 1.0 / m) if b is None else b
        groups = Groups.parse(self.groups, x.shape[1], None)
        if self.metric == "cosine":
            x, y, groups = _on_spheres(x, groups, "x"), _on_spheres(y, groups, "y"), _apart(groups)
        cross = self._cost(x, y, a, b, groups)
        result = self.result
        if self.debias:
            own = self._cost(x, x, a, a, groups) + self._cost(y, y, b, b, groups)
            cross = cross - 0.5 * own
        self.result = result
        return cross

    def _cost(self, x: Tensor, y: Tensor, a: Tensor, b: Tensor, groups: Groups) -> Tensor:
        level: Any = None
        if isinstance(self.eta, Relative) or isinstance(self.eps, Relative):
            level = _mean_cost(x, y, a, b, groups)
        eta, eps = (
            amount.share * level if isinstance(amount, Relative) else x.new_tensor(amount)
            for amount in (self.eta, self.eps)
        )
        return _Transport.apply(x, y, a, b, eta, eps, groups, self)  # type: ignore[no-any-return]


class _Transport(torch.autograd.Function):
    """The solver forward, the envelope backward."""

    @staticmethod
    def forward(ctx: Any, x, y, a, b, eta, eps, groups: Groups, loss: FRWDLoss) -> Tensor:
        result = _solved(x, y, a, b, float(eta), float(eps), groups, loss)
        ctx.result, ctx.groups = result, groups
        ctx.save_for_backward(x, y, a, b)
        loss.result = result
        return x.new_tensor(result.value)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        x, y, a, b = ctx.saved_tensors
        result: Result = ctx.result
        needs = ctx.needs_input_grad
        alpha = torch.as_tensor(result.alpha).to(x)
        weights = _feature_weights(alpha, ctx.groups)
        found: list[Any] = [None] * 8
        if needs[0]:
            moved = (result.plan @ y).to(x)
            found[0] = 2.0 * grad * weights * (a[:, None] * x - moved)
        if needs[1]:
            moved = (result.plan.T @ x).to(y)
            found[1] = 2.0 * grad * weights * (b[:, None] * y - moved)
        if needs[2]:
            found[2] = grad * torch.as_tensor(result.potentials[0]).to(a)
        if needs[3]:
            found[3] = grad * torch.as_tensor(result.potentials[1]).to(b)
        if needs[4]:
            found[4] = grad * _entropy(alpha)
        if needs[5]:
            found[5] = grad * _divergence(result, alpha, a, b)
        return tuple(found)


def _solved(x, y, a, b, eta, eps, groups: Groups, loss: FRWDLoss) -> Result:
    """Solve with tensors detached, in double precision unless the kernel has to be streamed."""
    x, y, a, b = (part.detach() for part in (x, y, a, b))
    if eps == 0.0:
        parts = (part.double() for part in (a, b))
        weights = dict(zip("ab", parts, strict=True))
        return solve(x.double(), y.double(), groups, eta=eta, eps=0.0, prior=loss.prior, **weights)
    n, m = len(x), len(y)
    fits = 8 * DENSE_MATRICES * n * m <= MEMORY_BUDGET
    home = find_home(x=x.double() if fits else x)
    assert home is not None
    weights = [
        check_weights(part.double().cpu().numpy(), len(part), name, normalise=False)
        for part, name in ((a, "a"), (b, "b"))
    ]
    adversary = Simplex(eta, check_prior(loss.prior, len(groups)))
    costs: Any = device_points(x, y, groups, "sqeuclidean", home)
    problem = Problem(costs, *weights, adversary=adversary, eps=eps, names=groups.names)
    asked = max(loss.tol**2, NARROWEST) if fits else loss.tol
    with warnings.catch_warnings():
        # The gap is asked for far below `tol`; only what misses `tol` itself is worth a warning.
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = Entropic(tol=asked, max_iter=loss.max_iter)(problem)
    if result.gap > loss.tol:
        warn_caller(
            f"FRWDLoss: gap {result.gap:.1e} where {loss.tol:.1e} was asked for; gradients are "
            "rough. Raise eps or max_iter."
        )
    return result


def _entropy(alpha: Tensor) -> Tensor:
    return -torch.sum(torch.special.xlogy(alpha, alpha))


def _divergence(result: Result, alpha: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """KL of the plan, from the value: what is left of it besides costs and entropy of alpha."""
    f, g = (torch.as_tensor(part).to(a) for part in result.potentials)
    phi = torch.as_tensor(result.phi).to(a)
    return (a @ f + b @ g - alpha @ phi) / result.eps


def _feature_weights(alpha: Tensor, groups: Groups) -> Tensor:
    member: Any = groups.membership()
    weights = alpha.new_zeros(member.shape[1])
    sizes = torch.as_tensor(groups.offsets[1:] - groups.offsets[:-1], device=alpha.device)
    flat = torch.as_tensor(groups.flat.copy(), device=alpha.device)
    return weights.index_add(0, flat, alpha.repeat_interleave(sizes))


def _mean_cost(x: Tensor, y: Tensor, a: Tensor, b: Tensor, groups: Groups) -> Tensor:
    """The mean over groups of a^T C_l b, as a function of the points and weights."""
    weights = _feature_weights(x.new_full((len(groups),), 1.0 / len(groups)), groups)
    squares = a @ x**2 * b.sum() + b @ y**2 * a.sum() - 2.0 * (a @ x) * (b @ y)
    return squares @ weights


def _on_spheres(points: Tensor, groups: Groups, name: str) -> Tensor:
    """Columns of every group, scaled so that squared distances are 1 - cos."""
    flat = torch.as_tensor(groups.flat.copy(), device=points.device)
    sizes = torch.as_tensor(groups.offsets[1:] - groups.offsets[:-1], device=points.device)
    spread = points[:, flat]
    owner = torch.arange(len(groups), device=points.device).repeat_interleave(sizes)
    squares = points.new_zeros(len(points), len(groups)).index_add(1, owner, spread**2)
    if not bool((squares > 0.0).all()):
        row, group = (int(at) for at in torch.nonzero(squares == 0.0)[0])
        raise InputError(
            f"{name} row {row} is all zeros in group {groups.names[group]!r}, so it has no cosine; "
            "drop such points or use metric='sqeuclidean'"
        )
    return spread / torch.sqrt(2.0 * squares)[:, owner]


def _apart(groups: Groups) -> Groups:
    """The same groups where every feature of every group is a column of its own."""
    edges = groups.offsets
    parts = {
        name: range(int(edges[at]), int(edges[at + 1])) for at, name in enumerate(groups.names)
    }
    return Groups.parse(parts, int(edges[-1]), None)


def _check(x: Any, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
    """Refuse what is not tensors of one device and dtype, or not finite."""
    named = {"x": x, "y": y, "a": a, "b": b}
    for name, part in named.items():
        if part is None and name in "ab":
            continue
        if not isinstance(part, Tensor):
            raise InputError(f"{name}: is {type(part).__name__}, not a tensor; use torch.as_tensor")
    parts = {name: part.detach() for name, part in named.items() if part is not None}
    find_home(**parts)
    if x.ndim not in (2, 3) or x.ndim != y.ndim:
        raise InputError(
            f"x, y: have shapes {tuple(x.shape)} and {tuple(y.shape)}; expected (points, "
            "features), or a batch of such"
        )
    if x.shape[-1] != y.shape[-1]:
        raise InputError(f"x, y: have {x.shape[-1]} and {y.shape[-1]} features")
    for name, part in parts.items():
        if part.numel() == 0:
            raise InputError(f"{name}: is empty (shape {tuple(part.shape)})")
        if not bool(torch.isfinite(part).all()):
            raise InputError(f"{name}: has NaN or infinite entries; clip or drop them")
    return x, y, a, b


def _check_mass(weights: Any, size: int, name: str) -> None:
    if weights is not None:
        check_weights(weights.detach().cpu().numpy(), size, name, normalise=False)
