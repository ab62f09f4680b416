"""Readers of labelled samples, one for each kind of file, and of files of classes (`Labels`)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import DataWarning, InputError, brief, require, warn_caller
from frot._base.names import first_repeated, quote_some
from frot._base.tables import (
    SHEETS,
    TEXT,
    is_number,
    kind_of,
    read_frame,
    read_rows,
    read_table,
    read_text,
)

KNOWN = (*TEXT, *SHEETS, ".npz", ".parquet", ".h5ad")
# Cells that stand for a missing value.
MISSING = frozenset({"", "na", "nan", "null", "none", "n/a", "<na>"})
NO_LABEL = frozenset({"", "NA", "N/A", "n/a", "nan", "NaN", "None", "<NA>"})
# Rows that are looked at to tell whether a column holds text.
SAMPLE = 50

Rows = Iterable[tuple[int, list[str]]]


@dataclass(frozen=True)
class Columns:
    """Which columns are not features, by name; of a transposed table, which rows.

    `label` is None where labels are in another file, and `only` where all features are wanted. With
    `transpose`, `ids` is the column that names the features. `layer` is of an .h5ad file.

    Examples
    --------
    >>> Columns("class", block="donor").special()
    [('label', 'class'), ('block', 'donor')]
    """

    label: str | None = None
    block: str | None = None
    ids: str | None = None
    drop: frozenset[str] = frozenset()
    only: frozenset[str] | None = None
    transpose: bool = False
    layer: str | None = None

    def special(self) -> list[tuple[str, str]]:
        """Those with a meaning: what each is, and its name."""
        named = [("label", self.label), ("block", self.block)]
        named += [] if self.transpose else [("ids", self.ids)]
        return [(what, name) for what, name in named if name is not None]

    def wants(self, name: str) -> bool:
        """Whether a column may be a feature."""
        return name not in self.drop and (self.only is None or name in self.only)

    def check(self, path: Path, present: Sequence[str], hint: str = "") -> None:
        """Refuse a file that lacks one of those with a meaning, or has it twice."""
        for what, name in self.special():
            if name not in present:
                raise InputError(absent(path, what, name, present) + hint)
            if list(present).count(name) > 1:
                raise InputError(f"{path} has two columns named {brief(name)}; rename one")

    def take(
        self, path: Path, present: Sequence[str], column: Callable[[str], Any]
    ) -> dict[str, np.ndarray]:
        """Read those with a meaning as text; refuse what is not there."""
        self.check(path, present)
        return {what: as_text(column(name)) for what, name in self.special()}


def absent(path: Path, what: str, name: str, present: Sequence[str]) -> str:
    """Return the sentence for a column that is not there."""
    # Labels are more often the first or the last column than one of thousands of genes.
    some = list(present) if len(present) <= 8 else [*present[:4], *present[-4:]]
    more = "" if len(some) == len(present) else f" and {len(present) - len(some)} more"
    listed = ", ".join(map(brief, some)) + more if some else "none that could serve"
    option = "id" if what == "ids" else what
    return f"{option}: {path} has no column {brief(name)}; it has {listed}"


@dataclass
class FileContent:
    """What a file holds: a table (N, d), dense or sparse, names of features, maybe of samples."""

    X: Any
    names: tuple[str, ...]
    ids: np.ndarray | None
    # "label" and "block", where the file has them.
    special: dict[str, np.ndarray]
    # Names that there are, of features or not.
    present: Collection[str]
    # Columns that were left out because they hold text.
    text: tuple[str, ...] = ()
    # Whether the format keeps what is no feature apart.
    has_genes_only: bool = False


def read_file(path: Path, wanted: Columns) -> FileContent:
    """Read what is wanted of a file of any kind."""
    kind = kind_of(path)
    readers = {".npz": _read_npz, ".parquet": _read_parquet, ".h5ad": _read_h5ad}
    return readers.get(kind, _read_text)(path, wanted)


def check_file(path: Path, known: Sequence[str] = KNOWN) -> None:
    """Refuse a file that is not there, or of a kind that cannot be read."""
    kind = kind_of(path)
    if kind not in known:
        raise InputError(
            f"{path} has an unknown suffix {brief(kind)}; known are {', '.join(known)}"
        )
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {reason}; give the path of a file")


def as_text(values: Any) -> np.ndarray:
    """Return values as an array of str."""
    return np.array([str(value) for value in np.asarray(values).tolist()])


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a missing value."""
    return cell.strip().lower() in MISSING


def is_unlabelled(label: str) -> bool:
    """Whether a sample has no label; "none" is one, as a treatment may be.

    Examples
    --------
    >>> is_unlabelled("NA"), is_unlabelled("none")
    (True, False)
    """
    return label.strip() in NO_LABEL


