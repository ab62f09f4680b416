"""`evaluate`: every pair of a data set, kept as it is finished."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Literal

from frot._base.errors import InputError, require
from frot._base.parallel import check_n_jobs, spread
from frot._base.store import Store
from frot.correspondence._pair import Pair
from frot.correspondence.datasets import PairSet
from frot.correspondence.evaluation._kept import describe, open_store, read_records
from frot.correspondence.evaluation._result import Evaluation
from frot.correspondence.evaluation._work import Send, Task, carried, match_pair, surviving
from frot.solvers.progress import counting_bar

__all__ = ["evaluate"]


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
) -> Evaluation:
    """Match every pair of a data set, keep each as it is finished, and score them.

    Whatever ends the process, finished pairs are in `store`, and the same call with
    ``resume=True`` does the others only. A pair that raises is kept as failed with its message and
    stops no other; one that takes its worker process down is tried once more by itself.

    Parameters
    ----------
    pairs : PairSet
        As from `load_pairs`.
    matcher : Matcher, or callable
        Called with the paths of source and target; what it returns has ``transfer(points).points``
        and ``alpha``, and may have ``result``.
    store : path, optional
        An SQLite file. Without it nothing outlives the process.
    workers : int
        Processes; 1 is this one, -1 one a processor. On a Dask cluster all workers take part.
    backend : {"loky", "dask"}
        Processes of joblib's here, or the Dask cluster of the ``distributed.Client`` that is open.
    resume : bool
        Go on from what `store` holds, if it is there; it has to be of the same data set and
        matcher.
    retry_failed : bool
        Whether failed pairs are among those to do when resumed.
    limit : int, optional
        So many pairs, spread over the data set.
    progress : bool
        Show a bar with the time left, on stderr.

    Returns
    -------
    Evaluation

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
    about = describe(pairs, matcher)
    with open_store(store, about, resume) as kept:
        known = read_records(kept)
        if retry_failed:
            known = {id: one for id, one in known.items() if one.failure is None}
        left = _grouped([pair for pair in chosen if pair.id not in known])
        done = len(chosen) - len(left)
        bar = counting_bar(
            "pairs", len(chosen), len(chosen), enabled=bool(progress), before=(done, done)
        )
        try:
            with bar as show, _ready(matcher, backend, workers if left else 1) as (carrier, send):
                tasks = [Task(pair, carrier, pairs.score == "masks") for pair in left]
                with closing(surviving(send, tasks)) as records:
                    for record in records:
                        kept.add(record.id, record.as_json())
                        done += 1
                        show(1, 1.0)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_how_to_go_on(kept, done, len(chosen))) from None
        known = read_records(kept)
        records = tuple(known[pair.id] for pair in chosen)
    return Evaluation(
        name=pairs.name,
        records=records,
        skipped=pairs.skipped,
        protocol=pairs.protocol,
        score=pairs.score,
        settings=about["settings"],
        notes=pairs.notes,
    )


@contextmanager
def _ready(matcher: Any, backend: str, workers: int) -> Iterator[tuple[Any, Send]]:
    """Yield the matcher in the form it travels in, and what does tasks with it."""
    if backend == "loky" and workers == 1:
        yield matcher, lambda tasks: spread(match_pair, tasks, 1)
        return
    joblib: Any = require("joblib", "parallel")
    where = {"backend": "dask"} if backend == "dask" else {"backend": "loky", "n_jobs": workers}
    with carried(matcher, by_file=backend == "loky") as carrier, joblib.parallel_config(**where):
        yield carrier, lambda tasks: spread(match_pair, tasks, at_once=True)


def _grouped(pairs: Sequence[Pair]) -> list[Pair]:
    """Bring pairs of one source together, so that its features are at hand."""
    groups: dict[Any, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.source, []).append(pair)
    return [pair for group in groups.values() for pair in group]


def _check(pairs: Any, backend: str) -> None:
    if not isinstance(pairs, PairSet):
        raise InputError(f"pairs: is a {type(pairs).__name__}; use load_pairs or make a PairSet")
    if not len(pairs):
        raise InputError(f"pairs: {pairs.name} has none")
    if backend not in ("loky", "dask"):
        raise InputError(f"backend={backend!r} is not known; give 'loky' or 'dask'")
    if backend == "dask":
        distributed: Any = require("distributed", "parallel")
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
