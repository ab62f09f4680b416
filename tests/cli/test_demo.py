import re
import sys

import pytest

import frot
from frot.datasets import toy


def test_demo_prints_certified_values_and_draws(run, tmp_path):
    done = run("demo", "-n", 30, "--picture", "demo.svg")
    assert done.exit_code == 0
    X, Y, groups = toy(30, 0)
    results = [
        frot.solve(X[:, :2], Y[:, :2], "all"),
        frot.solve(X, Y, "all"),
        frot.solve(X, Y, groups, eta=1.0),
    ]
    printed = re.findall(r"value +(\S+) +(\S+) +(\S+)", done.output)[0]
    assert [float(value) for value in printed] == pytest.approx([r.value for r in results])
    assert re.search(r"α of the true features\s+(1\.0|0\.9999)", done.output)
    assert "FROT finds 100.0% of the matching" in done.output
    assert "Wrote demo.svg" in done.stderr
    assert "FROT on noisy data" in (tmp_path / "demo.svg").read_text(encoding="utf-8")
    assert run("demo", "-n", 5).exit_code == 0
    assert (tmp_path / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_seed_changes_the_data(run):
    first, second = (run("demo", "-n", 10, "--seed", seed).output for seed in (0, 1))
    assert re.findall(r"value\s+\S+", first) != re.findall(r"value\s+\S+", second)


def test_a_folder_that_cannot_be_made(run, tmp_path):
    (tmp_path / "out").write_text("")
    done = run("demo", "-n", 5)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: out cannot be made a folder")


def test_without_matplotlib_the_numbers_remain(run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = run("demo", "-n", 5)
    assert done.exit_code == 0
    assert "relative gap" in done.stdout
    assert 'pip install "frot[plot]"' in done.stderr
    assert not list((tmp_path / "out").iterdir())
