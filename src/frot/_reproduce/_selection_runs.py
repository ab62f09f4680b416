"""Every split of every set, on several workers, each kept on disk as soon as it is finished."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from frot._checkpoint import Checkpoint
from frot._files import make_folder
from frot._fingerprint import fingerprint
from frot._reproduce._selection_methods import METHODS
from frot._reproduce._selection_protocol import KS, accuracies
from frot._spread import spread
from frot.datasets import Expression

__all__ = ["load_libraries", "run_splits"]


def run_splits(
    data: Expression,
    splits: int,
    seed: int,
    *,
    workers: int = 1,
    folder: Path | None = None,
    tick: Callable[[int], None] = lambda count: None,
) -> NDArray[np.float64]:
    """Return the accuracies on every split, taking up a run that was stopped.

    Parameters
    ----------
    data : Expression
    splits : int
    seed : int
    workers : int
        Processes.
    folder : path, optional
        Where finished splits are kept; without it nothing is.
    tick : callable
        Called with the number of splits that became available, old ones at once.

    Returns
    -------
    numpy.ndarray, shape (splits, len(METHODS), len(KS))
    """
    with _kept(data, seed, folder) as kept:
        done = {index: row for index, row in kept.done.items() if index < splits} if kept else {}
        tick(len(done))
        missing = [index for index in range(splits) if index not in done]
        work = partial(_numbered, data.X, data.y, seed)
        for index, row in spread(work, missing, workers, load_libraries):
            if kept is not None:
                kept.add(index, row)
            done[index] = row
            tick(1)
    return np.stack([done[index] for index in range(splits)])


def load_libraries() -> None:
    """Import what a split needs, before a worker's first one."""
    import frot.selection  # noqa: F401


def _numbered(X: NDArray, y: NDArray, seed: int, index: int) -> tuple[int, NDArray]:
    return index, accuracies(X, y, index, seed)


def _kept(
    data: Expression, seed: int, folder: Path | None
) -> AbstractContextManager[Checkpoint | None]:
    """What the accuracies depend on names the work; the number of splits is no part of it."""
    if folder is None:
        return nullcontext()
    from frot import __version__

    labels = {key: method.label for key, method in METHODS.items()}
    about = fingerprint(X=data.X, y=data.y, seed=seed, methods=labels, ks=KS, version=__version__)
    return Checkpoint(make_folder(folder) / f"{data.name}-seed-{seed}.checkpoint", about)
