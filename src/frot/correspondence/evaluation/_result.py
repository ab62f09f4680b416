"""What an evaluation found: a record for every pair, kept in a store, and scores of all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

import numpy as np

from frot._base.errors import InputError
from frot._base.files import check_path
from frot._base.fingerprint import fingerprint
from frot._base.store import Store
from frot._base.validate import check_choice
from frot.correspondence._score import Estimate, Per, mean_of, pck, pck_difference
from frot.correspondence.datasets import PairSet
from frot.correspondence.evaluation._table import THRESHOLDS, ResultTable, result_table

__all__ = [
    "Evaluation",
    "Record",
    "describe",
    "evaluation_of",
    "open_store",
    "read_evaluation",
    "read_records",
]

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
    tags : dict
        What the data set says of the pair.
    image_share : float or None
        The object's size over the longer side of the target photograph.
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


def describe(pairs: PairSet, matcher: Any) -> dict[str, Any]:
    """Return data set, matcher and rules, as JSON can hold them."""
    from importlib.metadata import version

    known = getattr(matcher, "fingerprint", None)
    return {
        "data set": pairs.name,
        "pairs": pairs.fingerprint,
        "matcher": known if isinstance(known, str) else fingerprint(matcher=matcher),
        "settings": _settings(matcher),
        "protocol": pairs.protocol,
        "score": pairs.score,
        "skipped": list(pairs.skipped),
        "notes": list(pairs.notes),
        "version": version("frot"),
    }


def _settings(matcher: Any) -> dict[str, str]:
    """What a matcher says of itself, in words, for tables and for messages."""
    named = getattr(matcher, "settings", matcher)
    if is_dataclass(named):
        named = {one.name: getattr(named, one.name) for one in fields(named)}
    if not isinstance(named, Mapping):
        named = {"matcher": getattr(matcher, "__qualname__", type(matcher).__qualname__)}
    if (backbone := getattr(matcher, "backbone", None)) is not None:
        layers = getattr(backbone, "layers", ())
        known = {"backbone": getattr(backbone, "name", backbone), "layers": len(layers)}
        named = {**named, **known}
    return {str(name): str(value) for name, value in named.items()}


def open_store(
    path: str | os.PathLike[str] | None, about: Mapping[str, Any] | None, resume: bool = False
) -> Store:
    """Open the store of an evaluation; `about` is what it is for, None to read what there is.

    Raises
    ------
    InputError
        If the file is there and `resume` is false, or is of other work; the message says which.
    """
    if not resume and about is not None and path is not None:
        # An empty file is what a process leaves that is killed before its first write.
        there = check_path(path, "store").expanduser()
        if there.is_file() and there.stat().st_size:
            raise InputError(
                f"store: {there} is there already; pass resume=True to go on from it, or another "
                "path"
            )
    store = Store(path, "an evaluation", about)
    try:
        _check_same(store, about)
    except InputError:
        store.close()
        raise
    return store


def read_records(store: Store) -> dict[str, Record]:
    """Every pair that is kept, by id and in the order of ids."""
    return {key: Record.from_json(known) for key, known in sorted(store.finished().items())}


def _check_same(store: Store, about: Mapping[str, Any] | None) -> None:
    """Refuse to go on with other work, and say what is other about it."""
    if about is None:
        return
    was = store.about
    if was["data set"] != about["data set"]:
        difference = f"is of {was['data set']}, not of {about['data set']}"
    elif was["pairs"] != about["pairs"]:
        difference = f"is of other pairs, points or photographs of {about['data set']}"
    elif was["matcher"] != about["matcher"]:
        names = dict.fromkeys([*was["settings"], *about["settings"]])
        changed = [
            f"{name} was {was['settings'].get(name)} and is {about['settings'].get(name)}"
            for name in names
            if was["settings"].get(name) != about["settings"].get(name)
        ]
        what = "; ".join(changed) or "its fingerprint has changed"
        difference = f"was begun with another matcher: {what}"
    elif was["version"] != about["version"]:
        # Another version may match otherwise: its pairs do not belong into the same table.
        difference = f"was begun with frot {was['version']}, and this is {about['version']}"
    else:
        return
    raise InputError(f"store: {store.path} {difference}; give another path")


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
        If the file is not there, or is not a store of an evaluation.
    """
    with open_store(store, None) as kept:
        return evaluation_of(kept.about, tuple(read_records(kept).values()))


def evaluation_of(about: Mapping[str, Any], records: tuple[Record, ...]) -> Evaluation:
    """Return the evaluation of what `describe` said it is of."""
    return Evaluation(
        about["data set"],
        records,
        tuple(about["skipped"]),
        about["protocol"],
        about["score"],
        about["settings"],
        tuple(about["notes"]),
    )
