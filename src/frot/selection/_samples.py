"""Labelled samples on disk: a table of numbers, classes, and blocks and names where given.

What is probably not meant is said: metadata among the features, raw counts, repeated names.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from frot._base.errors import DataWarning, InputError, brief, require, warn_caller
from frot._base.files import check_path
from frot._base.names import first_repeated, quote_some
from frot._base.tables import kind_of
from frot._base.validate import check_flag
from frot.groups.groups import Groups
from frot.selection._sample_files import (
    Columns,
    FileContent,
    Labels,
    check_file,
    is_unlabelled,
    listed,
    read_file,
)

if TYPE_CHECKING:
    import pandas

Names = str | os.PathLike[str] | Iterable[str]


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of known classes.

    Attributes
    ----------
    X : array or sparse array of shape (N, d)
    y : array of shape (N,)
        Labels, as text.
    names : tuple of str, length d
        Of the features.
    ids : tuple of str, length N, or None
        Of the samples, where the file has them.
    block : array of shape (N,), or None
        What to permute within.
    ignored : tuple of str
        Columns that were left out because they hold text.
    path : pathlib.Path
    metadata : tuple of str
        Columns of numbers that were left out because they look like metadata.

    Examples
    --------
    >>> samples = Samples(np.eye(2), np.array(["a", "b"]), ("u", "v"), None, None, (), Path("x"))
    >>> samples.groups("each").names
    ('u', 'v')
    """

    X: Any
    y: np.ndarray
    names: tuple[str, ...]
    ids: tuple[str, ...] | None
    block: np.ndarray | None
    ignored: tuple[str, ...]
    path: Path
    metadata: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n, d = self.shape
        classes = quote_some(np.unique(self.y).tolist())
        return f"Samples({self.path.name}: {n} samples of {d} features, classes {classes})"

    @property
    def shape(self) -> tuple[int, int]:
        """(N, d)."""
        n, d = self.X.shape
        return n, d

    def to_frame(self) -> pandas.DataFrame:
        """Return the features as pandas has them, so that a selector knows their names.

        Rows are named by `ids` where there are some; a sparse table stays sparse.

        Examples
        --------
        >>> y, names = np.array(["a", "b"]), ("u", "v")
        >>> samples = Samples(np.eye(2), y, names, None, None, (), Path("x"))
        >>> samples.to_frame().columns.tolist()
        ['u', 'v']
        """
        pandas: Any = require("pandas", "tables")
        make = (
            pandas.DataFrame.sparse.from_spmatrix if sparse.issparse(self.X) else pandas.DataFrame
        )
        return make(self.X, index=self.ids, columns=self.names)

    def groups(self, spec: Any = "each") -> Groups:
        """Read a description of groups, members being named as the features are.

        Where a file of groups has few of the names, and far more of them without the versions of
        Ensembl identifiers or in capitals, they are matched so, with a `frot.DataWarning`.
        """
        d = self.shape[1]
        try:
            exact: Groups | InputError = Groups.parse(spec, d, self.names)
        except InputError as error:
            exact = error
        if isinstance(spec, str | os.PathLike) and Path(spec).suffix and Path(spec).is_file():
            exact = self._matched(spec, exact)
        if isinstance(exact, InputError):
            raise exact
        return exact

    def _matched(self, spec: Any, exact: Groups | InputError) -> Groups | InputError:
        matched = 0 if isinstance(exact, InputError) else np.unique(exact.flat).size
        d = self.shape[1]
        for how, names in matching_names(self.names):
            try:
                found = Groups.parse(spec, d, names)
            except InputError:
                continue
            share = np.unique(found.flat).size
            if share <= 2 * matched:
                continue
            members = [names[place] for place in np.unique(found.flat)]
            if (twice := first_repeated(members)) is not None:
                mention(
                    f"groups: the names in {spec} would match {share:,} features {how} instead of "
                    f"{matched:,}, but several are then {brief(twice)}; rename the features"
                )
                continue
            mention(
                f"groups: features are matched to {spec} {how}: {share:,} of {d:,} "
                f"({share / d:.0%}) are in a group, instead of {matched:,}"
            )
            return found
        return exact


