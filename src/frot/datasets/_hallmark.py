"""The Hallmark gene sets: 50 overlapping pathways."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from frot._groups import Groups
from frot.datasets._catalogue import HALLMARK
from frot.datasets._fetch import fetch

__all__ = ["hallmark_path", "load_hallmark"]


def load_hallmark(
    feature_names: Sequence[str],
    *,
    min_size: int = 1,
    root: str | os.PathLike[str] | None = None,
    download: bool = False,
) -> Groups:
    """Match the Hallmark gene sets (MSigDB 7.0, CC BY 4.0) to the columns of the data.

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
    frot._errors.InputError: the data set 'hallmark' is not there: no h.all.v7.0.symbols.gmt in ...
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
    frot._errors.InputError: the data set 'hallmark' is not there: no h.all.v7.0.symbols.gmt in ...
    """
    return fetch(HALLMARK, "hallmark", root=root, download=download)
