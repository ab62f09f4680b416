"""Workers do not outlive the process they work for, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import joblib
import pytest

from frot._base import parallel
from frot._base.parallel import spread
from tests.reference import LIGHT

pytestmark = [
    pytest.mark.xdist_group("alone"),
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals"),
]

# Each script leaves a file for every worker, named by its process id, and does not end by itself.
# Tasks end once both workers are there, or never; where they end, the last file is "done".
SPREAD = """
import os, sys, time
from pathlib import Path
import joblib
from frot._base.parallel import spread

def work(task):
    Path(sys.argv[1], str(os.getpid())).touch()
    while len(os.listdir(sys.argv[1])) < {enough}:
        time.sleep(0.01)

if __name__ == "__main__":
    with joblib.parallel_config(backend="{backend}", n_jobs=2):
        for _ in spread(work, range(4)):
            pass
    Path(sys.argv[1], "done").touch()
    time.sleep(600.0)
"""
PAIRWISE = """
import os, sys, time
from pathlib import Path
import frot

def slow(x, y):
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(0.01)
    return abs(x - y).sum()

if __name__ == "__main__":
    clouds = [[[float(i + j)] for j in range(30)] for i in range(40)]
    frot.pairwise(clouds, metric=slow, n_jobs=2)
"""
SCRIPTS = {
    "busy": SPREAD.format(backend="loky", enough=9),
    "idle": SPREAD.format(backend="loky", enough=2),
    "multiprocessing": SPREAD.format(backend="multiprocessing", enough=9),
    "pairwise": PAIRWISE,
}


def until(true: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Look again and again; the limit is for a machine that is busy with other things."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # Nobody may have asked how an orphan ended; it is over all the same.
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self").exists()


@pytest.mark.parametrize("script", SCRIPTS)
def test_workers_end_when_their_caller_is_killed(script, tmp_path):
    path, seen = tmp_path / "script.py", tmp_path / "seen"
    path.write_text(SCRIPTS[script])
    seen.mkdir()
    command = [sys.executable, str(path), str(seen)]
    process = subprocess.Popen(command, env={**os.environ, **LIGHT})
    try:
        files = 3 if script == "idle" else 2
        assert until(lambda: len(list(seen.iterdir())) == files or process.poll() is not None)
        workers = [int(file.name) for file in seen.glob("[0-9]*")]
        assert process.pid not in workers
        assert len(workers) == 2
        assert all(map(running, workers))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert until(lambda: not any(map(running, workers)))
    finally:
        process.kill()
        process.wait()
        for file in seen.glob("[0-9]*"):
            if running(int(file.name)):
                os.kill(int(file.name), signal.SIGKILL)


def watchers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "orphan" in thread.name]


def test_the_caller_and_its_threads_are_not_watched():
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert set(spread(lambda _: tuple(watchers()), range(20))) == {()}
    assert watchers() == []


def test_a_worker_watches_once():
    # Defined here, so that workers need not import this module, and what that imports.
    def look(_: int) -> tuple[int, list[str]]:
        names = [thread.name for thread in threading.enumerate()]
        return os.getpid(), [name for name in names if "orphan" in name]

    seen = list(spread(look, range(20), n_jobs=2))
    assert all(found == ["frot-orphan-watch"] for _, found in seen)
    assert os.getpid() not in {process for process, _ in seen}


def test_processes_of_others_are_not_watched(monkeypatch):
    """A process whose parent is not the caller is left alone: nobody knows whom it works for."""

    class Parent:
        pid = 123_456_789

    monkeypatch.setattr("multiprocessing.parent_process", Parent)
    parallel.end_with_caller(123_456_788)
    assert watchers() == []
