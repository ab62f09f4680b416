"""What pytest must not import where an optional library is absent, and who shares a worker."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# Workers are one a core: threads of theirs would be in each other's way.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Tests start many processes of frot: its modules are compiled once, not by each of them.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.dont_write_bytecode = False

# Kernels for CUDA devices import Triton; the code that calls them asks for it first.
collect_ignore_glob = [] if find_spec("triton") else ["src/frot/**/*_triton.py"]
# anndata and scanpy have an environment of their own, which `make test` makes and runs.
collect_ignore_glob += [] if find_spec("anndata") else ["tests/selection/test_h5ad.py"]


# Groups of few tests that take long, the longest first.
LONG = (
    "alone",
    "browser",
    "site",
    "tests/test_invariances.py",
    "tests/benchmarks/test_fuzz.py",
    "tests/experiments/test_robustness.py",
    "tests/experiments/test_calibration.py",
    "tests/test_packaging.py",
    "tests/benchmarks/test_pool.py",
    "tests/base/test_orphans.py",
)


@cache
def group_of(file: str) -> str:
    """The ``xdist_group`` that a file says it is in, or the file itself.

    Read from its text: pytest 9.2 keeps the names of tests where xdist 3.8 does not look, so that
    its own groups are none.
    """
    path = Path(__file__).parent / file
    text = path.read_text(encoding="utf-8") if path.suffix == ".py" else ""
    group = re.search(r'xdist_group\("(\w+)"\)', text)
    return file if group is None else group[1]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a file, or of a group, share a worker and what is made once for them."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid.partition("::")[0])

        def _assign_work_unit(self, node: Any) -> None:
            # By their numbers of tests these would be last, and one worker would wait for them.
            for name in LONG:
                if name in self.workqueue:
                    self.workqueue.move_to_end(name, last=False)
                    break
            super()._assign_work_unit(node)

    return ByGroup(config, log)
