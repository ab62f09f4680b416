"""What is kept of a pair."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

__all__ = ["Record"]

NOTHING = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Record:
    """One pair of an evaluation, matched or failed.

    Parameters
    ----------
    id, category : str
        Of the pair.
    failure : str or None
        Why it could not be matched.
    errors : array of shape (k,)
        Distances to the truth in units of the object's size, so that every threshold can be scored
        later; empty where masks are scored.
    points : array of shape (k, 2)
        Where the source's points went, in pixels of the target.
    alpha : dict
        Weights of the layers by name.
    seconds : float
        For matching and transfer.
    status : str or None
        How the solver ended; None for methods without one.
    value, lower, upper : float or None
        The optimal value and the interval it is proven to lie in.
    lt_acc, iou : float or None
        Of the transferred mask, where masks are scored.
    warnings : tuple of str
    """

    id: str
    category: str
    failure: str | None = None
    errors: np.ndarray = field(default_factory=lambda: NOTHING)
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    alpha: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    status: str | None = None
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    lt_acc: float | None = None
    iou: float | None = None
    warnings: tuple[str, ...] = ()
