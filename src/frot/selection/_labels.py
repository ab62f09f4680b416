"""Classes, and maybe blocks, of samples in a file of their own, matched by the samples' names."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from frot._base.errors import DataWarning, InputError, brief, warn_caller
from frot._base.names import did_you_mean, first_repeated, quote_some
from frot._base.text import kind_of, read_text
from frot.selection._frames import read_frame


def absent(path: Path, option: str, name: str, present: Sequence[str]) -> str:
    """Return the sentence for a column that is not there."""
    # Labels are more often the first or the last column than one of thousands of genes.
    some = list(present) if len(present) <= 8 else [*present[:4], *present[-4:]]
    more = "" if len(some) == len(present) else f" and {len(present) - len(some)} more"
    listed = ", ".join(map(brief, some)) + more if some else "none that could serve"
    hint = did_you_mean(name, present)
    return f"{option}: {path} has no column {brief(name)}; it has {listed}{hint}"


def classes_of(text: str) -> np.ndarray:
    r"""Return the class of each sample from a .cls file.

    Three lines: counts, names of classes, and the class of each sample in order, by its name or by
    a number; as in GSEA the number that comes first stands for the first name.

    Examples
    --------
    >>> classes_of("3 2 1\n# sick well\n1 0 1").tolist()
    ['sick', 'well', 'sick']
    """
    lines = [*text.splitlines(), "", ""]
    names = [name for name in lines[1].split() if name != "#"]
    labels = lines[2].split()
    order = list(dict.fromkeys(labels))
    if len(order) == len(names) and not set(order) <= set(names):
        labels = [names[order.index(label)] for label in labels]
    return np.array(labels, dtype=object)


@dataclass(frozen=True)
class Labels:
    """A file of classes: the `columns` of its table as text, or one class per sample in order."""

    path: Path
    label: str
    columns: dict[str, np.ndarray]

    @classmethod
    def read(cls, path: Path, label: str) -> Labels:
        """Read a text, .xlsx or .cls file."""
        if kind_of(path) == ".cls":
            return cls(path, label, {label: classes_of(read_text(path))})
        frame = read_frame(path, as_text=None)
        names = list(map(str, frame.columns))
        if (twice := first_repeated([name for name in names if name])) is not None:
            raise InputError(f"{path} has two columns named {brief(twice)}; rename one")
        if label not in names:
            raise InputError(absent(path, "label", label, names))
        return cls(path, label, {name: frame[name].to_numpy(object) for name in names})

    def rows_of(self, ids: np.ndarray | None, path: Path, count: int, rotated: Collection[str]):
        """Return, for each of `count` samples of a table, its row here, or -1 without a label.

        `ids` are the names of the samples, and `rotated` those that it would have transposed.
        """
        y = self.columns[self.label]
        if kind_of(self.path) == ".cls":
            if len(y) != count:
                raise InputError(
                    f"labels: {self.path} has {len(y)} classes for the {count} samples of {path}; "
                    "it needs one for each, in order"
                )
            return np.arange(count)
        if ids is None:
            raise InputError(
                f"labels: the samples in {path} have no names to match those in {self.path}; name "
                "the column that has them, ids="
            )
        matches = self._matched(ids.tolist())
        if not matches:
            names = next(iter(self.columns.values())).tolist()
            reason = f"({quote_some(ids.tolist(), 3)}) is named in {self.path} "
            reason += f"({quote_some(names, 3)})"
            if self._matched(set(rotated)):
                reason += "; give transpose=True"
            elif (twice := first_repeated(ids.tolist())) is not None:
                reason += f", and several are named {brief(twice)}; rename them"
            raise InputError(f"labels: no sample of {path} {reason}")
        several = [name for name, rows in matches.items() if len(rows) > 1]
        if several:
            raise InputError(
                f"labels: {self.path} has several rows of {quote_some(several)}; keep one"
            )
        rows = np.array([matches.get(name, [-1])[0] for name in ids.tolist()])
        rows[(rows >= 0) & pd.isna(y[rows])] = -1
        self._report(path, ids, rows, {each[0] for each in matches.values()})
        if (rows < 0).all():
            raise InputError(f"labels: {self.path} has no {brief(self.label)} for any sample")
        return rows

    def _matched(self, ids: Collection[str]) -> dict[str, list[int]]:
        """Return the rows of each sample, by the column that names most of them."""
        for write in (str, _as_r_writes):
            wanted = {write(name): name for name in ids}
            if len(wanted) < len(ids):
                continue
            matches: list[dict[str, list[int]]] = [{}]
            for column in self.columns.values():
                rows: dict[str, list[int]] = {}
                for row, name in enumerate(map(write, map(str, column.tolist()))):
                    if name in wanted:
                        rows.setdefault(wanted[name], []).append(row)
                matches.append(rows)
            best = max(matches, key=lambda rows: (len(rows), -sum(map(len, rows.values()))))
            if best:
                return best
        return {}

    def _report(self, path: Path, ids: np.ndarray, rows: np.ndarray, matched: set[int]) -> None:
        """Say which samples are in one of the files only."""
        count = len(self.columns[self.label])
        without, parts = ids[rows < 0].tolist(), []
        if without:
            parts.append(
                f"{len(without)} of {len(ids)} samples of {path} have no {brief(self.label)} there "
                f"({quote_some(without)})"
            )
        if extra := count - len(matched):
            named = next(iter(self.columns.values()))
            spare = [str(named[row]) for row in range(count) if row not in matched]
            parts.append(f"{extra} of its rows are of no sample in the table ({quote_some(spare)})")
        if parts:
            text = f"labels {self.path}: {', and '.join(parts)}; left out"
            warn_caller(text, category=DataWarning)


def _as_r_writes(name: str) -> str:
    """Return a name as R makes it a name of a column: points for signs, X before digits."""
    return re.sub(r"^x(?=\d)", "", re.sub(r"[^0-9a-z]+", ".", name.strip().lower()))
