import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import frot

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ["torch", "matplotlib", "jinja2", "sklearn", "pandas", "polars", "pyarrow", "joblib"]
HEAVY += ["dask"]

PROBE = """
import sys, time
start = time.perf_counter()
import frot
print(time.perf_counter() - start)
print(" ".join(name for name in {heavy!r} if name in sys.modules))
"""


def import_frot() -> tuple[float, list[str]]:
    command = [sys.executable, "-c", PROBE.format(heavy=HEAVY)]
    seconds, loaded = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.split("\n")[:2]
    return float(seconds), loaded.split()


def test_import_is_fast_and_brings_no_heavy_library():
    runs = [import_frot() for _ in range(3)]
    assert [loaded for _, loaded in runs] == [[], [], []]
    assert min(seconds for seconds, _ in runs) < 0.5


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