def read_samples(
    path: str | os.PathLike[str],
    label: str,
    *,
    labels: str | os.PathLike[str] | None = None,
    block: str | None = None,
    ids: str | None = None,
    transpose: bool = False,
    features: Names | None = None,
    drop: Names = (),
    keep: Names = (),
    log1p: bool = False,
    layer: str | None = None,
) -> Samples:
    r"""Read a table of samples, with their classes in a column or in another file.

    In text (.csv, .tsv, .txt, also with .gz), .xlsx and .parquet files the first row names the
    columns; columns of numbers are features. The first column of text is taken for the names of the
    samples, and other columns of text are left out; `ignored` lists them. Empty cells, NA and
    NaN are missing values. Semicolons, tabs and decimal commas are recognised. An .npz file holds
    the array ``X``, the labels and blocks as arrays of the names given, and ``genes`` or
    ``columns`` to name the features. Of an .h5ad file the table is ``X``, sparse if it is sparse
    there, and the labels are a column of ``obs``; it needs anndata. A .gct file has genes in rows
    and needs no `transpose`. Excel files need openpyxl.

    Columns of numbers that look like metadata (age, batch, an id, the numbers 1 to N) are left out
    with a `frot.DataWarning`; `metadata` lists them. Repeated names, raw counts, and names that a
    spreadsheet made dates of are warned of, too.

    Parameters
    ----------
    path : path
    label : str
        Name of the column, or array, of classes.
    labels : path, optional
        A text or .xlsx file that has the column `label`, one row per sample; the column that holds
        the samples' names is found by what it holds, in any order. Samples that are in one
        of the files only are left out, with a `frot.DataWarning` that names them. A .cls file
        has the classes in the order of the samples.
    block : str, optional
        Column of batches, donors, ..., of either file.
    ids : str, optional
        That of the samples' names; of a transposed table, that of the features' names.
    transpose : bool
        Whether the table has a row for each feature, its name first, and a column for each sample.
    features : str or sequence of str, optional
        Only these are features: names, or a file with a name a line.
    drop : str or sequence of str
        Columns (of a transposed table, rows) that are no features.
    keep : str or sequence of str
        Columns that are features though they look like metadata.
    log1p : bool
        Take log(1 + x) of a table of counts; refused for negative numbers.
    layer : str, optional
        Of an .h5ad file, the layer to read in the place of ``X``.

    Returns
    -------
    Samples

    Raises
    ------
    InputError
        If the file, or a column, is not there or cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "samples.csv"
    >>> _ = path.write_text("patient,TP53,MYC,class\np1,1,2,tumor\np2,3,,normal\n")
    >>> samples = read_samples(path, "class")
    >>> samples.names, samples.ids, samples.y.tolist()
    (('TP53', 'MYC'), ('p1', 'p2'), ['tumor', 'normal'])
    >>> samples.X
    array([[ 1.,  2.],
           [ 3., nan]])

    Genes in rows, and the classes in a file of their own:

    >>> genes, classes = path.with_name("genes.txt"), path.with_name("classes.csv")
    >>> _ = genes.write_text("gene\ts1\ts2\nTP53\t1,5\t3\nMYC\t2\t4\n")
    >>> _ = classes.write_text("sample;condition\ns2;normal\ns1;tumor\n")
    >>> samples = read_samples(genes, "condition", labels=classes, transpose=True)
    >>> samples.X.tolist(), samples.y.tolist()
    ([[1.5, 2.0], [3.0, 4.0]], ['tumor', 'normal'])
    """
    path = check_path(path)
    kind = kind_of(path)
    if kind == ".npy" and labels is None:
        raise InputError(
            f"{path} holds no labels; save an .npz file with the table as 'X' and the labels as "
            f"{brief(label)}"
        )
    check_file(path)
    if layer is not None and kind != ".h5ad":
        raise InputError(f"layer: {path} has none; leave layer out, which is for .h5ad files")
    only = None if features is None else listed(features, "features")
    dropped, kept = listed(drop, "drop"), listed(keep, "keep")
    others = None if labels is None else Labels.read(check_path(labels, "labels"), label, block)
    in_table = None if others is not None and others.block is not None else block
    wanted = Columns(
        label=label if others is None else None,
        block=in_table,
        ids=ids,
        drop=frozenset(dropped),
        only=None if only is None else frozenset(only),
        transpose=check_flag(transpose, "transpose") or kind.startswith(".gct"),
        layer=layer,
    )
    found = read_file(path, wanted)
    for argument, names in (("features", only or []), ("drop", dropped), ("keep", kept)):
        _check_names(found, names, argument, path, all_of=argument != "features")
    if others is not None:
        found = others.join(found, path)
    found, metadata = _features(found, wanted, kept, path)
    y = found.special["label"]
    unlabelled = np.flatnonzero([is_unlabelled(text) for text in y.tolist()])
    if len(unlabelled):
        raise InputError(
            f"{path}: {len(unlabelled)} samples, the first in row {unlabelled[0] + 1}, have no "
            f"{brief(label)}; label them or remove them"
        )
    logged = check_flag(log1p, "log1p")
    warn_if_suspicious(found.X, found.names, path, logged)
    X = apply_log1p(found.X, path) if logged else found.X
    known = None if found.ids is None else tuple(found.ids.tolist())
    block_of = found.special.get("block")
    return Samples(X, y, found.names, known, block_of, found.text, path, metadata)


