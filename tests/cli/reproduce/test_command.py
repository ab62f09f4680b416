import dataclasses
import json
import re
import sys

import pytest

from frot._base.errors import InputError, SolverError
from frot.cli.reproduce import command
from frot.cli.reproduce.command import ReportEntry, experiments, write_experiments
from frot.cli.reproduce.experiment import (
    Check,
    Experiment,
    ExperimentTable,
    Reproduction,
    RunOptions,
    Verdict,
)
from tests.show.test_report import Page


def test_figure_1(run, tmp_path):
    done = run("reproduce", "fig1", "-n", 25, "--out", "made")
    assert done.exit_code == 0
    assert "Figure 1: reproduced" in done.stdout
    assert "α₁ = 1.000000" in done.stdout
    assert (tmp_path / "made" / "fig1.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads((tmp_path / "made" / "fig1.json").read_text(encoding="utf-8"))
    assert content["n"] == 25


@pytest.fixture
def registry(monkeypatch):
    """Two experiments that answer at once, one that lacks its data, and one that fails."""

    def made(name, holds):
        def run(n=None, seed=None):
            checks = (Check(f"{n} points of seed {seed}", holds),)
            verdicts = (Verdict(name, f"the claim of {name}", checks),)
            table = ExperimentTable("Numbers & more", ["a", "b"], [["<x>", "1.5"]])
            return Reproduction(name, {"n": n}, verdicts, figure, ("a note",), (table,))

        return run

    def lacking(asked):
        raise InputError("the photographs are not there; get them")

    def broken():
        raise SolverError("it broke")

    those = [
        Experiment("yes", "it holds", made("yes", True)),
        Experiment("no", "it does not", made("no", False)),
        Experiment("photos", "photographs match", broken, lacking, "photographs"),
        Experiment("broken", "never told", broken),
    ]
    found = {one.name: one for one in those}
    monkeypatch.setattr(command, "experiments", lambda: found)
    return found


def figure():
    from frot.show.style import new_figure

    return new_figure(1, 1)


def test_all_runs_every_experiment_that_has_its_data(run, registry, tmp_path):
    del registry["broken"]
    done = run("reproduce", "all", "--seed", 7, "-n", 3, "--pairs", 2, "--out", "made")
    assert done.exit_code == 0, done.output
    assert "Figure yes: reproduced\n" in done.stdout
    assert "Figure no: not reproduced\n" in done.stdout
    assert done.stdout.count("3 points of seed 7") == 2
    assert "a note" in done.stdout
    assert "photos: skipped: the photographs are not there; get them" in done.stderr
    # The table at the end has every claim with its verdict.
    table = done.stdout[done.stdout.index("experiment") :]
    for name, claim, verdict in (
        ("yes", "the claim of yes", "reproduced"),
        ("no", "the claim of no", "not reproduced"),
        ("photos", "photographs match", "skipped: the photographs are not there; get them"),
    ):
        assert re.search(rf"^ *{name} +{claim} +{verdict} *$", table, re.MULTILINE)
    names = {path.name for path in (tmp_path / "made").iterdir()}
    assert names == {f"{n}.{kind}" for n in ("yes", "no") for kind in ("json", "md", "png")} | {
        "reproduction.html"
    }
    page = (tmp_path / "made" / "reproduction.html").read_text(encoding="utf-8")
    parsed = Page(page)
    # First every claim with its verdict, each leading to its experiment; then the numbers.
    assert parsed.rows == [
        ["experiment", "claim", "verdict"],
        ["yes", "the claim of yesFigure\xa0yes", "reproduced"],
        ["no", "the claim of noFigure\xa0no", "not reproduced"],
        ["photos", "photographs matchthe photographs are not there; get them", "skipped"],
        *[["a", "b"], ["<x>", "1.5"]] * 2,
    ]
    for name in ("yes", "no", "photos"):
        assert f'href="#{name}"' in page
        assert page.count(f'<section id="{name}">') == 1
    assert parsed.alts == ["it holds", "it does not"]
    assert page.count("data:image/png;base64,") == 2
    for word, kind in (
        ("reproduced", "badge"),
        ("not reproduced", "badge failed"),
        ("skipped", "badge open"),
        ("yes", "badge"),
        ("no", "badge failed"),
    ):
        assert f'<span class="{kind}">{word}</span>' in page
    assert page.count("3 points of seed 7") == 2
    assert page.count("a note") == 2
    assert "frot reproduce all --seed 7 --out made -n 3 --pairs 2" in parsed.texts["code"]


def test_all_needs_what_the_page_needs_before_any_work(run, registry, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = run("reproduce", "all", "--out", "made")
    assert done.exit_code == 2
    assert 'jinja2 is not installed; pip install "frot[plot]"' in done.stderr
    assert not any((tmp_path / "made").iterdir())


def test_columns_of_numbers_are_sorted_by_what_their_cells_begin_with(tmp_path):
    cells = ["0.875 ± 0.01", "−2.5", "1,200 / 3", "", "1.5e-3 s", "40.1%"]
    table = ExperimentTable("t", ["name", "n"], [["x", cell] for cell in cells])
    verdict = Verdict("1", "c", (Check("f", True), Check("g", False)))
    made = Reproduction("a", {}, (verdict,), figure, tables=(table,))
    entry = ReportEntry(Experiment("a", "about", lambda asked: made), made)
    page = write_experiments([entry], tmp_path / "a.html").read_text(encoding="utf-8")
    keys = re.findall(r'data-value="([^"]*)"', page)
    assert keys == ["0.875", "-2.5", "1200.0", "", "0.0015", "40.1"]
    assert '<span class="badge open">partly reproduced</span>' in page


def test_an_experiment_that_fails_costs_no_other(run, registry):
    registry["broken"] = registry.pop("broken")
    registry |= {"last": registry["yes"]}
    done = run("reproduce", "all")
    assert done.exit_code == 1
    assert "error: broken: it broke" in done.stderr
    assert done.stdout.count("Figure yes: reproduced\n") == 2
    assert "failed: it broke" in done.stdout


def test_the_registry_has_what_the_command_takes():
    fields = {field.name for field in dataclasses.fields(RunOptions)}
    options = set(command.OPTIONS)
    for experiment in experiments().values():
        assert set(experiment.takes) - {"seed", "folder", "progress"} <= fields & options
        assert len(command.SIZES.keys() & set(experiment.takes)) == 1
        assert bool(experiment.pieces) == ("folder" in experiment.takes)
        assert experiment.about
        assert bool(experiment.needs) == (experiment.check is not bool)
    taken = {name for one in experiments().values() for name in one.takes}
    assert taken == fields
    assert experiments()["noise-layers"].takes == [
        "seed", "pairs", "networks", "regret", "data", "folder", "progress",
    ]  # fmt: skip


def test_an_unknown_figure(run):
    done = run("reproduce", "fig9")
    assert done.exit_code == 2
    assert "fig9" in done.stderr
