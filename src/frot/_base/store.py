"""The checkpoint store: finished pieces of work in one SQLite file, each committed by itself."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot._base.files import check_path, check_writable, read_array


class Store:
    """Finished pieces of work by number or name, in a file that survives being killed.

    When `add` returns, its piece is committed: whatever ends the process, the file holds every
    piece that was added and nothing by halves. (A power cut may cost the last few, not the file.)
    A piece whose checksum is wrong is as if it had not been added. Several processes of one
    machine may have the file open and add to it. While it is open, and after a kill, files ending
    in ``-wal`` and ``-shm`` belong to it.

    Parameters
    ----------
    path : path or None
        None keeps everything in memory.
    kind : str
        What the pieces are, in two or three words; a store of another kind is refused.
    about : mapping of str to JSON values, or None
        What the file is begun for, written when it is made. None is for reading: the file has to
        be there.
    name : str
        What messages call the argument that the path came from.
    wait : float
        Seconds to wait for another process that is writing; a write takes milliseconds.

    Attributes
    ----------
    about : dict
        What the file was begun for, which need not be what was passed now.

    Raises
    ------
    InputError
        If the file is not a store, of another kind or format, damaged, held by another process,
        or cannot be opened; by `add`, if the disk is full.

    Examples
    --------
    >>> with Store(None, "squares") as store:
    ...     store.add(3, np.array([9.0]))
    ...     store.add("note", {"seconds": 0.1}, work="other work")
    ...     store.finished(), store.finished("other work")
    ({3: array([9.])}, {'note': {'seconds': 0.1}})
    """

    # In the header of the file, so that other SQLite files are told apart: "frot".
    _mark, _format = 0x66726F74, 2
    # What reading a file raises that is no store, or a damaged one.
    _trouble_kinds = (
        sqlite3.Error, ValueError, KeyError, TypeError, RecursionError, OverflowError,
    )  # fmt: skip
    _tables = (
        "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE pieces (work TEXT, key, value BLOB NOT NULL, checksum INTEGER NOT NULL, "
        "PRIMARY KEY (work, key))",
    )

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        kind: str,
        about: Mapping[str, Any] | None = None,
        *,
        name: str = "store",
        wait: float = 30.0,
    ) -> None:
        self.path = None if path is None else check_path(path, name).expanduser()
        self._name = name
        # A store in memory (no path) starts empty, and is never opened only to be read.
        self._reading = about is None and path is not None
        self._written = False
        self._check_path()
        try:
            # Autocommit: transactions are begun and ended here, by name.
            self._file = sqlite3.connect(
                self.path or ":memory:", isolation_level=None, timeout=wait
            )
        except sqlite3.Error as error:
            raise self._error(f"cannot be opened: {error}") from None
        try:
            self.about = self._begin({"kind": kind, **(about or {})})
        except BaseException as error:
            self._file.close()
            if isinstance(error, self._trouble_kinds) and not isinstance(error, InputError):
                raise self._trouble(error) from None
            raise

    def add(self, key: int | str, value: Any, work: str = "") -> None:
        """Keep a piece; when this returns it is committed. One of the same key is replaced.

        Parameters
        ----------
        key : int or str
        value : numpy.ndarray, or JSON value
        work : str
            A fingerprint of everything that the value depends on besides the key: inputs,
            options, and the version where another one may compute another value.
        """
        content = _packed(value)
        row = (work, key, content, _checksum(work, key, content))
        try:
            if not self._written:
                # Commits are appended to a log, 100 times as fast as rewriting pages in place.
                # Not before there is something to write: a store that is refused stays as it was.
                self._file.execute("PRAGMA journal_mode = WAL")
                self._file.execute("PRAGMA synchronous = NORMAL")
                self._written = True
            self._file.execute("INSERT OR REPLACE INTO pieces VALUES (?, ?, ?, ?)", row)
        except sqlite3.Error as error:
            raise self._trouble(error) from None

    def finished(self, work: str = "") -> dict[Any, Any]:
        """Everything that is kept of a piece of work, by key, in the order it was added in."""
        query = "SELECT key, value, checksum FROM pieces WHERE work = ? ORDER BY rowid"
        try:
            rows = self._file.execute(query, (work,)).fetchall()
            # SQLite keeps any type in any column; of a damaged file it need not be bytes.
            return {
                key: _unpacked(content)
                for key, content, checksum in rows
                if isinstance(content, bytes) and checksum == _checksum(work, key, content)
            }
        except self._trouble_kinds as error:
            raise self._trouble(error) from None

    def close(self) -> None:
        """Close the file; what was in the log is in the file then, unless others use it."""
        # Others, or a full disk, leave the log, from which the file can be opened all the same.
        with suppress(sqlite3.Error):
            if self._written:
                self._file.execute("PRAGMA busy_timeout = 0")
                self._file.execute("PRAGMA journal_mode = DELETE")
        self._file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _error(self, text: str) -> InputError:
        return InputError(f"{self._name}: {self.path} {text}")

    def _trouble(self, error: Exception) -> InputError:
        """Say what an error of SQLite's means; Python 3.10 has no codes, only its messages."""
        text = str(error)
        if "locked" in text:
            return self._error(
                "is locked: another process has it open and is writing; wait until it has ended, "
                "or give another path"
            )
        if "not a database" in text:
            return self._error("is not a store of frot's; give another path")
        if any(word in text for word in ("full", "readonly", "I/O")):
            return self._error(f"cannot be written: {text}")
        return self._error(f"is damaged ({text}); remove it to start anew")

    def _check_path(self) -> None:
        path = self.path
        if path is None:
            return
        check_writable(path, f"{self._name}: ")
        if not path.exists():
            if self._reading:
                raise self._error("is not there")
            return
        try:
            path.open("rb").close()
        except OSError as error:
            raise self._error(f"cannot be opened: {error.strerror}") from None

    def _begin(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Make the tables if there are none, all or nothing; return what the file is about."""
        if not self._reading:
            # Immediate, so that of two processes that begin together one makes the tables.
            self._file.execute("BEGIN IMMEDIATE")
        if self._file.execute("PRAGMA application_id").fetchone()[0] != self._mark:
            others = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if others or self._reading:
                raise self._error("is not a store of frot's; give another path")
            for table in self._tables:
                self._file.execute(table)
            rows = [(name, json.dumps(value)) for name, value in about.items()]
            self._file.executemany("INSERT INTO about VALUES (?, ?)", rows)
            self._file.execute(f"PRAGMA application_id = {self._mark}")
            self._file.execute(f"PRAGMA user_version = {self._format}")
        if not self._reading:
            self._file.execute("COMMIT")
        version = self._file.execute("PRAGMA user_version").fetchone()[0]
        if version != self._format:
            raise self._error(
                f"is of format {version}, and this version of frot reads {self._format}; give "
                "another path, or remove it to start anew"
            )
        rows = self._file.execute("SELECT name, value FROM about").fetchall()
        known = {name: json.loads(value) for name, value in rows}
        if known["kind"] != about["kind"]:
            raise self._error(f"is a store of {known['kind']}, not of {about['kind']}")
        if missing := [name for name in about if name not in known]:
            raise self._error(f"does not say its {missing[0]}; remove it to start anew")
        return known


def open_checkpoint(path: str | os.PathLike[str], fingerprint: str, wait: float = 30.0) -> Store:
    """Open, or begin, the store of one piece of work: arrays by the number of the task.

    The `fingerprint` is of the inputs and options; a file of other work is refused.
    """
    about = {"fingerprint": fingerprint}
    kept = Store(path, "numbered tasks", about, name="checkpoint", wait=wait)
    if kept.about["fingerprint"] != fingerprint:
        kept.close()
        raise InputError(
            f"checkpoint: {kept.path} is of other data or options; give another path, or remove "
            "it to start anew"
        )
    return kept


def _packed(value: Any) -> bytes:
    if not isinstance(value, np.ndarray):
        return json.dumps(value).encode()
    content = io.BytesIO()
    np.lib.format.write_array(content, value, allow_pickle=False)
    return content.getvalue()


def _unpacked(content: bytes) -> Any:
    # No JSON begins with the first byte of NumPy's.
    if content.startswith(np.lib.format.MAGIC_PREFIX):
        return read_array(io.BytesIO(content), len(content))
    return json.loads(content)


def _checksum(work: str, key: int | str, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(repr((work, key)).encode()))
