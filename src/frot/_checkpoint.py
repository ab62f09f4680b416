"""A file of finished work: append-only, so that being killed loses only what was in flight."""

from __future__ import annotations

import errno
import io
import os
import struct
import sys
import zlib
from pathlib import Path
from types import TracebackType

import numpy as np

from frot._errors import InputError
from frot._files import check_path

__all__ = ["Checkpoint"]

# A header of two lines, so that `head -2` tells what the file is.
MAGIC = b"frot checkpoint 1\n"
# Before each record: the length of what follows, and its checksum together with the length's.
FRAME = struct.Struct("<QI")
INDEX = struct.Struct("<q")
# Windows locks bytes, and keeps others from reading them: one far behind what is ever written.
LOCKED_BYTE = 2**30


class Checkpoint:
    """Arrays by task number, in a file that survives being killed at any moment.

    Each `add` appends one record with a checksum and waits until the disk has it. A record that
    was cut short is dropped on opening, with whatever follows it. The file belongs to one piece
    of work, by its fingerprint, and to one process at a time, by a lock that the system takes
    back however the process ends. (File systems without locks are used without one.)

    Parameters
    ----------
    path : path
        Made if it is not there.
    fingerprint : str
        Of the inputs and options; see `frot._fingerprint.fingerprint`.

    Attributes
    ----------
    done : dict of int to array
        What is in the file. Last record wins.

    Raises
    ------
    InputError
        If the file is no checkpoint, is of other work, is in use, or cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "work.checkpoint"
    >>> with Checkpoint(path, "f1") as checkpoint:
    ...     checkpoint.add(7, np.array([0.5, 1.5]))
    >>> with Checkpoint(path, "f1") as checkpoint:
    ...     checkpoint.done
    {7: array([0.5, 1.5])}
    >>> Checkpoint(path, "f2")
    Traceback (most recent call last):
    ...
    frot._errors.InputError: checkpoint: ... is of other data or options; ...
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        self.path = check_path(path, "checkpoint")
        self.done: dict[int, np.ndarray] = {}
        self._file = _open(self.path)
        try:
            _lock(self._file, self.path)
            self._end = self._read(MAGIC + fingerprint.encode() + b"\n")
        except BaseException:
            self._file.close()
            raise

    def add(self, index: int, array: np.ndarray) -> None:
        """Append a result; when this returns, it is on the disk."""
        content = io.BytesIO()
        content.write(INDEX.pack(index))
        np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
        record = _framed(content.getvalue())
        # Not at the end of the file but of its last good record: a write that failed half way,
        # the disk being full, is overwritten by the next.
        self._write(self._end, record)
        self._end += len(record)
        self.done[index] = np.array(array)

    def close(self) -> None:
        """Close the file and give up the lock."""
        self._file.close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self, header: bytes) -> int:
        """Read every good record and cut off what follows; return where the next one goes."""
        self._file.seek(0)
        content = self._file.readall() or b""
        found = content[: len(header)]
        if found != header:
            if not MAGIC.startswith(found[: len(MAGIC)]):
                raise InputError(
                    f"checkpoint: {self.path} exists and is no checkpoint; give another path"
                )
            if b"\n" in found[len(MAGIC) :] or len(found) == len(header):
                raise InputError(
                    f"checkpoint: {self.path} is of other data or options; give another path, "
                    "or remove it to start anew"
                )
            # The process ended while it wrote the header: there is nothing to keep.
            content = header
            self._write(0, header)
        end = len(header)
        while (record := _unframed(content, end)) is not None:
            index, array = record
            self.done[index] = array
            end += FRAME.size + FRAME.unpack_from(content, end)[0]
        if end < len(content):
            self._file.truncate(end)
        return end

    def _write(self, at: int, content: bytes) -> None:
        self._file.seek(at)
        left = memoryview(content)
        try:
            while left:
                left = left[self._file.write(left) or 0 :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise OSError(error.errno, f"checkpoint: {error.strerror}", str(self.path)) from None


def _framed(content: bytes) -> bytes:
    length = len(content)
    checksum = zlib.crc32(content, zlib.crc32(length.to_bytes(8, "little")))
    return FRAME.pack(length, checksum) + content


def _unframed(content: bytes, start: int) -> tuple[int, np.ndarray] | None:
    """Read the record at `start`, or None if there is no whole one."""
    body = start + FRAME.size
    if len(content) < body:
        return None
    length, _ = FRAME.unpack_from(content, start)
    record = content[body : body + length]
    # A tail of zeros, which some file systems leave after a power cut, has length zero.
    if length <= INDEX.size or _framed(record) != content[start : body + length]:
        return None
    array = np.lib.format.read_array(io.BytesIO(record[INDEX.size :]), allow_pickle=False)
    return INDEX.unpack_from(record)[0], array


def _open(path: Path) -> io.FileIO:
    """Open for reading and writing, made if absent, never emptied."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        raise InputError(f"checkpoint: {path} cannot be opened: {error.strerror}") from None
    return io.FileIO(handle, "r+")


def _lock(file: io.FileIO, path: Path) -> None:
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            raise InputError(
                f"checkpoint: {path} is in use by another run; wait for it, or give another path"
            ) from None
        # Some network file systems have no locks; the rest of the promise holds there.
