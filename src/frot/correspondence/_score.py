"""How good transferred points and masks are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from frot._base.errors import InputError

__all__ = [
    "Estimate",
    "MaskScore",
    "mask_score",
    "mean_of",
    "outline_mask",
    "pck",
    "pck_difference",
    "point_errors",
]

Per = Literal["image", "point"]


@dataclass(frozen=True)
class Estimate:
    """A share or a difference of shares, and its standard error.

    Parameters
    ----------
    value : float
        The estimate.
    standard_error : float
        From the spread between pairs, which are taken as independent; NaN for a single one.
    count : int
        Pairs it is made of.

    Examples
    --------
    >>> print(Estimate(0.5712, 0.0123, 900))
    57.1 ± 1.2
    """

    value: float
    standard_error: float
    count: int

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} ± {100 * self.standard_error:.1f}"


def point_errors(found: Any, truth: Any, length: float) -> np.ndarray:
    r"""Return how far points are from where they belong, in units of the object's size.

    .. math:: e_k = \|\hat q_k - q_k\|_2 / \ell

    In pixels of the photograph as it is on disk; since photographs are resized by one ratio for
    both sides, comparing with :math:`t \ell r` in resized pixels is the same. A point that is not
    finite is infinitely far off.

    Parameters
    ----------
    found, truth : arrays of shape (k, 2)
    length : float

    Returns
    -------
    array of shape (k,)

    Examples
    --------
    >>> point_errors([[3.0, 4.0]], [[0.0, 0.0]], 50.0)
    array([0.1])
    """
    found, truth = np.asarray(found, dtype=float), np.asarray(truth, dtype=float)
    if found.shape != truth.shape:
        raise InputError(
            f"found: has shape {found.shape} and truth {truth.shape}; there is one for one"
        )
    distances = np.linalg.norm(found - truth, axis=1) / length
    return np.where(np.isfinite(distances), distances, np.inf)


def pck(errors: Sequence[Any], threshold: float = 0.1, per: Per = "image") -> Estimate:
    r"""Return the percentage of correct keypoints, as a share.

    .. math::
        \mathrm{PCK}_\mathrm{image} = \frac1N \sum_i \frac1{K_i} \sum_k [e_{ik} \le t],
        \qquad
        \mathrm{PCK}_\mathrm{point} = \frac{\sum_i \sum_k [e_{ik} \le t]}{\sum_i K_i}

    The first is what the paper and its predecessors report, the second what most have since 2023.

    Parameters
    ----------
    errors : sequence of N arrays of shapes (K_i,)
        As from `point_errors`.
    threshold : float
    per : {"image", "point"}

    Returns
    -------
    Estimate
        The standard error of the second is that of a ratio of sums over pairs: points of one pair
        are not independent.

    Examples
    --------
    >>> errors = [[0.05, 0.2], [0.0, 0.1, 0.1, 0.1]]
    >>> pck(errors).value, round(pck(errors, per="point").value, 3)
    (0.75, 0.833)
    """
    hits, points = _hits(errors, threshold)
    return mean_of(hits / points) if _image(per) else _ratio(hits, points)


def pck_difference(
    first: Sequence[Any], second: Sequence[Any], threshold: float = 0.1, per: Per = "image"
) -> Estimate:
    """Return the PCK of the first less that of the second, on the same pairs in the same order.

    What makes a pair easy is common to both, so the standard error is that of the differences.

    Examples
    --------
    >>> pck_difference([[0.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 1.0]])
    Estimate(value=0.5, standard_error=0.0, count=2)
    """
    ours, points = _hits(first, threshold)
    theirs, others = _hits(second, threshold)
    if not np.array_equal(points, others):
        raise InputError("second: is of other pairs than first; give the same in the same order")
    more = ours - theirs
    return mean_of(more / points) if _image(per) else _ratio(more, points)


class MaskScore(NamedTuple):
    """How well a mask was transferred."""

    lt_acc: float
    iou: float


def mask_score(found: Any, truth: Any) -> MaskScore:
    r"""Return label transfer accuracy and intersection over union of two masks.

    .. math::
        \mathrm{LT\text{-}ACC} = \frac{|\{p : \hat M_p = M_p\}|}{hw}, \qquad
        \mathrm{IoU} = \frac{|\hat M \cap M|}{|\hat M \cup M|}

    Examples
    --------
    >>> mask_score([[True, True, False, False]], [[False, True, False, False]])
    MaskScore(lt_acc=0.75, iou=0.5)
    """
    found, truth = np.asarray(found, dtype=bool), np.asarray(truth, dtype=bool)
    if found.shape != truth.shape:
        raise InputError(f"found: has shape {found.shape} and truth {truth.shape}; make them one")
    union = np.count_nonzero(found | truth)
    iou = np.count_nonzero(found & truth) / union if union else 1.0
    return MaskScore(float(np.mean(found == truth)), float(iou))


def outline_mask(outline: Any, h: int, w: int) -> np.ndarray:
    """Return which pixels, (h, w), have their centres inside a closed outline: even-odd rule.

    The outline is x and y of its corners, (k, 2), pixel (0, 0) having its centre at (0, 0).

    Examples
    --------
    >>> outline_mask([[-0.5, -0.5], [1.5, -0.5], [1.5, 0.5], [-0.5, 0.5]], 2, 3).astype(int)
    array([[1, 1, 0],
           [0, 0, 0]])
    """
    corners = np.asarray(outline, dtype=float)
    if corners.ndim != 2 or corners.shape[1] != 2 or not np.isfinite(corners).all():
        raise InputError("outline: has to be finite pairs of x and y")
    inside = np.zeros((h, w), dtype=bool)
    x, y = np.arange(w), np.arange(h)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        crossed = np.flatnonzero((y0 <= y) != (y1 <= y))
        if len(crossed):
            at = x0 + (y[crossed] - y0) * ((x1 - x0) / (y1 - y0))
            inside[crossed] ^= x < at[:, None]
    return inside


def _hits(errors: Sequence[Any], threshold: float) -> tuple[np.ndarray, np.ndarray]:
    arrays = [np.asarray(one, dtype=float) for one in errors]
    if not arrays or any(one.ndim != 1 or not len(one) for one in arrays):
        raise InputError("errors: has to be one or more arrays of one or more errors each")
    # A point at the threshold is right; rounding of the distance must not make it wrong.
    limit = threshold * (1.0 + 1e-12)
    hits = np.array([np.count_nonzero(one <= limit) for one in arrays], dtype=float)
    return hits, np.array([len(one) for one in arrays], dtype=float)


def _image(per: Per) -> bool:
    if per not in ("image", "point"):
        raise InputError(f"per={per!r} is not a way to average; give 'image' or 'point'")
    return per == "image"


def mean_of(values: np.ndarray) -> Estimate:
    """Return the mean over pairs, and its standard error."""
    return _ratio(values, np.ones(len(values)))


def _ratio(sums: np.ndarray, sizes: np.ndarray) -> Estimate:
    """Estimate sum(sums) / sum(sizes) and its error by linearisation."""
    n, total = len(sums), sizes.sum()
    value = sums.sum() / total
    spread = np.sqrt(n * ((sums - value * sizes) ** 2).sum() / (n - 1)) / total if n > 1 else np.nan
    return Estimate(float(value), float(spread), n)
