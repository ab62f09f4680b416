r"""`BatchTerms`: what a batch of entropic problems has besides its costs, on the costs' device.

Marginals need not be kept where they have a price: with tau that of
:math:`\mathrm{KL}(\Pi 1 | a)`, potentials are damped, and rows keep a part,

.. math::
    f = -\kappa\, \varepsilon \log \sum_j b_j\, e^{(g_j - M_{ij}) / \varepsilon}, \quad
    \kappa = \frac{\tau}{\tau + \varepsilon}, \qquad (\Pi 1)_i = a_i\, e^{-f_i / \tau} ,

and the dual value has :math:`-\tau \langle a, e^{-f / \tau} - 1 \rangle` in place of
:math:`\langle a, f \rangle`, which it is for an infinite tau.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.arrays import Home, at_least, quiet, to_numpy
from frot.problem.adversary import GivenSet, SimplexFamily, capped_softmax

# Weights further apart than this need a look at them before kernels are scaled.
UNEVEN = 1e3
# Lighter points single precision cannot hold together with what kernels multiply them by.
LIGHTEST = 1e-25
# Squares of costs, and costs over eps, have to be numbers in single precision.
SINGLE_RANGE = 1e15
# What weights of zero get of one before they are projected: a cap may need them.
LIFT = 1e-12
# Arrays with a row for every member.
BY_MEMBER = ("a", "b", "eta", "eps", "scale", "sizes", "tau_a", "tau_b")


@dataclass(frozen=True, eq=False)
class Soft:
    """One side's price: tau of shape (B, 1).

    Examples
    --------
    >>> half, f = np.full((1, 2), 0.5), np.array([[0.0, 1.0]])
    >>> side = Soft(Home.of(half), np.ones((1, 1)))
    >>> side.kept(half, f).round(4), side.dual(half, f).round(4)
    (array([[0.5   , 0.1839]]), array([0.3161]))
    >>> side.price(half, side.kept(half, f)).round(4)
    array([0.1321])
    """

    home: Home
    tau: Any

    def damping(self, eps: Any) -> Any:
        """Return kappa, (B, 1)."""
        return self.tau / (self.tau + eps)

    def kept(self, weights: Any, potential: Any) -> Any:
        """Return the masses that potentials keep."""
        with quiet():
            return weights * self.home.xp.exp(-potential / self.tau)

    def dual(self, weights: Any, potential: Any) -> Any:
        """Return what the side adds to the dual value, (B,)."""
        xp = self.home.xp
        with quiet():
            return -self.tau[:, 0] * xp.vecdot(weights, xp.expm1(-potential / self.tau))

    def price(self, weights: Any, masses: Any) -> Any:
        r"""Return :math:`\tau\,\mathrm{KL}(x | a)`, (B,).

        As :math:`a\,((1 + d) \log(1 + d) - d)` with d = x / a - 1, which loses nothing where next
        to all mass is kept, whatever it costs.
        """
        xp = self.home.xp
        there = weights > 0.0
        share = xp.where(there, masses / xp.where(there, weights, xp.ones_like(weights)), 1.0)
        off = share - 1.0
        tiny = float(xp.finfo(share.dtype).smallest_normal)
        with quiet():
            near = xp.log1p(xp.where(xp.abs(off) < 0.5, off, xp.zeros_like(off)))
        surprise = xp.where(xp.abs(off) < 0.5, near, xp.log(at_least(xp, share, tiny)))
        return self.tau[:, 0] * xp.vecdot(weights, share * surprise - off)


@dataclass(frozen=True, eq=False)
class BatchTerms:
    r"""Weights of the points, and both regularisations.

    Attributes
    ----------
    a, b : arrays of shape (B, n) and (B, m)
    eta, eps, scale : arrays of shape (B, 1)
        In units of cost; `scale` is the size of the objective.
    sizes : array of shape (B, L)
        Mean sizes of the groups' costs.
    log_prior : array of shape (1, L), optional
    k : int
        No group weighs more than 1/k.
    smooth : bool
        Whether eta > 0, for some problem at least.
    exact : BatchTerms, optional
        The same in double precision as they were given, where these are rounded to single: bounds
        have to be about the problem that was asked for.
    uneven : bool
        Whether weights of columns are far apart, or zero: a light column must not set the scale of
        the kernel for the others.
    gaps : bool
        Whether some columns have no weight.
    even : bool
        Whether all columns of a member weigh the same.
    symmetric : bool
        Whether both sides are the same points with the same weights: f = g then.
    tau_a, tau_b : arrays of shape (B, 1), optional
        Prices of rows and columns whose mass may go; none where it is kept.
    """

    home: Home
    a: Any
    b: Any
    eta: Any
    eps: Any
    scale: Any
    sizes: Any
    log_prior: Any = None
    k: int = 1
    smooth: bool = False
    exact: BatchTerms | None = None
    uneven: bool = False
    gaps: bool = False
    even: bool = False
    symmetric: bool = False
    tau_a: Any = None
    tau_b: Any = None

    @classmethod
    def of(
        cls,
        home: Home,
        a: np.ndarray,
        b: np.ndarray,
        adversary: SimplexFamily | GivenSet,
        eps: Any,
        sizes: Any,
        eta: Any = None,
        symmetric: bool = False,
        tau: tuple[Any, Any] = (math.inf, math.inf),
    ) -> BatchTerms:
        """Bring the terms of problems to where their costs are; `eta` may differ by member.

        `sizes` are the mean sizes of the groups' costs, (B, L); prices `tau` of rows and columns,
        of all members or of each, are infinite where mass is kept.
        """
        column = np.ones((a.shape[0], 1))
        eta = (adversary.eta if eta is None else np.asarray(eta)[:, None]) * column
        eps, sizes = np.reshape(eps, (-1, 1)) * column, np.asarray(sizes, dtype=float)
        mean = sizes.sum(axis=1, keepdims=True) / sizes.shape[1]
        scale = np.maximum(mean, np.maximum(eta, eps))
        bring, weights = home.double().bring, to_numpy(b)
        lightest, heaviest = weights.min(axis=1).tolist(), weights.max(axis=1).tolist()
        prices = {
            name: bring(np.reshape(price, (-1, 1)) * column)
            for name, price in zip(("tau_a", "tau_b"), tau, strict=True)
            if np.isfinite(price).all()
        }
        exact = cls(
            home.double(),
            *map(bring, (a, b, eta, eps, scale, sizes)),
            log_prior=None if adversary.log_prior is None else bring(adversary.log_prior[None]),
            k=adversary.k,
            smooth=bool(eta.max() > 0.0),
            uneven=any(x * UNEVEN < y for x, y in zip(lightest, heaviest, strict=True)),
            gaps=min(lightest) == 0.0,
            even=lightest == heaviest,
            symmetric=symmetric and not any(np.isfinite(price).any() for price in tau),
            **prices,
        )
        return exact.at(home)

    def at(self, home: Home) -> BatchTerms:
        """The same terms in the precision of another home."""
        if home.dtype == self.home.dtype:
            return self
        if self.exact is not None and home.dtype == self.exact.home.dtype:
            return self.exact
        # A price beyond single precision is infinite to a search.
        with quiet():
            parts = {
                name: home.xp.astype(getattr(self, name), home.dtype)
                for name in (*BY_MEMBER, "log_prior")
                if getattr(self, name) is not None
            }
        return replace(self, home=home, exact=self, **parts)

    @cached_property
    def log_b(self) -> Any:
        """The logarithm of b; minus infinity at columns without weight, which take no mass."""
        xp, found = self.home.xp, self.log(self.b)
        return found if not self.gaps else xp.where(self.b > 0.0, found, -xp.inf + 0.0 * found)

    @cached_property
    def light(self) -> Any:
        """Sizes of the weights' logarithms, (B, m); zero where there is no weight."""
        xp = self.home.xp
        if not self.gaps:
            return xp.abs(xp.log(self.b))
        return xp.where(self.b > 0.0, xp.abs(self.log(self.b)), 0.0 * self.b)

    @cached_property
    def single_safe(self) -> bool:
        """Whether weights, costs and their products are numbers in single precision too."""
        a, b, scale, eps = (to_numpy(part) for part in (self.a, self.b, self.scale, self.eps))
        light = any(
            side.min() <= LIGHTEST and bool((side[side > 0.0] <= LIGHTEST).any()) for side in (a, b)
        )
        within = (scale < SINGLE_RANGE) & (np.minimum(scale, eps) > 1.0 / SINGLE_RANGE)
        return not light and bool(within.all())

    def members(self, index: Any) -> BatchTerms:
        """The terms of some problems only."""
        parts = {
            name: self.home.xp.take(getattr(self, name), index, axis=0)
            for name in BY_MEMBER
            if getattr(self, name) is not None
        }
        exact = None if self.exact is None else self.exact.members(index)
        return replace(self, exact=exact, **parts)

    @property
    def soft(self) -> bool:
        """Whether mass of some side may go."""
        return self.tau_a is not None or self.tau_b is not None

    @cached_property
    def rows(self) -> Soft | None:
        """What rows pay for mass that goes; None where it is kept."""
        return None if self.tau_a is None else Soft(self.home, self.tau_a)

    @cached_property
    def cols(self) -> Soft | None:
        """What columns pay, likewise."""
        return None if self.tau_b is None else Soft(self.home, self.tau_b)

    def row_masses(self, f: Any) -> Any:
        """Return what rows of the plan weigh, (B, n)."""
        return self.a if self.rows is None else self.rows.kept(self.a, f)

    def col_masses(self, g: Any) -> Any:
        """Return what columns of the plan should weigh, (B, m)."""
        return self.b if self.cols is None else self.cols.kept(self.b, g)

    def damped_rows(self, f: Any) -> Any:
        """Return the potentials of rows from those that would keep all of them."""
        return f if self.rows is None else f * self.rows.damping(self.eps)

    def damped_cols(self, g: Any) -> Any:
        """The same of columns."""
        return g if self.cols is None else g * self.cols.damping(self.eps)

    def linear(self, f: Any, g: Any) -> Any:
        """Return what potentials add to the dual value, (B,)."""
        dot, rows, cols = self.home.xp.vecdot, self.rows, self.cols
        left = dot(self.a, f) if rows is None else rows.dual(self.a, f)
        return left + (dot(self.b, g) if cols is None else cols.dual(self.b, g))

    def price(self, rows: Any, cols: Any) -> Any:
        """Return what a plan with these marginals pays for what it does not keep, (B,)."""
        found = 0.0 * self.eps[:, 0]
        if self.rows is not None:
            found = found + self.rows.price(self.a, rows)
        return found if self.cols is None else found + self.cols.price(self.b, cols)

    def shift(self, f: Any, g: Any) -> Any:
        r"""Return what to add to f and take off g for the largest dual value, (B, 1).

        Both sides keep the same mass there: :math:`\log(x_a / x_b) / (1 / \tau_a + 1 / \tau_b)`
        for kept masses x. Without it sweeps go a share of eps over tau of the way only.
        """
        xp = self.home.xp
        slack = sum(1.0 / side.tau for side in (self.rows, self.cols) if side is not None)
        kept = self.row_masses(f), self.col_masses(g)
        mine, theirs = (xp.sum(part, axis=-1, keepdims=True) for part in kept)
        with quiet():
            found = xp.log(mine / theirs) / slack
        # Where a side keeps less than the smallest number, there is nothing to even out.
        return xp.where(xp.isfinite(found), found, xp.zeros_like(found))

    @cached_property
    def product_mass(self) -> Any:
        """The mass of the product of the weights, (B,)."""
        xp = self.home.xp
        return xp.sum(self.a, axis=1) * xp.sum(self.b, axis=1)

    def over_b(self, masses: Any) -> Any:
        """Return masses of columns over b, (B, m); one where nothing is asked for."""
        if not self.gaps:
            return masses / self.b
        xp = self.home.xp
        on, one = self.b > 0.0, xp.ones_like(self.b)
        return xp.where(on, masses / xp.where(on, self.b, one), one)

    @cached_property
    def prior(self) -> Any:
        """The prior q, (1, L): uniform where none is given."""
        xp = self.home.xp
        if self.log_prior is None:
            return xp.full_like(self.sizes[:1, :], 1.0 / self.sizes.shape[1])
        return xp.exp(self.log_prior)

    @property
    def _bonus(self) -> Any:
        """What the paper's entropy is more than that relative to the uniform prior, (B, 1)."""
        return self.eta * (math.log(self.sizes.shape[1]) if self.log_prior is None else 0.0)

    def worst(self, phi: Any) -> Any:
        r"""Return :math:`G_\eta(\phi)`, (B,): what the best answer to the costs `phi` earns.

        With a large eta, :math:`\phi_1 + \eta \log \sum_l q_l e^{(\phi_l - \phi_1)/\eta}` is next
        to the mean of the costs, and found from there: a logarithm of about one would be off by
        eta units. Where k groups share the weight at least, it is what the answer earns.
        """
        xp = self.home.xp
        level = phi if phi.shape[1] == 1 else xp.max(phi, axis=1, keepdims=True)
        if self.k > 1:
            with quiet():
                alpha = self.answer(phi)
                return level[:, 0] + xp.vecdot(alpha, phi - level) + self.reward(alpha)
        if not self.smooth:
            return level[:, 0]
        with quiet():
            # Next to others with an eta, a problem without one has the maximum alone.
            score = (phi - level) / xp.where(self.eta > 0.0, self.eta, xp.ones_like(self.eta))
            near = xp.sum(self.prior * xp.expm1(score), axis=1, keepdims=True)
            score = score + xp.log(self.prior)
            top = xp.max(score, axis=1, keepdims=True)
            total = xp.log(xp.sum(xp.exp(score - top), axis=1, keepdims=True))
            total = xp.where(near > -0.5, xp.log1p(near), top + total)
            return (level + self._bonus + self.eta * total)[:, 0]

    def worst_error(self, phi: Any) -> Any:
        """Bound the rounding of ``worst(phi)``, (B,)."""
        xp, unit = self.home.xp, 8.0 * float(self.home.xp.finfo(self.home.dtype).eps)
        size = xp.max(xp.abs(phi), axis=1)
        if self.k > 1:
            # The answer sums to one but for a unit a group, and is the best one but for as much.
            size = size + 0.25 * phi.shape[1] * (size + self.eta[:, 0])
        if not self.smooth:
            return unit * size
        spread = xp.max(phi, axis=1) - xp.min(phi, axis=1)
        light = 2.0 + float(xp.max(xp.abs(xp.log(self.prior))))
        # An eta of more than the spread takes the nearer way.
        return unit * (size + xp.minimum(self.eta[:, 0], 2.0 * spread) * light + self._bonus[:, 0])

    def answer(self, phi: Any) -> Any:
        """Return the weights that earn the most from the costs `phi`, (B, L)."""
        xp = self.home.xp
        sharp = self._sharp_answer(phi)
        if not self.smooth:
            return sharp
        with quiet():
            score = phi / xp.where(self.eta > 0.0, self.eta, xp.ones_like(self.eta))
        if self.log_prior is not None:
            score = score + self.log_prior
        return xp.where(self.eta > 0.0, self.softmax(score), sharp)

    def _sharp_answer(self, phi: Any) -> Any:
        """Return equal weights of the k worst groups; those that cost the same share alike."""
        xp = self.home.xp
        one, nothing = xp.ones_like(phi), xp.zeros_like(phi)
        last = xp.max(phi, axis=1, keepdims=True)
        if self.k > 1:
            last = xp.sort(phi, axis=1, descending=True)[:, self.k - 1 : self.k]
        over, ties = xp.where(phi > last, one, nothing), xp.where(phi == last, one, nothing)
        left = self.k - xp.sum(over, axis=1, keepdims=True)
        return (over + ties * (left / xp.sum(ties, axis=1, keepdims=True))) / self.k

    def reward(self, alpha: Any) -> Any:
        r"""Return :math:`-\eta \sum_l \alpha_l \log(\alpha_l / q_l)`, (B,).

        Both sum to one, so that terms can be added that make every summand small where alpha is
        near q: :math:`\alpha \log(\alpha / q) - \alpha + q = q\,((1 + r) \log(1 + r) - r)`.
        """
        xp = self.home.xp
        if not self.smooth:
            return 0.0 * self.eta[:, 0]
        ratio, surprise = self._surprise(alpha)
        each = self.prior * ((1.0 + ratio) * surprise - ratio)
        return (self._bonus - self.eta * xp.sum(each, axis=1, keepdims=True))[:, 0]

    def reward_error(self, alpha: Any) -> Any:
        """Bound the rounding of ``reward(alpha)``, (B,)."""
        xp, unit = self.home.xp, 8.0 * float(self.home.xp.finfo(self.home.dtype).eps)
        if not self.smooth:
            return 0.0 * self.eta[:, 0]
        ratio, surprise = self._surprise(alpha)
        each = self.prior * (xp.abs(ratio) + (1.0 + ratio) * xp.abs(surprise))
        return unit * (self._bonus + self.eta * xp.sum(each, axis=1, keepdims=True))[:, 0]

    def _surprise(self, alpha: Any) -> tuple[Any, Any]:
        """Return alpha / q - 1 and its log1p, (B, L) each."""
        xp = self.home.xp
        ratio = (alpha - self.prior) / self.prior
        far = self.log(alpha) - xp.log(self.prior)
        with quiet():
            return ratio, xp.where(xp.abs(ratio) < 0.5, xp.log1p(ratio), far)

    def log(self, weights: Any) -> Any:
        """Return the logarithm of weights, of zero that of the smallest number there is."""
        xp = self.home.xp
        return xp.log(at_least(xp, weights, float(xp.finfo(self.home.dtype).smallest_normal)))

    def softmax(self, score: Any) -> Any:
        """Return weights proportional to exp(score), none above 1/k."""
        with quiet():
            return capped_softmax(self.home.xp, score, self.k)

    def project(self, alpha: Any) -> Any:
        """Return weights that sum to one, and none above 1/k."""
        xp = self.home.xp
        alpha = alpha / xp.sum(alpha, axis=1, keepdims=True)
        if self.k == 1 or not bool(xp.any(alpha > 1.0 / self.k)):
            return alpha
        return self.softmax(self.log(alpha + LIFT / alpha.shape[1]))

    def pick(self, chosen: Any, yes: float, no: float) -> Any:
        """Return one number or the other, (B, 1), by a mask (B,)."""
        return (no + (yes - no) * self.home.xp.astype(chosen, self.home.dtype))[:, None]