def text_columns(path: Path) -> dict[str, np.ndarray]:
    r"""Return all columns of a text file or sheet as text, the one without a name as "".

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("sample,condition\ns1,sick\ns2,well\n")
    >>> text_columns(path)["condition"].tolist()
    ['sick', 'well']
    """
    header, rows = _open(path)
    if (twice := first_repeated([name for name in header if name])) is not None:
        raise InputError(f"{path} has two columns named {brief(twice)}; rename one")
    cells = [[cell.strip() for cell in row] for _, row in rows]
    return {
        name: np.array(column)
        for name, column in zip(header, zip(*cells, strict=True), strict=True)
    }


def _read_npz(path: Path, wanted: Columns) -> FileContent:
    table = read_table(path)
    X, names, ids = table.values, table.columns, table.ids
    if wanted.transpose:
        X, names, ids = np.ascontiguousarray(X.T), ids, names
    n, d = X.shape
    with np.load(path, allow_pickle=False) as archive:
        vectors = [name for name in archive.files if archive[name].shape == (n,)]
        special = wanted.take(path, vectors, archive.__getitem__)
        present = {*archive.files}
    known = special.pop("ids", None if ids is None else np.array(ids))
    names = names or tuple(f"x{column}" for column in range(d))
    return FileContent(X, names, known, special, present | set(names))


def _read_parquet(path: Path, wanted: Columns) -> FileContent:
    frame, pandas = read_frame(path), require("pandas", "tables")
    if not isinstance(frame.index, pandas.RangeIndex):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    is_number = pandas.api.types.is_numeric_dtype
    if wanted.transpose:
        name = wanted.ids or frame.columns[0]
        special = wanted.take(path, (), str)  # a column has no room for labels
        if name not in frame:
            raise InputError(absent(path, "ids", name, list(frame.columns)))
        others = [one for one in frame.columns if one != name]
        kept = [one for one in others if is_number(frame[one].dtype)]
        X = frame[kept].to_numpy(dtype=np.float64, na_value=np.nan)
        names = tuple(as_text(frame[name]).tolist())
        text = tuple(one for one in others if one not in kept)
        return FileContent(np.ascontiguousarray(X.T), names, np.array(kept), special, names, text)
    special = wanted.take(path, list(frame.columns), frame.__getitem__)
    apart = {name for _, name in wanted.special()}
    others = [name for name in frame.columns if name not in apart and name not in wanted.drop]
    text = [name for name in others if not is_number(frame[name].dtype)]
    ids = special.pop("ids", None)
    if ids is None and text:
        ids = as_text(frame[text.pop(0)])
    kept = [name for name in others if is_number(frame[name].dtype)]
    X = frame[kept].to_numpy(dtype=np.float64, na_value=np.nan)
    return FileContent(X, tuple(kept), ids, special, tuple(frame.columns), tuple(text))


def _read_h5ad(path: Path, wanted: Columns) -> FileContent:
    anndata = require("anndata", "anndata")
    if wanted.transpose:
        raise InputError(f"transpose: {path} has its cells in rows; leave transpose=True out")
    try:
        adata = anndata.read_h5ad(path)
    except Exception as error:
        # h5py and anndata raise errors of many kinds for files that they cannot read.
        raise InputError(f"cannot read {path}: {brief(error, 200)}") from None
    if wanted.layer is not None and wanted.layer not in adata.layers:
        known = quote_some(list(adata.layers)) or "none"
        raise InputError(f"layer: {path} has no layer {brief(wanted.layer)}; it has {known}")
    table: Any = adata.X if wanted.layer is None else adata.layers[wanted.layer]
    if table is None:
        raise InputError(f"{path} has no X; write the table to X")
    special = wanted.take(path, list(map(str, adata.obs.columns)), adata.obs.__getitem__)
    ids = special.pop("ids", as_text(adata.obs_names))
    names = tuple(map(str, adata.var_names))
    return FileContent(table, names, ids, special, names, has_genes_only=True)


