"""The runner: options, pieces that resume, claims, and files that are whole or not there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frot
from _runner import Claim, Experiment, Run, parse
from frot import InputError
from frot.show.style import new_figure

ROOT = Path(__file__).parents[2]


def squares(run: Run) -> None:
    found = run.pieces("numbers", {f"{k}": k for k in range(run.options.n)}, lambda k: k * k)
    run.numbers["squares"] = found
    run.table("Squares", ["k", "k²"], found.items(), "All of them.")
    run.claim("Squares are small.", {f"{k}²": value < 5 for k, value in found.items()})
    figure: Any = new_figure(2.0, 2.0)
    figure.subplots().plot(list(found.values()))
    run.figure(figure, "squares")
    run.figure(figure, "the same", "again")


SQUARES = Experiment("squares", "What squares are.", squares, options={"n": (4, "how many")})


def counting(calls: list[int]) -> Callable[[Run], None]:
    def do(task: int) -> int:
        calls.append(task)
        return task

    return lambda run: run.numbers.update(
        run.pieces("numbers", {f"{k}": k for k in range(run.options.n)}, do, depends="data")
    )


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ({"a": True, "b": True}, "holds"),
        ({"a": True, "b": False}, "in part"),
        ({"a": False, "b": None}, "does not hold"),
        ({"a": True, "b": None}, "in part"),
        ({"a": None}, "undecided"),
        ({}, "not checked"),
    ],
)
def test_the_verdict_follows_the_checks(checks, verdict):
    assert Claim("it is so", checks).verdict == verdict


def test_a_claim_is_one_check_or_many():
    run = Run(SQUARES, SQUARES.complete({}))
    run.claim("one", True, "4 of 4")
    run.claim("not looked at", None, "no data")
    run.claim("many", {"a": True, "b": False, "c": None})
    assert [claim.verdict for claim in run.claims] == ["holds", "not checked", "in part"]
    assert "**holds**: one\n\n- yes: 4 of 4" in run.markdown
    assert "**not checked**: not looked at\n\n- no data" in run.markdown
    assert "- yes: a\n- no: b\n- undecided: c" in run.markdown


def test_everything_is_written(tmp_path):
    run = SQUARES(out=tmp_path / "new" / "folder", n=3, workers=1)
    names = ["squares-again.png", "squares.json", "squares.md", "squares.png", "squares.sqlite"]
    assert sorted(os.listdir(tmp_path / "new" / "folder")) == names
    content = json.loads((tmp_path / "new/folder/squares.json").read_text("utf-8"))
    assert content["numbers"] == {"squares": {"0": 0, "1": 1, "2": 4}}
    assert content["claims"][0]["verdict"] == "holds"
    assert (tmp_path / "new/folder/squares.md").read_text("utf-8") == run.markdown
    assert "| k | k² |\n| --- | --- |\n| 0 | 0 |" in run.markdown
    assert (tmp_path / "new/folder/squares.png").read_bytes().startswith(b"\x89PNG")


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert SQUARES(workers=1).numbers["squares"]["3"] == 9
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_numpy_are_json_and_nan_is_refused(tmp_path):
    def run(run: Run) -> None:
        run.numbers |= {"array": np.arange(2), "scalar": np.float32(0.5), "path": Path("a")}

    Experiment("numbers", "", run)(out=tmp_path)
    numbers = json.loads((tmp_path / "numbers.json").read_text("utf-8"))["numbers"]
    assert numbers == {"array": [0, 1], "scalar": 0.5, "path": "a"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        Experiment("nan", "", lambda run: run.numbers.update(x=np.nan))(out=tmp_path)


def test_finished_pieces_are_not_done_again(tmp_path):
    calls: list[int] = []
    experiment = Experiment("count", "", counting(calls), options={"n": (3, "")})
    experiment(out=tmp_path, workers=1)
    assert calls == [0, 1, 2]
    # More of them: only the new ones. Another seed: all.
    assert experiment(out=tmp_path, workers=1, n=5).numbers == {f"{k}": k for k in range(5)}
    assert calls == [0, 1, 2, 3, 4]
    experiment(out=tmp_path, workers=1, seed=1)
    assert calls == [0, 1, 2, 3, 4, 0, 1, 2]


def test_what_results_depend_on_is_told_apart(tmp_path):
    for depends in (1, 2, 1):
        found = []

        def run(run: Run, depends: int = depends, found: list[Any] = found) -> None:
            found.append(run.pieces("all", {"k": depends}, abs, depends={"of": depends}))

        Experiment("same", "", run)(out=tmp_path, workers=1)
        assert found == [{"k": depends}]


def test_processes_find_the_same_and_bars_are_lines(tmp_path, capsys):
    one, two = SQUARES(workers=1), SQUARES(workers=2)
    assert one.numbers == two.numbers
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("squares: numbers: 0/4")
    assert lines[-1].startswith("squares: numbers: 4/4")


KILLED = """
import os, sys
from _runner import Experiment

