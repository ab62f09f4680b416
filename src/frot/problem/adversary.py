r"""The adversary: which weights on the groups it may choose, and what it is paid for them.

A set :math:`\mathcal A` of weights is known by its best answer to group costs,

.. math:: G(\phi) = \max_{\alpha \in \mathcal A} \langle \alpha, \phi \rangle + r(\alpha),

and that is all that is asked of a set. `Simplex` and `CappedSimplex` are one family, weights of sum
one of which none is above 1/k, and every solver takes them. Any other set is a `GivenSet`, whose
answers are checked; `CuttingSet` takes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from frot._base.arrays import UNIT, namespace
from frot._base.errors import InputError, brief
from frot._base.validate import check_count, check_finite, check_number, read_numbers

# What weights of zero get of one before they are projected: a cap may need them.
LIFT = 1e-12
# By how much a prior may miss a sum of one.
SUM_ERROR = 1e-9
KNOWN = "frot.Simplex(), frot.CappedSimplex(k), frot.Ellipsoid or frot.Polytope"
# By how much of <|alpha|, |phi|> an answer's value may miss what its weights attain.
ATTAINS = 1e-8


class Adversary(Protocol):
    """What a set of weights has to know: convex, bounded and not empty.

    Its answers, and mixtures of them, are taken to be in it.

    Examples
    --------
    >>> class Half:
    ...     '''Weights of sum one, of which the first is at least a half.'''
    ...
    ...     def best(self, phi):
    ...         alpha = np.eye(len(phi))[0] / 2 + np.eye(len(phi))[phi.argmax()] / 2
    ...         return alpha @ phi, alpha
    >>> import frot
    >>> frot.solve([[0.0, 0.0]], [[1.0, 2.0]], adversary=Half()).value
    2.5
    """

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the largest <alpha, phi> over the set, and the alpha that attains it."""
        ...


def capped_softmax(xp: Any, score: Any, k: int) -> Any:
    r"""Return weights proportional to exp(score), but none above 1/k, (B, L) both.

    They maximise :math:`\langle \alpha, s \rangle - \sum_l \alpha_l \log \alpha_l` over the capped
    simplex: the j largest are at the cap, and the others share what is left in proportion, with the
    least j that leaves none of them above it. Capping one more than needed lowers all others, one
    less raises them, so that j can be bisected.

    Examples
    --------
    >>> score = np.log([[8.0, 1.0, 1.0]])
    >>> capped_softmax(namespace(score), score, 2)
    array([[0.5 , 0.25, 0.25]])
    """
    with np.errstate(under="ignore"):
        weight = xp.exp(score - xp.max(score, axis=1, keepdims=True))
        weight = weight / xp.sum(weight, axis=1, keepdims=True)
        if k == 1 or not bool(xp.any(weight > 1.0 / k)):
            return weight
        last, capped = (_at_cap_host if isinstance(score, np.ndarray) else _at_cap)(xp, score, k)
        closed, cap = score >= last, xp.ones_like(score) / k
        rest = xp.where(closed, -xp.inf * cap, score)
        top = xp.max(rest, axis=1, keepdims=True)
        weight = xp.exp(rest - xp.where(top > -xp.inf, top, xp.zeros_like(top)))
        total = xp.sum(weight, axis=1, keepdims=True)
        share = (1.0 - capped / k) / xp.where(total > 0.0, total, xp.ones_like(total))
        # Rounding may have put one a unit above it.
        return xp.where(closed, cap, xp.minimum(weight * share, cap))


