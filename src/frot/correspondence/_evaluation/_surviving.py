"""Work that goes on when the processes that do it die."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing

from frot.correspondence._evaluation._record import Record
from frot.correspondence._evaluation._work import Task

__all__ = ["DIED", "Send", "surviving"]

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
