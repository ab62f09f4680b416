r"""Blocks of the plan that potentials make, formed in one way only.

With a small eps the exponent :math:`(f_i + g_j - M_{ij}) / \varepsilon` is large before it
cancels, and what rounding leaves of it depends on the order of the operations. Plans that are
proven to be feasible and plans that are handed out therefore come from here, and are the same to
the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from frot._arrays import quiet
from frot._entropic._blocks import row_blocks
from frot._entropic._geometry import Geometry
from frot._entropic._scores import Scores, scores_at
from frot._entropic._terms import Terms

__all__ = ["Formed", "form", "measure"]


class Formed(NamedTuple):
    """Row sums over a (B, n), column sums (B, m) and group costs (B, L) of a plan as formed."""

    rows: Any
    masses: Any
    phi: Any


def form(
    scores: Scores, terms: Terms, f: Any, g: Any, parts: Sequence[slice]
) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of rows (B, r, m) of the plan, each row divided by its a_i."""
    bias = g / terms.eps + terms.log_b
    for part in parts:
        block = scores.block(part, bias)
        block += (f[:, part] / terms.eps - scores.offset(part))[:, :, None]
        with quiet():
            yield part, terms.home.xp.exp(block)


def measure(geometry: Geometry, terms: Terms, alpha: Any, f: Any, g: Any) -> Formed:
    """Pass over the plan once, and return its sums."""
    xp = terms.home.xp
    scores = scores_at(geometry, terms, alpha)
    parts, masses, partials = [], 0.0, 0.0
    for part, kernel in form(scores, terms, f, g, row_blocks(geometry)):
        weights = terms.a[:, part]
        parts.append(xp.sum(kernel, axis=2))
        masses = masses + (weights[:, None, :] @ kernel)[:, 0, :]
        partials = partials + scores.partial(part, kernel, weights)
    rows = xp.concat(parts, axis=1)
    return Formed(rows, masses, scores.total(partials, terms.a * rows, masses))
