"""`evaluate`: every pair of a data set matched, scored and stored; crashes lose nothing."""

from __future__ import annotations

import hashlib
import importlib
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from frot._base.errors import InputError, MissingDependencyError, collect_warnings, require
from frot._base.files import check_path
from frot._base.fingerprint import fingerprint
from frot._base.parallel import check_n_jobs, spread
from frot._base.store import Store
from frot.correspondence.datasets.pair_set import BrokenAnnotationError, Pair, PairSet, photo_size
from frot.correspondence.evaluation.scores import (
    Evaluation,
    Record,
    mask_score,
    outline_mask,
    point_errors,
)
from frot.solvers.progress import counting_bar


def evaluate(
    pairs: PairSet,
    matcher: Any,
    store: str | os.PathLike[str] | None = None,
    *,
    workers: int = 1,
    backend: Literal["loky", "dask"] = "loky",
    resume: bool = False,
    retry_failed: bool = False,
    limit: int | None = None,
    progress: bool = True,
) -> Any:
    """Match every pair of a data set, keep each as it is finished, and score them.

    If the process ends early, or one of its workers is killed, finished pairs are in `store`, and
    the same call with ``resume=True`` does the others only. A pair that raises is kept as failed
    with its message and does not stop the others.

    Parameters
    ----------
    pairs : PairSet
        As from `load_pairs`.
    matcher : Matcher, callable, or a mapping of names to such
        Called with the paths of source and target; what it returns has ``transfer(points).points``
        and ``alpha``, and may have ``result``, a `Result`. Several are run on the same pairs;
        those that `Matcher.with_settings` makes of one share the features of photographs.
    store : path, optional
        An SQLite file that keeps the results; without it they are in memory only.
    workers : int
        Processes; 1 is this one, -1 one per processor. On a Dask cluster all workers take part.
    backend : {"loky", "dask"}
        Processes of joblib's here, or the Dask cluster of the ``distributed.Client`` that is open.
    resume : bool
        Go on from what `store` holds, if it is there; it has to be of the same data set and
        matcher.
    retry_failed : bool
        Whether failed pairs are among those to do when resumed.
    limit : int, optional
        Number of pairs, spread over the data set.
    progress : bool
        Show a bar with the time left, on stderr.

    Returns
    -------
    Evaluation, or a dict of them by name
        `result_table` puts these side by side, with paired differences.

    Raises
    ------
    InputError
        If `store` is there and `resume` is false, or is of other settings; the message says which.
    KeyboardInterrupt
        On Ctrl-C; the message says how to go on.

    Examples
    --------
    >>> from pathlib import Path
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> points = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> pair = Pair("a-b", Path(__file__), Path(__file__), points, points, "cat", 10.0)
    >>> def stay(source, target):
    ...     return SimpleNamespace(transfer=lambda p: SimpleNamespace(points=p), alpha={})
    >>> evaluate(PairSet("one", (pair,)), stay, progress=False).pck(0.1).value
    1.0
    """
    _check(pairs, backend)
    workers = _workers(workers)
    chosen = pairs.first(limit)
    matchers = matcher if isinstance(matcher, Mapping) else {"": matcher}
    if not matchers:
        raise InputError("matcher: has no matchers; give one or more by name")
    for one in matchers.values():
        if not callable(one):
            raise InputError(f"matcher: a {type(one).__name__} cannot match; give a Matcher")
    about = describe(pairs, matchers)
    with open_store(store, about, resume) as kept:
        known = read_records(kept)
        if retry_failed:
            known = {key: one for key, one in known.items() if one.failure is None}
        left = [pair for pair in chosen if any(_key(x, pair.id) not in known for x in matchers)]
        # Pairs of one source together, so that its features are at hand.
        order = {path: k for k, path in enumerate(dict.fromkeys(pair.source for pair in left))}
        left.sort(key=lambda pair: order[pair.source])
        todo = [(x, pair) for pair in left for x in matchers if _key(x, pair.id) not in known]
        count = len(chosen) * len(matchers)
        done = count - len(todo)
        bar = counting_bar("pairs", count, count, enabled=bool(progress), before=(done, done))
        try:
            with bar as show, _ready(matchers, backend, workers if todo else 1) as (carrier, send):
                tasks = (PairTask(pair, x, carrier, pairs.score == "masks") for x, pair in todo)
                with closing(send(tasks)) as records:
                    for name, record in records:
                        kept.add(_key(name, record.id), record.as_json())
                        done += 1
                        show(1, 1.0)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_how_to_go_on(kept, done, count)) from None
        except Exception as error:
            # What joblib and Dask raise when the process that ran a task is no more.
            killed = {"TerminatedWorkerError", "BrokenProcessPool", "KilledWorker"}
            if killed & {kind.__name__ for kind in type(error).__mro__}:
                how = _how_to_go_on(kept, done, count)
                raise InputError(
                    f"workers: a process was killed, maybe for want of memory; {how}, with fewer "
                    "workers"
                ) from error
            raise
        known = read_records(kept)
    found = {
        name: evaluation_of(about, name, (known[_key(name, pair.id)] for pair in chosen))
        for name in matchers
    }
    return found if isinstance(matcher, Mapping) else found[""]


