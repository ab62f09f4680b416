r"""What the mass that rounding put into a plan adds to its divergence.

With G the plan of potentials, :math:`D = u v^\top` what was put in and :math:`r = D / G`,

.. math::
    \sum_{ij} D_{ij}\, h(r_{ij}), \qquad
    h(r) = (1 + 1/r) \log(1 + r) = 1 + \tfrac{r}{2} - \tfrac{r^2}{6} + \dots

As long as a proof has the kernel that G is made of, r is a quotient. Where D is next to nothing
throughout, two terms of the series do, which are products of matrices: the third derivative of
:math:`(1 + r) \log(1 + r)` is in [-1, 0], so that what they leave out is between zero and
:math:`-r^2 / 6` for all r >= 0, and the sum of that is one more product.
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
    """Return the sums, (B,), from a kept kernel.

    G has the rows ``a_i weight kernel_ij thin_j / total_i``, D is the product of `left` and
    `right`, (B, n) and (B, m). NaN where ratios are too large for single precision.
    """
    xp = terms.home.xp
    with quiet():
        across, level = right / thin, left / (terms.a * weight)
        short = _precision(terms, xp.sum(left, axis=1))
        rows = [
            (block.kernel, level[:, block.part] * block.total, left[:, block.part])
            for block in kept
        ]
        found = _series(terms, rows, across, right, short)
        return _logarithms(terms, rows, across, right, short) if found is None else found


# Rows of a kernel, what makes ratios of its reciprocals besides the columns' part, and `left`.
_Rows = tuple[Any, Any, Any]


def _series(terms: Terms, rows: Sequence[_Rows], across: Any, right: Any, short: Any) -> Any | None:
    """Return two terms of the series, if what they leave out is next to nothing."""
    xp = terms.home.xp
    mass, half, third = 0.0, 0.0, 0.0
    once, twice = right * across, right * across**2
    for kernel, scaled, left in rows:
        shares, count = left * scaled, kernel.shape[1]
        # The first rows mostly tell.
        first = cached_blocks(terms.home, kernel.shape)[0]
        for part in (first, slice(first.stop, count)) if first.stop < count else (first,):
            inverse = inverse_of(xp.astype(kernel[:, part, :], short))
            half = half + xp.vecdot(shares[:, part], _times(terms, inverse, once))
            inverse *= inverse
            squares = shares[:, part] * scaled[:, part]
            third = third + xp.vecdot(squares, _times(terms, inverse, twice))
            if not bool(xp.all(third <= 6.0 * LEFT_OUT)):
                return None
        mass = mass + xp.sum(left, axis=1)
    return mass * xp.sum(right, axis=1) + 0.5 * half


def _logarithms(terms: Terms, rows: Sequence[_Rows], across: Any, right: Any, short: Any) -> Any:
    """Return the sums, (B,), whatever the ratios are, if they are numbers of single precision."""
    xp, found = terms.home.xp, 0.0 * right[:, 0]
    across = xp.astype(across, short)[:, None, :]
    for kernel, scaled, left in rows:
        for part in cached_blocks(terms.home, kernel.shape):
            ratio = xp.astype(scaled[:, part, None] / kernel[:, part, :], short)
            ratio *= across
            if not bool(xp.max(ratio) <= MOST):
                return found + xp.nan
            found = found + xp.vecdot(left[:, part], _times(terms, _factors(xp, ratio), right))
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
