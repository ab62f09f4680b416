"""Pairs of photographs with points that belong together, under one name and one rule of scoring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from frot._base.errors import InputError
from frot._base.fingerprint import fingerprint
from frot._base.names import quote_some

__all__ = ["Pair", "PairSet"]


@dataclass(frozen=True, eq=False)
class Pair:
    """One pair of a data set.

    Parameters
    ----------
    id : str
        A name that is unique in the data set.
    source, target : Path
        The photographs.
    source_points, target_points : arrays of shape (k, 2)
        Points that belong together: x and y in pixels of the photographs as they are on disk,
        counted from zero.
    category : str
        Class of the object.
    length : float
        What a share is taken of in the score: the size of the object in the target, in pixels.
    source_mask, target_mask : arrays of shape (h, w), optional
        Where the object is, where that is what is scored.
    tags : dict
        What else the data set says of the pair: kinds of variation, difficulty.
    """

    id: str
    source: Path
    target: Path
    source_points: np.ndarray
    target_points: np.ndarray
    category: str
    length: float
    source_mask: np.ndarray | None = None
    target_mask: np.ndarray | None = None
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PairSet:
    """The pairs of a data set.

    Parameters
    ----------
    name : str
        The data set, with the split where it has some.
    pairs : tuple of Pair
        In the order of the data set.
    skipped : tuple of str
        One sentence for each annotation that could not be used.
    protocol : str
        What counts as a hit, in words.
    score : {"points", "masks"}
        Whether points are compared with points, or the outline of the object, transferred and
        filled, with the object in the target.
    notes : tuple of str
        Notes on every score, such as that a class is missing.

    Examples
    --------
    >>> PairSet("none", ())
    PairSet('none': 0 pairs of 0 classes, 0 skipped)
    """

    name: str
    pairs: tuple[Pair, ...]
    skipped: tuple[str, ...] = ()
    protocol: str = ""
    score: Literal["points", "masks"] = "points"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        twice = [id for id, count in Counter(pair.id for pair in self.pairs).items() if count > 1]
        if twice:
            raise InputError(f"pairs: {quote_some(twice)} occur more than once; ids are unique")

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def __repr__(self) -> str:
        return (
            f"PairSet({self.name!r}: {len(self)} pairs of {len(self.categories)} classes, "
            f"{len(self.skipped)} skipped)"
        )

    @property
    def categories(self) -> tuple[str, ...]:
        """Classes, in the order in which they first occur."""
        return tuple(dict.fromkeys(pair.category for pair in self.pairs))

    @property
    def counts(self) -> dict[str, int]:
        """Pairs of each class."""
        return dict(Counter(pair.category for pair in self.pairs))

    @property
    def fingerprint(self) -> str:
        """A hash of the pairs, their points and the sizes of the photographs' files."""
        photos = dict.fromkeys(path for pair in self.pairs for path in (pair.source, pair.target))
        return fingerprint(
            kind="pairs 1",
            pairs=[
                (p.id, p.category, p.source_points, p.target_points, float(p.length))
                for p in self.pairs
            ],
            # Not where they lie: a set that was moved is the same set.
            photos=[(path.name, path.stat().st_size) for path in photos],
            score=self.score,
        )

    def only(self, categories: str | Iterable[str]) -> PairSet:
        """Return the pairs of some classes.

        Raises
        ------
        InputError
            If there is no such class.
        """
        wanted = [categories] if isinstance(categories, str) else list(categories)
        if unknown := [name for name in wanted if name not in self.categories]:
            known = quote_some(self.categories, limit=30)
            raise InputError(f"categories: no {quote_some(unknown)} in {self.name}; it has {known}")
        return replace(self, pairs=tuple(p for p in self.pairs if p.category in wanted))

    def first(self, limit: int | None) -> PairSet:
        """Return `limit` pairs spread evenly over the set, or all of them for None.

        Pairs come class by class, so that a few should be spread over all classes.
        """
        if limit is None or limit >= len(self):
            return self
        if limit < 1:
            raise InputError(f"limit={limit} leaves no pair; give 1 or more")
        chosen = [i * len(self) // limit for i in range(limit)]
        return replace(self, pairs=tuple(self.pairs[i] for i in chosen))