def _key(name: str, pair: str) -> str:
    """Under what the record of a matcher and a pair is kept."""
    return f"{name}\t{pair}" if name else pair


def read_evaluation(store: str | os.PathLike[str]) -> Any:
    """Read what a store holds, be the run finished or not: an Evaluation, or a dict of several.

    Raises
    ------
    InputError
        If the file is not there, or is not a store of an evaluation.
    """
    with open_store(store, None) as kept:
        about, known = kept.about, read_records(kept)
    by_name: dict[str, list[Record]] = {name: [] for name in about["settings"]}
    for key, record in known.items():
        by_name[key.partition("\t")[0] if "\t" in key else ""].append(record)
    found = {name: evaluation_of(about, name, some) for name, some in by_name.items()}
    return found.get("", found)


def evaluation_of(about: Mapping[str, Any], name: str, records: Iterable[Record]) -> Evaluation:
    """Return the evaluation of one of the matchers that `describe` told of."""
    return Evaluation(
        about["data set"],
        tuple(records),
        tuple(about["skipped"]),
        about["protocol"],
        about["score"],
        about["settings"][name],
        tuple(about["notes"]),
    )


def describe(pairs: PairSet, matchers: Mapping[str, Any]) -> dict[str, Any]:
    """Return data set, matchers and rules, as JSON can hold them."""
    from importlib.metadata import version

    return {
        "data set": pairs.name,
        "pairs": pairs.fingerprint,
        "matchers": {name: _fingerprint(one) for name, one in matchers.items()},
        "settings": {name: _settings(one) for name, one in matchers.items()},
        "protocol": pairs.protocol,
        "score": pairs.score,
        "skipped": list(pairs.skipped),
        "notes": list(pairs.notes),
        "version": version("frot"),
    }


def _fingerprint(matcher: Any) -> str:
    known = getattr(matcher, "fingerprint", None)
    return known if isinstance(known, str) else fingerprint(matcher=matcher)


def _settings(matcher: Any) -> dict[str, str]:
    """What a matcher says of itself, in words, for tables and for messages."""
    named = getattr(matcher, "settings", matcher)
    if is_dataclass(named):
        named = {one.name: getattr(named, one.name) for one in fields(named)}
    if not isinstance(named, Mapping):
        named = {"matcher": getattr(matcher, "__qualname__", type(matcher).__qualname__)}
    if (backbone := getattr(matcher, "backbone", None)) is not None:
        layers = getattr(backbone, "layers", ())
        known = {"backbone": getattr(backbone, "name", backbone), "layers": len(layers)}
        named = {**named, **known}
    return {str(name): str(value) for name, value in named.items()}


