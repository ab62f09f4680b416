from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import joblib
import pytest

from frot import InputError, MissingDependencyError
from frot._base.parallel import check_n_jobs, spread


def square(x: int) -> int:
    return x * x


def who(x: int) -> tuple[int, int]:
    time.sleep(0.02)
    return os.getpid(), threading.get_ident()


def fail(x: int) -> int:
    raise InputError(f"task {x}: is bad")


def prepare() -> None:
    os.environ["FROT_PREPARED"] = "yes"


def ready(x: int) -> str | None:
    return os.environ.get("FROT_PREPARED")


# Python 3.12 and later warn of every fork beside threads, which is multiprocessing's own matter.
old_forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
SQUARES = {x * x for x in range(50)}


@pytest.mark.parametrize("n_jobs", [None, 1])
def test_a_plain_loop_keeps_the_order(n_jobs):
    assert list(spread(square, range(5), n_jobs)) == [0, 1, 4, 9, 16]


@old_forks
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_every_backend_of_joblib(backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = list(spread(square, range(50)))
        assert len(found) == 50
        assert set(found) == SQUARES
        assert list(spread(square, [])) == []


def test_n_jobs_are_processes():
    seen = {process for process, _ in spread(who, range(20), n_jobs=2)}
    # One may have done everything before the other was ready.
    assert len(seen) in (1, 2)
    assert os.getpid() not in seen


def test_parallel_config_decides_where_n_jobs_does_not():
    with joblib.parallel_config(backend="threading", n_jobs=2):
        seen = set(spread(who, range(20)))
    assert {process for process, _ in seen} == {os.getpid()}
    assert threading.get_ident() not in {thread for _, thread in seen}
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert set(spread(who, range(5), n_jobs=1)) == {(os.getpid(), threading.get_ident())}


@old_forks
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_what_a_worker_raises_is_raised_here(backend):
    with (
        joblib.parallel_config(backend=backend, n_jobs=2),
        pytest.raises(InputError, match="is bad"),
    ):
        list(spread(fail, range(3)))


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_closing_calls_off_the_rest(backend):
    """Tasks are read as they are needed, and stopping early warns of nothing."""
    read = []

    def tasks() -> Iterator[int]:
        for x in range(1000):
            read.append(x)
            yield x

    with (
        joblib.parallel_config(backend=backend, n_jobs=2),
        closing(spread(who, tasks())) as found,
    ):
        next(found)
    assert len(read) < 1000


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
@old_forks
def test_workers_are_prepared_and_a_plain_loop_is_not(backend, monkeypatch):
    monkeypatch.delenv("FROT_PREPARED", raising=False)
    assert set(spread(ready, range(3), n_jobs=1, prepare=prepare)) == {None}
    assert set(spread(ready, range(3), prepare=prepare)) == {None}
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert set(spread(ready, range(3), prepare=prepare)) == {"yes"}
    os.environ.pop("FROT_PREPARED", None)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True])
def test_numbers_of_workers_that_cannot_be(n_jobs):
    with pytest.raises(InputError, match=r"n_jobs: .* is not a number of workers; use 1, 2, "):
        check_n_jobs(n_jobs)


def test_joblib_is_needed_for_more_than_one_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert list(spread(square, [2])) == [4]
    assert list(spread(square, [2], n_jobs=1)) == [4]
    with pytest.raises(MissingDependencyError, match=r'pip install "frot\[parallel\]"'):
        list(spread(square, [2], n_jobs=2))


def test_a_plain_loop_does_not_load_joblib():
    code = (
        "import sys; from frot._base.parallel import spread; list(spread(abs, [1]));"
        "sys.exit('joblib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(("at_once", "batch"), [(False, "auto"), (True, 1)])
def test_short_tasks_are_not_sent_in_batches_if_results_are_wanted_at_once(
    at_once, batch, monkeypatch
):
    seen = []

    class Parallel(joblib.Parallel):
        def __init__(self, **options):
            seen.append(options["batch_size"])
            super().__init__(**options)

    monkeypatch.setattr(joblib, "Parallel", Parallel)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert set(spread(square, range(50), at_once=at_once)) == SQUARES
    assert seen == [batch]
