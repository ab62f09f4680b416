"""Runs that resume: what is finished is in a store, by a fingerprint of all that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from frot._base.files import make_folder
from frot._base.fingerprint import fingerprint
from frot._base.parallel import spread
from frot._base.store import Store
from frot.solvers.progress import counting_bar

__all__ = ["finish", "finish_in", "kept_in", "work_of"]

Key = TypeVar("Key", int, str)


def kept_in(folder: Path | None) -> Store:
    """Open the store of finished pieces in a folder, or one in memory without a folder.

    Examples
    --------
    >>> with kept_in(None) as kept:
    ...     kept.finished()
    {}
    """
    path = None if folder is None else make_folder(folder) / "finished.sqlite"
    return Store(path, "a reproduction", {})


def work_of(**parts: Any) -> str:
    """Return the fingerprint of a piece of work; another version of frot does it anew.

    Parameters
    ----------
    **parts :
        Everything that the results depend on; see `frot._base.fingerprint.fingerprint`.

    Examples
    --------
    >>> work_of(seed=0) == work_of(seed=0), work_of(seed=0) == work_of(seed=1)
    (True, False)
    """
    import frot

    return fingerprint(**parts, version_of_frot=frot.__version__)


def finish(
    kept: Store,
    work: str,
    keys: Sequence[Key],
    do: Callable[[Key], tuple[Key, Any]],
    *,
    workers: int = 1,
    prepare: Callable[[], object] = bool,
    tick: Callable[[int], object] = lambda count: None,
) -> dict[Key, Any]:
    """Do what the store does not have, keep each piece at once, and return all by key.

    Parameters
    ----------
    kept : Store
    work : str
        Of `work_of`.
    keys : sequence of int or str
        What has to be done.
    do : callable
        From a key to the key and its result, an array or a JSON value.
    workers : int
        Processes; `prepare` is called by each, as for `frot._base.parallel.spread`.
    tick : callable
        Called with the number of pieces that became available, old ones at once.

    Examples
    --------
    >>> with kept_in(None) as kept:
    ...     finish(kept, work_of(), [2, 3], lambda key: (key, key**2))
    {2: 4, 3: 9}
    """
    wanted = set(keys)
    done = {key: value for key, value in kept.finished(work).items() if key in wanted}
    tick(len(done))
    missing = [key for key in keys if key not in done]
    for key, value in spread(do, missing, workers, prepare):
        kept.add(key, value, work)
        done[key] = value
        tick(1)
    return {key: done[key] for key in keys}


def finish_in(
    folder: Path | None,
    what: str,
    work: str,
    keys: Sequence[Key],
    do: Callable[[Key], tuple[Key, Any]],
    *,
    workers: int = 1,
    progress: bool = False,
) -> dict[Key, Any]:
    """Finish pieces, called `what` on a bar, with the store of a folder; see `finish`."""
    bar = counting_bar(what, len(keys), len(keys), enabled=progress)
    with kept_in(folder) as kept, bar as show:
        return finish(kept, work, keys, do, workers=workers, tick=lambda count: show(count, count))
