"""A network of eleven regulators that commits cells to one of four myeloid fates."""

from __future__ import annotations

import numpy as np

__all__ = ["FATES", "REGULATORS", "commit", "rules"]

REGULATORS = (
    "GATA2", "GATA1", "FOG1", "EKLF", "FLI1", "SCL", "CEBPA", "PU1", "CJUN", "EGRNAB", "GFI1",
)  # fmt: skip
FATES = ("erythrocyte", "megakaryocyte", "monocyte", "granulocyte")
# Each fate and the regulator that tells it from its sister.
MARKERS = ("EKLF", "FLI1", "EGRNAB", "GFI1")
# Progenitors have these at random levels: the antagonists of the decisions, none of them won yet.
PRIMED = ("GATA2", "CEBPA", "PU1", "CJUN", "EGRNAB")
STEP, STEPS, NOISE = 0.1, 100, 0.1
# The step at which progress is 1; the fate is read off at the last one.
MATURE = 80
# Of the Hill function that makes a level a degree of truth.
HILL, HALF = 4, 0.5


def rules(levels: np.ndarray) -> np.ndarray:
    """Return what the Boolean rules of Krumsiek et al. (2011, table 1) ask of each regulator.

    Degrees of truth of `levels` are combined with product and probabilistic sum, which are the
    Boolean operations at 0 and 1.

    Parameters
    ----------
    levels : array of shape (N, 11)
        In the order of `REGULATORS`.

    Returns
    -------
    array of shape (N, 11), from 0 to 1

    Examples
    --------
    An erythrocyte stays what it is:

    >>> on = [name in {"GATA1", "FOG1", "EKLF", "SCL"} for name in REGULATORS]
    >>> levels = np.array([on], dtype=float)
    >>> bool((rules(levels) == levels).all())
    True
    """
    powers = np.clip(levels, 0.0, 1.0) ** HILL
    truth = powers / (powers + HALF**HILL) * (1 + HALF**HILL)
    gata2, gata1, fog1, eklf, fli1, scl, cebpa, pu1, cjun, egrnab, gfi1 = truth.T

    def either(*inputs: np.ndarray) -> np.ndarray:
        return 1 - np.prod([1 - value for value in inputs], axis=0)

    return np.stack(
        [
            gata2 * (1 - gata1 * fog1) * (1 - pu1),
            either(gata1, gata2, fli1) * (1 - pu1),
            gata1,
            gata1 * (1 - fli1),
            gata1 * (1 - eklf),
            gata1 * (1 - pu1),
            cebpa * (1 - gata1 * fog1 * scl),
            either(cebpa, pu1) * (1 - gata1) * (1 - gata2),
            pu1 * (1 - gfi1),
            pu1 * cjun * (1 - gfi1),
            cebpa * (1 - egrnab),
        ],
        axis=1,
    )


def commit(
    fate: np.ndarray, progress: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, tuple[str, ...]]:
    r"""Return states of cells on the way to their fates, shape (N, 11), and the fates' names.

    Progenitors follow :math:`dx = (B(x) - x)\,dt + \sigma\,dW` within [0, 1], with B of `rules`.
    Each cell is one path, which ends at its fate, stopped at its progress.

    Parameters
    ----------
    fate : array of int, shape (N,)
        Of each cell, in the order of `FATES`.
    progress : array of shape (N,)
        From 0, a progenitor, to 1, mature.
    rng : numpy.random.Generator
    """
    states = np.zeros((len(fate), len(REGULATORS)))
    waiting = np.arange(len(fate))
    markers = [REGULATORS.index(name) for name in MARKERS]
    while len(waiting):
        # A fifth or more of the paths end at each fate, and some at none.
        paths = _paths(4 * len(fate), rng)
        ends = paths[-1][:, markers]
        reached = np.where(ends.max(axis=1) > 0.5, ends.argmax(axis=1), -1)
        left = []
        for kind in range(len(FATES)):
            cells, found = waiting[fate[waiting] == kind], np.flatnonzero(reached == kind)
            served, left_over = cells[: len(found)], cells[len(found) :]
            steps = np.rint(progress[served] * MATURE).astype(int)
            states[served] = paths[steps, found[: len(served)]]
            left.append(left_over)
        waiting = np.concatenate(left)
    return states, FATES


def _paths(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return levels from the progenitor on, shape (STEPS + 1, count, 11)."""
    levels = np.zeros((STEPS + 1, count, len(REGULATORS)))
    for name in PRIMED:
        levels[0, :, REGULATORS.index(name)] = rng.random(count)
    for step in range(STEPS):
        now = levels[step]
        kick = NOISE * np.sqrt(STEP) * rng.standard_normal(now.shape)
        levels[step + 1] = np.clip(now + STEP * (rules(now) - now) + kick, 0.0, 1.0)
    return levels
