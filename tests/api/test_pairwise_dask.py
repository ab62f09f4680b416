"""A real Dask cluster of processes, some of which are killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import frot
from frot._base.parallel import spread
from frot.api import pair_tiles
from tests.dask_cluster import two_workers
from tests.stores import finished

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.xdist_group("alone"),
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals"),
    pytest.mark.timeout(120),
]

RNG = np.random.default_rng(3)
CLOUDS = [RNG.normal(size=(25, 6)) for _ in range(20)]
GROUPS = [3, 3]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    # Workers that die are restarted; a task that kills two is given up.
    with two_workers(allowed_failures=1) as client:
        yield client


def process_ids(client: Any) -> set[int]:
    return set(client.run(os.getpid).values())


def test_every_worker_takes_part(client):
    def who(x: int) -> int:
        time.sleep(0.05)
        return os.getpid()

    with joblib.parallel_config(backend="dask"):
        seen = set(spread(who, range(30)))
    assert seen == process_ids(client)


def test_tasks_are_read_as_they_are_needed(client):
    read = []

    def tasks() -> Iterator[int]:
        for x in range(100):
            read.append(x)
            yield x

    with joblib.parallel_config(backend="dask"):
        found = spread(abs, tasks())
        next(found)
        assert len(read) < 20
        found.close()


def test_the_matrix_survives_a_worker(client, monkeypatch, tmp_path):
    """One of two is killed in the middle, and the matrix is the one a loop gives."""
    monkeypatch.setattr(pair_tiles, "LEAST_SECONDS", 0.05)
    expected = frot.pairwise(CLOUDS, GROUPS, n_jobs=1)
    path, counts = tmp_path / "work", []
    victim = sorted(process_ids(client))[0]

    def kill() -> None:
        while not finished(path):
            time.sleep(0.001)
        os.kill(victim, signal.SIGKILL)
        counts.append(len(finished(path)))

    killer = threading.Thread(target=kill)
    killer.start()
    with joblib.parallel_config(backend="dask"):
        D = frot.pairwise(CLOUDS, GROUPS, checkpoint=path)
    killer.join()
    counts.append(len(finished(path)))
    assert counts[0] < counts[1], "it was killed too late to tell"
    assert np.array_equal(D, expected)
    client.wait_for_workers(2, timeout=60)
    assert victim not in process_ids(client)


def test_what_kills_every_worker_it_meets_is_an_error_and_no_wait(client):
    def poison(u: np.ndarray, v: np.ndarray) -> float:
        if u[0] > 100.0 or v[0] > 100.0:
            os.kill(os.getpid(), signal.SIGKILL)
        return float(np.abs(u - v).sum())

    clouds = [*CLOUDS[:3], CLOUDS[3] + 1e6]
    with (
        joblib.parallel_config(backend="dask"),
        pytest.raises(distributed.KilledWorker),
    ):
        frot.pairwise(clouds, GROUPS, metric=poison)
    client.wait_for_workers(2, timeout=60)


def test_large_clouds_are_sent_without_complaint(client):
    clouds = [RNG.normal(size=(4, 330_000)) for _ in range(2)]
    assert clouds[0].nbytes > 10e6
    with joblib.parallel_config(backend="dask"):
        D = frot.pairwise(clouds, "all")
    assert pytest.approx(frot.pairwise(clouds, "all"), rel=1e-12) == D


def test_mistakes_and_warnings_come_back(client):
    with joblib.parallel_config(backend="dask"):
        with pytest.raises(frot.InputError, match=r"clouds\[0\], clouds\[1\]: costs: some are inf"):
            frot.pairwise([CLOUDS[0], 1e200 * CLOUDS[1]], GROUPS)
        with pytest.warns(frot.ConvergenceWarning, match="3 of 3 pairs ended before"):
            frot.pairwise(CLOUDS[:3], GROUPS, max_iter=1)


def test_it_goes_on_from_what_processes_left(client, monkeypatch, tmp_path):
    monkeypatch.setattr(pair_tiles, "LEAST_SECONDS", 0.0)
    path: Path = tmp_path / "work"
    D = frot.pairwise(CLOUDS[:5], GROUPS, checkpoint=path, n_jobs=2)
    assert len(finished(path)) > 1
    with sqlite3.connect(path) as file:
        file.execute("DELETE FROM pieces WHERE rowid = (SELECT max(rowid) FROM pieces)")
    file.close()
    with joblib.parallel_config(backend="dask"):
        assert np.array_equal(frot.pairwise(CLOUDS[:5], GROUPS, checkpoint=path), D)
