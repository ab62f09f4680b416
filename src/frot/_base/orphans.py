"""Worker processes that end when the process they work for is gone, however it ended.

A process that is killed cannot tell its workers, and joblib's would go on with what they have, or
wait for more, for minutes.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from functools import cache
from typing import Any

__all__ = ["end_with_caller"]

# Seconds between two looks at whose child this process is.
LOOK_EVERY = 0.5


def end_with_caller(caller: int) -> None:
    """Have this process end soon after `caller` does, if it is a worker that `caller` started.

    Nothing happens in `caller` itself, whose threads may be workers too, nor in processes that
    somebody else started. A call of a library that holds Python's lock is finished first.

    Parameters
    ----------
    caller : int
        Process id.

    Examples
    --------
    >>> end_with_caller(os.getpid())
    """
    _watch(os.getpid(), caller)


@cache
def _watch(worker: int, caller: int) -> None:
    """Start watching, once in each process: a fork inherits the cache, but not its own id."""
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
        time.sleep(LOOK_EVERY)
    os._exit(1)


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
