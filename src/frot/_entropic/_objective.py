r"""What a plan of potentials, rounded to its marginals, costs: its objective, and no bound of it.

The plan is :math:`\Pi = G + D` with :math:`G_{ij} = a_i b_j e^{s_{ij}}`, whose scores s come from
potentials, and :math:`D = u v^\top`, what rounding put in. With :math:`\rho = \log(D / G)`,

.. math::
    \mathrm{KL}(\Pi \,|\, a b^\top) = \langle \Pi, s \rangle
    + \sum_{ij} D_{ij} (1 + e^{-\rho_{ij}}) \log(1 + e^{\rho_{ij}}) .

The first term is one of marginals and group costs; the second is as small as D is, so that single
precision does for its factors. Only once a run has ended it is worth a pass over the costs.
"""

from __future__ import annotations

from typing import Any

from frot._arrays import quiet
from frot._entropic._blocks import row_blocks
from frot._entropic._certificate import Certificate
from frot._entropic._engine import Engine
from frot._entropic._scores import scores_at

__all__ = ["plan_objective"]

# Logarithms of D / G beyond these are as good as these: the factor is one, or the logarithm.
NEAR, FAR = -14.0, 80.0
# Mass of D up to which single precision does.
LITTLE = 1e-4
# Entries of a block.
CACHED = 20_000


def plan_objective(engine: Engine, proof: Certificate) -> Any:
    """Return the objectives, (B,), of the plans that prove the upper bounds."""
    engine = engine.double()
    terms = engine.terms
    xp, a, b = terms.home.xp, terms.a, terms.b
    one, weight = xp.ones_like(b), proof.weight[:, None]
    # The product of the marginals has no potentials, and no divergence either.
    formed = weight > 0.0
    with quiet():
        log_columns = xp.log(proof.thin * xp.where(formed, weight, xp.ones_like(weight)))
        from_rows, from_cols = _log_share(xp, proof.left, a), _log_share(xp, proof.right, b)
        inner = xp.vecdot(a, proof.f) + xp.vecdot(b, proof.g + terms.eps * log_columns)
        inner = inner - xp.vecdot(proof.alpha, proof.phi)
        scores = scores_at(engine.geometry, terms, proof.alpha)
        bias = proof.g / terms.eps + log_columns - from_cols
        added = 0.0 * proof.value
        little = bool(xp.all((xp.sum(proof.left, axis=1) <= LITTLE) | ~formed[:, 0]))
        short = xp.float32 if little else xp.float64
        for part in _parts(engine) if bool(xp.any(proof.left > 0.0)) else ():
            level = from_rows[:, part] - proof.f[:, part] / terms.eps + scores.offset(part)
            rho = level[:, :, None] - scores.block(part, bias)
            factors = xp.astype(_factors(xp, xp.astype(rho, short)), terms.home.dtype)
            sums = (factors @ (proof.right * one)[:, :, None])[:, :, 0]
            added = added + xp.vecdot(proof.left[:, part], sums)
    entropy = xp.where(formed[:, 0], inner + terms.eps[:, 0] * added, 0.0 * inner)
    value = terms.worst(proof.phi) + entropy
    # It is in the interval, even if what was summed for it is not.
    return xp.minimum(xp.maximum(value, proof.lower), proof.upper)


def _parts(engine: Engine) -> list[slice]:
    """Blocks of rows; on a CPU so small that what is computed from them stays in its cache."""
    if not engine.terms.home.on_host:
        return row_blocks(engine.geometry)
    batch, _, n, m = engine.geometry.shape
    step = max(1, CACHED // (batch * m))
    return [slice(first, min(first + step, n)) for first in range(0, n, step)]


def _log_share(xp: Any, part: Any, weights: Any) -> Any:
    """Return log(part / weights), and nothing where there is no mass to speak of."""
    there = (part > 0.0) & (weights > 0.0)
    one = xp.ones_like(part)
    return xp.log(xp.where(there, part, one)) - xp.log(xp.where(there, weights, one))


def _factors(xp: Any, rho: Any) -> Any:
    """Return (1 + e^-rho) log(1 + e^rho), as u log(u) / (u - 1) with u = 1 + e^rho.

    Rounding of u near one does not matter: the logarithm and the difference both see it.
    """
    u = xp.exp(xp.clip(rho, NEAR, FAR)) + 1.0
    found = xp.log(u) * u / (u - 1.0)
    if bool(xp.any(rho > FAR)):
        found = found + xp.clip(rho - FAR, 0.0, None)
    return found
