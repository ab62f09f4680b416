"""Gene expression of two classes, and sets of genes: as they are read, loaded and handed out."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frot._base.errors import InputError, require
from frot._base.names import distinct, quote_some
from frot._base.text import read_rows, read_text
from frot.datasets.catalogue import (
    CATALOGUE,
    HALLMARK,
    Entry,
    digest_of_arrays,
    fetch,
    find,
    folders,
)
from frot.groups.groups import Groups

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Expression:
    """n samples (rows) of d features (columns), with a label per sample.

    Parameters
    ----------
    X : numpy.ndarray of float64, shape (n, d)
    y : numpy.ndarray, shape (n,)
        Labels as the source has them: strings or whole numbers.
    feature_names : tuple of str, length d
        Genes or probes; a gene measured by several probes occurs several times.
    name : str
    source : str
        The public address of the file.
    description : str
    citation : str
        The study to cite.
    licence : str

    Examples
    --------
    >>> from frot.datasets import load_breast_cancer
    >>> data = load_breast_cancer()
    >>> data
    Expression('breast_cancer': 569 samples of 30 features, 357 'benign' and 212 'malignant')
    >>> data.counts
    {'benign': 357, 'malignant': 212}
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    feature_names: tuple[str, ...]
    name: str
    source: str
    description: str
    citation: str
    licence: str

    def __post_init__(self) -> None:
        if self.X.ndim != 2 or self.X.shape != (len(self.y), len(self.feature_names)):
            raise InputError(
                f"X has shape {self.X.shape} for {len(self.y)} labels and "
                f"{len(self.feature_names)} feature names; give one label per row and one name "
                "per column"
            )

    def __repr__(self) -> str:
        n, d = self.shape
        classes = " and ".join(f"{count} {label!r}" for label, count in self.counts.items())
        return f"Expression({self.name!r}: {n} samples of {d} features, {classes})"

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        n, d = self.X.shape
        return n, d

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels that occur, sorted."""
        return tuple(np.unique(self.y).tolist())

    @property
    def counts(self) -> dict[Any, int]:
        """How many samples each label has."""
        labels, counts = np.unique(self.y, return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

    def as_frame(self, label: str = "class") -> pandas.DataFrame:
        """Return samples by features as pandas has them, the labels in a last column.

        A feature name that occurs again, or that is `label`, gets ``#2``, ``#3``, … appended, so
        that every column can be asked for by name.

        Parameters
        ----------
        label : str
            The name of the last column.

        Returns
        -------
        pandas.DataFrame, shape (n, d + 1)

        Examples
        --------
        >>> from frot.datasets import load_breast_cancer
        >>> frame = load_breast_cancer().as_frame("diagnosis")
        >>> frame.shape, frame.columns[-1]
        ((569, 31), 'diagnosis')
        """
        pandas: Any = require("pandas", "tables")
        names = distinct([label, *self.feature_names])[1:]
        frame = pandas.DataFrame(self.X, columns=names)
        # Inserting into a frame of 20,000 columns is what pandas calls fragmentation.
        return pandas.concat([frame, pandas.Series(self.y, name=label)], axis=1)


class Raw(NamedTuple):
    """What a file holds: values (n, d), labels (n,), and names of the d features."""

    X: NDArray[np.float64]
    y: NDArray
    names: tuple[str, ...]


def read_mat(path: Path) -> Raw:
    """Read X and Y of a MATLAB file; its features, without names, become x0, x1 and so on."""
    from scipy.io import loadmat

    with _read_errors(path, "a MATLAB file with arrays X and Y"):
        content = loadmat(path, variable_names=("X", "Y"))
        X = np.ascontiguousarray(content["X"], dtype=np.float64)
        y = np.asarray(content["Y"]).ravel().astype(np.int64)
        return Raw(X, y, tuple(f"x{column}" for column in range(X.shape[1])))


def read_npz(path: Path) -> Raw:
    """Read X, y and, where they are there, genes."""
    # Opened here, since NumPy leaves a broken file open.
    with _read_errors(path, "an .npz file with arrays X and y"), path.open("rb") as file:
        content = np.load(file, allow_pickle=False)
        X = np.ascontiguousarray(content["X"], dtype=np.float64)
        names = content["genes"] if "genes" in content else [f"x{i}" for i in range(X.shape[1])]
        return Raw(X, content["y"].astype(str), tuple(str(name) for name in names))


def read_gsea(values: Path, labels: Path) -> Raw:
    r"""Read a table of genes by samples (two columns of names first) and its .cls file.

    As GSEA has them (Subramanian et al. 2005).
    """
    with _read_errors(values, "a table of genes with two columns of names"):
        _, *rows = (row for _, row in read_rows(values, "\t"))
        X = np.ascontiguousarray(np.array([row[2:] for row in rows], dtype=np.float64).T)
        names = tuple(row[0] for row in rows)
    with _read_errors(labels, "a .cls file of three lines"):
        y = np.array(read_text(labels).splitlines()[2].split())
    return Raw(X, y, names)


@contextmanager
def _read_errors(path: Path, kind: str) -> Iterator[None]:
    # scipy raises NotImplementedError for MATLAB's 7.3 and ValueError for what is no MATLAB file.
    troubles = (OSError, ValueError, KeyError, IndexError, NotImplementedError)
    try:
        yield
    except (*troubles, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"{path} cannot be read as {kind}: {error}") from None


NAMES: tuple[str, ...] = tuple(CATALOGUE)


def load_expression(
    name: str, *, root: str | os.PathLike[str] | None = None, download: bool = False
) -> Expression:
    """Load a two-class gene expression set.

    Parameters
    ----------
    name : str
        One of `NAMES`. The paper's: ``"colon"``, ``"leukemia"``, ``"prostate_ge"``, ``"gli_85"``;
        continuous versions of the first three: ``"alon"``, ``"golub"``, ``"singh"``; further
        ``"chowdary"``, ``"gravier"``, ``"pomeroy"``, and with gene symbols ``"leukemia_gsea"``.
    root : path, optional
        The only folder to look in (itself, and ``expression`` below it). Without it: the folder
        that ``FROT_DATA`` names, folders beside a checkout, and the cache of earlier downloads.
    download : bool
        Whether a set that is not there is downloaded from its public source, into `root` or the
        cache. Said on stderr. The sets of datamicroarray are R files and cannot be.

    Returns
    -------
    Expression
        X is not scaled; fit any scaling on the training part.

    Raises
    ------
    InputError
        If the set is unknown, is not there, or is not what its SHA-256 stands for.

    Examples
    --------
    >>> import tempfile
    >>> load_expression("colon", root=tempfile.mkdtemp())
    Traceback (most recent call last):
    ...
    frot.InputError: the data set 'colon' is not there: no colon.mat in ...
    """
    if name not in CATALOGUE:
        known = quote_some(NAMES, limit=len(NAMES))
        raise InputError(f"name={name!r} is not a data set; give one of {known}")
    entry = CATALOGUE[name]
    paths = [fetch(file, name, root=root, download=download) for file in entry.files]
    values = entry.files[0]
    if len(paths) == 2:
        raw = read_gsea(paths[0], paths[1])
    elif values.converted:
        raw = read_npz(paths[0])
    else:
        raw = read_mat(paths[0])
    _check(entry, raw, str(paths[0]))
    return Expression(
        *raw,
        name=name,
        source=values.url,
        description=entry.description,
        citation=entry.citation,
        licence=entry.licence,
    )


def available(root: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Return the names of the sets that are on disk, in the order of `NAMES`.

    Parameters
    ----------
    root : path, optional
        As for `load_expression`.

    Examples
    --------
    >>> import tempfile
    >>> available(tempfile.mkdtemp())
    ()
    """
    places = folders(root)
    return tuple(
        name
        for name, entry in CATALOGUE.items()
        if all(find(file, places) is not None for file in entry.files)
    )


