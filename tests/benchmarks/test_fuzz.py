"""The command: a quick run of it, one case again, and what went wrong before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FUZZ), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


def test_one_case_can_be_repeated():
    done = run("--seed", "0", "--only", "2")
    assert "frot.solve(" in done.stdout
    assert "converged" in done.stdout
    assert done.returncode == 0


def test_a_kind_that_is_none_is_refused():
    done = run("--kind", "nonsense")
    assert done.returncode == 2
    assert "no kind 'nonsense'" in done.stderr