def do(k):
    with open(sys.argv[1], "a") as file:
        file.write(f"{k}\\n")
    if k == 3 and len(sys.argv) > 2:
        os.kill(os.getpid(), 9)
    return k

def run(run):
    run.numbers = run.pieces("numbers", {str(k): k for k in range(6)}, do)

Experiment("killed", "", run)(out="out", workers=1)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_killed_run_goes_on(tmp_path):
    paths = [str(ROOT / "src"), str(ROOT / "experiments")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    codes = []
    for more in (["die"], []):
        command = [sys.executable, "-c", KILLED, "log", *more]
        codes.append(subprocess.run(command, cwd=tmp_path, env=environment).returncode)
    assert codes == [-signal.SIGKILL, 0]
    assert (tmp_path / "log").read_text().split() == ["0", "1", "2", "3", "3", "4", "5"]
    content = json.loads((tmp_path / "out/killed.json").read_text())
    assert content["numbers"] == {str(k): k for k in range(6)}


def test_an_interrupted_run_says_where_it_goes_on_from(tmp_path, capsys):
    def stop(task: int) -> int:
        raise KeyboardInterrupt

    def run(run: Run) -> None:
        run.pieces("draws", {"a": 0}, stop)

    experiment = Experiment("stop", "", run)
    with pytest.raises(KeyboardInterrupt):
        experiment(out=tmp_path, workers=1)
    assert f"finished draws are kept in {tmp_path / 'stop.sqlite'}" in capsys.readouterr().err


def test_a_store_of_something_else_is_refused(tmp_path):
    (tmp_path / "squares.sqlite").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InputError, match=r"squares.sqlite is not a store of frot's"):
        SQUARES(out=tmp_path, workers=1)


def test_options_have_kinds_and_defaults():
    options = {"pairs": (20, "pairs"), "sets": (("a", "b"), "sets"), "deep": (False, "so")}
    parser = parse("", [Experiment("e", "", print, options=options)])
    assert vars(parser.parse_args([])) == {"out": Path("out")}
    given = vars(
        parser.parse_args(["--pairs", "3", "--sets", "c,d", "--deep", "--seed", "0", "--data", "x"])
    )
    assert given.pop("out") == Path("out")
    assert given == {"pairs": 3, "sets": ("c", "d"), "deep": True, "seed": 0, "data": Path("x")}
    for wrong in ("--pairs 0", "--pairs x", "--seed -1", "--workers 0"):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong.split())


def test_a_script_ends_with_one_line_and_a_code(tmp_path, monkeypatch, capsys):
    def lack(options: Any) -> None:
        raise InputError(f"no pairs below {options.data}; set FROT_DATA")

    experiment = Experiment("lacking", "", squares, needs=lack)
    monkeypatch.setattr(sys, "argv", ["lacking.py", "--out", str(tmp_path), "--data", "there"])
    with pytest.raises(SystemExit) as ended:
        experiment.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "lacking: no pairs below there; set FROT_DATA\n"

    def fail(run: Run) -> None:
        raise frot.SolverError("HiGHS failed")

    with pytest.raises(SystemExit) as ended:
        Experiment("failing", "", fail).main()
    assert ended.value.code == "failing: HiGHS failed"
