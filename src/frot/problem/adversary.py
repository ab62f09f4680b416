r"""The adversary: which weights on the groups it may choose, and what it is paid for them.

A set :math:`\mathcal A` of weights is known by its best answer to group costs,

.. math:: G(\phi) = \max_{\alpha \in \mathcal A} \langle \alpha, \phi \rangle + r(\alpha),

and that is all that is asked of a set. `Simplex` and `CappedSimplex` are one family, weights of sum
one of which none is above 1/k, and every solver takes them. Any other set is a `GivenSet`, whose
answers are checked; `CuttingSet` takes it.

What a set earns is known to `value_error` and `reward_error`: each term is right to some units in
its last place, eight of which cover the operations on its way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from types import ModuleType
from typing import Any, ClassVar, Protocol

import numpy as np

from frot._base.arrays import (
    UNIT,
    Array,
    Home,
    namespace,
    quiet,
    safe_log,
    short_array,
    to_numpy,
    unit_of,
)
from frot._base.errors import InputError, brief
from frot._base.validate import check_count, check_finite, check_number, read_numbers

# Mass given to zero weights before a projection: under a cap some may have to be positive.
LIFT = 1e-12
KNOWN = "frot.Simplex(), frot.CappedSimplex(k), frot.Ellipsoid or frot.Polytope"


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


def capped_softmax(xp: ModuleType, score: Array, k: int) -> Array:
    r"""Return weights proportional to exp(score), but none above 1/k, (..., L) both.

    They maximise :math:`\langle \alpha, s \rangle - \sum_l \alpha_l \log \alpha_l` over the capped
    simplex: the j largest are at the cap, and the others share what is left in proportion, with the
    least j that leaves none of them above it. With more at the cap all others are lower.

    Examples
    --------
    >>> score = np.log([8.0, 1.0, 1.0])
    >>> capped_softmax(namespace(score), score, 2)
    array([0.5 , 0.25, 0.25])
    """
    with quiet():
        weight = xp.exp(score - xp.max(score, axis=-1, keepdims=True))
        weight = weight / xp.sum(weight, axis=-1, keepdims=True)
        if k == 1 or not bool(xp.any(weight > 1.0 / k)):
            return weight
        ones, infinite = xp.ones_like(score), xp.inf * xp.ones_like(score)
        down = xp.sort(score, axis=-1, descending=True)
        rank = xp.cumulative_sum(ones, axis=-1) - 1.0
        # Logarithm of what the largest of the others would weigh, over the cap, with so many there.
        tails = xp.flip(xp.logcumsumexp(xp.flip(down, axis=-1), axis=-1), axis=-1)
        over = down - tails + xp.log(k - rank)
        over = xp.where(rank < min(k, score.shape[-1] - 1), over, -infinite)
        capped = xp.sum(xp.where(over > 0.0, ones, 0.0 * ones), axis=-1, keepdims=True)
        last = xp.min(xp.where(rank < capped, down, infinite), axis=-1, keepdims=True)
        # Rounding may have left some of those that tie with the last one below it.
        closed = score >= last
        capped = xp.sum(xp.where(closed, ones, 0.0 * ones), axis=-1, keepdims=True)
        rest = xp.where(closed, -infinite, score)
        top = xp.max(rest, axis=-1, keepdims=True)
        weight = xp.exp(rest - xp.where(top > -xp.inf, top, xp.zeros_like(top)))
        total = xp.sum(weight, axis=-1, keepdims=True)
        share = (1.0 - capped / k) / xp.where(total > 0.0, total, xp.ones_like(total))
        # Rounding may have put one a unit above it.
        return xp.where(closed, ones / k, xp.minimum(weight * share, ones / k))


class SimplexFamily:
    r"""Weights of sum one, none above 1/k, smoothed by their entropy relative to a prior q.

    Costs and weights are those of one problem, (L,), or of a batch, (B, L), in NumPy or PyTorch.
    """

    # Whether the set is part of the simplex: mixtures of costs are then no more than the dearest.
    on_simplex: ClassVar[bool] = True
    k: int
    # A number, or (B, 1) of a batch.
    eta: float | Array
    # (L,), or (1, L) of a batch.
    log_prior: Array

    @property
    def smooth(self) -> bool:
        """Whether eta > 0, for some problem at least."""
        return self.eta > 0.0

    @property
    def cap(self) -> float:
        """The largest weight that a group may have."""
        return 1.0 / self.k

    @property
    def name(self) -> str:
        """What to call it."""
        return type(self).__name__

    def describe(self) -> str:
        """Return the set in a line, with its cap and its prior; eta is the problem's.

        Examples
        --------
        >>> CappedSimplex(2, log_prior=np.log([0.5, 0.25, 0.25])).describe()
        'CappedSimplex(k=2, prior=[0.5, 0.25, 0.25])'
        """
        parts = [] if self.k == 1 else [f"k={self.k}"]
        if self.log_prior is not None:
            parts.append(f"prior={short_array(np.exp(self.log_prior))}")
        return f"{self.name}({', '.join(parts)})" if parts else self.name

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
        if not abs(float(np.exp(prior).sum()) - 1.0) <= 1e-9:
            raise InputError(
                "adversary: log_prior must be the logarithm of weights that sum to one; or give "
                "weights of any sum as prior=..."
            )

    def single(self, count: int) -> bool:
        """Whether there is but one choice: all groups alike."""
        return self.k == count

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        r"""Return :math:`G_\eta(\phi)` of one problem, and the weights that attain it."""
        return float(self.value(phi)), self.answer(phi)

    def _prior(self, count: int) -> tuple[Array, Array]:
        """Return the prior q, which is uniform where none is given, and its logarithm."""
        if self.log_prior is None:
            return 1.0 / count, -log(count)
        return namespace(self.log_prior).exp(self.log_prior), self.log_prior

    def _bonus(self, count: int) -> Array:
        """What the paper's entropy, of q = 1, is more than that relative to the uniform prior."""
        return self.eta * (log(count) if self.log_prior is None else 0.0)

    def _divided(self, xp: ModuleType, phi: Array) -> Array:
        """Return phi over eta; in a batch a problem without eta has the maximum alone."""
        if isinstance(self.eta, float):
            return phi / self.eta
        return phi / xp.where(self.eta > 0.0, self.eta, xp.ones_like(self.eta))

    def value(self, phi: Array) -> Array:
        r"""Return :math:`G_\eta(\phi)`, what the best answer earns: a number, or (B,).

        :math:`\phi_1 + \eta \log \sum_l q_l e^{(\phi_l - \phi_1)/\eta}`, from the largest cost.
        With a large eta it is next to the mean of the costs, and the logarithm that of a number
        next to one, of which eta units would be lost: there log1p is taken.
        """
        xp = namespace(phi)
        level = phi if phi.shape[-1] == 1 else xp.max(phi, axis=-1, keepdims=True)
        if self.k > 1:
            with quiet():
                alpha = self.answer(phi)
                more = xp.sum(alpha * (phi - level), axis=-1)
                return level[..., 0] + more + self.reward(alpha)
        if not self.smooth:
            return level[..., 0]
        q, log_q = self._prior(phi.shape[-1])
        with quiet():
            score = self._divided(xp, phi - level)
            near = xp.sum(q * xp.expm1(score), axis=-1, keepdims=True)
            score = score + log_q
            top = xp.max(score, axis=-1, keepdims=True)
            far = top + xp.log(xp.sum(xp.exp(score - top), axis=-1, keepdims=True))
            total = xp.where(near > -0.5, xp.log1p(near), far)
            return (level + self._bonus(phi.shape[-1]) + self.eta * total)[..., 0]

    def value_error(self, phi: Array) -> Array:
        """Bound the rounding of ``value(phi)``."""
        if not self.smooth and self.k == 1:
            return 0.0 * phi[..., 0]
        xp, count = namespace(phi), phi.shape[-1]
        size = xp.max(xp.abs(phi), axis=-1, keepdims=True)
        if self.k > 1:
            # The answer sums to one but for a unit a group, and is the best one but for as much.
            size = size + 0.25 * count * (size + self.eta)
        if self.smooth:
            spread = xp.max(phi, axis=-1, keepdims=True) - xp.min(phi, axis=-1, keepdims=True)
            lightest = float(np.max(np.abs(to_numpy(self._prior(count)[1]))))
            # For eta above the spread the log1p branch is used, whose error is that of the spread.
            size = size + (2.0 + lightest) * xp.clip(2.0 * spread, None, self.eta)
            size = size + self._bonus(count)
        return 8.0 * unit_of(Home.of(phi)) * size[..., 0]

    def answer(self, phi: Array) -> Array:
        """Return the weights that earn the most; groups that tie for the last share alike."""
        if not self.smooth:
            return self._largest(phi)
        xp = namespace(phi)
        with quiet():
            score = self._divided(xp, phi - xp.max(phi, axis=-1, keepdims=True))
            score = score if self.log_prior is None else score + self.log_prior
        alpha = capped_softmax(xp, score, self.k)
        one_eta = isinstance(self.eta, float)
        return alpha if one_eta else xp.where(self.eta > 0.0, alpha, self._largest(phi))

    def _largest(self, phi: Array) -> Array:
        """Return equal weights of the k largest costs."""
        xp = namespace(phi)
        ones, last = xp.ones_like(phi), xp.max(phi, axis=-1, keepdims=True)
        if self.k == 1:
            ties = xp.where(phi == last, ones, 0.0 * ones)
            return ties / xp.sum(ties, axis=-1, keepdims=True)
        last = xp.sort(phi, axis=-1, descending=True)[..., self.k - 1 : self.k]
        over, ties = xp.where(phi > last, ones, 0.0 * ones), xp.where(phi == last, ones, 0.0 * ones)
        left = self.k - xp.sum(over, axis=-1, keepdims=True)
        return (over + ties * (left / xp.sum(ties, axis=-1, keepdims=True))) / self.k

    def reward(self, alpha: Array) -> Array:
        r"""Return :math:`-\eta \sum_l \alpha_l \log(\alpha_l / q_l)` (0 log 0 = 0).

        Both sum to one, so that terms can be added that make every summand small where alpha is
        near q: :math:`\alpha \log(\alpha / q) - \alpha + q = q\,((1 + r) \log(1 + r) - r)`.
        """
        if not self.smooth:
            return 0.0 * alpha[..., 0]
        xp, count = namespace(alpha), alpha.shape[-1]
        q, ratio, surprise = self._surprise(xp, alpha)
        total = xp.sum(q * ((1.0 + ratio) * surprise - ratio), axis=-1, keepdims=True)
        return (self._bonus(count) - self.eta * total)[..., 0]

    def reward_error(self, alpha: Array) -> Array:
        """Bound the rounding of ``reward(alpha)``."""
        if not self.smooth:
            return 0.0 * alpha[..., 0]
        xp, count = namespace(alpha), alpha.shape[-1]
        q, ratio, surprise = self._surprise(xp, alpha)
        each = q * (xp.abs(ratio) + (1.0 + ratio) * xp.abs(surprise))
        total = self._bonus(count) + self.eta * xp.sum(each, axis=-1, keepdims=True)
        return 8.0 * unit_of(Home.of(alpha)) * total[..., 0]

    def _surprise(self, xp: ModuleType, alpha: Array) -> tuple[Array, Array, Array]:
        """Return q, alpha / q - 1 and its log1p."""
        q, log_q = self._prior(alpha.shape[-1])
        ratio = (alpha - q) / q
        far = safe_log(alpha) - log_q
        with quiet():
            return q, ratio, xp.where(xp.abs(ratio) < 0.5, xp.log1p(ratio), far)

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

    def project(self, alpha: Array) -> Array:
        """Return weights of the set: the others in proportion where some are at the cap.

        What is no weight at all says nothing about the groups, and they weigh the same.

        Examples
        --------
        >>> CappedSimplex(2).project(np.array([0.8, 0.1, 0.1]))
        array([0.5 , 0.25, 0.25])
        """
        xp, count = namespace(alpha), alpha.shape[-1]
        alpha = xp.where(alpha > 0.0, alpha, xp.zeros_like(alpha))
        total = xp.sum(alpha, axis=-1, keepdims=True)
        with quiet():
            usable = (total > 0.0) & xp.isfinite(total)
            alpha = xp.where(usable, alpha / total, xp.ones_like(alpha) / count)
        if self.k == 1 or not bool(xp.any(alpha > self.cap)):
            return alpha
        return capped_softmax(xp, xp.log(alpha + LIFT / count), self.k)

    def upper(self, phi: Array, doubt: Array) -> Array:
        """Bound what the best answer earns if each cost may be as much more as `doubt` says."""
        most = phi + doubt
        return self.value(most) + self.value_error(most)


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


