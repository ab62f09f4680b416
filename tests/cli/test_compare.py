"""``frot compare``."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import frot
from tests.comparison.test_compare import swap


def test_a_table_and_all_files(run, tables, tmp_path):
    words = ["compare", "a.csv", "b.csv", "--groups", "prefix", "--k", 1]
    words += ["--methods", "frot,srw,max-sliced,wasserstein"]
    done = run(*words, "--report", "c.html", "--json", "c.json", "--out", "c.png")
    assert done.exit_code == 0, done.output
    X, Y = tables
    value = frot.solve(X, Y, [2, 8]).value
    assert f"{value:.5g}" in done.stdout
    assert "FROT chose weights: true 1" in done.stdout
    assert "max-sliced chose direction: " in done.stdout
    assert "OT chose nothing: all features count" in done.stdout
    assert "squared transport costs" in done.stdout
    assert "SRW <= OT: proven" in done.stdout
    content = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert [row["method"] for row in content["rows"]] == ["frot", "srw", "max_sliced", "ot"]
    assert content["rows"][0]["value"] == pytest.approx(value)
    assert content["command"] == (
        "frot compare a.csv b.csv --methods frot,srw,max-sliced,wasserstein --groups prefix --k 1"
    )
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "a.csv to b.csv, by 4 methods" in page
    assert "k=1, feature_names=names)" in page
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_the_python_call_of_the_page_gives_the_same(run, tables, tmp_path):
    from html import unescape

    np.savetxt(tmp_path / "w.csv", np.arange(1.0, 26.0))
    words = ["--methods", "frot,ot", "--weights-a", "w.csv", "--normalise-weights"]
    done = run("compare", "a.csv", "b.csv", *words, "--report", "c.html", "--json", "c.json")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    code = unescape(page.split("<code>")[1].split("</code>")[0])
    scope = {}
    exec(code, scope)
    content = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert scope["found"]["frot"].value == content["rows"][0]["value"]


def test_the_worst_groups_share_the_weight(run, tables, tmp_path):
    X, Y = tables
    words = ["--methods", "frot,ot", "--worst", 2, "--json", "c.json"]
    done = run("compare", "a.csv", "b.csv", *words)
    assert done.exit_code == 0, done.output
    content = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    expected = frot.solve(X, Y, "each", adversary=frot.CappedSimplex(2)).value
    assert content["rows"][0]["value"] == pytest.approx(expected, rel=1e-8)
    assert content["command"].endswith("--groups each --worst 2")
    assert "adversary=frot.CappedSimplex(2), feature_names=names)" in content["python"]
    refused = run("compare", "a.csv", "b.csv", "--groups", "prefix", "--worst", 3)
    assert refused.exit_code == 2
    assert "error: worst: 3 of 2 groups cannot share it; give 1 to 2" in refused.stderr


def test_mass_that_need_not_be_kept(run, tables, tmp_path):
    X, Y = tables
    words = ["--methods", "frot,ot", "--tau", "inf,5", "--penalty", "tv", "--json", "c.json"]
    done = run("compare", "a.csv", "b.csv", *words)
    assert done.exit_code == 0, done.output
    content = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    for row, groups in zip(content["rows"], ("each", "all"), strict=True):
        expected = frot.solve(X, Y, groups, tau=(np.inf, 5.0), penalty="tv").value
        assert row["value"] == pytest.approx(expected, rel=1e-8)
    assert content["command"].endswith("--groups each --tau inf,5 --penalty tv")
    refused = run("compare", "a.csv", "b.csv", "--tau", "5")
    assert refused.exit_code == 2
    assert "srw, max_sliced, max_min keep all mass" in " ".join(refused.stderr.split())


def test_one_failing_method(run, tables, tmp_path):
    words = ["--methods", "frot,srw,ot", "--k", 50, "--json", "c.json"]
    done = run("compare", "a.csv", "b.csv", *words)
    assert done.exit_code == 1
    assert "SRW failed: k: must be a whole number from 1 to 10" in done.stdout
    assert "OT chose" in done.stdout
    assert "without an answer: srw" in done.stderr
    content = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert content["missing"] == ["srw"]
    assert "value" in content["rows"][2]


def test_all_failing(run, tables, tmp_path):
    words = ["--methods", "srw", "--k", 99, "--report", "c.html", "--out", "c.png"]
    done = run("compare", "a.csv", "b.csv", *words)
    assert done.exit_code == 1
    assert "No method has a result to draw" in (tmp_path / "c.html").read_text(encoding="utf-8")
    assert not (tmp_path / "c.png").exists()


def test_stopping_before_the_tolerance_has_its_code(run, tables):
    words = ["--methods", "srw", "--tol", 1e-13, "--time-limit", 1e-4]
    done = run("compare", "a.csv", "b.csv", *words)
    assert done.exit_code == 3
    assert "TIME_LIMIT" in done.stdout


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--methods", "frot,slicing"], "'slicing' is none of frot, srw"),
        (["--report", "c.txt"], "c.txt must end in .html"),
        (["--json", "c.html"], "c.html must end in .json"),
        (["--out", "c.txt"], "c.txt must end in .png"),
        (["--json", "no/c.json"], "no does not exist"),
    ],
)
def test_bad_input(run, tables, words, part):
    done = run("compare", "a.csv", "b.csv", *words)
    assert done.exit_code == 2
    assert part in " ".join(done.stderr.split())


def test_a_narrow_terminal_cuts_no_number_off(run, tables, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = run("compare", "a.csv", "b.csv", "--methods", "frot,max_sliced,ot")
    assert "…" not in done.stdout
    assert max(map(len, done.stdout.split("chose")[0].splitlines())) <= 80


def test_progress_names_what_is_running(run, tables):
    done = run("compare", "a.csv", "b.csv", "--methods", "max_min,ot", "--progress")
    assert "max-min (1 of 2) ..." in done.stderr
    assert "OT (2 of 2) ..." in done.stderr


def test_an_interrupt_in_the_middle(run, tables, tmp_path, monkeypatch):
    def interrupted(task):
        raise KeyboardInterrupt

    swap(monkeypatch, "max_sliced", interrupted)
    words = ["--methods", "ot,max_sliced,frot", "--report", "c.html"]
    done = run("compare", "a.csv", "b.csv", *words)
    assert done.exit_code == 130
    assert "OT chose" in done.stdout
    assert "interrupted; without an answer: max_sliced, frot" in done.stderr
    assert "1 of 3 methods have an answer" in (tmp_path / "c.html").read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a single process")
def test_ctrl_c_keeps_what_is_finished(tmp_path):
    rng = np.random.default_rng(0)
    for name, shift in (("a.npy", 0.0), ("b.npy", 0.3)):
        np.save(tmp_path / name, rng.normal(size=(700, 120)) + shift)
    command = [sys.executable, "-m", "frot", "compare", "a.npy", "b.npy", "--progress"]
    command += ["--methods", "ot,frot,max_min", "--json", "c.json"]
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
    while "FROT (2 of 3)" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, complaints = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("solved before the signal came")
    assert process.returncode == 130, complaints
    assert "Traceback" not in complaints
    assert "without an answer: " in complaints
    content = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert content["rows"][0]["value"] > 0.0
    assert "max_min" in content["missing"]
    assert "OT chose" in output
