"""Answers in files: what every ``save`` writes, and `load`, which reads all of them.

A file is an ``.npz`` of plain arrays, one of which, ``kind``, says what it holds. There are no
pickles in it, so that reading a file from elsewhere runs no code.
"""

from __future__ import annotations

import importlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, MissingDependencyError, brief
from frot._base.files import check_path, check_writable, replacing
from frot._base.validate import check_choice

__all__ = ["load", "write_archive"]

# Who makes an answer of the arrays: a module with a function `rebuilt`, loaded when it is needed.
READERS = {
    "result": "frot.problem.result_file",
    "batch": "frot.api.batch_result",
    "comparison": "frot.comparison.comparison_file",
    "match": "frot.correspondence.match",
    "flow": "frot.correspondence.flow",
}
# Files that other programs know, without a kind in them.
FLOWS = (".flo", ".npy")


def write_archive(path: Any, kind: str, arrays: Mapping[str, Any]) -> Path:
    """Write arrays to an ``.npz`` file that is complete or not there; None is left out.

    Examples
    --------
    >>> import tempfile
    >>> path = write_archive(tempfile.mkdtemp() + "/still", "flow", {"valid": np.ones((2, 3))})
    >>> path.name
    'still.npz'
    """
    path = check_path(path)
    if path.suffix.lower() != ".npz":
        # As NumPy does.
        path = path.with_name(path.name + ".npz")
    check_writable(path)
    kept: dict[str, Any] = {
        name: np.asarray(array) for name, array in arrays.items() if array is not None
    }
    with replacing(path) as draft:
        np.savez_compressed(draft, kind=np.array(kind), **kept)
    return path


def load(path: str | os.PathLike[str], kind: str | None = None) -> Any:
    """Read what a ``save`` of frot wrote: a `Result`, a batch, a comparison, a match or a flow.

    Parameters
    ----------
    path : path
        An ``.npz`` file, or a flow as ``.flo`` or ``.npy``. No code in it is run.
    kind : {"result", "batch", "comparison", "match", "flow"}, optional
        Refuse anything else.

    Returns
    -------
    Result, BatchResult, Comparison, frot.correspondence.Match or frot.correspondence.Flow
        Its arrays are NumPy's, whatever device it was made on.

    Raises
    ------
    InputError
        If there is no such file, or it is of another kind, damaged, or not of frot.

    Examples
    --------
    >>> import frot, tempfile
    >>> path = frot.solve([[0.0]], [[1.0]]).save(tempfile.mkdtemp() + "/answer.npz")
    >>> frot.load(path).value
    1.0
    """
    path = check_path(path)
    if kind is not None:
        check_choice(kind, "kind", tuple(READERS))
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {what}; give a file that a save of frot wrote")
    if path.suffix.lower() in FLOWS and kind in (None, "flow"):
        return importlib.import_module(READERS["flow"]).read_flow(path)
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no .npz file")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        found = str(arrays.pop("kind"))
        if found not in READERS:
            raise ValueError(f"it holds a {brief(found)}, which this version cannot read")
        if kind not in (None, found):
            raise ValueError(f"it holds a {found}, not a {kind}")
        return importlib.import_module(READERS[found]).rebuilt(arrays)
    except (MemoryError, MissingDependencyError):
        raise
    except Exception as error:
        # Damaged files make the decoders of zip, NumPy and JSON raise almost anything.
        why = f"it has no {error}" if isinstance(error, KeyError) else brief(error, 120)
        raise InputError(f"{path} is damaged, or no file that frot saved: {why}") from None
