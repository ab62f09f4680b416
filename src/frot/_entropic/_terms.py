"""What a batch of entropic problems has besides its costs, on the device where the costs are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from frot._adversary import Simplex
from frot._arrays import Home, quiet, to_numpy

__all__ = ["Terms"]


@dataclass(frozen=True, eq=False)
class Terms:
    r"""Weights of the points, and both regularisations.

    Attributes
    ----------
    a, b : arrays of shape (B, n) and (B, m)
    eta, eps, scale : arrays of shape (B, 1)
        In units of cost; `scale` is the size of the objective.
    log_prior : array of shape (1, L), optional
    smooth : bool
        Whether eta > 0, for some problem at least.
    exact : Terms, optional
        The same in double precision as they were given, where these are rounded to single: bounds
        have to be about the problem that was asked for.
    holes : array of shape (B, m), optional
        Minus infinity at columns without weight and zero elsewhere; None where all have some.
    """

    home: Home
    a: Any
    b: Any
    eta: Any
    eps: Any
    scale: Any
    log_prior: Any = None
    smooth: bool = False
    exact: Terms | None = None
    holes: Any = None

    @classmethod
    def of(
        cls, home: Home, a: Any, b: Any, adversary: Simplex, eps: Any, scale: Any, eta: Any = None
    ) -> Terms:
        """Bring the terms of problems to where their costs are; `eta` may differ by member."""
        column = np.ones((a.shape[0], 1))
        eta = (adversary.eta if eta is None else np.asarray(eta)[:, None]) * column
        bring = home.double().bring
        zero = to_numpy(b) == 0.0
        exact = cls(
            home.double(),
            bring(a),
            bring(b),
            bring(eta),
            bring(np.reshape(eps, (-1, 1)) * column),
            bring(np.reshape(scale, (-1, 1)) * column),
            None if adversary.log_prior is None else bring(adversary.log_prior[None]),
            bool((eta > 0.0).any()),
            holes=bring(np.where(zero, -np.inf, 0.0)) if zero.any() else None,
        )
        return exact.at(home)

    def at(self, home: Home) -> Terms:
        """The same terms in the precision of another home."""
        if home.dtype == self.home.dtype:
            return self
        if self.exact is not None and home.dtype == self.exact.home.dtype:
            return self.exact

        def cast(array: Any) -> Any:
            return None if array is None else home.xp.astype(array, home.dtype)

        arrays = (self.a, self.b, self.eta, self.eps, self.scale, self.log_prior)
        holes = cast(self.holes)
        return Terms(home, *map(cast, arrays), smooth=self.smooth, exact=self, holes=holes)

    @cached_property
    def log_b(self) -> Any:
        """The logarithm of b; minus infinity at columns without weight, which take no mass."""
        found = self.log(self.b)
        return found if self.holes is None else found + self.holes

    def members(self, index: Any) -> Terms:
        """The terms of some problems only."""
        parts = {
            name: self.home.xp.take(getattr(self, name), index, axis=0)
            for name in ("a", "b", "eta", "eps", "scale", "holes")
            if getattr(self, name) is not None
        }
        exact = None if self.exact is None else self.exact.members(index)
        return replace(self, exact=exact, **parts)

    def worst(self, phi: Any) -> Any:
        r"""Return :math:`G_\eta(\phi)`, (B,): what the best answer to the costs `phi` earns."""
        xp = self.home.xp
        level = xp.max(phi, axis=1, keepdims=True)
        if not self.smooth:
            return level[:, 0]
        with quiet():
            # Next to others with an eta, a problem without one has the maximum alone.
            score = (phi - level) / xp.where(self.eta > 0.0, self.eta, xp.ones_like(self.eta))
            if self.log_prior is not None:
                score = score + self.log_prior
            top = xp.max(score, axis=1, keepdims=True)
            total = xp.sum(xp.exp(score - top), axis=1, keepdims=True)
            return (level + self.eta * (top + xp.log(total)))[:, 0]

    def reward(self, alpha: Any) -> Any:
        r"""Return :math:`-\eta \sum_l \alpha_l \log(\alpha_l / q_l)`, (B,)."""
        xp = self.home.xp
        surprise = self.log(alpha)
        if self.log_prior is not None:
            surprise = surprise - self.log_prior
        return -(self.eta[:, 0] * xp.sum(alpha * surprise, axis=1))

    def log(self, alpha: Any) -> Any:
        """Return the logarithm of weights, of zero that of the smallest number there is."""
        xp = self.home.xp
        return xp.log(xp.clip(alpha, float(xp.finfo(self.home.dtype).smallest_normal), None))

    def softmax(self, score: Any) -> Any:
        """Return weights proportional to exp(score)."""
        xp = self.home.xp
        with quiet():
            weight = xp.exp(score - xp.max(score, axis=1, keepdims=True))
        return weight / xp.sum(weight, axis=1, keepdims=True)

    def pick(self, chosen: Any, yes: float, no: float) -> Any:
        """Return one number or the other, (B, 1), by a mask (B,)."""
        return (no + (yes - no) * self.home.xp.astype(chosen, self.home.dtype))[:, None]
