"""One pair, matched and scored, wherever the work is done, though processes may die."""

from __future__ import annotations

import hashlib
import importlib
import pickle
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError, MissingDependencyError, hearing, require
from frot.correspondence._pair import Pair
from frot.correspondence._score import mask_score, outline_mask, point_errors
from frot.correspondence.datasets.annotation import photo_size
from frot.correspondence.evaluation._kept import Record

__all__ = ["DIED", "Carrier", "Send", "Task", "carried", "match_pair", "surviving"]

# The matcher of this process: networks are loaded once, not once a pair.
_LOADED: dict[str, Any] = {}


@dataclass(frozen=True, eq=False)
class Carrier:
    """A matcher on its way to another process: by its bytes, or by a file that holds them."""

    digest: str
    content: bytes | None = None
    path: str | None = None

    def open(self) -> Any:
        """Return the matcher; the same object for every pair in a process."""
        if self.digest not in _LOADED:
            content = Path(str(self.path)).read_bytes() if self.content is None else self.content
            _LOADED.clear()
            _LOADED[self.digest] = pickle.loads(content)
        return _LOADED[self.digest]


@contextmanager
def carried(matcher: Any, *, by_file: bool) -> Iterator[Carrier]:
    """Yield a carrier of the matcher; a file serves the processes of one machine.

    Raises
    ------
    InputError
        If it cannot be pickled.
    """
    try:
        content = _cloudpickle().dumps(matcher)
    except MissingDependencyError:
        raise
    except Exception as error:
        raise InputError(
            f"matcher: cannot be sent to other processes ({error}); use workers=1"
        ) from None
    digest = hashlib.sha256(content).hexdigest()
    if not by_file:
        yield Carrier(digest, content)
        return
    with tempfile.TemporaryDirectory(prefix="frot-") as folder:
        path = Path(folder) / "matcher.pickle"
        path.write_bytes(content)
        yield Carrier(digest, path=str(path))


class Task(NamedTuple):
    """A pair and what to match it with."""

    pair: Pair
    matcher: Any
    masks: bool


def match_pair(task: Task) -> Record:
    """Match a pair and score it; what it raises is a failure of the pair, not of the run."""
    pair = task.pair
    start = time.perf_counter()
    try:
        matcher = task.matcher.open() if isinstance(task.matcher, Carrier) else task.matcher
        with hearing() as heard:
            match = matcher(pair.source, pair.target)
            found = np.asarray(match.transfer(pair.source_points).points, dtype=float)
        seconds = time.perf_counter() - start
        result = getattr(match, "result", None)
        status = getattr(getattr(result, "status", None), "name", None)
        scored = _score_mask(pair, found) if task.masks else _score_points(pair, found)
        return Record(
            pair.id,
            pair.category,
            points=found,
            alpha={str(name): float(weight) for name, weight in dict(match.alpha or {}).items()},
            seconds=seconds,
            status=status,
            value=_number(result, "value"),
            lower=_number(result, "lower"),
            upper=_number(result, "upper"),
            warnings=tuple(dict.fromkeys(heard)),
            **scored,
        )
    except MissingDependencyError:
        # No pair can be matched without it.
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        seconds = time.perf_counter() - start
        return Record(pair.id, pair.category, failure=text, seconds=seconds)


def _score_points(pair: Pair, found: np.ndarray) -> dict[str, Any]:
    return {"errors": point_errors(found, pair.target_points, pair.length)}


def _score_mask(pair: Pair, found: np.ndarray) -> dict[str, Any]:
    truth = pair.target_mask
    if truth is None:
        truth = outline_mask(pair.target_points, *photo_size(pair.target))
    score = mask_score(outline_mask(found, *truth.shape), truth)
    return {"lt_acc": score.lt_acc, "iou": score.iou}


def _number(result: Any, name: str) -> float | None:
    value = getattr(result, name, None)
    return None if value is None else float(value)


def _cloudpickle() -> Any:
    """Return joblib's pickler; plain pickle would not take what was defined in a notebook."""
    try:
        return importlib.import_module("cloudpickle")
    except ModuleNotFoundError:
        # Before 1.6, joblib brought its own copy.
        return require("joblib.externals.cloudpickle", "parallel")


# What joblib and Dask raise when the process that ran a task is no more.
DEATHS = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker")
DIED = "the process that matched it died, twice; it may need more memory than there is"
# What does tasks, in the order in which they are finished.
Send = Callable[[Iterable[Task]], Generator[Record, None, None]]


def surviving(send: Send, tasks: Sequence[Task]) -> Generator[Record, None, None]:
    """Yield a record for every task, though processes may die.

    Nobody can tell which of the tasks in flight took its process down. Each of them is done by
    itself; the one that is alone when its process dies has failed.
    """
    left = {task.pair.id: task for task in tasks}
    while left:
        sent: list[Task] = []
        try:
            with closing(send(_noted(list(left.values()), sent))) as records:
                for record in records:
                    del left[record.id]
                    yield record
        except Exception as error:
            if not _is_death(error):
                raise
        else:
            return
        for task in [task for task in sent if task.pair.id in left]:
            try:
                (record,) = send([task])
            except Exception as error:
                if not _is_death(error):
                    raise
                record = Record(task.pair.id, task.pair.category, failure=DIED)
            del left[record.id]
            yield record


def _noted(tasks: Iterable[Task], sent: list[Task]) -> Iterator[Task]:
    for task in tasks:
        sent.append(task)
        yield task


def _is_death(error: Exception) -> bool:
    return any(kind.__name__ in DEATHS for kind in type(error).__mro__)