def _check_names(
    found: FileContent, names: list[str], argument: str, path: Path, all_of: bool
) -> None:
    """Refuse names that the table does not have; a list of features may have some others."""
    present = set(found.present)
    unknown = [name for name in names if name not in present]
    if not unknown:
        return
    if all_of or len(unknown) == len(names):
        raise InputError(f"{argument}: {path} has no column {quote_some(unknown)}; check the name")
    mention(
        f"features: {len(unknown)} of {len(names)} ({quote_some(unknown)}) are not in {path}; the "
        "others are ranked"
    )


def _features(
    found: FileContent, wanted: Columns, kept: list[str], path: Path
) -> tuple[FileContent, tuple[str, ...]]:
    """Leave out what is not wanted, and what looks like metadata where nobody said."""
    places = [place for place, name in enumerate(found.names) if wanted.wants(name)]
    odd: list[int] = []
    if wanted.only is None and not found.has_genes_only:
        odd = [
            place
            for place in places
            if found.names[place] not in kept
            and looks_like_metadata(found.names[place], found.X[:, place])
        ]
    metadata = tuple(found.names[place] for place in odd)
    if metadata:
        one, are = brief(metadata[0]), "looks" if len(metadata) == 1 else "look"
        mention(
            f"{path}: {quote_some(metadata, 8)} {are} like metadata; left out of the ranking "
            f"(keep={one} ranks it, drop={one} leaves it out without this warning)"
        )
        left_out = set(odd)
        places = [place for place in places if place not in left_out]
    if len(places) < len(found.names):
        found.X, found.names = found.X[:, places], tuple(found.names[at] for at in places)
    if not found.names:
        besides = f" besides {brief(wanted.label)}" if wanted.label is not None else ""
        raise InputError(f"{path} has no column of numbers{besides}; there is no feature")
    return found, metadata


# A name of these and of fillers alone is that of metadata. No gene symbol is among them.
_WORDS = """
age sex gender race ethnicity bmi height weight batch plate well lane run slide chip array date time
timepoint day days week weeks month months year years hour hours dose dosage concentration survival
event status death dead alive os pfs dfs followup censored censor vital outcome response
stage grade id identifier index barcode patient sample subject donor person participant individual
animal cage litter case replicate visit site center centre hospital cohort study class label group
condition treatment cluster rin passage smoker smoking karnofsky ecog row
"""
_FILLERS = """
at of to in on the since from until and no nr num number n code name unnamed overall progression
disease free relapse last first follow up diagnosis onset birth surgery total collection processing
sequencing library technical biological point score pack scan experiment tumor tumour mg ml kg cm
"""
WORDS, FILLERS = frozenset(_WORDS.split()), frozenset(_FILLERS.split())
# Fewer rows that count up may do so by chance.
COUNTED = 5


def mention(text: str) -> None:
    """Warn of data that may not be meant so."""
    warn_caller(text, category=DataWarning)


