import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import frot

pytestmark = pytest.mark.xdist_group("alone")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a single process")
def test_ctrl_c_still_writes_the_best_certified_answer(tmp_path):
    rng = np.random.default_rng(0)
    for name, shift in (("a.npy", 0.0), ("b.npy", 0.3)):
        np.save(tmp_path / name, rng.normal(size=(2400, 150)) + shift)
    command = [sys.executable, "-m", "frot", "solve", "a.npy", "b.npy"]
    command += ["--groups", "each", "--save", "r.npz", "--report", "page.html"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A parent that ignores SIGINT would hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr is not None
    assert "2400 and 2400 points" in process.stderr.readline()
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    output, complaints = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("solved before the signal came")
    assert process.returncode == 130, complaints
    assert "Traceback" not in complaints
    assert "INTERRUPTED" in output
    saved = frot.load(tmp_path / "r.npz")
    assert saved.status is frot.Status.INTERRUPTED
    assert saved.lower <= saved.upper
    assert saved.plan.sum() == pytest.approx(1.0)
    assert "INTERRUPTED" in (tmp_path / "page.html").read_text(encoding="utf-8")
