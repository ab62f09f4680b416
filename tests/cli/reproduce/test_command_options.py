"""Options of ``frot reproduce`` that reach experiments, which answer at once here."""

import inspect
from dataclasses import replace
from functools import wraps
from pathlib import Path

import pytest

from frot.cli.reproduce.command import experiments
from frot.cli.reproduce.experiment import Check, ExperimentTable, Reproduction, Verdict


def figure():
    from frot.show.style import new_figure

    return new_figure(1, 1)


@pytest.fixture
def instead(monkeypatch):
    """Let an experiment do something else, with the arguments that it takes."""

    def put(name, run):
        one = experiments()[name]
        monkeypatch.setitem(experiments(), name, replace(one, run=wraps(one.run)(run)))

    return put


@pytest.fixture
def asked(instead):
    """What experiments are asked for, defaults included."""
    calls = []

    def answer(name):
        takes = inspect.signature(experiments()[name].run)

        def run(**options):
            bound = takes.bind(**options)
            bound.apply_defaults()
            calls.append(bound.arguments)
            verdict = Verdict("times", "a claim", (Check("a number", False),), "Table of")
            table = ExperimentTable("a", "b", [])
            return Reproduction(name, {}, (verdict,), figure, ("a note",), (table,))

        return run

    for name in ("selection", "noise-layers", "robustness"):
        instead(name, answer(name))
    return calls


def test_options_of_gene_expression(run, asked, tmp_path):
    words = ["--sets", "colon, gravier", "--splits", 3, "--workers", 2, "--seed", 5]
    done = run("reproduce", "selection", *words, "--data", "there", "--out", "made")
    assert done.exit_code == 0, done.output
    assert asked == [
        {
            "sets": ["colon", "gravier"],
            "splits": 3,
            "seed": 5,
            "data": Path("there"),
            "workers": 2,
            "folder": Path("made") / "selection",
            "progress": False,
        }
    ]
    assert "Table of times: not reproduced\n  paper  a claim" in done.stdout
    names = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert names == ["selection.json", "selection.md", "selection.png"]


def test_options_of_photographs(run, asked, tmp_path):
    words = ["--pairs", 4, "--networks", "mobilenetv2, resnet50-thin", "--regret", "--seed", 2]
    done = run("reproduce", "noise-layers", *words, "--data", "there", "--out", "made")
    assert done.exit_code == 0, done.output
    assert asked == [
        {
            "pairs": 4,
            "seed": 2,
            "networks": ["mobilenetv2", "resnet50-thin"],
            "regret": True,
            "data": Path("there"),
            "folder": Path("made") / "noise-layers",
            "progress": False,
        }
    ]
    assert "Table of times: not reproduced\n  claim  a claim" in done.stdout
    assert (tmp_path / "made" / "noise-layers.md").exists()


def test_options_of_points(run, asked, tmp_path):
    done = run("reproduce", "robustness", "-n", 7, "--seed", 3, "--out", "made")
    assert done.exit_code == 0, done.output
    assert (asked[0]["n"], asked[0]["seed"]) == (7, 3)
    assert (tmp_path / "made" / "robustness.json").exists()


def test_defaults(run, asked):
    assert run("reproduce", "selection").exit_code == 0
    assert run("reproduce", "noise-layers").exit_code == 0
    genes, photographs = asked
    assert (genes["sets"], genes["splits"], genes["seed"], genes["workers"]) == (None, 50, 0, 1)
    assert (photographs["pairs"], photographs["seed"]) == (20, 0)
    assert photographs["networks"] == ("efficientnet-lite2",)
    assert photographs["regret"] is False


@pytest.mark.parametrize(("name", "pieces"), [("selection", "splits"), ("noise-layers", "pairs")])
def test_a_stopped_run_says_how_to_go_on(run, instead, name, pieces):
    def stop(**options):
        raise KeyboardInterrupt

    instead(name, stop)
    done = run("reproduce", name, "--out", "made")
    assert done.exit_code == 130
    assert f"finished {pieces} are kept in" in done.stderr
    assert "the same command goes on from there" in done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["fig1", "--pairs", 3], "--pairs"),
        (["fig2", "--sets", "colon"], "--sets"),
        (["robustness", "--splits", 3], "--splits"),
        (["selection", "-n", 10], "-n"),
        (["selection", "--sets", "colno"], "name='colno' is not a data set"),
        (["noise-layers", "-n", 5], "-n"),
        (["noise-layers", "--data", "."], "PF-WILLOW is not in"),
    ],
)
def test_what_cannot_be_asked(run, words, complaint):
    done = run("reproduce", *words)
    assert done.exit_code == 2
    assert complaint in done.stderr.split("-h' for help", 1)[-1]
