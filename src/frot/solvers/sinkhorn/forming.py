r"""Plans by their rows: softmaxes of scores, formed in one way only.

A plan with exact rows is given by the potential g of its columns,

.. math::
    \pi_{ij} = a_i \frac{b_j\, e^{(g_j - M_{ij}) / \varepsilon}}
                        {\sum_k b_k\, e^{(g_k - M_{ik}) / \varepsilon}}, \qquad
    f_i = -\varepsilon \log \sum_k b_k\, e^{(g_k - M_{ik}) / \varepsilon} ,

and its rows sum to a whatever rounding did to the scores. With a small eps these are large before
they cancel, and what rounding leaves of them depends on the order of the operations: plans that
are proven to be feasible and plans that are handed out therefore both come from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import array_api_compat
import numpy as np

from frot._base.arrays import quiet
from frot._base.stopping import check_deadline
from frot.solvers.sinkhorn.scores import Scores
from frot.solvers.sinkhorn.terms import Terms

__all__ = [
    "Block",
    "column_potentials",
    "exp_of",
    "form_rows",
    "inverse_of",
    "score_rows",
    "softmax_below",
    "softmax_block",
]


class Block(NamedTuple):
    """Rows `part` of a plan: ``a_i kernel_ij / total_i``; f is (B, r), kernel (B, r, m)."""

    part: slice
    kernel: Any
    total: Any
    f: Any


def form_rows(scores: Scores, terms: Terms, g: Any, parts: Sequence[slice]) -> Iterator[Block]:
    """Yield blocks of rows of the plan that g makes."""
    for part, block in score_rows(scores, terms, g, parts):
        yield softmax_block(scores, terms, part, block)


def score_rows(
    scores: Scores, terms: Terms, g: Any, parts: Sequence[slice]
) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of the scores whose softmaxes the rows are, (B, r, m).

    Where all columns weigh the same their weights are left out: softmaxes do not see them, and with
    a large eps they would leave few digits to the costs.
    """
    bias = g / terms.eps
    if not terms.even:
        bias = bias + terms.log_b
    for part in parts:
        check_deadline()
        yield part, scores.block(part, bias)


def softmax_block(scores: Scores, terms: Terms, part: slice, block: Any) -> Block:
    """Make a block of a plan from its scores, which are used up."""
    xp = terms.home.xp
    with quiet():
        top = xp.max(block, axis=2)
        block -= top[:, :, None]
        return softmax_below(scores, terms, part, block, top)


def softmax_below(scores: Scores, terms: Terms, part: slice, block: Any, top: Any) -> Block:
    """Make a block of a plan from its scores below the rows' largest, which are `top`."""
    xp = terms.home.xp
    with quiet():
        kernel = exp_of(block)
        total = xp.sum(kernel, axis=2)
        level = top + xp.log(total * terms.b[:, :1] if terms.even else total)
        f = terms.eps * (scores.offset(part) - level)
        if terms.rows is not None:
            # Rows that need not be kept keep a part of a.
            f = terms.damped_rows(f)
            total = total * xp.exp(f / terms.tau_a)
    return Block(part, kernel, total, f)


def exp_of(array: Any) -> Any:
    """Return the exponentials of an array that is not needed any more, in its place if possible.

    Memory that is new to a process costs as much as a pass over it.
    """
    if array_api_compat.is_torch_array(array):
        return array.exp_()
    if isinstance(array, np.ndarray):
        return np.exp(array, out=array)
    return array_api_compat.array_namespace(array).exp(array)


def inverse_of(array: Any) -> Any:
    """Return the reciprocals of an array that is not needed any more, in the same way."""
    if array_api_compat.is_torch_array(array):
        return array.reciprocal_()
    if isinstance(array, np.ndarray):
        return np.divide(1.0, array, out=array)
    return 1.0 / array


def column_potentials(scores: Scores, terms: Terms, f: Any, parts: Sequence[slice]) -> Any:
    r"""Return :math:`g_j = -\varepsilon \log \sum_i a_i e^{(f_i - M_{ij})/\varepsilon}`, (B, m).

    Where columns need not be kept, damped.
    """
    home = terms.home
    xp, (batch, _, _, m) = home.xp, scores.geometry.shape
    log_a = xp.where(terms.a > 0.0, terms.log(terms.a), xp.zeros_like(terms.a) - xp.inf)
    level, total = None, None
    nothing = xp.zeros((batch, m), dtype=home.dtype, device=home.device)
    lowest = nothing + 0.25 * float(xp.finfo(home.dtype).min)
    with quiet():
        for part in parts:
            check_deadline()
            block = scores.block(part, nothing)
            block += (f[:, part] / terms.eps - scores.offset(part) + log_a[:, part])[:, :, None]
            top = xp.max(block, axis=1)
            # A block of rows without weight has nothing to say.
            top = xp.maximum(top, lowest)
            if level is not None:
                top = xp.maximum(top, level)
            block -= top[:, None, :]
            part_total = xp.sum(exp_of(block), axis=1)
            if level is not None:
                part_total = part_total + total * xp.exp(level - top)
            level, total = top, part_total
        return terms.damped_cols(-terms.eps * (level + xp.log(total)))
