"""The tab Transport without a browser."""

from pathlib import Path

import numpy as np
import pytest

import frot
from frot.app import transport
from frot.app.transport import transport_tables, transport_toy


def run(python: str, folder, monkeypatch) -> frot.Result:
    """Run what the tab shows, beside the files that it names."""
    monkeypatch.chdir(folder)
    scope: dict = {}
    exec(python, scope)
    return scope["result"]


@pytest.fixture
def tables(tmp_path) -> tuple[Path, Path]:
    X, Y, _ = frot.toy(15)
    header = ",".join(["true_1", "true_2", *(f"noise_{i}" for i in range(8))])
    for name, points in (("a.csv", X), ("b.csv", Y)):
        np.savetxt(tmp_path / name, points, delimiter=",", header=header, comments="")
    return tmp_path / "a.csv", tmp_path / "b.csv"


@pytest.mark.parametrize(("noise", "eta"), [(1.0, 0.0), (3.5, 0.05)])
def test_the_python_shown_gives_the_answer_shown(noise, eta, tmp_path, monkeypatch, capsys):
    found = transport_toy(20, noise, eta, 3)
    again = run(found.python, tmp_path, monkeypatch)
    assert again.value == found.result.value
    assert np.array_equal(again.alpha, found.result.alpha)
    assert again.summary().splitlines()[1] in capsys.readouterr().out


def test_loud_noise_takes_the_weight():
    assert transport_toy(20, 1.0, 0.0).result.alpha[0] > 0.9
    assert transport_toy(20, 4.0, 0.0).result.alpha[1] > 0.5


def test_tables_by_prefix_and_by_a_file_of_groups(tables, tmp_path, monkeypatch):
    found = transport_tables(tables[0], tables[1], "prefix", 0.0)
    assert found.result.names == ("true", "noise")
    assert run(found.python, tmp_path, monkeypatch).value == found.result.value
    sets = tmp_path / "sets.gmt"
    sets.write_text("both\t\ttrue_1\ttrue_2\nrest\t\tnoise_1\n")
    found = transport_tables(tables[0], tables[1], sets, 0.0)
    assert found.result.names == ("both", "rest")
    assert run(found.python, tmp_path, monkeypatch).value == found.result.value
    assert "<img alt=" in found.picture


def test_what_cannot_be_answered_is_a_sentence(tables, tmp_path, monkeypatch):
    with pytest.raises(frot.InputError, match="give two tables"):
        transport_tables(tables[0], None, "each", 0.0)
    bad = tmp_path / "bad.csv"
    bad.write_bytes(b"\x00\xff\x00 no table")
    with pytest.raises(frot.InputError, match=r"bad\.csv"):
        transport_tables(tables[0], bad, "each", 0.0)
    monkeypatch.setattr(transport, "MAX_ROWS", 10)
    with pytest.raises(frot.InputError, match=r"a\.csv has 15 rows, and the app takes 10"):
        transport_tables(tables[0], tables[1], "each", 0.0)
