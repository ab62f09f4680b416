"""Points of a batch without weight: they stand where others do; their potentials after.

A point that carries nothing must not move anything: not the centre of the others, nor the scale of
a kernel, nor a bound on rounding. It therefore takes the place of the heaviest point of its side,
which keeps all shapes, and gets the potential of its true place when the others' are known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.arrays import quiet, to_numpy
from frot.costs.geometry import Geometry
from frot.solvers.sinkhorn.kernel import column_potentials, form_rows, row_blocks, scores_at
from frot.solvers.sinkhorn.terms import BatchTerms


def potentials_at(
    geometry: Geometry, terms: BatchTerms, alpha: Any, f: Any, g: Any
) -> tuple[Any, Any]:
    r"""Return f and g with those of points without weight at their true places.

    .. math::
        f_i = -\varepsilon \log \sum_j b_j e^{(g_j - M_{ij})/\varepsilon}, \qquad
        g_j = -\varepsilon \log \sum_i a_i e^{(f_i - M_{ij})/\varepsilon}

    are what these would have with the least weight there is: the derivatives of the optimum by
    their weights.

    Parameters
    ----------
    geometry : Geometry
        The costs between the true places.
    f, g : arrays of shape (B, n) and (B, m)
        Right for points with weight.
    """
    absent_rows = np.flatnonzero((to_numpy(terms.a) == 0.0).any(axis=0))
    absent_cols = np.flatnonzero((to_numpy(terms.b) == 0.0).any(axis=0))
    _, _, n, m = geometry.shape
    heavy = g
    if len(absent_cols):
        part = geometry.take(np.arange(n), absent_cols)
        with quiet():
            scores = scores_at(part, terms, alpha)
            found = column_potentials(scores, terms, f, row_blocks(part))
        g = _put(terms, g, terms.b, found, absent_cols, m)
    if len(absent_rows):
        part = geometry.take(absent_rows, np.arange(m))
        few = replace(terms, a=_take(terms, terms.a, absent_rows))
        found = _softmins(part, few, alpha, heavy)
        f = _put(terms, f, terms.a, found, absent_rows, n)
    return f, g


def _softmins(part: Geometry, terms: BatchTerms, alpha: Any, g: Any) -> Any:
    with quiet():
        blocks = form_rows(scores_at(part, terms, alpha), terms, g, row_blocks(part))
        return terms.home.xp.concat([block.f for block in blocks], axis=1)


def _take(terms: BatchTerms, array: Any, index: np.ndarray) -> Any:
    return terms.home.xp.take(array, terms.home.indices(index), axis=1)


def _put(
    terms: BatchTerms, old: Any, weights: Any, found: Any, index: np.ndarray, size: int
) -> Any:
    """Return `old` with what was found for some points where they have no weight."""
    xp = terms.home.xp
    found = xp.where(xp.isfinite(found), found, xp.zeros_like(found))
    spread = np.zeros(size, dtype=np.int64)
    spread[index] = np.arange(len(index))
    return xp.where(weights > 0.0, old, _take(terms, found, spread))
