r"""What the mass that rounding put into a plan adds to its divergence.

With G the plan of potentials, :math:`D = u v^\top` what was put in and :math:`r = D / G`,

.. math::
    \sum_{ij} D_{ij}\, h(r_{ij}), \qquad
    h(r) = (1 + 1/r) \log(1 + r) = 1 + \tfrac{r}{2} - \tfrac{r^2}{6} + \dots

As long as a proof has the kernel that G is made of, r is a quotient. Where D is next to nothing
throughout, two terms of the series do, which are products of matrices: the third derivative of
:math:`(1 + r) \log(1 + r)` is in [-1, 0], so that what they leave out is between zero and
:math:`-r^2 / 6` for all r >= 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frot._base.arrays import quiet
from frot.solvers.sinkhorn.blocks import cached_blocks
from frot.solvers.sinkhorn.forming import Block, inverse_of
from frot.solvers.sinkhorn.scores import Scores
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["kernel_surplus", "score_surplus"]

# Logarithms of r beyond these are as good as these: the factor is one, or the logarithm.
NEAR, FAR = -14.0, 80.0
# Single precision holds ratios up to this.
MOST = 1e38
# Mass of D up to which single precision does for the factors.
LITTLE = 1e-4
# What the series may leave out, in units of eps.
LEFT_OUT = 1e-11


def kernel_surplus(
    terms: Terms, kept: Sequence[Block], thin: Any, weight: Any, left: Any, right: Any
) -> Any:
    """Return the sums, (B,), from a kept kernel, which is used up.

    G has the rows ``a_i weight kernel_ij thin_j / total_i``, D is the product of `left` and
    `right`, (B, n) and (B, m). NaN for all where ratios are too large for single precision.
    """
    xp, dot = terms.home.xp, terms.home.xp.vecdot
    with quiet():
        across, level = right / thin, left / (terms.a * weight)
        mass, half, most = xp.sum(left, axis=1), 0.0, 0.0
        blocks = []
        for part, kernel, total, _ in kept:
            inverse, scaled = inverse_of(kernel), level[:, part] * total
            blocks.append((inverse, scaled, left[:, part]))
            half = half + dot(left[:, part] * scaled, _times(terms, inverse, right * across))
            most = xp.maximum(
                xp.max(scaled, axis=1) * xp.max(inverse, axis=(1, 2)), 0.0 * mass + most
            )
        # What the series leaves out is no more than this share of its second term.
        most = most * xp.max(across, axis=1)
        if bool(xp.all(most * half <= 6.0 * LEFT_OUT)):
            return mass * xp.sum(right, axis=1) + 0.5 * half
        return _logarithms(terms, blocks, across, right, _precision(terms, mass))


# Rows of a kernel's reciprocals, what makes ratios of them besides the columns' part, and `left`.
_Rows = tuple[Any, Any, Any]


def _logarithms(terms: Terms, blocks: Sequence[_Rows], across: Any, right: Any, short: Any) -> Any:
    """Return the sums, (B,), whatever the ratios are, if they are numbers of single precision."""
    xp, found = terms.home.xp, 0.0 * right[:, 0]
    most, across = MOST / xp.max(across), xp.astype(across, short)[:, None, :]
    for inverse, scaled, left in blocks:
        for part in cached_blocks(terms.home, inverse.shape):
            ratio = inverse[:, part, :] * scaled[:, part, None]
            if not bool(xp.max(ratio) <= most):
                return found + xp.nan
            ratio = xp.astype(ratio, short)
            ratio *= across
            factors = _factors(xp, ratio)
            found = found + xp.vecdot(left[:, part], _times(terms, factors, right))
    return found


def score_surplus(
    scores: Scores, terms: Terms, levels: tuple[Any, Any], left: Any, right: Any
) -> Any:
    """Return the sums, (B,), from scores.

    `levels` are what the logarithm of r is above those without bias, by rows and by columns.
    """
    xp, (rows, cols) = terms.home.xp, levels
    found, short = 0.0 * left[:, 0], _precision(terms, xp.sum(left, axis=1))
    shape = scores.geometry.shape
    with quiet():
        for part in cached_blocks(terms.home, (shape[0], *shape[2:])):
            rho = (rows[:, part] + scores.offset(part))[:, :, None] - scores.block(part, cols)
            factors = _factors(xp, xp.exp(xp.astype(xp.clip(rho, NEAR, FAR), short)))
            if bool(xp.any(rho > FAR)):
                # A logarithm may be as large as it likes: its digits are double precision's.
                factors = xp.astype(factors, terms.home.dtype) + xp.clip(rho - FAR, 0.0, None)
            found = found + xp.vecdot(left[:, part], _times(terms, factors, right))
    return found


def _precision(terms: Terms, mass: Any) -> Any:
    xp = terms.home.xp
    return xp.float32 if bool(xp.all(mass <= LITTLE)) else xp.float64


def _factors(xp: Any, ratio: Any) -> Any:
    """Return h(r), as u log(u) / (u - 1) with u = 1 + r, of an array that is not needed any more.

    Rounding of u near one does not matter: the logarithm and the difference both see it.
    """
    # Some units more: u is not one.
    ratio += 1.0 + 8.0 * float(xp.finfo(ratio.dtype).eps)
    found = xp.log(ratio)
    # In this order nothing leaves the range of single precision.
    ratio -= 1.0
    found /= ratio
    ratio += 1.0
    found *= ratio
    return found


def _times(terms: Terms, factors: Any, right: Any) -> Any:
    """Return products with a vector of the columns, (B, r), summed as the factors are."""
    xp = terms.home.xp
    found = (factors @ xp.astype(right, factors.dtype)[:, :, None])[:, :, 0]
    return xp.astype(found, terms.home.dtype, copy=False)
