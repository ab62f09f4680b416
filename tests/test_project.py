import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import frot

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ["torch", "matplotlib", "jinja2", "sklearn", "pandas", "polars", "pyarrow", "joblib"]
HEAVY += ["dask", "ot", "jax", "highspy", "rich", "typer", "PIL", "scipy.optimize", "scipy.stats"]

# Modules that `import frot` may load besides those that NumPy and SciPy's parts load by
# themselves: its own, and a few of the standard library's. Modules are counted because a clock
# tells more about the machine and who else is on it.
MODULES = 200
PARTS = ["numpy", "array_api_compat", "scipy.linalg", "scipy.sparse.csgraph", "scipy.special"]
PARTS += ["scipy.spatial.distance"]


def loaded_by(code: str) -> set[str]:
    """Return the modules there are in a new process once it has run `code`."""
    command = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_import_loads_few_modules_and_no_heavy_library():
    loaded = loaded_by("import frot")
    assert loaded.isdisjoint(HEAVY)
    own = loaded - loaded_by(f"import {', '.join(PARTS)}")
    assert len(own) < MODULES, sorted(own)


def test_transport_loads_none_of_pots_libraries():
    """POT's package loads PyTorch and JAX where they are installed, which takes seconds."""
    calls = """
import numpy as np, frot
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(2, 12, 3))
frot.solve(X, Y)
frot.solve(X, Y, eta=0.1, solver="frank_wolfe")
frot.solve(X, Y, normalise="regret")
frot.solve(X, Y, eps=0.5)
frot.wasserstein(X, Y)
frot.sliced(X, Y, a=np.arange(1.0, 13.0), normalise_weights=True)
frot.distance(X, Y)
frot.pairwise([X, Y], "all")
"""
    assert loaded_by(calls).isdisjoint({"ot", "torch", "jax", "tensorflow", "cupy"})


def test_version_is_the_same_everywhere():
    assert frot.__version__ == importlib.metadata.version("frot")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {frot.__version__}\n" in citation


def test_package_is_typed():
    assert (ROOT / "src" / "frot" / "py.typed").is_file()


def test_constraints_pin_every_dependency_exactly():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(
        re.match(r"^[a-z0-9-]+==[^;\s]+(; python_version [<>=]+ \"3\.11\")?$", p) for p in pins
    )
    pinned = {pin.partition("==")[0] for pin in pins}
    requirements = importlib.metadata.requires("frot") or []
    needed = {re.split(r"[^A-Za-z0-9_.-]", line)[0].lower() for line in requirements} - {"frot"}
    assert needed <= pinned
