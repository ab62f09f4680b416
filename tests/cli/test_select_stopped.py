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


@pytest.fixture
def data(tmp_path):
    return save(tmp_path)


@pytest.fixture(scope="module")
def unstopped(tmp_path_factory):
    """The p-values of a run that nobody stops, by feature."""
    samples = read_samples(save(tmp_path_factory.mktemp("whole")) / "data.npz", "y")
    model = FROTSelector(5, tol=0.1)
    whole = permutation_test(
        samples.X, samples.y, selector=model, statistic="phi", n_permutations=COUNT
    )
    return dict(zip(whole.names, whole.p, strict=True))


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


def wait_for_some(process, path):
    """Wait until a few permutations are on disk."""
    for _ in range(1200):
        if len(finished(path)) > 3:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    pytest.fail("no permutation was finished in a minute")


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to a single process")
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_stopped_run_goes_on_where_it_was(data, unstopped, how):
    checkpoint = data / "genes.tsv.permutations"
    process = start(data)
    wait_for_some(process, checkpoint)
    process.send_signal(getattr(signal, how))
    _, complaints = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("done before the signal came")
    if how == "SIGINT":
        assert process.returncode == 130, complaints
        assert "Traceback" not in complaints
        assert "What is finished is in genes.tsv.permutations; the same command" in complaints
    assert not (data / "genes.tsv").exists()
    assert 0 < len(finished(checkpoint)) < COUNT
    again = start(data)
    output, complaints = again.communicate(timeout=240)
    assert again.returncode == 0, complaints
    assert not checkpoint.exists()
    resumed = read_tsv(data / "genes.tsv")
    assert {row["feature"]: float(row["p"]) for row in resumed} == pytest.approx(unstopped)
    assert f"{COUNT} permutations of phi" in output
