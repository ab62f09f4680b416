"""Independent tasks in a loop, in processes, in threads or on a Dask cluster."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable
from functools import cache, partial
from itertools import islice
from numbers import Integral
from typing import Any, TypeVar

from frot._base.errors import InputError, brief, require

Task = TypeVar("Task")
Found = TypeVar("Found")


def check_n_jobs(n_jobs: Any) -> int | None:
    """Return a number of workers: None, 1, 2, ..., or -1 for one per processor."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InputError(
            f"n_jobs: {brief(n_jobs)} is not a number of workers; use 1, 2, ..., or -1 for all "
            "processors"
        )
    return int(n_jobs)


def spread(
    work: Callable[[Task], Found],
    tasks: Iterable[Task],
    n_jobs: int | None = None,
    prepare: Callable[[], object] = bool,
    at_once: bool = False,
) -> Generator[Found, None, None]:
    """Yield ``work(task)`` for every task, in the order in which they are finished.

    Only a few tasks are in flight at a time, and `tasks` is read as they are needed. Closing the
    iterator, or any exception, calls off what has not begun. Worker processes end with this one,
    even if it is killed.

    `work` is pickled, with its tasks and results, where other processes run it. With ``n_jobs=1``
    that is this process, without joblib; None leaves it to ``joblib.parallel_config``, and is 1
    without. On a Dask cluster it has no meaning: all workers take part.

    `prepare` is called before each task by workers other than this process. Large libraries are
    loaded there: joblib takes a process that grows after its first task for one that leaks, and
    starts another. `at_once` has every result here as soon as it is there; otherwise joblib sends
    short tasks in batches, whose results come together.
    """
    # A backend of joblib's can only be chosen once joblib is loaded.
    if n_jobs == 1 or (n_jobs is None and sys.modules.get("joblib") is None):
        yield from map(work, tasks)
        return
    joblib = require("joblib", "parallel")
    alone = work
    backend, _ = joblib.parallel.get_active_backend()
    if type(backend).__name__ == "DaskDistributedBackend":
        # Whoever started a cluster ends it.
        yield from _on_dask(backend, partial(_in_worker, None, prepare, work), tasks)
        return
    work = partial(_in_worker, os.getpid(), prepare, work)
    if n_jobs is None and joblib.effective_n_jobs(None) == 1:
        yield from map(alone, tasks)
    elif backend.supports_return_generator:
        yield from _as_they_come(joblib, work, tasks, n_jobs, at_once)
    else:
        yield from _in_rounds(joblib, work, tasks, n_jobs)


def _in_worker(
    caller: int | None, prepare: Callable[[], object], work: Callable[[Task], Found], task: Task
) -> Found:
    if caller is not None:
        end_with_caller(caller)
    prepare()
    return work(task)


def _as_they_come(
    joblib: Any,
    work: Callable[[Task], Found],
    tasks: Iterable[Task],
    n_jobs: int | None,
    at_once: bool,
) -> Generator[Found, None, None]:
    batch = 1 if at_once else "auto"
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=batch)
    result = parallel(joblib.delayed(work)(task) for task in tasks)
    try:
        # Not "yield from", which would close joblib's iterator where its warning is heard.
        for value in result:  # noqa: UP028
            yield value
    finally:
        with warnings.catch_warnings():
            # Stopping early discards work in progress, as is meant.
            warnings.filterwarnings("ignore", ".*tasks.*", UserWarning)
            result.close()


def _in_rounds(
    joblib: Any, work: Callable[[Task], Found], tasks: Iterable[Task], n_jobs: int | None
) -> Generator[Found, None, None]:
    """For backends that give results only when all are there, multiprocessing for one."""
    left = iter(tasks)
    with joblib.Parallel(n_jobs=n_jobs) as parallel:
        # Four for each worker, so that few are idle at the end of a round.
        size = 4 * joblib.effective_n_jobs(n_jobs)
        while some := list(islice(left, size)):
            yield from parallel(joblib.delayed(work)(task) for task in some)


def _on_dask(
    backend: Any, work: Callable[[Task], Found], tasks: Iterable[Task]
) -> Generator[Found, None, None]:
    """Use the client of joblib's Dask backend, but not the backend.

    That one waits for ever for a task that was given up because workers died of it, and puts
    data on single workers, which is lost with them. Here tasks carry their data, so that any
    worker can run them again, and one that kills every worker it meets raises.
    """
    import dask.config
    import distributed

    client, options = backend.client, backend.submit_kwargs
    left = iter(tasks)
    in_flight: set[Any] = set()
    done = distributed.as_completed([], loop=client.loop)
    room, counted = 2, -math.inf

    def submit() -> None:
        nonlocal room, counted
        # Workers may come and go; asking takes a while, though, and is done once a second. Each
        # has one task that runs and one that waits.
        if time.monotonic() - counted >= 1.0:
            room = 2 * max(1, sum(client.ncores().values()))
            counted = time.monotonic()
        # Dask warns of large tasks because it expects many at a time.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
            for task in islice(left, max(0, room - len(in_flight))):
                future = client.submit(work, task, pure=False, **options)
                in_flight.add(future)
                done.add(future)

    try:
        submit()
        while in_flight:
            future = next(done)
            in_flight.remove(future)
            result = future.result()
            del future
            submit()
            yield result
    finally:
        # A client that lost its cluster has nothing to cancel, and would hide why it ended.
        if in_flight and client.status == "running":
            client.cancel(list(in_flight))


def end_with_caller(caller: int) -> None:
    """Have this process end soon after `caller` does, if it is a worker that `caller` started.

    A process that is killed cannot tell its workers, and joblib's would go on with what they have,
    or wait for more, for minutes.

    Nothing happens in `caller` itself, whose threads may be workers too, nor in processes that
    somebody else started. A call of a library that holds Python's lock is finished first.
    """
    _watch(os.getpid(), caller)


@cache
def _watch(worker: int, caller: int) -> None:
    """Start watching, once in each process: a fork inherits the cache, but not its own id."""
    # Imported here: only needed where processes are started.
    import multiprocessing

    parent: Any = multiprocessing.parent_process()
    if worker == caller or parent is None or parent.pid != caller:
        return
    wait = _until_sentinel if os.name == "nt" else _until_adopted
    threading.Thread(target=wait, args=(parent,), name="frot-orphan-watch", daemon=True).start()


def _until_sentinel(parent: Any) -> None:
    """Wait for a handle of the parent; a Windows process keeps its parent's id for ever."""
    parent.join()
    os._exit(1)


def _until_adopted(parent: Any) -> None:
    """Wait until somebody else is the parent.

    Between the two there may be a server that forks, which ends with the parent.
    """
    first = os.getppid()
    while os.getppid() == first and (first == parent.pid or _exists(parent.pid)):
        time.sleep(0.5)
    os._exit(1)


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # The process exists and belongs to another user.
        pass
    return True
