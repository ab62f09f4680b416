"""What an evaluation found."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from frot._base.errors import InputError
from frot.correspondence._score import Estimate, Per, pck, pck_difference
from frot.correspondence.evaluation._kept import Record, open_store, read_records
from frot.correspondence.evaluation._summary import THRESHOLDS, result_table
from frot.correspondence.evaluation._table import ResultTable

__all__ = ["Evaluation", "read_evaluation"]


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
        self, threshold: float = 0.1, per: Per = "image", category: str | None = None
    ) -> Estimate:
        """Return the share of points within `threshold`, of all pairs or of a class.

        See `frot.correspondence.pck`.
        """
        self._needs("points")
        return pck([one.errors for one in self._of(category)], threshold, per)

    def mean(self, what: Literal["lt_acc", "iou"], category: str | None = None) -> Estimate:
        """Return the mean over pairs of a score of masks."""
        self._needs("masks")
        values = np.array([getattr(one, what) for one in self._of(category)], dtype=float)
        n = len(values)
        error = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
        return Estimate(float(values.mean()), error, n)

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
        thresholds: Sequence[float] = THRESHOLDS,
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


def read_evaluation(store: str | os.PathLike[str]) -> Evaluation:
    """Read what a store holds, be the run finished or not.

    Raises
    ------
    InputError
        If the file is not there, or is no store of an evaluation.
    """
    with open_store(store, None) as kept:
        about: dict[str, Any] = kept.about
        records = tuple(read_records(kept).values())
    return Evaluation(
        about["data set"],
        records,
        tuple(about["skipped"]),
        about["protocol"],
        about["score"],
        about["settings"],
        tuple(about["notes"]),
    )
