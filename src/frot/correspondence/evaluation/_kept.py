"""What an evaluation keeps of a pair, and what its store was begun for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot._base.files import check_path
from frot._base.fingerprint import fingerprint
from frot._base.store import Store
from frot.correspondence.datasets import PairSet

__all__ = ["Record", "describe", "open_store", "read_records"]

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

    def as_json(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
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