def _check(entry: Entry, raw: Raw, path: str) -> None:
    if raw.X.shape != entry.shape or len(raw.y) != entry.shape[0]:
        raise InputError(
            f"{path} holds {raw.X.shape[0]} samples of {raw.X.shape[1]} features and "
            f"{len(raw.y)} labels where {entry.shape[0]} of {entry.shape[1]} belong; get "
            f"{entry.files[0].url}"
        )
    file = entry.files[0]
    if file.converted and (digest := digest_of_arrays(raw.X, raw.y)) != file.sha256:
        raise InputError(
            f"{path} does not hold the values that are meant: the SHA-256 of its X and y begins "
            f"{digest[:12]}, not {str(file.sha256)[:12]}; convert {file.url} anew, X as float32, "
            "rows in their order"
        )


def load_breast_cancer() -> Expression:
    """Load scikit-learn's breast cancer set: nothing to download, 30 features with names.

    These are measurements of nuclei in pictures, not of genes; what makes it a good example is
    that three statistics (mean, error, worst) of ten quantities are groups by themselves.

    Returns
    -------
    Expression
        569 samples of 30 features, labelled ``"benign"`` or ``"malignant"``.

    Examples
    --------
    >>> data = load_breast_cancer()
    >>> data.X.shape, data.classes, data.feature_names[0]
    ((569, 30), ('benign', 'malignant'), 'mean radius')
    """
    content: Any = require("sklearn.datasets", "selection").load_breast_cancer()
    return Expression(
        X=np.asarray(content.data, dtype=np.float64),
        y=np.asarray(content.target_names)[content.target].astype(str),
        feature_names=tuple(str(name) for name in content.feature_names),
        name="breast_cancer",
        source="https://archive.ics.uci.edu/dataset/17/breast+cancer+wisconsin+diagnostic",
        description="Nuclei of breast masses: 357 benign, 212 malignant",
        citation="Street, Wolberg and Mangasarian, SPIE 1905 (1993) 861-870",
        licence="CC BY 4.0",
    )


def load_hallmark(
    feature_names: Sequence[str],
    *,
    min_size: int = 1,
    root: str | os.PathLike[str] | None = None,
    download: bool = False,
) -> Groups:
    """Match the Hallmark gene sets (MSigDB 7.0, CC BY 4.0) to the columns of the data.

    They are those of Liberzon et al. 2015.

    Parameters
    ----------
    feature_names : sequence of str, length d
        Gene symbols, such as those of ``load_expression("leukemia_gsea")``.
    min_size : int
        The fewest features a set must have; smaller ones go to `Groups.dropped`.
    root, download
        As for `load_expression`.

    Returns
    -------
    Groups
        Up to 50 groups of d features.

    Examples
    --------
    >>> import tempfile
    >>> load_hallmark(["TP53"], root=tempfile.mkdtemp())
    Traceback (most recent call last):
    ...
    frot.InputError: the data set 'hallmark' is not there: no h.all.v7.0.symbols.gmt in ...
    """
    path = hallmark_path(root=root, download=download)
    return Groups.from_gmt(path, feature_names, min_size=min_size)


def hallmark_path(*, root: str | os.PathLike[str] | None = None, download: bool = False) -> Path:
    """Return the path of the checked .gmt file, for whatever reads such files.

    Examples
    --------
    >>> import tempfile
    >>> hallmark_path(root=tempfile.mkdtemp())
    Traceback (most recent call last):
    ...
    frot.InputError: the data set 'hallmark' is not there: no h.all.v7.0.symbols.gmt in ...
    """
    return fetch(HALLMARK, "hallmark", root=root, download=download)
