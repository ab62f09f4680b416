"""All experiments together: which there are, and the one table of claims and verdicts."""

from __future__ import annotations

import runpy
from importlib import import_module
from pathlib import Path

import pytest

import frot
from _report import Entry, leading_number, write_markdown, write_page
from _runner import Experiment, Run
from frot.show.style import new_figure

FOLDER = Path(__file__).parents[2] / "experiments"
EVERY = runpy.run_path(str(FOLDER / "__main__.py"))
# Scripts that prepare data make no claims.
TOOLS = {"weights"}
SCRIPTS = sorted({path.stem for path in FOLDER.glob("[!_]*.py")} - TOOLS)


def example(run: Run) -> None:
    run.claim("Water is wet.", {"100 %": True})
    run.claim("Fire is cold | blue.", {"it burns": False, "blue at the root": True})
    run.claim("All is well.", {f"check {k} of forty": k < 25 for k in range(40)})
    run.claim("Nobody looked.", None, "no thermometer")
    run.table("Times", ["method", "seconds"], [["sort", "0.1 ± 0.01"]], "One thread.")
    run.figure(new_figure(1.0, 1.0), "a <picture>")
    run.note("A note.")


EXAMPLE = Experiment("example", "What is so.", example)


def entries() -> list[Entry]:
    lacking = Experiment("lacking", "What is not there.", print)
    return [
        Entry(EXAMPLE, EXAMPLE()),
        Entry(lacking, skipped="no data below /data"),
        Entry(lacking, failed="HiGHS failed"),
    ]


def test_every_script_is_run():
    assert sorted(EVERY["NAMES"]) == SCRIPTS


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_have_the_name_of_their_experiment(name):
    assert import_module(name).EXPERIMENT.name == name


def test_the_table_has_every_claim(tmp_path):
    write_markdown(entries(), tmp_path / "verdicts.md", "python experiments")
    lines = (tmp_path / "verdicts.md").read_text("utf-8").splitlines()
    assert lines[0] == "Made by `python experiments`."
    assert lines[4:] == [
        "| example | Water is wet. | **holds** | 100 % |",
        r"| example | Fire is cold \| blue. | **in part** | no: it burns; yes: blue at the root |",
        "| example | All is well. | **in part** | 25 of 40 hold |",
        "| example | Nobody looked. | **not checked** | no thermometer |",
        "| lacking | What is not there. | **not checked** |  |",
        "| lacking | What is not there. | **failed** | HiGHS failed |",
    ]


def test_the_page_is_one_file_with_everything(tmp_path):
    write_page(entries(), tmp_path / "index.html", "python experiments")
    text = (tmp_path / "index.html").read_text("utf-8")
    for word in ("Water is wet.", "check 38", "in part", "no thermometer", "0.1 ± 0.01", "A note."):
        assert word in text
    assert "a &lt;picture&gt;" in text
    assert text.count("data:image/png;base64,") == 1
    assert "no data below /data" in text
    assert "HiGHS failed" in text


def test_cells_are_sorted_by_their_first_number():
    assert leading_number("≤ 1,234.5 ± 2") == 1234.5
    assert leading_number("−0.5") == -0.5
    assert leading_number("5e-3") == 0.005
    assert str(leading_number("none")) == "nan"


def test_one_that_fails_costs_no_other(tmp_path, capsys, monkeypatch):
    def fail(run: Run) -> None:
        raise frot.SolverError("HiGHS failed")

    def lack(options: object) -> None:
        raise frot.InputError("no data below /data")

    run = EVERY["run"]
    assert run(Experiment("failing", "", fail), {}).failed == "HiGHS failed"
    assert run(Experiment("lacking", "", fail, needs=lack), {}).skipped == "no data below /data"
    assert run(EXAMPLE, {}).run.claims[0].verdict == "holds"
    told = capsys.readouterr().err
    assert "failing: failed: HiGHS failed" in told
    assert "lacking: skipped: no data below /data" in told


def test_the_command_has_what_results_depend_on():
    options = {"out": "a", "workers": 2, "sets": ("b", "c"), "deep": False, "n_draws": 3}
    told = EVERY["command_of"](["fig1"], options)
    assert told == "python experiments fig1 --sets b,c --no-deep --n-draws 3"


def test_all_of_them(tmp_path, monkeypatch):
    monkeypatch.setitem(EVERY["main"].__globals__, "NAMES", ("fig1",))
    assert EVERY["main"](["--n", "20", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "verdicts.md").read_text("utf-8").count("| fig1 |") == 1


def test_some_by_name(tmp_path, capsys):
    copy = tmp_path / "copy.md"
    assert (
        EVERY["main"](["fig1", "--n", "20", "--out", str(tmp_path), "--verdicts", str(copy)]) == 0
    )
    names = ["copy.md", "fig1.json", "fig1.md", "fig1.png", "index.html", "verdicts.md"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert "| fig1 | Figure 1: FROT can identify" in capsys.readouterr().out
    assert copy.read_text("utf-8") == (tmp_path / "verdicts.md").read_text("utf-8")
    with pytest.raises(SystemExit):
        EVERY["main"](["fig3"])
    assert "fig3 is none of fig1, fig2" in capsys.readouterr().err
