import numpy as np
import pytest
from typer.testing import CliRunner

from frot.cli.app import app
from frot.datasets import toy


@pytest.fixture(autouse=True)
def _unrendered(monkeypatch):
    """Have pictures of pages drawn, but not turned into files, which takes most of the time."""
    monkeypatch.setattr("frot.show.page.png", lambda figure, *rest, **more: b"")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run frot in an empty folder, as a terminal too wide to wrap anything would."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*words):
        return CliRunner().invoke(app, [str(word) for word in words], prog_name="frot")

    return run


@pytest.fixture
def tables(tmp_path):
    """a.csv and b.csv: the toy data, with names that have prefixes."""
    X, Y, _ = toy(n=25, random_state=0)
    header = ",".join(["true_1", "true_2", *(f"noise_{i}" for i in range(8))])
    for name, points in (("a.csv", X), ("b.csv", Y)):
        np.savetxt(tmp_path / name, points, delimiter=",", header=header, comments="")
    return X, Y
