r"""`EntropicProblem`: a batch of entropic problems but for their costs, on the costs' device.

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
from typing import ClassVar

import numpy as np

from frot._base.arrays import Array, Home, quiet, safe_log, to_numpy
from frot.problem.adversary import BatchSimplex, GivenSet, SimplexFamily, capped_softmax
from frot.problem.marginals import MarginalPrice

# Squares of costs, and costs over eps, have to be numbers in single precision.
SINGLE_RANGE = 1e15


@dataclass(frozen=True, eq=False)
class EntropicProblem:
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
    exact : EntropicProblem, optional
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
    a: Array
    b: Array
    eta: Array
    eps: Array
    scale: Array
    sizes: Array
    log_prior: Array = None
    k: int = 1
    smooth: bool = False
    exact: EntropicProblem | None = None
    uneven: bool = False
    gaps: bool = False
    even: bool = False
    symmetric: bool = False
    tau_a: Array = None
    tau_b: Array = None

    # Arrays with a row for every member.
    _by_member: ClassVar = ("a", "b", "eta", "eps", "scale", "sizes", "tau_a", "tau_b")

    @classmethod
    def of(
        cls,
        home: Home,
        a: np.ndarray,
        b: np.ndarray,
        adversary: SimplexFamily | GivenSet,
        eps: Array,
        sizes: Array,
        eta: Array = None,
        symmetric: bool = False,
        tau: tuple[float | Array, float | Array] = (math.inf, math.inf),
    ) -> EntropicProblem:
        """Bring problems to where their costs are; `eta` may differ by member.

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
            uneven=any(x * 1e3 < y for x, y in zip(lightest, heaviest, strict=True)),
            gaps=min(lightest) == 0.0,
            even=lightest == heaviest,
            symmetric=symmetric and not any(np.isfinite(price).any() for price in tau),
            **prices,
        )
        return exact.to(home)

    def to(self, home: Home) -> EntropicProblem:
        """The same problems in the precision of another home."""
        if home.dtype == self.home.dtype:
            return self
        if self.exact is not None and home.dtype == self.exact.home.dtype:
            return self.exact
        # A price beyond single precision is infinite to a search.
        with quiet():
            parts = {
                name: home.xp.astype(getattr(self, name), home.dtype)
                for name in (*self._by_member, "log_prior")
                if getattr(self, name) is not None
            }
        return replace(self, home=home, exact=self, **parts)

    @cached_property
    def log_b(self) -> Array:
        """The logarithm of b; minus infinity at columns without weight, which take no mass."""
        xp, result = self.home.xp, safe_log(self.b)
        return result if not self.gaps else xp.where(self.b > 0.0, result, -xp.inf + 0.0 * result)

    @cached_property
    def light(self) -> Array:
        """Sizes of the weights' logarithms, (B, m); zero where there is no weight."""
        xp = self.home.xp
        if not self.gaps:
            return xp.abs(xp.log(self.b))
        return xp.where(self.b > 0.0, xp.abs(safe_log(self.b)), 0.0 * self.b)

    @cached_property
    def single_safe(self) -> bool:
        """Whether weights, costs and their products are numbers in single precision too."""
        a, b, scale, eps = (to_numpy(part) for part in (self.a, self.b, self.scale, self.eps))
        # Lighter points single precision cannot hold together with what kernels multiply them by.
        light = any(bool(((side > 0.0) & (side <= 1e-25)).any()) for side in (a, b))
        within = (scale < SINGLE_RANGE) & (np.minimum(scale, eps) > 1.0 / SINGLE_RANGE)
        return not light and bool(within.all())

    @cached_property
    def blur(self) -> float:
        """What potentials in single precision are off by, over eps, in the worst member."""
        scale, eps = to_numpy(self.scale), to_numpy(self.eps)
        return float((np.finfo(np.float32).eps * scale / eps).max())

    def members(self, index: Array) -> EntropicProblem:
        """Some of the problems only."""
        parts = {
            name: self.home.xp.take(getattr(self, name), index, axis=0)
            for name in self._by_member
            if getattr(self, name) is not None
        }
        exact = None if self.exact is None else self.exact.members(index)
        return replace(self, exact=exact, **parts)

    @property
    def unbalanced(self) -> bool:
        """Whether mass of some side may go."""
        return self.tau_a is not None or self.tau_b is not None

    @cached_property
    def rows(self) -> MarginalPrice | None:
        """What rows pay for mass that goes; None where it is kept."""
        return None if self.tau_a is None else MarginalPrice(self.tau_a)

    @cached_property
    def cols(self) -> MarginalPrice | None:
        """What columns pay, likewise."""
        return None if self.tau_b is None else MarginalPrice(self.tau_b)

    @cached_property
    def sides(self) -> tuple[MarginalPrice, MarginalPrice]:
        """The prices of rows and columns, infinite where mass is kept."""
        return self.rows or MarginalPrice(), self.cols or MarginalPrice()

    def row_masses(self, f: Array) -> Array:
        """Return what rows of the plan weigh, (B, n)."""
        return self.sides[0].masses(self.a, f)

    def col_masses(self, g: Array) -> Array:
        """Return what columns of the plan should weigh, (B, m)."""
        return self.sides[1].masses(self.b, g)

    def damped_rows(self, f: Array) -> Array:
        """Return the potentials of rows from those that would keep all of them."""
        return f if self.rows is None else f * self.rows.damping(self.eps)

    def damped_cols(self, g: Array) -> Array:
        """The same of columns."""
        return g if self.cols is None else g * self.cols.damping(self.eps)

    def linear(self, f: Array, g: Array) -> Array:
        """Return what potentials add to the dual value, (B,)."""
        return self.sides[0].dual(self.a, f) + self.sides[1].dual(self.b, g)

    def price(self, rows: Array, cols: Array) -> Array:
        """Return what a plan with these marginals pays for what it does not keep, (B,)."""
        return self.sides[0].price(self.a, rows) + self.sides[1].price(self.b, cols)

    @cached_property
    def product_mass(self) -> Array:
        """The mass of the product of the weights, (B,)."""
        xp = self.home.xp
        return xp.sum(self.a, axis=1) * xp.sum(self.b, axis=1)

    def over_b(self, masses: Array) -> Array:
        """Return masses of columns over b, (B, m); one where nothing is asked for."""
        if not self.gaps:
            return masses / self.b
        xp = self.home.xp
        on, ones = self.b > 0.0, xp.ones_like(self.b)
        return xp.where(on, masses / xp.where(on, self.b, ones), ones)

    @cached_property
    def adversary(self) -> BatchSimplex:
        """The weights alpha may take, with each member's eta."""
        return BatchSimplex(self.k, self.eta, self.log_prior, self.smooth)

    @cached_property
    def prior(self) -> Array:
        """The prior q, (1, L): uniform where none is given."""
        xp = self.home.xp
        if self.log_prior is None:
            return xp.full_like(self.sizes[:1, :], 1.0 / self.sizes.shape[1])
        return xp.exp(self.log_prior)

    def softmax(self, score: Array) -> Array:
        """Return weights proportional to exp(score), none above 1/k."""
        return capped_softmax(self.home.xp, score, self.k)

    def pick(self, chosen: Array, yes: float, no: float) -> Array:
        """Return one number or the other, (B, 1), by a mask (B,)."""
        return (no + (yes - no) * self.home.xp.astype(chosen, self.home.dtype))[:, None]
