"""Processes that are killed: the one that keeps the books, and those that do the work."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import frot
from frot.correspondence.datasets import load_pairs
from frot.correspondence.evaluation import evaluate, read_evaluation
from tests.correspondence import generated
from tests.correspondence.evaluation.matchers import Noting
from tests.dask_cluster import two_workers
from tests.reference import LIGHT

pytestmark = [
    pytest.mark.xdist_group("alone"),
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals"),
    pytest.mark.timeout(120),
]

CODE = """
import sys
from pathlib import Path
from frot.correspondence.datasets import load_pairs
from frot.correspondence.evaluation import evaluate
from tests.correspondence.evaluation.matchers import Noting

if __name__ == "__main__":
    folder, workers = Path(sys.argv[1]), int(sys.argv[2])
    pairs = load_pairs("pf-willow", folder)
    matcher = Noting(folder / "first", seconds=0.1)
    evaluate(pairs, matcher, folder / "store", workers=workers, progress=False)
"""


@pytest.fixture
def pairs(tmp_path):
    return load_pairs("pf-willow", generated.pf_willow(tmp_path))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with two_workers(allowed_failures=1) as client:
        yield client


def wait_for(log: Path, count: int, process: Any = None) -> None:
    deadline = time.monotonic() + 60.0
    while not log.exists() or len(log.read_text().split()) < count:
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("how", "workers"), [(signal.SIGKILL, 1), (signal.SIGKILL, 2), (signal.SIGINT, 2)]
)
def test_the_run_is_killed_and_goes_on(pairs, tmp_path, how, workers):
    """Nothing that was finished is redone, and nothing is lost."""
    script = tmp_path / "script.py"
    script.write_text(CODE)
    environment = {**os.environ, **LIGHT, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, str(script), str(tmp_path), str(workers)]
    complaint = tmp_path / "stderr"
    with complaint.open("w") as stderr:
        process = subprocess.Popen(
            words,
            env=environment,
            stderr=stderr,
            start_new_session=True,
            # A parent that ignores SIGINT would hand that on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        wait_for(tmp_path / "first", 4, process)
        process.send_signal(how)
        assert process.wait(timeout=60) != 0
    finally:
        # Workers of a parent that was killed wait a while before they give up.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if how == signal.SIGINT:
        assert "of 12 pairs are kept in" in complaint.read_text()
        assert "with resume=True goes on from there" in complaint.read_text()
    kept = {record.id for record in read_evaluation(tmp_path / "store").records}
    # The last that each worker finished may not have been handed in.
    assert 4 - workers <= len(kept) < 12

    rest = Noting(tmp_path / "second")
    found = evaluate(pairs, rest, tmp_path / "store", resume=True, progress=False)
    assert rest.calls == dict.fromkeys([pair.id for pair in pairs if pair.id not in kept], 1)
    assert [record.id for record in found.done] == [pair.id for pair in pairs]
    assert found.pck(1e-9).value == 1.0


class TestJoblib:
    @pytest.fixture(autouse=True)
    def processes_of_its_own(self):
        """Whoever comes next starts with new processes.

        These have grown, so joblib replaces them with a warning; as an error it would end the
        thread that hands out work, and the next test would wait for ever.
        """
        yield
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True, kill_workers=True)

    def test_a_worker_that_is_killed_costs_what_it_had(self, pairs, tmp_path):
        deadly = pairs.pairs[4].id
        matcher = Noting(tmp_path / "calls", seconds=0.05, deadly=deadly)
        with pytest.raises(frot.InputError, match=r"workers: a process was killed.* of 12 pairs"):
            evaluate(pairs, matcher, tmp_path / "store", workers=2, progress=False)
        kept = {record.id for record in read_evaluation(tmp_path / "store").records}
        found = evaluate(pairs, matcher, tmp_path / "store", resume=True, progress=False)
        assert len(found.done) == 12
        assert all(matcher.calls[id] == 1 for id in kept)


class TestDask:
    def test_one_of_two_workers_is_killed(self, client, pairs, tmp_path):
        matcher = Noting(tmp_path / "calls", seconds=0.05)
        victim = min(client.run(os.getpid).values())

        def kill() -> None:
            wait_for(matcher.log, 3)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        found = evaluate(pairs, matcher, tmp_path / "store", backend="dask", progress=False)
        killer.join()
        assert len(found.done) == 12
        assert found.pck(1e-9).value == 1.0
        # Only what was in flight, two for each worker, may have been done twice.
        assert sum(matcher.calls.values()) <= 12 + 4
        client.wait_for_workers(2, timeout=60)
        assert victim not in client.run(os.getpid).values()

    def test_a_pair_that_kills_whoever_takes_it_ends_the_run(self, client, pairs, tmp_path):
        few = pairs.first(4)
        matcher = replace(Noting(tmp_path / "calls"), deadly=few.pairs[1].id, again=True)
        with pytest.raises(frot.InputError, match="workers: a process was killed"):
            evaluate(few, matcher, backend="dask", progress=False)
        client.wait_for_workers(2, timeout=60)
