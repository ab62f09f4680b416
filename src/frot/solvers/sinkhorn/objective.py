r"""What a plan of potentials, rounded to its marginals, costs: its objective, and no bound of it.

The plan is :math:`\Pi = G + D` with :math:`G_{ij} = a_i b_j e^{s_{ij}}`, whose scores s come from
potentials, and :math:`D = u v^\top`, what rounding put in. With :math:`r = D / G`,

.. math::
    \mathrm{KL}(\Pi \,|\, a b^\top) = \langle \Pi, s \rangle
    + \sum_{ij} D_{ij} (1 + 1 / r_{ij}) \log(1 + r_{ij}) .

The first term is one of marginals and group costs; the second is as small as D is, so that single
precision does for its factors. It takes a pass over the costs, unless the proof has done that.
Where potentials are so large that a sum of them would leave few digits, the divergence is summed
over the plan itself.
"""

from __future__ import annotations

from typing import Any

from frot._base.arrays import quiet
from frot.solvers.sinkhorn._surplus import score_surplus
from frot.solvers.sinkhorn.certificate import Certificate
from frot.solvers.sinkhorn.engine import Engine
from frot.solvers.sinkhorn.forming import form_rows
from frot.solvers.sinkhorn.scores import scores_at

__all__ = ["plan_objective"]

# Potentials so many times the value leave it ten digits or so.
LARGE = 1e5


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
            added = score_surplus(scores, terms, levels, left, proof.right)
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
