"""The comparison of a device with the host runs, here with the host in the device's place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_host_agrees_with_itself():
    pytest.importorskip("torch")
    command = [sys.executable, "devices.py", "--device", "cpu", "--n", "10"]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of 10 failed" in done.stdout