def open_store(
    path: str | os.PathLike[str] | None, about: Mapping[str, Any] | None, resume: bool = False
) -> Store:
    """Open the store of an evaluation; `about` is what it is for, None to read what there is.

    Raises
    ------
    InputError
        If the file is there and `resume` is false, or is of other work; the message says which.
    """
    if not resume and about is not None and path is not None:
        # An empty file is what a process leaves that is killed before its first write.
        there = check_path(path, "store").expanduser()
        if there.is_file() and there.stat().st_size:
            raise InputError(
                f"store: {there} is there already; pass resume=True to go on from it, or another "
                "path"
            )
    store = Store(path, "an evaluation", about)
    if about is not None and (difference := _difference(store.about, about)):
        store.close()
        raise InputError(f"store: {store.path} {difference}; give another path")
    return store


def read_records(store: Store) -> dict[str, Record]:
    """Every pair that is kept, by id and in the order of ids."""
    return {key: Record.from_json(known) for key, known in sorted(store.finished().items())}


def _difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """What is other about the work that a store was begun with; None where it is the same."""
    if was["data set"] != now["data set"]:
        return f"is of {was['data set']}, not of {now['data set']}"
    if was["pairs"] != now["pairs"]:
        return f"is of other pairs, points or photographs of {now['data set']}"
    if was["matchers"].keys() != now["matchers"].keys():
        return f"is of {', '.join(was['matchers'])}, not of {', '.join(now['matchers'])}"
    for matcher, known in now["matchers"].items():
        if was["matchers"][matcher] != known:
            old, new = was["settings"][matcher], now["settings"][matcher]
            changed = [
                f"{name} was {old.get(name)} and is {new.get(name)}"
                for name in dict.fromkeys([*old, *new])
                if old.get(name) != new.get(name)
            ]
            what = "; ".join(changed) or "its fingerprint has changed"
            return f"was begun with another matcher: {what}"
    if was["version"] != now["version"]:
        # Another version may match otherwise: its pairs do not belong into the same table.
        return f"was begun with frot {was['version']}, and this is {now['version']}"
    return None


@dataclass(frozen=True)
class _Content:
    """What reads pickled matchers; equal where they are."""

    digest: str
    read: Callable[[], bytes] = field(compare=False)


@lru_cache(maxsize=1)
def _loaded(content: _Content) -> Any:
    """Return the matchers that were pickled; the same objects for every pair in a process."""
    return pickle.loads(content.read())


@contextmanager
def _pickled(matchers: Any, *, by_file: bool) -> Iterator[Callable[[], Any]]:
    """Yield what returns the matchers in another process; a file serves those of one machine."""
    try:
        content = _cloudpickle().dumps(matchers)
    except MissingDependencyError:
        raise
    except Exception as error:
        raise InputError(
            f"matcher: cannot be sent to other processes ({error}); use workers=1"
        ) from None
    digest = hashlib.sha256(content).hexdigest()
    if not by_file:
        yield partial(_loaded, _Content(digest, partial(bytes, content)))
        return
    with tempfile.TemporaryDirectory(prefix="frot-") as folder:
        path = Path(folder) / "matcher.pickle"
        path.write_bytes(content)
        yield partial(_loaded, _Content(digest, path.read_bytes))


class PairTask(NamedTuple):
    """A pair and which matcher to match it with."""

    pair: Pair
    matcher: str
    # Returns the matchers by name, in whatever process.
    matchers: Callable[[], Mapping[str, Any]]
    masks: bool


def match_pair(task: PairTask) -> tuple[str, Record]:
    """Match a pair and score it; what it raises is a failure of the pair, not of the run."""
    return task.matcher, _matched(task)