def _open(path: Path) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the header, and the rows with the numbers of their lines as they are read."""
    rows = read_rows(path)
    first, second = next(rows, None), next(rows, None)
    if first is None or second is None:
        raise InputError(f"{path} holds no samples; it needs a header and a row for each sample")
    header = [cell.strip() for cell in first[1]]
    if len(second[1]) == len(header) + 1:
        header.insert(0, "")  # R leaves the cell above the row names out
    return header, _even(chain([second], rows), len(header), path)


def _even(rows: Rows, width: int, path: Path) -> Iterator[tuple[int, list[str]]]:
    for line, row in rows:
        if len(row) != width:
            raise InputError(
                f"{path}, line {line}: {len(row)} cells where there should be {width}; "
                "every row needs as many cells as the header"
            )
        yield line, row


def _read_text(path: Path, wanted: Columns) -> FileContent:
    header, rows = _open(path)
    head = list(islice(rows, SAMPLE))
    text = [
        place
        for place, name in enumerate(header)
        if name == "" or _is_text(row[place] for _, row in head)
    ]
    read = _read_features_in_rows if wanted.transpose else _read_features_in_columns
    return read(path, wanted, header, text, chain(head, rows), head)


def _read_features_in_columns(
    path: Path, wanted: Columns, header: list[str], text: list[int], rows: Rows, head: Rows
) -> FileContent:
    hint = "; it has a row of that name: give transpose=True"
    wanted.check(path, header, hint * any(row[0].strip() == wanted.label for _, row in head))
    told: dict[int, list[str]] = {header.index(name): [] for _, name in wanted.special()}
    apart = {place for place, name in enumerate(header) if name in wanted.drop} | set(told)
    text = [place for place in text if place not in apart]
    first = None
    if wanted.ids is None and (text or wanted.label is None):
        # Labels in another file are matched by the names of the samples, even if these are numbers.
        first = text.pop(0) if text else min(set(range(len(header))) - apart, default=None)
    if first is not None:
        told[first] = []
    apart |= {*text, *told}
    kept = [place for place, name in enumerate(header) if place not in apart and wanted.wants(name)]
    names = tuple(header[place] for place in kept)
    table = []
    for line, row in rows:
        for place, cells in told.items():
            cells.append(row[place].strip())
        table.append(_numbers([row[place] for place in kept], path, line, names))
    special = {what: np.array(told[header.index(name)]) for what, name in wanted.special()}
    ids = special.pop("ids", None if first is None else np.array(told[first]))
    X = np.array(table).reshape(len(table), len(kept))
    return FileContent(X, names, ids, special, header, tuple(header[place] for place in text))


def _read_features_in_rows(
    path: Path, wanted: Columns, header: list[str], text: list[int], rows: Rows, _: Rows
) -> FileContent:
    if wanted.ids is not None and wanted.ids not in header:
        raise InputError(absent(path, "ids", wanted.ids, header))
    first = 0 if wanted.ids is None else header.index(wanted.ids)
    places = [
        place for place, name in enumerate(header) if place != first and name not in wanted.drop
    ]
    kept = [place for place in places if place not in text]
    samples = [header[place] for place in kept]
    meant = {name: what for what, name in wanted.special()}
    special: dict[str, np.ndarray] = {}
    names: list[str] = []
    table, others, present = [], [], set(header)
    for line, row in rows:
        name, cells = row[first].strip(), [row[place] for place in kept]
        present.add(name)
        if name in meant:
            if meant[name] in special:
                raise InputError(f"{path} has two rows named {brief(name)}; rename one")
            special[meant[name]] = np.array([cell.strip() for cell in cells])
        elif not wanted.wants(name):
            continue
        elif _is_text(cells[:SAMPLE]):
            others.append(name)
        else:
            table.append(_numbers(cells, path, line, samples))
            names.append(name)
    for name, what in meant.items():
        if what not in special:
            sentence = absent(path, what, name, [*others, *names]).replace("column", "row")
            fix = "; it has a column of that name: leave transpose=True out" * (name in header)
            raise InputError(sentence + fix)
    X = np.ascontiguousarray(np.array(table).reshape(len(table), len(kept)).T)
    others += [header[place] for place in places if place in text]
    return FileContent(X, tuple(names), np.array(samples), special, present, tuple(others))


def _is_text(cells: Iterable[str]) -> bool:
    """Whether some cells are filled, and none of them with a number."""
    filled = [cell for cell in cells if not is_missing(cell)]
    return bool(filled) and not any(map(is_number, filled))


def _numbers(cells: list[str], path: Path, line: int, names: Sequence[str]) -> np.ndarray:
    try:
        return np.array(cells, dtype=float)
    except ValueError:
        pass
    values = np.full(len(cells), np.nan)
    for column, cell in enumerate(cells):
        if is_missing(cell):
            continue
        if not is_number(cell):
            raise InputError(
                f"{path}, line {line}, column {brief(names[column])}: {brief(cell)} is not a "
                f"number; write a number there, or leave it out with drop={brief(names[column])}"
            )
        values[column] = float(cell)
    return values


def listed(given: Any, argument: str) -> list[str]:
    """Return the names that are given: one, several, or those in the first column of a file."""
    given = [given] if isinstance(given, str | os.PathLike) else given
    try:
        words = [os.fspath(one) for one in given]
    except TypeError:
        raise InputError(f"{argument}: {brief(given)} is not a list of names; pass some") from None
    names = []
    for word in words:
        path = Path(word)
        if path.suffix.lower() in (".txt", ".csv", ".tsv") and path.is_file():
            names += [line.split("\t")[0].split(",")[0].strip(' "') for line in
                      read_text(path).splitlines() if line.strip()]  # fmt: skip
        else:
            names.append(word)
    return names


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
    """Classes, and maybe blocks, of samples by name: two of the `columns` of a file."""

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

    def join(self, found: FileContent, path: Path) -> FileContent:
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
        self._report_unlabelled(path, ids, rows, set(where.values()), len(y))
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

    def _report_unlabelled(
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
            warn_caller(
                f"labels {self.path}: {', and '.join(parts)}; left out", category=DataWarning
            )


def _as_r_writes(name: str) -> str:
    """Return a name as R makes it a name of a column: points for signs, X before digits."""
    return re.sub(r"^x(?=\d)", "", re.sub(r"[^0-9a-z]+", ".", name.strip().lower()))
