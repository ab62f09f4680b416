from pathlib import Path

import pytest

from frot.cli.reproduce import selection as module
from frot.cli.reproduce.experiment import Check, Reproduction, Table, Verdict


def figure():
    from frot.show.style import new_figure

    return new_figure(1, 1)


@pytest.fixture
def asked(monkeypatch):
    """What the command asks of the library, which answers at once."""
    calls = []

    def selection(*arguments, **options):
        calls.append((arguments, options))
        verdict = Verdict("times", "a claim", (Check("a number", False),), "Table of")
        return Reproduction(
            "selection", {}, (verdict,), figure, ("a note",), (Table("a", "b", []),)
        )

    monkeypatch.setattr(module, "selection", selection)
    return calls


def test_options_reach_the_library(run, asked, tmp_path):
    words = ["--sets", "colon, gravier", "--splits", 3, "--workers", 2, "--seed", 5]
    done = run("reproduce", "selection", *words, "--data", "there", "--out", "made")
    assert done.exit_code == 0, done.output
    ((arguments, options),) = asked
    assert arguments == (["colon", "gravier"], 3, 5)
    assert options == {
        "root": Path("there"),
        "workers": 2,
        "folder": Path("made") / "selection",
        "progress": False,
    }
    assert "Table of times: not reproduced\n" in done.stdout
    names = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert names == ["selection.json", "selection.md", "selection.png"]


def test_the_defaults_are_the_papers(run, asked):
    assert run("reproduce", "selection").exit_code == 0
    ((arguments, options),) = asked
    assert arguments == (None, 50, 0)
    assert options["workers"] == 1


def test_a_stopped_run_says_how_to_go_on(run, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "selection", stop)
    done = run("reproduce", "selection", "--out", "made")
    assert done.exit_code == 130
    assert "the same command goes on from there" in done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["fig2", "--sets", "colon"], "No such option: --sets"),
        (["selection", "-n", 10], "No such option: -n"),
        (["selection", "--sets", "colno"], "name='colno' is not a data set"),
    ],
)
def test_options_of_the_other_figures(run, words, complaint):
    done = run("reproduce", *words)
    assert done.exit_code == 2
    assert complaint in done.stderr
