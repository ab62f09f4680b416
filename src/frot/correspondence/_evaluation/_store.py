"""Finished pairs in one SQLite file, each committed by itself."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from frot._errors import InputError
from frot.correspondence._evaluation._record import Record

__all__ = ["Store"]

# In the header of the file, so that other SQLite files are told apart: "frot".
MARK = 0x66726F74
FORMAT = 1
COLUMNS = (
    "id TEXT PRIMARY KEY",
    "category TEXT NOT NULL",
    "failure TEXT",
    "errors BLOB NOT NULL",
    "points BLOB NOT NULL",
    "alpha TEXT NOT NULL",
    "seconds REAL NOT NULL",
    "status TEXT",
    "value REAL",
    "lower REAL",
    "upper REAL",
    "lt_acc REAL",
    "iou REAL",
    "warnings TEXT NOT NULL",
)
NAMES = tuple(column.partition(" ")[0] for column in COLUMNS)


class Store:
    """An open file of finished pairs; `about` is what it was begun for.

    When `add` returns, its pair is committed: whatever ends the process, the file holds every pair
    that was added and nothing by halves. (A power cut may cost the last few, not the file.) While
    it is open, and after a kill, a second file ending in ``-wal`` belongs to it. It is locked.

    Parameters
    ----------
    path : path or None
        None keeps everything in memory.
    about : mapping of str to JSON values
        Written when the file is made.
    resume : bool
        Whether the file may be there already.

    Raises
    ------
    InputError
        If the file is there and `resume` is false, is in use, or is no such file.

    Examples
    --------
    >>> with Store(None, {"name": "PF-WILLOW"}) as store:
    ...     store.add(Record("a-b", "cat", alpha={"last": 1.0}))
    ...     store.records()["a-b"].alpha
    {'last': 1.0}
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        about: Mapping[str, Any] | None,
        resume: bool = False,
    ) -> None:
        self.path = None if path is None else _path(path)
        if self.path is not None:
            _check(self.path, about is None, resume)
        try:
            # Autocommit: transactions are begun and ended here, by name.
            self._file = sqlite3.connect(self.path or ":memory:", isolation_level=None, timeout=0.5)
        except sqlite3.Error as error:
            raise InputError(f"store: {self.path} cannot be opened: {error}") from None
        try:
            # Held until it is closed: two runs at a time would do everything twice.
            self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._begin(about)
            # Commits are appended to a log, 100 times as fast as rewriting pages in place.
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error as error:
            self._file.close()
            if "locked" in str(error):
                text = "is in use by another run; wait for it, or give another path"
                raise InputError(f"store: {self.path} {text}") from None
            raise InputError(f"store: {self.path} is no store of an evaluation: {error}") from None
        except BaseException:
            self._file.close()
            raise

    def add(self, record: Record) -> None:
        """Keep a pair; one that is there already is replaced."""
        places = ", ".join("?" * len(NAMES))
        row = (
            record.id,
            record.category,
            record.failure,
            np.asarray(record.errors, dtype="<f8").tobytes(),
            np.asarray(record.points, dtype="<f8").tobytes(),
            json.dumps(record.alpha),
            record.seconds,
            record.status,
            record.value,
            record.lower,
            record.upper,
            record.lt_acc,
            record.iou,
            json.dumps(record.warnings),
        )
        try:
            self._file.execute(f"INSERT OR REPLACE INTO pairs VALUES ({places})", row)
        except sqlite3.Error as error:
            raise OSError(f"store: {self.path} cannot be written: {error}") from None

    def records(self) -> dict[str, Record]:
        """Everything that is kept, by id and in the order of ids."""
        rows = self._file.execute(f"SELECT {', '.join(NAMES)} FROM pairs ORDER BY id").fetchall()
        return {row[0]: _record(row) for row in rows}

    def close(self) -> None:
        """Close the file and give up the lock; what was in the log is in the file then."""
        # A disk that is full leaves the log, from which the file can be opened all the same.
        with suppress(sqlite3.Error):
            self._file.execute("PRAGMA journal_mode = DELETE")
        self._file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _begin(self, about: Mapping[str, Any] | None) -> None:
        """Make the tables if there are none; all of it or nothing, if the process is killed."""
        self._file.execute("BEGIN EXCLUSIVE")
        made = self._file.execute("PRAGMA application_id").fetchone()[0]
        others = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if made != MARK:
            if others or about is None:
                raise InputError(f"store: {self.path} is no store of an evaluation")
            self._file.execute(f"CREATE TABLE pairs ({', '.join(COLUMNS)})")
            self._file.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            rows = [(name, json.dumps(value)) for name, value in about.items()]
            self._file.executemany("INSERT INTO about VALUES (?, ?)", rows)
            self._file.execute(f"PRAGMA application_id = {MARK}")
            self._file.execute(f"PRAGMA user_version = {FORMAT}")
        self._file.execute("COMMIT")
        version = self._file.execute("PRAGMA user_version").fetchone()[0]
        if version != FORMAT:
            raise InputError(
                f"store: {self.path} is of format {version}, and this version of frot reads "
                f"{FORMAT}; give another path"
            )
        rows = self._file.execute("SELECT name, value FROM about").fetchall()
        self.about: dict[str, Any] = {name: json.loads(value) for name, value in rows}


def _path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser()
    except TypeError:
        raise InputError(f"store: {path!r} is not a path") from None


def _check(path: Path, reading: bool, resume: bool) -> None:
    if path.is_dir():
        raise InputError(f"store: {path} is a folder; give the path of a file")
    if not path.parent.is_dir():
        raise InputError(f"store: {path.parent} does not exist; make that folder first")
    if reading and not path.is_file():
        raise InputError(f"store: {path} is not there")
    # An empty file is what a process leaves that is killed before its first write.
    if not reading and not resume and path.exists() and path.stat().st_size:
        raise InputError(
            f"store: {path} is there already; pass resume=True to go on from it, or another path"
        )


def _record(row: tuple[Any, ...]) -> Record:
    known = dict(zip(NAMES, row, strict=True))
    return Record(
        **{
            **known,
            "errors": np.frombuffer(known["errors"], dtype="<f8"),
            "points": np.frombuffer(known["points"], dtype="<f8").reshape(-1, 2),
            "alpha": json.loads(known["alpha"]),
            "warnings": tuple(json.loads(known["warnings"])),
        }
    )
