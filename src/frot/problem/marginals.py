r"""Constraints on the marginals: kept exactly, at a price (tau), or partly, of a given mass.

.. math::
    \min_{\Pi \ge 0} \; \max_{\alpha} \; \sum_l \alpha_l \langle \Pi, C_l \rangle
    - \eta\,\mathrm{KL}(\alpha | q) + \tau_a D(\Pi 1 | a) + \tau_b D(\Pi^\top 1 | b)

with :math:`D = \mathrm{KL}(x | y) = \sum x \log(x / y) - x + y`, or, for partial transport, the
mass that is left out, :math:`\sum y - x` with :math:`x \le y` (Chizat et al. 2018). An infinite tau
keeps its side. By
duality a side adds

.. math::
    -\tau \langle a, e^{-f / \tau} - 1 \rangle \quad (\mathrm{KL}), \qquad
    \langle a, f \rangle,\; f \le \tau \quad (\mathrm{TV}),

to the dual value, and a plan keeps :math:`a\, e^{-f / \tau}` of it. Where plans have a given mass
m instead, with :math:`\Pi 1 \le a` and :math:`\Pi^\top 1 \le b`, what is left out is at best what
has the highest potentials:

.. math::
    \langle a, f \rangle + \langle b, g \rangle - (|a| - m) \max f - (|b| - m) \max g .
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import fsum, inf

import numpy as np

from frot._base.arrays import TINY, UNIT, Array, at_least, namespace, quiet


@dataclass(frozen=True, eq=False)
class MarginalPrice:
    r"""The price tau of one side under the KL penalty; infinite keeps it.

    Weights, potentials and masses are (n,), or (B, n) of a batch, in NumPy or PyTorch; what sums
    over points comes out as a number, or (B,).

    Parameters
    ----------
    tau : float, or array of shape (B, 1)

    Examples
    --------
    >>> a, f = np.array([0.5, 0.5]), np.array([0.0, 1.0])
    >>> MarginalPrice(inf).dual(a, f), MarginalPrice(inf).masses(a, f)
    (0.5, array([0.5, 0.5]))
    >>> round(MarginalPrice(1.0).dual(a, f), 4), MarginalPrice(1.0).masses(a, f).round(4)
    (0.3161, array([0.5   , 0.1839]))
    >>> MarginalPrice(np.ones((1, 1))).dual(a[None], f[None]).round(4)
    array([0.3161])
    """

    tau: Array = inf

    @cached_property
    def finite(self) -> bool:
        """Whether mass may go."""
        return not isinstance(self.tau, float) or self.tau < inf

    @property
    def _each(self) -> Array:
        """The price of what is summed over points."""
        return self.tau if isinstance(self.tau, float) else self.tau[:, 0]

    def damping(self, eps: Array) -> Array:
        """Return kappa: the share of its move that a potential makes at a price."""
        return self.tau / (self.tau + eps)

    def masses(self, weights: Array, potential: Array) -> Array:
        """Return the mass that potentials keep of each point."""
        if not self.finite:
            return weights
        with quiet():
            return weights * namespace(potential).exp(-potential / self.tau)

    def log_mass(self, weights: Array, potential: Array) -> Array:
        """Return the logarithm of the mass that is kept in all, which may be next to none."""
        xp = namespace(potential)
        with quiet():
            scores = -potential / self.tau + xp.log(weights)
            top = xp.max(scores, axis=-1, keepdims=True)
            return (top + xp.log(xp.sum(xp.exp(scores - top), axis=-1, keepdims=True)))[..., 0]

    def gains(self, weights: Array, potential: Array) -> Array:
        """Return what each point adds to the dual value."""
        if not self.finite:
            return weights * potential
        with quiet():
            return -self.tau * (weights * namespace(potential).expm1(-potential / self.tau))

    def dual(self, weights: Array, potential: Array) -> Array:
        """Return what the side adds to the dual value."""
        if not self.finite:
            return _summed(weights, potential)
        with quiet():
            return -self._each * _summed(weights, namespace(potential).expm1(-potential / self.tau))

    def price(self, weights: Array, masses: Array) -> Array:
        r"""Return :math:`\tau\,\mathrm{KL}(x | a)` of the masses x; nothing for a side kept."""
        if not self.finite:
            return 0.0 * _summed(weights, weights)
        xp, there = namespace(masses), weights > 0.0
        share = xp.where(there, masses / xp.where(there, weights, xp.ones_like(weights)), 1.0)
        return self._each * _summed(weights, _surprise(share))

    def price_error(self, weights: np.ndarray, masses: np.ndarray, share: float) -> float:
        """Bound the rounding of `price` of masses that are right to a share."""
        if not self.finite:
            return 0.0
        kept = masses / weights
        moved = np.abs(np.log(np.maximum(kept, TINY))) * kept * share
        # Next to where all is kept, differences are off by units of one.
        off = np.abs(kept - 1.0) + _surprise(kept)
        return self.tau * float(weights @ (moved + 8.0 * UNIT * off + 4.0 * share**2))


def even_out(
    sides: tuple[MarginalPrice, MarginalPrice], weights: Array, potentials: Array
) -> Array:
    r"""Return the constant to add to f and take off g that raises the dual value most.

    The masses that both sides keep are then the same:
    :math:`\tau_a \tau_b / (\tau_a + \tau_b)\, \log(\langle a, e^{-f / \tau_a} \rangle /
    \langle b, e^{-g / \tau_b} \rangle)`. One side at least has a price.

    Examples
    --------
    >>> nothing = np.zeros(1)
    >>> sides = MarginalPrice(1.0), MarginalPrice(inf)
    >>> float(even_out(sides, (np.full(1, np.e), np.ones(1)), (nothing, nothing)).round(12))
    1.0
    """
    (rows, cols), (a, b), (f, g) = sides, weights, potentials
    slack = sum(1.0 / side._each for side in sides if side.finite)
    return (rows.log_mass(a, f) - cols.log_mass(b, g)) / slack


def _summed(weights: Array, values: Array) -> Array:
    """Return the weighted sums over the points, of one problem a number."""
    total = namespace(values).vecdot(weights, values)
    return total if total.ndim else float(total)


def _surprise(kept: Array) -> Array:
    """Return x log(x) - x + 1 of shares x that are kept, without loss where x is next to one."""
    xp, off = namespace(kept), kept - 1.0
    near = xp.abs(off) < 0.5
    tiny = float(xp.finfo(kept.dtype).smallest_normal)
    far = xp.log(at_least(xp, kept, tiny))
    return kept * xp.where(near, xp.log1p(xp.where(near, off, 0.0 * off)), far) - off


def unit_mass(weights: np.ndarray) -> np.ndarray:
    """Return weights as shares of their sum."""
    return weights / fsum(weights.tolist())
