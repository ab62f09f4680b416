"""Examples run, and do what they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_transform_is_learned(capsys, tmp_path):
    pytest.importorskip("torch")
    picture = tmp_path / "learned.png"
    given = ["--points", "40", "--steps", "50", "--plot", str(picture)]
    found = load("learn_transform").main(given)
    assert found["losses"][-1] < 0.05 * found["losses"][0]
    assert found["scale_error"] < 0.2
    assert found["shift_error"] < 0.2
    assert picture.stat().st_size > 0
    assert "scales are within" in capsys.readouterr().out
