"""Numbered tasks in parallel through joblib, with a progress bar, resumable.

What is random in a task is drawn from the seed and its number.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from frot._base.errors import InputError, brief
from frot._base.files import check_path
from frot._base.parallel import check_n_jobs, spread
from frot._base.validate import check_flag, check_number
from frot.solvers.progress import counting_bar


def run_chunks(
    task: Callable[[list[int]], Sequence[np.ndarray]],
    count: int,
    *,
    chunk: int = 8,
    n_jobs: int | None = None,
    progress: bool = False,
    what: str = "tasks",
    checkpoint: str | os.PathLike[str] | None = None,
    fingerprint: Callable[[], str] = str,
) -> list[np.ndarray]:
    """Return the arrays of tasks 0 to count - 1, from one that does several of them at a time.

    A worker takes `chunk` of them at once, since handing over the data costs more than one of them.
    Only what a checkpoint does not have is done, and it is on disk as soon as it is: a run that
    was stopped resumes where it was. Workers are joblib's, so that ``joblib.parallel_config``
    chooses threads, processes or a cluster.

    Examples
    --------
    >>> list(map(int, run_chunks(lambda indices: np.square(indices), 3, chunk=2)))
    [0, 1, 4]
    """
    with ExitStack() as stack:
        store = None
        if checkpoint is not None:
            # Imported here, since it loads SQLite.
            from frot._base.store import open_checkpoint

            store = stack.enter_context(open_checkpoint(checkpoint, fingerprint()))
        done = {} if store is None else {i: a for i, a in store.finished().items() if i < count}
        before = (len(done), len(done))
        bar = counting_bar(what, count, count, enabled=progress, before=before)
        show = stack.enter_context(bar)
        todo = [index for index in range(count) if index not in done]
        chunks = [todo[start : start + chunk] for start in range(0, len(todo), chunk)]
        for indices, arrays in spread(partial(_numbered, task), chunks, n_jobs):
            for index, array in zip(indices, arrays, strict=True):
                done[index] = array
                if store is not None:
                    store.add(index, array)
            show(len(indices), len(indices))
    return [done[index] for index in range(count)]


def check_run(n_jobs: Any, progress: Any, checkpoint: Any, random_state: Any) -> int:
    """Refuse ways to run tasks that there are not; return a seed, drawn where none was given.

    Examples
    --------
    >>> check_run(2, True, None, 7)
    7
    """
    check_n_jobs(n_jobs)
    check_flag(progress, "progress")
    if checkpoint is not None:
        check_path(checkpoint, "checkpoint")
        if random_state is None:
            raise InputError("random_state: a run with a checkpoint needs one; give a whole number")
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise InputError(
            f"random_state: {brief(random_state)} is not a whole number; tasks are seeded by it "
            "and their own numbers, so that a resumed run gives the same answer"
        )
    return int(check_number(random_state, "random_state"))


def _numbered(
    task: Callable[[list[int]], Sequence[np.ndarray]], indices: list[int]
) -> tuple[list[int], Sequence[np.ndarray]]:
    return indices, task(indices)
