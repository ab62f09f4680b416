from pathlib import Path

import pytest

from frot.cli.reproduce import noise_layers as module
from frot.cli.reproduce.experiment import Check, Reproduction, Table, Verdict


def figure():
    from frot.show.style import new_figure

    return new_figure(1, 1)


@pytest.fixture
def asked(monkeypatch):
    """What the command asks of the library, which answers at once."""
    calls = []

    def noise_layers(*arguments, **options):
        calls.append((arguments, options))
        verdict = Verdict("the trap", "a claim", (Check("a number", True),), "Noise layers,")
        return Reproduction("noise-layers", {}, (verdict,), figure, (), (Table("a", "b", []),))

    monkeypatch.setattr(module, "noise_layers", noise_layers)
    return calls


def test_options_reach_the_library(run, asked, tmp_path):
    words = ["--pairs", 4, "--networks", "mobilenetv2, resnet50-thin", "--regret", "--seed", 2]
    done = run("reproduce", "noise-layers", *words, "--data", "there", "--out", "made")
    assert done.exit_code == 0, done.output
    assert asked == [
        (
            (4, 2),
            {
                "networks": ["mobilenetv2", "resnet50-thin"],
                "regret": True,
                "root": Path("there"),
                "folder": Path("made") / "noise-layers",
                "progress": False,
            },
        )
    ]
    assert "Noise layers, the trap: reproduced\n  claim  a claim" in done.stdout
    assert (tmp_path / "made" / "noise-layers.md").exists()


def test_defaults(run, asked):
    assert run("reproduce", "noise-layers").exit_code == 0
    ((arguments, options),) = asked
    assert arguments == (20, 0)
    assert options["networks"] == ("efficientnet-lite2",)
    assert options["regret"] is False


def test_a_stopped_run_says_how_to_go_on(run, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "noise_layers", stop)
    done = run("reproduce", "noise-layers", "--out", "made")
    assert done.exit_code == 130
    assert "finished pairs are kept in" in done.stderr


@pytest.mark.parametrize(
    ("figure", "words", "text"),
    [
        ("noise-layers", ["-n", 5], "-n is for other figures; noise-layers takes --pairs"),
        ("noise-layers", ["--splits", 3], "--splits is for selection; leave it out for noise-lay"),
        (
            "fig1",
            ["--pairs", 3],
            "--pairs is for noise-layers and poses and correspondence; leave it out",
        ),
        (
            "fig1",
            ["--data", "x"],
            "--data is for selection and noise-layers and poses and correspondence; leave",
        ),
        ("noise-layers", ["--data", "."], "PF-WILLOW is not in"),
    ],
)
def test_bad_input(run, figure, words, text):
    done = run("reproduce", figure, *words)
    assert done.exit_code == 2
    assert text in done.stderr
