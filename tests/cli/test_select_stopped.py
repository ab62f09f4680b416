"""A run of ``frot select`` that is stopped leaves its permutations, and goes on from them."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from frot.selection import FROTSelector, permutation_test, read_samples
from tests.selection.data_files import read_tsv
from tests.stores import finished

pytestmark = pytest.mark.xdist_group("alone")

COUNT = 64
WORDS = ["--label", "y", "--top", "5", "--permutations", str(COUNT), "--statistic", "phi"]
WORDS += ["--tol", "0.1"]
WORDS += ["--out", "genes.tsv", "--no-progress"]


def save(folder):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 20)
    X = rng.normal(size=(40, 200))
    X[y == "b", :5] += 1.0
    np.savez(folder / "data.npz", X=X, y=y)
    return folder


def start(folder):
    command = [sys.executable, "-m", "frot", "select", "data.npz", *WORDS]
    return subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A parent that ignores SIGINT would hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def stop(folder, how, more):
    """Run until so many more permutations are on disk, send a signal, and return what it said."""
    checkpoint = folder / "genes.tsv.permutations"
    begun = len(finished(checkpoint))
    process = start(folder)
    for _ in range(1200):
        if len(finished(checkpoint)) >= begun + more:
            break
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    else:
        pytest.fail("no permutation was finished in a minute")
    process.send_signal(getattr(signal, how))
    _, complaints = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("done before the signal came")
    assert not (folder / "genes.tsv").exists()
    assert begun < len(finished(checkpoint)) < COUNT
    return process.returncode, complaints


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to a single process")
def test_a_run_that_is_stopped_twice_goes_on_where_it_was(run, tmp_path):
    save(tmp_path)
    stop(tmp_path, "SIGKILL", 4)
    code, complaints = stop(tmp_path, "SIGINT", 4)
    assert code == 130, complaints
    assert "Traceback" not in complaints
    assert "What is finished is in genes.tsv.permutations; the same command" in complaints
    # The rest in this process, which has all libraries already.
    done = run("select", "data.npz", *WORDS)
    assert done.exit_code == 0, done.output
    assert f"{COUNT} permutations of phi" in done.stdout
    assert not (tmp_path / "genes.tsv.permutations").exists()
    samples = read_samples(tmp_path / "data.npz", "y")
    whole = permutation_test(
        samples.X, samples.y, selector=FROTSelector(5, tol=0.1), statistic="phi",
        n_permutations=COUNT,
    )  # fmt: skip
    resumed = {row["feature"]: float(row["p"]) for row in read_tsv(tmp_path / "genes.tsv")}
    assert resumed == pytest.approx(dict(zip(whole.names, whole.p, strict=True)))
