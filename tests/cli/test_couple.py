"""``frot couple``: the answer of the library, in the terminal and in files."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

from frot.cells import couple, simulate
from frot.cli.app import app


@pytest.fixture(scope="module")
def made():
    return simulate(50, noise=0.5, n_groups=4, growth=2.0, seed=1)


@pytest.fixture
def files(made, tmp_path):
    names = [f"c{i}" for i in range(len(made.day))]
    frame = pandas.DataFrame(made.X, columns=pandas.Index(made.names), index=pandas.Index(names))
    frame.to_csv(tmp_path / "cells.csv")
    pandas.DataFrame(made.obs, index=pandas.Index(names)).iloc[::-1].to_csv(tmp_path / "obs.csv")
    lines = [
        "\t".join([name, "", *(made.names[at] for at in genes)]) for name, genes in made.groups
    ]
    (tmp_path / "sets.gmt").write_text("\n".join(lines) + "\n")


WORDS = ("couple", "cells.csv", "--obs", "obs.csv", "--groups", "sets.gmt", "--types", "fate")


def test_the_answer_is_that_of_the_library(run, files, made, tmp_path):
    more = ("--source", "0", "--target", "1", "--tau", "inf,1", "--growth", "growth")
    out = ("--json", "n.json", "--out", "t.tsv", "--report", "page.html")
    done = run(*WORDS, *more, *out)
    assert done.exit_code == 0, done.output
    expected = couple(made.cells, groups=made.groups, tau=(np.inf, 1.0), growth="growth")
    table = expected.transition_matrix("fate")
    written = pandas.read_csv(tmp_path / "t.tsv", sep="\t", index_col=0)
    np.testing.assert_allclose(written.to_numpy(), table.to_numpy(), rtol=1e-6)
    numbers = json.loads((tmp_path / "n.json").read_text())
    assert numbers["value"] == pytest.approx(expected.result.value, rel=1e-8)
    weights = [one["weight"] for one in numbers["groups"]]
    np.testing.assert_allclose(weights, expected.alpha, rtol=1e-5, atol=1e-8)
    # The command that the page gives does the same again.
    again = numbers["command"].removesuffix(" --report page.html").split()[1:]
    assert run(*again, "--json", "again.json").exit_code == 0
    assert json.loads((tmp_path / "again.json").read_text())["value"] == numbers["value"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.search(r"--tau inf,1\b", page)


@pytest.mark.parametrize(("data", "obs"), [("-", "obs.csv"), ("cells.csv", "-")])
def test_the_call_says_what_came_on_stdin(files, tmp_path, monkeypatch, data, obs):
    monkeypatch.chdir(tmp_path)
    content = (tmp_path / ("cells.csv" if data == "-" else "obs.csv")).read_bytes()
    words = ["couple", data, "--key", "day", "--groups", "sets.gmt", "--obs", obs]
    done = CliRunner().invoke(app, [*words, "--json", "-", "--quiet"], input=content)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["command"] == " ".join(["frot", *words])


def test_without_a_gate(run, files, tmp_path):
    done = run(*WORDS, "--no-gate", "--json", "n.json")
    assert done.exit_code == 0, done.output
    numbers = json.loads((tmp_path / "n.json").read_text())
    assert all(one["passed"] for one in numbers["groups"])
    assert "--no-gate" in numbers["command"]


def test_without_denoising(run, files, made, tmp_path):
    done = run(*WORDS, "--no-denoise", "--json", "n.json")
    assert done.exit_code == 0, done.output
    numbers = json.loads((tmp_path / "n.json").read_text())
    assert "--no-denoise" in numbers["command"]
    expected = couple(made.cells, groups=made.groups, denoise=False)
    assert numbers["value"] == pytest.approx(expected.result.value, rel=1e-8)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--source", "3", "--target", "1"), "source: day has no '3'"),
        (("--types", "species"), "types: cells.csv has no column 'species' of cells; it has 'day'"),
        (("--basis", "X_umap"), "basis: cells.csv has no embedding 'X_umap'; it has none"),
        (("--key", "week"), "key: cells.csv has no column 'week' of cells; it has 'day'"),
        (("--growth", "rate"), "growth: cells.csv has no column 'rate' of cells; it has 'day'"),
        (("--tau", "much"), "tau: 'much' is neither a number nor two"),
        (("--report", "page.txt"), r"page.txt must end in .html"),
    ],
)
def test_mistakes_are_one_sentence(run, files, words, message):
    done = run(*WORDS, *words)
    assert done.exit_code == 2
    assert re.search(message, done.stderr)