def looks_like_metadata(name: str, values: np.ndarray | None = None) -> bool:
    """Say whether a column of numbers is probably no feature, by its name or by counting rows.

    Examples
    --------
    >>> [looks_like_metadata(name) for name in ("Age at diagnosis", "patientID", "ID1", "TP53")]
    [True, True, False, False]
    >>> looks_like_metadata("x", np.arange(1.0, 21.0))
    True
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    parts = re.findall(r"[a-z]+|\d+", words.lower())
    if parts and WORDS.intersection(parts) and WORDS.union(FILLERS).issuperset(parts):
        return True
    if values is None or len(values) < COUNTED or values[0] not in (0.0, 1.0):
        return False
    return bool((np.diff(values) == 1.0).all())


def warn_if_suspicious(X: Any, names: Sequence[str], path: Path, logged: bool) -> None:
    """Give a sentence with the fix for names that repeat or are dates, and for raw counts."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        mention(
            f"{path}: {len(repeated)} {'name stands' if len(repeated) == 1 else 'names stand'} for "
            "several features "
            f"({quote_some(repeated)}); each is ranked by itself, the second as "
            f"{brief(repeated[0] + '#2')}: keep or average one of each if they are the same gene"
        )
    dates = [name for name in names if DATE.fullmatch(name)]
    if dates:
        mention(
            f"{path}: features are named like dates ({quote_some(dates)}), as spreadsheets make of "
            "SEPT2 or MARCH1; take the names from the original file"
        )
    values = X.data if sparse.issparse(X) else X
    if not logged and (largest := _largest_count(values)):
        mention(
            f"{path} looks like raw counts (whole numbers up to {largest:,}); log1p=True ranks "
            "log(1 + x), in which the largest do not hide the others"
        )


DATE = re.compile(
    r"\d{4}-\d\d-\d\d( 00:00:00)?|\d{1,2}-(?:sep|mar|dec|oct|apr|feb|nov)|"
    r"(?:sep|mar|dec|oct|apr|feb|nov)-\d{1,2}",
    re.IGNORECASE,
)
# Counts go further than scores, ages and percents do.
LARGE = 100


def _largest_count(values: np.ndarray) -> int:
    """Return the largest of numbers that are whole, none negative, some large; else zero."""
    part = np.ravel(values[: max(1, len(values) // 50)])
    for some in (part, np.ravel(values)):
        known = some[np.isfinite(some)]
        if not known.size or known.min() < 0.0 or (known != np.floor(known)).any():
            return 0
    return int(known.max()) if known.max() > LARGE else 0


def apply_log1p(X: Any, path: Path) -> Any:
    """Return log(1 + x), sparse where X is sparse; refuses negative numbers.

    Examples
    --------
    >>> apply_log1p(np.array([[0.0, 99.0]]), Path("a.csv")).round(3)
    array([[0.   , 4.605]])
    """
    values = X.data if sparse.issparse(X) else X
    known = values[np.isfinite(values)]
    if known.size and known.min() < 0.0:
        raise InputError(
            f"log1p: {path} has negative numbers, the least {known.min():.6g}, and so is no table "
            "of counts; leave log1p=True out"
        )
    if known.size and known.max() < 25.0 and (known != np.floor(known)).any():
        mention(
            f"log1p: the largest number in {path} is {known.max():.4g}, as if logarithms were "
            "taken before; if they were, leave log1p=True out"
        )
    if sparse.issparse(X):
        return X.log1p()
    return np.log1p(X)


VERSION = re.compile(r"(ENS[A-Z]*\d{6,})\.\d+(?:_\d+)?")


def matching_names(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return other ways to write names of genes, each with what was done.

    Examples
    --------
    >>> matching_names(["ENSG00000141510.12"])
    [('without their versions', ['ENSG00000141510'])]
    >>> matching_names(["Trp53", "Myc"])
    [('in capitals', ['TRP53', 'MYC'])]
    """
    ways = {
        "without their versions": [VERSION.sub(r"\1", name) for name in names],
        "in capitals": [name.upper() for name in names],
    }
    return [(how, other) for how, other in ways.items() if other != list(names)]
