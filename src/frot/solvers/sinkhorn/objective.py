r"""The objective of a plan of potentials that is rounded to its marginals: a value, no bound.

The plan is :math:`\Pi = G + D` with :math:`G_{ij} = a_i b_j e^{s_{ij}}`, whose scores s come from
potentials, and :math:`D = u v^\top`, what rounding put in. With :math:`r = D / G`,

.. math::
    \mathrm{KL}(\Pi \,|\, a b^\top) = \langle \Pi, s \rangle + \sum_{ij} D_{ij}\, h(r_{ij}), \qquad
    h(r) = (1 + 1/r) \log(1 + r) = 1 + \tfrac{r}{2} - \tfrac{r^2}{6} + \dots

The first term is one of marginals and group costs; the second, the surplus, is as small as D is, so
that single precision does for its factors. It takes a pass over the costs, unless a proof has the
kernel that G is made of: then r is a quotient. Where D is next to nothing throughout, two terms of
the series do, which are products of matrices: the third derivative of
:math:`(1 + r) \log(1 + r)` is in [-1, 0], so that what they leave out is between zero and
:math:`-r^2 / 6` for all r >= 0, and the sum of that is one more product.

Where potentials are so large that a sum of them would leave few digits, the divergence is summed
over the plan itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from frot._base.arrays import quiet
from frot.solvers.sinkhorn.engine import Engine
from frot.solvers.sinkhorn.kernel import (
    RowBlock,
    Scores,
    cached_blocks,
    form_rows,
    inverse_of,
    scores_at,
)
from frot.solvers.sinkhorn.terms import BatchTerms

if TYPE_CHECKING:
    from frot.solvers.sinkhorn.certificate import Certificate

# Potentials so many times the value leave it ten digits or so.
LARGE = 1e5
# Logarithms of r beyond these are as good as these: the factor is one, or the logarithm.
NEAR, FAR = -14.0, 80.0
# Single precision holds ratios up to this.
MOST = 1e38
# Mass of D up to which single precision does for the factors.
LITTLE = 1e-4
# What the series may leave out, in units of eps.
LEFT_OUT = 1e-11


def plan_objective(engine: Engine, proof: Certificate) -> Any:
    """Return the objectives, (B,), of the plans that prove the upper bounds."""
    engine = engine.double()
    terms = engine.terms
    xp, a, b, weight = terms.home.xp, terms.a, terms.b, proof.weight[:, None]
    # The product of the marginals has no potentials, and no divergence either.
    formed = proof.weight > 0.0
    with quiet():
        log_columns = xp.log(proof.thin * xp.where(weight > 0.0, weight, xp.ones_like(weight)))
        inner = xp.vecdot(a, proof.f) + xp.vecdot(b, proof.g + terms.eps * log_columns)
        inner = inner - xp.vecdot(proof.alpha, proof.phi)
        added = proof.surplus
        if bool(xp.any(formed & xp.isnan(added))):
            levels = (
                _log_share(xp, proof.left, a) - proof.f / terms.eps,
                proof.g / terms.eps + log_columns - _log_share(xp, proof.right, b),
            )
            scores = scores_at(engine.geometry, terms, proof.alpha)
            left = xp.where(weight > 0.0, proof.left, 0.0 * proof.left)
            added = _score_surplus(scores, terms, levels, left, proof.right)
    entropy, worst = inner + terms.eps[:, 0] * added, terms.worst(proof.phi)
    size = xp.vecdot(a, xp.abs(proof.f)) + xp.vecdot(b, xp.abs(proof.g))
    if bool(xp.any(formed & ~(size <= LARGE * (xp.abs(worst) + terms.eps[:, 0])))):
        with quiet():
            entropy = terms.eps[:, 0] * _divergence(engine, proof)
    value = worst + xp.where(formed, entropy, 0.0 * worst)
    # It is in the interval, even if what was summed for it is not.
    return xp.minimum(xp.maximum(value, proof.lower), proof.upper)


def _divergence(engine: Engine, proof: Certificate) -> Any:
    """Return the divergences of the plans from the products of their weights, (B,), entry by entry.

    The plan is formed again as it is where it is handed out.
    """
    terms = engine.terms
    xp, log_a, log_b = terms.home.xp, terms.log(terms.a), terms.log(terms.b)
    scores, found = scores_at(engine.geometry, terms, proof.alpha), 0.0 * proof.weight
    for part, kernel, total, _ in form_rows(scores, terms, proof.g, engine.parts):
        level = terms.a[:, part] / total * proof.weight[:, None]
        plan = kernel * level[:, :, None] * proof.thin[:, None, :]
        plan = plan + proof.left[:, part, None] * proof.right[:, None, :]
        surprise = xp.log(xp.where(plan > 0.0, plan, xp.ones_like(plan)))
        surprise = surprise - log_a[:, part, None] - log_b[:, None, :]
        found = found + xp.sum(plan * surprise, axis=(1, 2))
    return found


def _log_share(xp: Any, part: Any, weights: Any) -> Any:
    """Return log(part / weights), and nothing where there is no mass to speak of."""
    there = (part > 0.0) & (weights > 0.0)
    one = xp.ones_like(part)
    return xp.log(xp.where(there, part, one)) - xp.log(xp.where(there, weights, one))


def kernel_surplus(
    terms: BatchTerms, kept: Sequence[RowBlock], thin: Any, weight: Any, left: Any, right: Any
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


def _series(
    terms: BatchTerms, rows: Sequence[_Rows], across: Any, right: Any, short: Any
) -> Any | None:
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


def _logarithms(
    terms: BatchTerms, rows: Sequence[_Rows], across: Any, right: Any, short: Any
) -> Any:
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


def _score_surplus(
    scores: Scores, terms: BatchTerms, levels: tuple[Any, Any], left: Any, right: Any
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


def _precision(terms: BatchTerms, mass: Any) -> Any:
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


def _times(terms: BatchTerms, factors: Any, right: Any) -> Any:
    """Return products with a vector of the columns, (B, r), summed as the factors are."""
    xp = terms.home.xp
    found = (factors @ xp.astype(right, factors.dtype)[:, :, None])[:, :, 0]
    return xp.astype(found, terms.home.dtype, copy=False)
