"""A table of samples by genes with a class per sample, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frot._errors import InputError, require
from frot._names import distinct

if TYPE_CHECKING:
    import pandas

__all__ = ["Expression"]


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
        told = " and ".join(f"{count} {label!r}" for label, count in self.counts.items())
        return f"Expression({self.name!r}: {n} samples of {d} features, {told})"

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
