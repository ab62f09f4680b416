"""Memory that is kept from step to step."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# The C library's thresholds are those of a process: a fresh one each.
SCRIPT = """
import resource, sys
import numpy as np
from frot.solvers.sinkhorn._pages import keep_pages

if sys.argv[1] == "kept":
    keep_pages(20_000_000)
def step():
    return [np.ones(400_000) for _ in range(4)]
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """New pages that ten steps ask for."""
    run = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others do as they like")
def test_steps_ask_for_no_new_pages():
    given_back = faults("given back")
    if given_back < 100:
        pytest.skip("memory comes in huge pages here")
    assert faults("kept") < 0.5 * given_back
