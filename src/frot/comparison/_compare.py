"""`compare`: several methods on the same points, with the time and memory that each takes."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from frot._base.errors import InputError, MissingDependencyError, SolverError, collect_warnings
from frot._base.spelling import second_names
from frot._base.stopping import Interrupted
from frot._base.validate import (
    check_callable,
    check_choice,
    check_count,
    check_feature_names,
    check_flag,
    check_number,
    check_seed,
)
from frot.comparison._comparison import Comparison, Row
from frot.comparison.methods import CURVES, DEFAULT, METHODS, Method, Task, find_methods
from frot.groups.groups import Groups
from frot.problem.adversary import as_adversary
from frot.problem.result import Result, Status
from frot.problem.terms import Relative, check_tau
from frot.relatives.pair import check_pair

# Errors whose text is a sentence for users; of others the kind is told as well.
USER_ERRORS = (InputError, SolverError, MissingDependencyError)
CUT_SHORT = "interrupted before it had an answer"
NOT_RUN = "not run: interrupted before its turn"
# Where the kernel tells the memory of a process, and is told to forget its peak.
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@second_names
def compare(
    X: Any,
    Y: Any,
    methods: Sequence[str] | str = DEFAULT,
    groups: Any = None,
    *,
    k: int = 2,
    curve: Any = "circular",
    adversary: Any = None,
    tau: Any = None,
    penalty: str = "kl",
    a: Any = None,
    b: Any = None,
    normalise_weights: bool = False,
    tol: float | None = None,
    time_limit: float | None = None,
    random_state: int = 0,
    feature_names: Sequence[str] | None = None,
    callback: Callable[[Row], None] | None = None,
    progress: bool = False,
) -> Comparison:
    r"""Run feature-robust transport and related methods on the same points.

    All values are squared costs, :math:`\min_\Pi \sum_{ij} \pi_{ij} \|x_i - y_j\|^2` for "ot",
    and for the others the part of it that their adversary counts, so that they can be compared:
    ``comparison.relations`` checks the inequalities between them. A method that fails leaves a row
    that says why.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), or DataFrames
    methods : sequence of str, or str with commas
        Of "frot", "srw", "max_sliced", "generalised_max_sliced", "sliced", "max_min", "ot" (or
        "wasserstein") and "equitable".
    groups : optional
        For FROT, max-min and equitable: what `Groups.parse` reads; each feature if left out.
    k : int
        Dimension of SRW's subspace.
    curve : {"circular", "linear", "cubic"} or callable
        Of generalised max-sliced. The first two stretch no distance, so that their values can be
        compared; those of any other are in a unit of their own.
    adversary : optional
        The weights that FROT's adversary may choose, as in `solve`, without eta: with
        ``frot.CappedSimplex(k)`` the k worst groups share the weight.
    tau, penalty : optional
        As in `solve`, and then only "frot" and "ot" are compared, both with the price paid: the
        others keep all mass. A number, since shares are of each method's own mean cost.
    a, b, normalise_weights :
        As in `solve`.
    tol : float, optional
        Relative gap for the methods that prove one; each method's own if left out.
    time_limit : float, optional
        Seconds, for each method.
    random_state : int
        Seed of the random directions.
    feature_names : sequence of str, length d, optional
        Names of the features; those of a DataFrame's columns if left out.
    callback : callable, optional
        Called with every `Row` as it is finished.
    progress : bool
        Write to stderr which method is running, with its progress bar if it has one.

    Returns
    -------
    Comparison
        ``rows``, ``table()``, ``plot()``, ``relations``, ``to_dict()``.

    Raises
    ------
    Interrupted
        On Ctrl-C: a `KeyboardInterrupt` whose `result` is the comparison of the methods that are
        done.

    Examples
    --------
    >>> import numpy as np, frot
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(20, 4)), rng.normal(size=(20, 4)) + [2.0, 0.0, 0.0, 0.0]
    >>> found = frot.compare(X, Y, "frot,max_sliced,ot", feature_names=["a", "b", "c", "d"])
    >>> [row.chosen.describe() for row in found.rows][0]
    'weights: a 1'
    >>> found["frot"].value < found["max_sliced"].value < found["ot"].value
    True
    """
    chosen = find_methods(methods)
    prices = check_tau(tau, penalty)
    if prices is not None:
        _refuse_with_tau(chosen, prices)
    pair = check_pair(X, Y, a, b, normalise_weights, any_mass=prices is not None)
    names = check_feature_names(feature_names, pair.X.shape[1]) or pair.columns
    parsed = Groups.parse(groups, pair.X.shape[1], names)
    if time_limit is not None:
        time_limit = check_number(time_limit, "time_limit", strict=True)
    if tol is not None:
        tol = check_number(tol, "tol")
    k, seed = check_count(k, "k"), check_seed(random_state, "random_state")
    if not callable(curve):
        check_choice(curve, "curve", CURVES)
    weigher = None if adversary is None else as_adversary(adversary, len(parsed))
    if weigher is not None and weigher.eta != 0.0:
        raise InputError("adversary: takes no eta here, since values with entropy are no costs")
    check_callable(callback, "callback")
    check_flag(progress, "progress")
    weights = {"a": a, "b": b, "normalise_weights": normalise_weights}
    points = (pair.X, pair.Y)
    # Bars are for terminals; elsewhere they would leave empty lines.
    bars = progress and sys.stderr.isatty()
    task = Task(
        X, Y, points, parsed, k, curve, weights, tol, time_limit, seed, bars, adversary, tau,
        penalty,
    )  # fmt: skip
    if weigher is not None:
        counts = f"the worst mix of groups, {weigher.name}"
        chosen = [replace(one, counts=counts) if one.name == "frot" else one for one in chosen]
    names = names or tuple(f"x{feature}" for feature in range(pair.X.shape[1]))
    rows: list[Row] = []
    measure, interrupted = "resident", False
    for place, method in enumerate(chosen, start=1):
        if interrupted:
            rows.append(Row.not_run(method, NOT_RUN))
            continue
        if progress:
            _announce(f"{method.title} ({place} of {len(chosen)}) ...")
        row, kind = _measured(method, task, names)
        measure = kind or measure
        rows.append(row)
        interrupted = _was_interrupted(row)
        if callback is not None:
            callback(row)
    found = Comparison(
        tuple(rows), points, parsed, tuple(names), k, measure, interrupted, weigher,
        paid=prices is not None,
    )  # fmt: skip
    if interrupted:
        raise Interrupted(found)
    return found


def _refuse_with_tau(methods: Sequence[Method], prices: tuple[Any, Any]) -> None:
    """Refuse methods that keep all mass, and prices that are not the same for all."""
    if keep := [method.name for method in methods if not method.takes_tau]:
        raise InputError(
            f"tau: {', '.join(keep)} keep all mass; leave tau out, or compare "
            f"methods={','.join(name for name, one in METHODS.items() if one.takes_tau)!r}"
        )
    if any(isinstance(price, Relative) for price in prices):
        raise InputError("tau: a share is of each method's own mean cost; pass a number")


def _measured(method: Method, task: Task, names: Sequence[str]) -> tuple[Row, str | None]:
    """Run a method; whatever becomes of it is a row."""
    row = Row(method.name, method.title, unit=method.unit(task), counts=method.counts)
    result, problem, seconds, peak = None, "", 0.0, None
    with collect_warnings() as heard:
        try:
            method.warm_up()
            heard.clear()
            with peak_memory() as peak:
                begin = time.perf_counter()
                result = method.run(task)
                seconds = time.perf_counter() - begin
            result = _named(result.numpy(), method, names)
        except Interrupted as stop:
            result = _named(stop.result.numpy(), method, names)
            seconds = result.time
        except KeyboardInterrupt:
            problem = CUT_SHORT
        except USER_ERRORS as error:
            problem = str(error)
        except Exception as error:
            # A bug, or a lack of memory, in one method shall not lose the answers of the others.
            problem = f"{type(error).__name__}: {error}"
    if result is None or problem or peak is None:
        return replace(row, problem=problem, warnings=tuple(heard)), None
    done = replace(row, result=result, seconds=seconds, memory=peak.size)
    return replace(done, warnings=tuple(heard)), peak.kind


def _named(result: Result, method: Method, names: Sequence[str]) -> Result:
    """Call the features by their names, which methods on plain arrays do not know."""
    if not method.of_features or result.chosen is None:
        return result
    return replace(result, chosen=replace(result.chosen, names=tuple(names)))


def _was_interrupted(row: Row) -> bool:
    if row.result is None:
        return row.problem == CUT_SHORT
    return row.result.status is Status.INTERRUPTED


def _announce(text: str) -> None:
    from rich.console import Console

    Console(stderr=True, highlight=False).print(text, style="dim", markup=False, soft_wrap=True)


@dataclass
class Peak:
    """The peak in bytes, once the work is over, and by which of `MEASURES`."""

    kind: str
    size: int = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the body: by the kernel's own mark where it can be reset, else by tracemalloc.

    The kernel's costs nothing and sees all; tracemalloc slows Python down, so that it is only
    for where there is no other way.

    Examples
    --------
    >>> import numpy as np
    >>> with peak_memory() as peak:
    ...     _ = np.ones(12_000_000).sum()
    >>> peak.kind in ("resident", "python"), peak.size >= 0  # some 96 MB
    (True, True)
    """
    # What was left by the work before must not be freed, or found free, in the middle of this.
    gc.collect()
    _give_back()
    if STATUS.exists() and os.access(RESET, os.W_OK):
        peak = Peak("resident")
        RESET.write_text("5")
        before = _kilobytes("VmRSS")
        try:
            yield peak
        finally:
            peak.size = max(0, 1024 * (_kilobytes("VmHWM") - before))
        return
    peak = Peak("python")
    running = tracemalloc.is_tracing()
    if running:
        tracemalloc.reset_peak()
    else:
        tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    try:
        yield peak
    finally:
        peak.size = max(0, tracemalloc.get_traced_memory()[1] - start)
        if not running:
            tracemalloc.stop()


def _give_back() -> None:
    """Return freed memory to the system, so that nothing takes it again unseen."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        # Only glibc keeps it, and has this.
        return


def _kilobytes(key: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1])
