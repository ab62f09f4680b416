"""Every benchmark loads, says how it is run, and stands on a page with its figures."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_loads(name: str, monkeypatch):
    source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    for module in re.findall(r"^(?:import|from) (ot|torch|sklearn|highspy)\b", source, re.M):
        pytest.importorskip(module)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    # As a script's, its helpers have no package; other tests import them with one.
    loaded = {key: sys.modules.pop(key) for key in list(sys.modules) if key in {*SCRIPTS, "_fuzz"}}
    try:
        module = importlib.import_module(name)
    finally:
        for key in list(sys.modules):
            if key in SCRIPTS or key.partition(".")[0] == "_fuzz":
                del sys.modules[key]
        sys.modules.update(loaded)
    assert f"python benchmarks/{name}.py" in (module.__doc__ or "")
    assert callable(module.main)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_page_has_its_figures(name: str):
    pages = (ROOT / "docs").glob("*.md")
    assert any(f"benchmarks/{name}.py" in page.read_text(encoding="utf-8") for page in pages)