def _matched(task: PairTask) -> Record:
    pair = task.pair
    start = time.perf_counter()
    try:
        matcher = task.matchers()[task.matcher]
        with collect_warnings() as heard:
            match = matcher(pair.source, pair.target)
            found = np.asarray(match.transfer(pair.source_points).points, dtype=float)
        seconds = time.perf_counter() - start
        result = getattr(match, "result", None)
        proof = {} if result is None else {
            "status": result.status.name,
            **{name: float(getattr(result, name)) for name in ("value", "lower", "upper")},
        }  # fmt: skip
        return Record(
            pair.id,
            pair.category,
            points=found,
            alpha={str(name): float(weight) for name, weight in dict(match.alpha or {}).items()},
            seconds=seconds,
            **proof,
            warnings=tuple(dict.fromkeys(heard)),
            tags=pair.tags,
            image_share=_image_share(pair),
            **_scored(pair, found, task.masks),
        )
    except MissingDependencyError:
        # No pair can be matched without it.
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        seconds = time.perf_counter() - start
        return Record(pair.id, pair.category, failure=text, seconds=seconds)


def _scored(pair: Pair, found: np.ndarray, masks: bool) -> dict[str, Any]:
    if not masks:
        return {"errors": point_errors(found, pair.target_points, pair.length)}
    truth = pair.target_mask
    if truth is None:
        truth = outline_mask(pair.target_points, *photo_size(pair.target))
    score = mask_score(outline_mask(found, *truth.shape), truth)
    return {"lt_acc": score.lt_acc, "iou": score.iou}


def _image_share(pair: Pair) -> float | None:
    """The object's size over the longer side of its photograph, where that can be read."""
    try:
        return float(pair.length) / max(photo_size(pair.target))
    except BrokenAnnotationError:
        return None


def _cloudpickle() -> Any:
    """Return joblib's pickler; plain pickle would not take what was defined in a notebook."""
    try:
        return importlib.import_module("cloudpickle")
    except ModuleNotFoundError:
        # Before 1.6, joblib brought its own copy.
        return require("joblib.externals.cloudpickle", "parallel")


# What does tasks, in the order in which they are finished.
Send = Callable[[Iterable[PairTask]], Generator[tuple[str, Record], None, None]]


@contextmanager
def _ready(
    matchers: Mapping[str, Any], backend: str, workers: int
) -> Iterator[tuple[Callable[[], Any], Send]]:
    """Yield what returns the matchers where tasks are done, and what does them."""
    if backend == "loky" and workers == 1:
        yield lambda: matchers, lambda tasks: spread(match_pair, tasks, 1)
        return
    joblib: Any = require("joblib", "parallel")
    where = {"backend": "dask"} if backend == "dask" else {"backend": "loky", "n_jobs": workers}
    with (
        _pickled(dict(matchers), by_file=backend == "loky") as carrier,
        joblib.parallel_config(**where),
    ):
        yield carrier, lambda tasks: spread(match_pair, tasks, at_once=True)


def _check(pairs: Any, backend: str) -> None:
    if not isinstance(pairs, PairSet):
        raise InputError(f"pairs: is a {type(pairs).__name__}; use load_pairs or make a PairSet")
    if not len(pairs):
        raise InputError(f"pairs: {pairs.name} has none")
    if backend not in ("loky", "dask"):
        raise InputError(f"backend={backend!r} is not known; give 'loky' or 'dask'")
    if backend == "dask":
        distributed: Any = require("distributed", "dask")
        try:
            distributed.get_client()
        except ValueError:
            raise InputError(
                "backend='dask' needs a cluster; open a distributed.Client(address) first"
            ) from None


def _workers(workers: Any) -> int:
    try:
        return check_n_jobs(workers) or 1
    except InputError as error:
        raise InputError(str(error).replace("n_jobs", "workers")) from None


def _how_to_go_on(store: Store, done: int, count: int) -> str:
    if store.path is None:
        return f"{done} of {count} pairs were done, and are lost for want of a store"
    return (
        f"{done} of {count} pairs are kept in {store.path}; the same call with resume=True goes on "
        "from there"
    )