def _at_cap_host(xp: Any, score: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the least score at the cap, and how many are there, (B, 1) both."""
    down = -np.sort(-score, axis=1)
    totals = np.logaddexp.accumulate(down[:, ::-1], axis=1)[:, ::-1]
    left = k - np.arange(min(k, down.shape[1] - 1) + 1)
    with np.errstate(divide="ignore"):
        heaviest = down[:, : len(left)] - totals[:, : len(left)] + np.log(left)
    # With k at the cap nothing is left, and nobody is above it; alone, the last is at most there.
    heaviest[:, -1] = -np.inf
    capped = np.argmax(heaviest <= 0.0, axis=1)[:, None]
    last = np.take_along_axis(down, np.maximum(capped - 1, 0), axis=1)
    last = np.where(capped > 0, last, np.inf)
    # Of those that tie with it rounding may have left some below.
    return last, (score >= last).sum(axis=1, keepdims=True)


def _at_cap(xp: Any, score: Any, k: int) -> tuple[Any, Any]:
    """The same in NumPy or PyTorch: how many are at the cap is bisected."""
    down = xp.sort(score, axis=1, descending=True)
    place = xp.cumulative_sum(xp.ones_like(score), axis=1) - 1.0
    nothing, one = xp.zeros_like(score[:, :1]), xp.ones_like(score)

    def heaviest(capped: Any) -> Any:
        """What the largest score weighs, but for so many."""
        rest = xp.where(place >= capped, down, -xp.inf * one)
        top = xp.max(rest, axis=1, keepdims=True)
        top = xp.where(top > -xp.inf, top, nothing)
        total = xp.sum(xp.exp(rest - top), axis=1, keepdims=True)
        return (1.0 - capped / k) / xp.where(total > 0.0, total, nothing + 1.0)

    low, high = nothing, nothing + float(min(k, score.shape[1] - 1))
    for _ in range(k.bit_length() + 1):
        middle = xp.floor(0.5 * (low + high))
        enough = heaviest(middle) <= 1.0 / k
        low, high = xp.where(enough, low, middle + 1.0), xp.where(enough, middle, high)
        low = xp.minimum(low, high)
    last = xp.min(xp.where(place < high, down, xp.inf * one), axis=1, keepdims=True)
    return last, xp.sum(xp.where(score >= last, one, 0.0 * one), axis=1, keepdims=True)


class SimplexFamily:
    r"""Weights of sum one, none above 1/k, smoothed by their entropy relative to a prior q."""

    # Whether the set is part of the simplex: mixtures of costs are then no more than the dearest.
    on_simplex: ClassVar[bool] = True
    k: int
    eta: float
    log_prior: np.ndarray | None

    @property
    def cap(self) -> float:
        """The largest weight that a group may have."""
        return 1.0 / self.k

    @property
    def name(self) -> str:
        """What to call it."""
        return type(self).__name__

    def _read(self) -> None:
        """Refuse an eta or a prior that cannot be meant, whatever the groups are."""
        object.__setattr__(self, "eta", check_number(self.eta, "eta"))
        if self.log_prior is not None:
            prior = read_numbers(self.log_prior, "log_prior")
            if prior.ndim != 1 or prior.size == 0:
                raise InputError(
                    f"log_prior: has shape {prior.shape}, expected one number per group"
                )
            check_finite(prior, "log_prior")
            object.__setattr__(self, "log_prior", prior)

    def having(self, eta: float, log_prior: np.ndarray | None) -> SimplexFamily:
        """Return the same set with other entropy."""
        if eta == self.eta and log_prior is self.log_prior:
            return self
        return replace(self, eta=eta, log_prior=log_prior)  # type: ignore[type-var]

    def check(self, count: int) -> None:
        """Refuse more shares than groups, and a prior on other ones."""
        if self.k > count:
            raise InputError(
                f"adversary: {self.name}(k={self.k}) is empty for {count} groups; use k from 1 to "
                f"{count}"
            )
        prior = self.log_prior
        if prior is None:
            return
        if prior.shape != (count,):
            raise InputError(
                f"adversary: log_prior has shape {prior.shape}, expected one number per group "
                f"({count},)"
            )
        if not abs(float(np.exp(prior).sum()) - 1.0) <= SUM_ERROR:
            raise InputError(
                "adversary: log_prior must be the logarithm of weights that sum to one; or give "
                "weights of any sum as prior=..."
            )

    def single(self, count: int) -> bool:
        """Whether there is but one choice: all groups alike."""
        return self.k == count

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        r"""Return :math:`G_\eta(\phi)` and the weights that attain it."""
        if self.k == 1 and self.eta == 0.0:
            top = int(phi.argmax())
            if abs(value := float(phi[top])) != np.inf:
                alpha = np.zeros(len(phi))
                alpha[top] = 1.0
                return value, alpha
        if np.isinf(phi).any():
            # What costs infinity has the weight, however much there is.
            return float(phi.max()), np.where(phi == phi.max(), 1.0, 0.0) / (phi == phi.max()).sum()
        if self.eta == 0.0:
            top = np.argsort(-phi, kind="stable")[: self.k]
            alpha = np.zeros(len(phi))
            alpha[top] = self.cap
            return float(phi[top].mean()), alpha
        # Taken from the maximum, so that no eta is too small.
        level = float(phi.max())
        below = phi - level
        with np.errstate(over="ignore", under="ignore"):
            score = below / self.eta
            if self.log_prior is not None:
                score = score + self.log_prior
            if self.k > 1:
                alpha = capped_softmax(namespace(score), score[None], self.k)[0]
                return level + float(alpha @ below) + self.reward(alpha), alpha
            top = float(score.max())
            weight = np.exp(score - top)
        total = float(weight.sum())
        return level + self.eta * (top + float(np.log(total))), weight / total

    def reward(self, alpha: np.ndarray) -> float:
        r"""Return :math:`-\eta \sum_l \alpha_l \log(\alpha_l / q_l)` (0 log 0 = 0)."""
        if self.eta == 0.0:
            return 0.0
        prior = self.log_prior
        on = alpha > 0.0
        if not on.all():
            alpha, prior = alpha[on], None if prior is None else prior[on]
        surprise = np.log(alpha)
        if prior is not None:
            surprise = surprise - prior
        return float(-self.eta * (alpha @ surprise))

    def contains(self, alpha: np.ndarray) -> bool:
        """Whether no weight is below zero or above the cap, and they sum to one but for rounding.

        Examples
        --------
        >>> Simplex().contains(np.array([0.75, 0.25])), CappedSimplex(2).contains([0.75, 0.25])
        (True, False)
        """
        alpha = np.asarray(alpha)
        inside = bool(alpha.min() >= 0.0) and (self.k == 1 or bool((alpha <= self.cap).all()))
        return inside and abs(float(alpha.sum()) - 1.0) <= (len(alpha) + 8.0) * UNIT

    def project(self, alpha: np.ndarray) -> np.ndarray:
        """Return weights of the set: the others in proportion where some are at the cap.

        Examples
        --------
        >>> CappedSimplex(2).project(np.array([0.8, 0.1, 0.1]))
        array([0.5 , 0.25, 0.25])
        """
        alpha = np.maximum(alpha, 0.0)
        total = float(alpha.sum())
        if not 0.0 < total < np.inf:
            # What is no weight at all says nothing about the groups.
            return np.full(len(alpha), 1.0 / len(alpha))
        alpha = alpha / total
        if self.k == 1 or bool((alpha <= self.cap).all()):
            return alpha
        lifted = np.log(alpha + LIFT / len(alpha))
        return capped_softmax(namespace(lifted), lifted[None], self.k)[0]

    def upper(self, phi: np.ndarray, doubt: np.ndarray) -> float:
        """Bound what the best answer earns if each cost may be as much more as `doubt` says."""
        value, alpha = self.best(phi + doubt)
        return value + self._rounding(value, phi + doubt, alpha)

    def least(self, phi: np.ndarray) -> float:
        """Bound what the best answer earns at least if no cost is below `phi`."""
        value, alpha = self.best(phi)
        return value - self._rounding(value, phi, alpha) if np.isfinite(value) else -np.inf

    def _rounding(self, value: float, phi: np.ndarray, alpha: np.ndarray) -> float:
        """What arithmetic may have done to the value of the best answer."""
        found = self.reward_rounding(value, len(phi))
        if self.k == 1:
            return found
        # Weights sum to one but for units of each, and so does what they earn.
        return found + (len(phi) + 8.0) * UNIT * float(alpha @ np.abs(phi) + self.eta)

    def reward_rounding(self, value: float, count: int) -> float:
        """What logarithms and exponentials of eta's entropy may add to a bound."""
        if self.eta == 0.0:
            return 0.0
        prior = self.log_prior
        spread = float(np.log(count)) + (0.0 if prior is None else float(-prior.min()))
        return 8.0 * UNIT * (abs(value) + self.eta * (1.0 + spread))


@dataclass(frozen=True, eq=False)
class Simplex(SimplexFamily):
    r"""All weights on the probability simplex, smoothed by their entropy (the paper's lemma 1).

    .. math::
        G_\eta(\phi) = \max_{\alpha \in \Sigma^L} \langle \alpha, \phi \rangle
            - \eta \sum_l \alpha_l \log \frac{\alpha_l}{q_l}
          = \eta \log \sum_l q_l e^{\phi_l / \eta},
        \qquad G_0(\phi) = \max_l \phi_l .

    Parameters
    ----------
    eta : float
        Weight of the entropy, in units of cost. 0 is the maximum itself.
    log_prior : array of shape (L,), optional
        :math:`\log q`. None is the paper's entropy, q = 1 (not normalised).

    Examples
    --------
    >>> value, alpha = Simplex(eta=1.0).best(np.array([0.0, 0.0]))
    >>> round(value, 4), alpha
    (0.6931, array([0.5, 0.5]))
    >>> Simplex().best(np.array([3.0, 1.0]))
    (3.0, array([1., 0.]))
    """

    eta: float = 0.0
    log_prior: np.ndarray | None = None
    k: ClassVar[int] = 1  # type: ignore[misc]

    def __post_init__(self) -> None:
        self._read()


@dataclass(frozen=True, eq=False)
class CappedSimplex(SimplexFamily):
    r"""Weights of sum one of which none is above 1/k: the k worst groups share the weight.

    .. math::
        \max \Big\{ \langle \alpha, \phi \rangle - \eta \sum_l \alpha_l \log \frac{\alpha_l}{q_l}
        \;:\; 0 \le \alpha_l \le 1/k,\; \textstyle\sum_l \alpha_l = 1 \Big\}

    For eta = 0 that is the mean of the k largest costs: k = 1 is the simplex of feature-robust
    transport, k = L the mean of all. For eta > 0 the weights are
    :math:`\min(1/k,\, q_l e^{(\phi_l - \nu)/\eta})` with the :math:`\nu` that makes their sum one.

    Parameters
    ----------
    k : int
    eta : float
        Weight of the entropy, in units of cost.
    log_prior : array of shape (L,), optional
        :math:`\log q`. None is the paper's entropy, q = 1 (not normalised).

    Examples
    --------
    >>> CappedSimplex(2).best(np.array([3.0, 1.0, 2.0]))
    (2.5, array([0.5, 0. , 0.5]))
    >>> CappedSimplex(2, eta=1.0).best(np.array([9.0, 1.0, 1.0]))[1]
    array([0.5 , 0.25, 0.25])
    """

    k: int
    eta: float = 0.0
    log_prior: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_count(self.k, "k"))
        self._read()


