r"""Marginals that need not be kept, for a batch on any device: what one side pays, and its sweeps.

With the price tau of :math:`\mathrm{KL}(\Pi 1 | a)`, potentials are damped, and rows keep a part,

.. math::
    f = -\kappa\, \varepsilon \log \sum_j b_j\, e^{(g_j - M_{ij}) / \varepsilon}, \quad
    \kappa = \frac{\tau}{\tau + \varepsilon}, \qquad (\Pi 1)_i = a_i\, e^{-f_i / \tau} ,

and the dual value has :math:`-\tau \langle a, e^{-f / \tau} - 1 \rangle` in place of
:math:`\langle a, f \rangle`, which it is for an infinite tau.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frot._base.arrays import at_least, quiet

__all__ = ["Soft", "translation"]


@dataclass(frozen=True, eq=False)
class Soft:
    """One side's price: tau of shape (B, 1).

    Examples
    --------
    >>> import array_api_compat.numpy as np
    >>> half, f = np.full((1, 2), 0.5), np.array([[0.0, 1.0]])
    >>> side = Soft(np, np.ones((1, 1)))
    >>> side.kept(half, f).round(4), side.dual(half, f).round(4)
    (array([[0.5   , 0.1839]]), array([0.3161]))
    >>> side.price(half, side.kept(half, f)).round(4)
    array([0.1321])
    """

    xp: Any
    tau: Any

    def damping(self, eps: Any) -> Any:
        """Return kappa, (B, 1)."""
        return self.tau / (self.tau + eps)

    def kept(self, weights: Any, potential: Any) -> Any:
        """Return the masses that potentials keep."""
        with quiet():
            return weights * self.xp.exp(-potential / self.tau)

    def dual(self, weights: Any, potential: Any) -> Any:
        """Return what the side adds to the dual value, (B,)."""
        with quiet():
            return -self.tau[:, 0] * self.xp.vecdot(weights, self.xp.expm1(-potential / self.tau))

    def price(self, weights: Any, masses: Any) -> Any:
        r"""Return :math:`\tau\,\mathrm{KL}(x | a)`, (B,).

        As :math:`a\,((1 + d) \log(1 + d) - d)` with d = x / a - 1, which loses nothing where next
        to all mass is kept, whatever it costs.
        """
        xp = self.xp
        there = weights > 0.0
        share = xp.where(there, masses / xp.where(there, weights, xp.ones_like(weights)), 1.0)
        off = share - 1.0
        tiny = float(xp.finfo(share.dtype).smallest_normal)
        with quiet():
            near = xp.log1p(xp.where(xp.abs(off) < 0.5, off, xp.zeros_like(off)))
        surprise = xp.where(xp.abs(off) < 0.5, near, xp.log(at_least(xp, share, tiny)))
        return self.tau[:, 0] * xp.vecdot(weights, share * surprise - off)


def translation(xp: Any, sides: tuple[Soft | None, Soft | None], kept: tuple[Any, Any]) -> Any:
    r"""Return what to add to f and to take off g, (B, 1), for both sides to keep the same mass.

    It is the shift that raises the dual value most,
    :math:`\log(x_a / x_b) / (1 / \tau_a + 1 / \tau_b)` for kept masses x, and without it sweeps go
    a share of eps over tau of the way only.
    """
    slack = sum(1.0 / side.tau for side in sides if side is not None)
    sums = [xp.sum(part, axis=-1, keepdims=True) for part in kept]
    with quiet():
        found = xp.log(sums[0] / sums[1]) / slack
    # Where a side keeps less than the smallest number, there is nothing to even out.
    return xp.where(xp.isfinite(found), found, xp.zeros_like(found))
