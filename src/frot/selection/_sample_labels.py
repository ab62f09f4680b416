"""Classes of samples in a file of their own, matched to a table by the names of the samples."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from frot._base.cells import SHEETS, TEXT, kind_of, read_text
from frot._base.errors import InputError, brief
from frot._base.names import first_repeated, quote_some
from frot.selection._sample_checks import mention
from frot.selection._sample_files import Found, absent, check_file, is_unlabelled, text_columns

__all__ = ["Labels"]


def _classes(lines: list[str]) -> np.ndarray:
    """Return the class of each sample from the lines of a .cls file.

    Three lines: counts, names of classes, and the class of each sample in order, by its name or by
    a number; as in GSEA the number that comes first stands for the first name.

    Examples
    --------
    >>> _classes(["3 2 1", "# sick well", "1 0 1"]).tolist()
    ['sick', 'well', 'sick']
    """
    names, found = (lines[at].split() if len(lines) > at else [] for at in (1, 2))
    names = [name for name in names if name != "#"]
    order = list(dict.fromkeys(found))
    if len(order) == len(names) and not set(order) <= set(names):
        found = [names[order.index(one)] for one in found]
    return np.array(found, dtype=str)


@dataclass(frozen=True)
class Labels:
    """Classes, and maybe blocks, of samples by name.

    Attributes
    ----------
    path : pathlib.Path
    label : str
        The column of classes.
    columns : dict
        All columns of the file, as text.
    block : str or None
        The column of blocks, if this file has it.
    """

    path: Path
    label: str
    columns: dict[str, np.ndarray]
    block: str | None

    @classmethod
    def read(cls, path: Path, label: str, block: str | None) -> Labels:
        """Read a text, .xlsx or .cls file."""
        check_file(path, (*TEXT, *SHEETS, ".cls"))
        if kind_of(path) == ".cls":
            return cls(path, label, {label: _classes(read_text(path).splitlines())}, None)
        columns = text_columns(path)
        if label not in columns:
            raise InputError(absent(path, "label", label, list(columns)))
        return cls(path, label, columns, block if block in columns else None)

    def join(self, found: Found, path: Path) -> Found:
        """Keep the samples that have a label, in the order of the table, and give it to them."""
        if kind_of(self.path) == ".cls":
            y = self.columns[self.label]
            if len(y) != found.X.shape[0]:
                raise InputError(
                    f"labels: {self.path} has {len(y)} classes for the {found.X.shape[0]} samples "
                    f"of {path}; it needs one for each, in order"
                )
            found.special["label"] = y
            return found
        ids = found.ids
        if ids is None:
            raise InputError(
                f"labels: the samples in {path} have no names to match those in {self.path}; name "
                "the column that has them, ids="
            )
        found_in = self._places(ids.tolist())
        if not found_in:
            twice = first_repeated(ids.tolist())
            names = next(iter(self.columns.values())).tolist()
            shown = quote_some(ids.tolist(), 3), quote_some(names, 3)
            reason = f"({shown[0]}) is named in {self.path} ({shown[1]})"
            if self._places(set(found.present)):
                reason += "; give transpose=True"
            elif twice is not None:
                reason += f", and several are named {brief(twice)}; rename them"
            raise InputError(f"labels: no sample of {path} {reason}")
        several = [name for name, places in found_in.items() if len(places) > 1]
        if several:
            raise InputError(
                f"labels: {self.path} has several rows of {quote_some(several)}; keep one"
            )
        where = {name: places[0] for name, places in found_in.items()}
        y = self.columns[self.label]
        labelled = {name for name, place in where.items() if not is_unlabelled(y[place])}
        rows = [row for row, name in enumerate(ids) if name in labelled]
        places = [where[name] for name in ids[rows]]
        self._say_who_is_unlabelled(path, ids, rows, set(where.values()), len(y))
        if not rows:
            raise InputError(f"labels: {self.path} has no {brief(self.label)} for any sample")
        if len(rows) < len(ids):
            found.X, found.ids = found.X[rows], ids[rows]
            found.special = {what: column[rows] for what, column in found.special.items()}
        found.special["label"] = y[places]
        if self.block is not None:
            found.special["block"] = self.columns[self.block][places]
        return found

    def _places(self, ids: Collection[str]) -> dict[str, list[int]]:
        """Return the rows of each sample, by the column that names most of them."""
        for write in (str, _as_r_writes):
            wanted = {write(name): name for name in ids}
            if len(wanted) < len(ids):
                continue
            found: list[dict[str, list[int]]] = [{}]
            for column in self.columns.values():
                places: dict[str, list[int]] = {}
                for row, name in enumerate(map(write, column.tolist())):
                    if name in wanted:
                        places.setdefault(wanted[name], []).append(row)
                found.append(places)
            best = max(found, key=lambda places: (len(places), -sum(map(len, places.values()))))
            if best:
                return best
        return {}

    def _say_who_is_unlabelled(
        self, path: Path, ids: np.ndarray, rows: list[int], matched: set[int], count: int
    ) -> None:
        labelled = set(rows)
        without = [str(name) for row, name in enumerate(ids) if row not in labelled]
        extra = count - len(matched)
        parts = []
        if without:
            parts.append(
                f"{len(without)} of {len(ids)} samples of {path} have no {brief(self.label)} there "
                f"({quote_some(without)})"
            )
        if extra:
            named = next(iter(self.columns.values()))
            spare = [str(named[row]) for row in range(count) if row not in matched]
            parts.append(f"{extra} of its rows are of no sample in the table ({quote_some(spare)})")
        if parts:
            mention(f"labels {self.path}: {', and '.join(parts)}; left out")


def _as_r_writes(name: str) -> str:
    """Return a name as R makes it a name of a column: points for signs, X before digits."""
    return re.sub(r"^x(?=\d)", "", re.sub(r"[^0-9a-z]+", ".", name.strip().lower()))