def simplex_of(k: int, eta: float, log_prior: np.ndarray | None) -> SimplexFamily:
    """Return the member of the family."""
    return Simplex(eta, log_prior) if k == 1 else CappedSimplex(k, eta, log_prior)


@dataclass(frozen=True, eq=False)
class GivenSet:
    """Any other set of weights: its answers checked, and what bounds have to know of it.

    Parameters
    ----------
    given : Adversary
    count : int
        Number of groups.

    Examples
    --------
    >>> from frot import Ellipsoid
    >>> GivenSet(Ellipsoid([1.0, -1.0], 0.5), 2).reach
    array([1.5, 1.5])
    """

    given: Any
    count: int

    on_simplex: ClassVar[bool] = False
    k: ClassVar[int] = 1
    cap: ClassVar[float] = np.inf
    eta: ClassVar[float] = 0.0
    log_prior: ClassVar[None] = None

    def __post_init__(self) -> None:
        given, count = self.given, self.count
        if not callable(getattr(given, "best", None)) or isinstance(given, type):
            raise InputError(f"adversary: {brief(given)} has no best(phi); use {KNOWN}")
        if getattr(given, "eta", 0.0) != 0.0:
            raise InputError(
                f"adversary: {self.name} with eta is for no solver; use frot.Simplex(eta) or "
                "frot.CappedSimplex(k, eta)"
            )
        if (size := getattr(given, "size", count)) != count:
            raise InputError(f"adversary: holds weights of {size} groups, but there are {count}")
        _ = self.reach

    @property
    def name(self) -> str:
        """What to call it."""
        return type(self.given).__name__

    @cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest weight that each group may have."""
        low, high = np.zeros(self.count), np.zeros(self.count)
        for group in range(self.count):
            for sign, found in ((1.0, high), (-1.0, low)):
                probe = np.zeros(self.count)
                probe[group] = sign
                value, _ = self.best(probe)
                found[group] = sign * value
        return low, high

    @property
    def reach(self) -> np.ndarray:
        """The largest size each weight may have, (L,)."""
        low, high = self._bounds
        return np.maximum(np.abs(low), np.abs(high))

    @property
    def nonnegative(self) -> bool:
        """Whether no weight may be below zero."""
        return bool((self._bounds[0] >= 0.0).all())

    def single(self, count: int) -> bool:
        """Not known to be."""
        return False

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        """Ask the set, and check what it answers: shape, finite, and attained."""
        answer = self.given.best(phi)
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise InputError(
                f"adversary: {self.name}.best(phi) must return (value, alpha), got {brief(answer)}"
            )
        try:
            value, alpha = np.asarray(answer[0], dtype=float), np.array(answer[1], dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"adversary: what {self.name}.best(phi) returned is no number with weights: {error}"
            ) from None
        if value.ndim or alpha.shape != (self.count,):
            raise InputError(
                f"adversary: {self.name}.best(phi) must return a number and weights of shape "
                f"({self.count},), got shapes {value.shape} and {alpha.shape}"
            )
        if not np.isfinite(value) or not np.isfinite(alpha).all():
            raise InputError(
                f"adversary: the set is empty or unbounded, {self.name}.best(phi) is "
                f"{float(value)!r} for phi = {brief(phi)}"
            )
        attained, size = float(alpha @ phi), float(np.abs(alpha) @ np.abs(phi))
        if abs(float(value) - attained) > ATTAINS * size:
            raise InputError(
                f"adversary: {self.name}.best(phi) returned the value {float(value):.9g} and "
                f"weights that attain {attained:.9g}; return alpha @ phi, alpha"
            )
        return max(float(value), attained), alpha

    def reward(self, alpha: np.ndarray) -> float:
        """Nothing."""
        return 0.0

    def reward_rounding(self, value: float, count: int) -> float:
        """Of nothing."""
        return 0.0

    def upper(self, phi: np.ndarray, doubt: np.ndarray) -> float:
        """Bound what the best answer earns if each cost may be off by as much as `doubt`."""
        value, _ = self.best(phi)
        return value + float(self.reach @ (doubt + (self.count + 8.0) * UNIT * np.abs(phi)))

    def least(self, phi: np.ndarray) -> float:
        """Bound what the best answer earns at least if no cost is below `phi`."""
        if not self.nonnegative or not np.isfinite(phi).all():
            return -np.inf
        alpha = self.best(phi)[1]
        return float(alpha @ phi - (self.count + 8.0) * UNIT * (np.abs(alpha) @ np.abs(phi)))


def as_adversary(adversary: Any, count: int) -> SimplexFamily | GivenSet:
    """Return what solvers and bounds can work with, for so many groups.

    Examples
    --------
    >>> as_adversary(CappedSimplex(3), 2)
    Traceback (most recent call last):
    ...
    frot.InputError: adversary: CappedSimplex(k=3) is empty for 2 groups; use k from 1 to 2
    """
    if isinstance(adversary, SimplexFamily):
        adversary.check(count)
        return adversary
    if isinstance(adversary, GivenSet) and adversary.count == count:
        return adversary
    return GivenSet(adversary, count)