@dataclass(frozen=True, eq=False)
class BatchSimplex(SimplexFamily):
    """The same set for a batch of problems, each with its own eta, where their costs are.

    Attributes
    ----------
    eta : array of shape (B, 1)
    log_prior : array of shape (1, L), optional
    some_eta : bool
        Whether some eta is above zero: a device is not asked again.
    """

    k: int
    eta: Array
    log_prior: Array
    some_eta: bool

    @property
    def smooth(self) -> bool:
        """Whether eta > 0, for some problem at least."""
        return self.some_eta


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

    def describe(self) -> str:
        """Return the set in a line: as it writes itself, or its name where it does not."""
        written = type(self.given).__repr__ is not object.__repr__
        return " ".join(brief(self.given, 200).split()) if written else self.name

    @cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest weight that each group may have."""
        low, high = np.zeros(self.count), np.zeros(self.count)
        for group in range(self.count):
            for sign, side in ((1.0, high), (-1.0, low)):
                probe = np.zeros(self.count)
                probe[group] = sign
                value, _ = self.best(probe)
                side[group] = sign * value
        return low, high

    @property
    def reach(self) -> np.ndarray:
        """The largest size each weight may have, (L,)."""
        low, high = self._bounds
        return np.maximum(np.abs(low), np.abs(high))

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
        if abs(float(value) - attained) > 1e-8 * size:
            raise InputError(
                f"adversary: {self.name}.best(phi) returned the value {float(value):.9g} and "
                f"weights that attain {attained:.9g}; return alpha @ phi, alpha"
            )
        return max(float(value), attained), alpha

    def reward(self, alpha: np.ndarray) -> float:
        """Nothing."""
        return 0.0

    def reward_error(self, alpha: np.ndarray) -> float:
        """Of nothing."""
        return 0.0

    def upper(self, phi: np.ndarray, doubt: np.ndarray) -> float:
        """Bound what the best answer earns if each cost may be off by as much as `doubt`."""
        value, _ = self.best(phi)
        return value + float(self.reach @ (doubt + (self.count + 8.0) * UNIT * np.abs(phi)))


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
