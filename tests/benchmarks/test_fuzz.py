"""The command: a quick run of it, and one case again."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FUZZ = Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FUZZ), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


def test_a_quick_run_finds_nothing():
    done = run("--n", "45", "--seed", "0", "--jobs", "1")
    assert "45 calls, failures 0" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


class TestMain:
    """The command in this process, with outcomes that are made up."""

    @pytest.fixture
    def fuzz(self, monkeypatch) -> Any:
        monkeypatch.syspath_prepend(FUZZ.parent)
        fuzz = importlib.import_module("fuzz")
        wrong = fuzz.judge.__globals__["Complaint"]("wrong", "by a mile")
        verdict = fuzz.judge.__globals__["Verdict"]

        def outcomes(make_judge, name, numbers, jobs):
            for number in numbers:
                made = verdict("FAILURE", (wrong,)) if number == 2 else verdict("converged")
                yield fuzz.Outcome(number, name(number), "solve", made, "frot.solve(...)")

        monkeypatch.setattr(fuzz, "run_cases", outcomes)
        return fuzz

    def test_a_failure_is_shown_written_down_and_ends_in_exit_code_one(
        self, fuzz, tmp_path, capsys
    ):
        log = tmp_path / "found.json"
        assert fuzz.main(["--n", "4", "--log", str(log)]) == 1
        shown = capsys.readouterr().out
        assert "fuzz.py --seed 0 --only 2" in shown
        assert "wrong: by a mile" in shown
        assert "4 calls, failures 1" in shown
        written = json.loads(log.read_text())
        assert (written["number"], written["complaints"][0]["what"]) == (2, "wrong")

    def test_no_failure_ends_in_exit_code_zero(self, fuzz, capsys):
        assert fuzz.main(["--n", "2"]) == 0
        assert "2 calls, failures 0" in capsys.readouterr().out

    def test_a_word_that_is_ignored_is_no_failure(self, fuzz, capsys):
        assert fuzz.main(["--n", "4", "--ignore", "wrong"]) == 0
        assert "ignored" in capsys.readouterr().out

    def test_kinds_are_chosen(self, fuzz):
        numbers = fuzz.first_cases(0, 20, ["ties", "outside"])
        assert {fuzz.kind_of(0, number) for number in numbers} == {"ties", "outside"}
        assert {fuzz.make_case(0, number).kind for number in numbers} == {"ties", "outside"}


def test_one_case_can_be_repeated():
    done = run("--seed", "0", "--only", "2")
    assert "frot." in done.stdout
    assert "converged" in done.stdout
    assert done.returncode == 0


def test_a_kind_that_is_none_is_refused():
    done = run("--kind", "nonsense")
    assert done.returncode == 2
    assert "no kind 'nonsense'" in done.stderr
