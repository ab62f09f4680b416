"""Files written atomically: checks of paths, the archives of every ``save``, and `load`.

An answer is saved as an ``.npz`` of plain arrays, one of which, ``kind``, says what it holds. There
are no pickles in it, so that reading a file from elsewhere runs no code. Another, ``checksum``, is
a hash of all others with their names, types and shapes: a file that was changed is not read.
"""

from __future__ import annotations

import errno
import importlib
import math
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, MissingDependencyError, brief
from frot._base.fingerprint import fingerprint
from frot._base.validate import check_choice


def check_path(value: Any, name: str = "path") -> Path:
    """Return the path of a file; refuses what no file system takes."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name}: {brief(value)} is not a path of a file; pass a string or a Path")
    path = Path(value)
    try:
        os.lstat(path)
    except (OSError, ValueError) as error:
        # Too long, or with a zero byte; whether it is there, and may be read, is asked elsewhere.
        if isinstance(error, ValueError) or error.errno in (errno.ENAMETOOLONG, errno.EINVAL):
            why = getattr(error, "strerror", None) or error
            raise InputError(f"{name}: {brief(str(path))} is no path of a file: {why}") from None
    return path


def check_writable(path: Path, who: str = "") -> None:
    """Refuse a path that no file can be written to; `who` begins the message."""
    check_path(path)
    if path.is_dir():
        raise InputError(f"{who}{path} is a folder; give the path of a file")
    if not path.parent.is_dir():
        raise InputError(f"{who}{path.parent} does not exist; make that folder first")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to, in the same folder, which takes the place of `path` at the end.

    If the body fails, what was at `path` before is still there, untouched. A full disk is an
    `InputError`, as a folder is that cannot be written to.
    """
    path = Path(path)
    try:
        # The suffix stays, because writers choose the format by it.
        handle, name = tempfile.mkstemp(suffix=path.suffix, prefix=".frot-", dir=path.parent)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        # mkstemp makes files private; the finished one gets what the user's umask allows.
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)
        os.replace(draft, path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, and those above it, where they are not there yet."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be made a folder: {error.strerror}") from None
    return path


# Who makes an answer of the arrays: a module with a function `rebuilt`, loaded when it is needed.
READERS = {
    "result": "frot.problem.result",
    "match": "frot.correspondence.match",
    "flow": "frot.correspondence.flow",
}
# Files that other programs know, without a kind in them.
FLOWS = (".flo", ".npy")


def write_archive(path: Any, kind: str, arrays: Mapping[str, Any]) -> Path:
    """Write arrays to an ``.npz`` file that is complete or not there; None is left out."""
    path = check_path(path)
    if path.suffix.lower() != ".npz":
        # As NumPy does.
        path = path.with_name(path.name + ".npz")
    check_writable(path)
    kept: dict[str, Any] = {
        name: np.asarray(array) for name, array in arrays.items() if array is not None
    }
    kept["kind"] = np.array(kind)
    with replacing(path) as draft:
        np.savez_compressed(draft, checksum=np.array(fingerprint(**kept)), **kept)
    return path


def read_archive(path: Path, most_deflated: float = 1032.0) -> dict[str, np.ndarray]:
    """Return the arrays of an archive, among them its kind; ValueError if anything was changed.

    What sizes its members state is held against the file before any of them is unpacked: deflate
    makes nothing smaller by more than a factor of 1032.
    """
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no .npz file")
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        stated = sum(member.file_size for member in members)
        most = most_deflated * path.stat().st_size
        if stated > most:
            raise ValueError(f"its members state {stated} bytes, more than the file can hold")
        if len({member.filename for member in members}) != len(members):
            raise ValueError("a member is there twice")
        arrays = {}
        for member in members:
            with archive.open(member) as file:
                try:
                    array = read_array(file, member.file_size)
                except ValueError as error:
                    raise ValueError(f"{member.filename} {error}") from None
            arrays[member.filename.removesuffix(".npy")] = array
    checksum = str(arrays.pop("checksum"))
    if checksum != fingerprint(**arrays):
        raise ValueError("its checksum is wrong: it was changed after it was saved")
    return arrays


def read_array(file: Any, size: int) -> np.ndarray:
    """Read an array of NumPy's from `size` bytes, which is what its header has to state."""
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"is of format {version}")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    stated = file.tell() + math.prod(shape) * dtype.itemsize
    if dtype.hasobject or min(shape, default=0) < 0 or stated != size:
        raise ValueError(f"states shape {shape}, which is not its size")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def load(path: str | os.PathLike[str], kind: str | None = None) -> Any:
    """Read what a ``save`` of frot wrote: a `Result`, a match or a flow.

    Parameters
    ----------
    path : path
        An ``.npz`` file, or a flow as ``.flo`` or ``.npy``. No code in it is run.
    kind : {"result", "match", "flow"}, optional
        Refuse anything else.

    Returns
    -------
    Result, frot.correspondence.Match or frot.correspondence.Flow
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
        arrays = read_archive(path)
        held = str(arrays.pop("kind"))
        if held not in READERS:
            raise ValueError(f"it holds a {brief(held)}, which this version cannot read")
        if kind not in (None, held):
            raise ValueError(f"it holds a {held}, not a {kind}")
        return importlib.import_module(READERS[held]).rebuilt(arrays)
    except MissingDependencyError:
        raise
    except Exception as error:
        # Damaged files make the decoders of zip, NumPy and JSON raise almost anything.
        why = f"it has no {error}" if isinstance(error, KeyError) else brief(error, 120)
        raise InputError(f"{path} is damaged, or no file that frot saved: {why}") from None
