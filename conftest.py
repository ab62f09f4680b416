"""What pytest must not import where an optional library is absent, and how workers share cores."""

from __future__ import annotations

import os
from importlib.util import find_spec

# Workers are one a core: threads of theirs would be in each other's way.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Kernels for CUDA devices import Triton; the code that calls them asks for it first.
collect_ignore_glob = [] if find_spec("triton") else ["src/frot/**/*_triton.py"]
# anndata and scanpy have an environment of their own, which `make test` makes and runs.
collect_ignore_glob += [] if find_spec("anndata") else ["tests/selection/test_h5ad.py"]
