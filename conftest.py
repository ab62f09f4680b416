"""What pytest must not import where an optional library is absent."""

from __future__ import annotations

from importlib.util import find_spec

# Kernels for CUDA devices import Triton; the code that calls them asks for it first.
collect_ignore_glob = [] if find_spec("triton") else ["src/frot/correspondence/_cuda/_*kernels.py"]
