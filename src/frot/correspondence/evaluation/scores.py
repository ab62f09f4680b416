"""Scores of transferred points and masks: of a pair, and of all pairs of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from frot._base.contract import refuse_masked
from frot._base.errors import InputError
from frot._base.validate import check_choice
from frot.correspondence.evaluation._table import ResultTable, result_table

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
    refuse_masked(found, "found")
    refuse_masked(truth, "truth")
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
    return _averaged(hits, points, per)


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
    return _averaged(ours - theirs, points, per)


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
    refuse_masked(found, "found")
    refuse_masked(truth, "truth")
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
    refuse_masked(outline, "outline")
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
    refuse_masked(errors, "errors")
    try:
        arrays = [np.asarray(one, dtype=float) for one in errors]
    except (TypeError, ValueError):
        arrays = []
    if not arrays or any(one.ndim != 1 or not len(one) for one in arrays):
        raise InputError("errors: has to be one or more arrays of one or more errors each")
    # A point at the threshold is right; rounding of the distance must not make it wrong.
    limit = threshold * (1.0 + 1e-12)
    hits = np.array([np.count_nonzero(one <= limit) for one in arrays], dtype=float)
    return hits, np.array([len(one) for one in arrays], dtype=float)


def _averaged(hits: np.ndarray, points: np.ndarray, per: Per) -> Estimate:
    if per not in ("image", "point"):
        raise InputError(f"per={per!r} is not a way to average; give 'image' or 'point'")
    return mean_of(hits / points) if per == "image" else _ratio(hits, points)


def mean_of(values: np.ndarray) -> Estimate:
    """Return the mean over pairs, and its standard error."""
    return _ratio(values, np.ones(len(values)))


def _ratio(sums: np.ndarray, sizes: np.ndarray) -> Estimate:
    """Estimate sum(sums) / sum(sizes) and its error by linearisation."""
    n, total = len(sums), sizes.sum()
    value = sums.sum() / total
    spread = np.sqrt(n * ((sums - value * sizes) ** 2).sum() / (n - 1)) / total if n > 1 else np.nan
    return Estimate(float(value), float(spread), n)


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
    tags : dict
        What the data set says of the pair.
    image_share : float or None
        The object's size over the longer side of the target photograph.
    """

    id: str
    category: str
    failure: str | None = None
    errors: np.ndarray = field(default_factory=lambda: np.zeros(0))
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
    tags: dict[str, str] = field(default_factory=dict)
    image_share: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**own, "errors": self.errors.tolist(), "points": self.points.tolist()}

    @staticmethod
    def from_json(known: dict[str, Any]) -> Record:
        """Return the record that `as_json` wrote."""
        arrays = {
            "errors": np.array(known["errors"], dtype=float),
            "points": np.array(known["points"], dtype=float).reshape(-1, 2),
            "warnings": tuple(known["warnings"]),
        }
        return Record(**{**known, **arrays})


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Every pair of a data set with what a matcher made of it.

    Parameters
    ----------
    name : str
        The data set.
    records : tuple of Record
        One for each pair, in the order of the data set.
    skipped : tuple of str
        A sentence for each annotation that could not be used.
    protocol : str
        What counts as a hit.
    score : {"points", "masks"}
    settings : dict
        The matcher's, in words.
    notes : tuple of str
        What has to be said of the data set with every score.

    Examples
    --------
    >>> records = (Record("a-b", "cat", errors=np.array([0.02, 0.3])),)
    >>> Evaluation("made", records)
    Evaluation('made': 1 pairs, 0 failed, PCK at 0.1 per image 50.0)
    """

    name: str
    records: tuple[Record, ...]
    skipped: tuple[str, ...] = ()
    protocol: str = ""
    score: Literal["points", "masks"] = "points"
    settings: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        text = ""
        if self.done:
            if self.score == "points":
                text = f", PCK at 0.1 per image {100 * self.pck(0.1).value:.1f}"
            else:
                text = f", IoU {100 * self.mean('iou').value:.1f}"
        count, failed = len(self.records), len(self.failed)
        return f"Evaluation({self.name!r}: {count} pairs, {failed} failed{text})"

    @property
    def done(self) -> tuple[Record, ...]:
        """Pairs that were matched."""
        return tuple(record for record in self.records if record.failure is None)

    @property
    def failed(self) -> dict[str, str]:
        """Pairs that were not, with the reason; they are left out of every score."""
        return {one.id: one.failure for one in self.records if one.failure is not None}

    @property
    def warned(self) -> dict[str, tuple[str, ...]]:
        """Pairs of which there was a warning, with what was said."""
        return {one.id: one.warnings for one in self.records if one.warnings}

    @property
    def categories(self) -> tuple[str, ...]:
        """Classes, in the order of the data set."""
        return tuple(dict.fromkeys(record.category for record in self.records))

    @property
    def alpha(self) -> dict[str, float]:
        """Mean weight of every layer over the pairs, which says what was looked at."""
        names = dict.fromkeys(name for record in self.done for name in record.alpha)
        return {
            name: float(np.mean([record.alpha.get(name, 0.0) for record in self.done]))
            for name in names
        }

    @property
    def seconds(self) -> float:
        """Mean time for a pair."""
        return float(np.mean([record.seconds for record in self.done])) if self.done else np.nan

    def pck(
        self,
        threshold: float = 0.1,
        per: Per = "image",
        category: str | None = None,
        of: Literal["object", "image"] = "object",
    ) -> Estimate:
        """Return the share of points within `threshold`, of all pairs or of a class.

        The threshold is a share of the object's size, or of the longer side of the target
        photograph (the literature's alpha_img). See `frot.correspondence.pck`.
        """
        self._needs("points")
        check_choice(of, "of", ("object", "image"))
        found = self._of(category)
        if of == "object":
            return pck([one.errors for one in found], threshold, per)
        shares = [one.image_share for one in found]
        if None in shares:
            raise InputError("of: this store has no sizes of photographs; evaluate anew")
        both = zip(found, shares, strict=True)
        return pck([one.errors * share for one, share in both if share], threshold, per)

    @property
    def tags(self) -> dict[str, tuple[str, ...]]:
        """Tags of the pairs that were matched, with their values in order."""
        found: dict[str, set[str]] = {}
        for record in self.done:
            for name, value in record.tags.items():
                found.setdefault(name, set()).add(value)
        return {name: tuple(sorted(values)) for name, values in found.items()}

    def mean(self, what: Literal["lt_acc", "iou"], category: str | None = None) -> Estimate:
        """Return the mean over pairs of a score of masks."""
        self._needs("masks")
        return mean_of(np.array([getattr(one, what) for one in self._of(category)], dtype=float))

    def difference(self, other: Evaluation, threshold: float = 0.1, per: Per = "image") -> Estimate:
        """Return our PCK less that of another, on the pairs that both matched."""
        self._needs("points")
        theirs = {record.id: record.errors for record in other.done}
        common = [record for record in self.done if record.id in theirs]
        if not common:
            raise InputError("other: has no pair in common with this evaluation")
        ours = [record.errors for record in common]
        return pck_difference(ours, [theirs[record.id] for record in common], threshold, per)

    def only(self, keep: Callable[[Record], bool]) -> Evaluation:
        """Return the evaluation of some of the pairs."""
        records = tuple(record for record in self.records if keep(record))
        return replace(self, records=records)

    def table(
        self,
        thresholds: Sequence[float] = (0.05, 0.1, 0.15),
        *,
        label: str | None = None,
        others: bool = True,
        every: bool = False,
    ) -> ResultTable:
        """Return the per-class table, with what others report beside it.

        Parameters
        ----------
        thresholds : sequence of float
            At which points are scored, per image and per point.
        label : str, optional
            What to call the method; by default what its settings call it.
        others, every : bool
            As for `result_table`.
        """
        name = label or self.settings.get("method", "ours")
        return result_table({name: self}, thresholds, others=others, every=every)

    def _of(self, category: str | None) -> list[Record]:
        found = [one for one in self.done if category is None or one.category == category]
        if not found:
            what = "pair" if category is None else f"pair of class {category!r}"
            raise InputError(f"category: no {what} of {self.name} was matched")
        return found

    def _needs(self, score: str) -> None:
        if self.score != score:
            raise InputError(f"{self.name} is scored by {self.score}, not by {score}")
