from __future__ import annotations

import csv
import json
from typing import Any

import pytest

from frot import correspondence
from frot.correspondence.evaluation import read_evaluation
from tests.correspondence import generated


class Matcher(generated.Warp):
    """Stands for the real one: knows the truth, and what it was made with."""

    made: tuple[dict[str, Any], ...] = ()
    calls = 0
    stop_at: int | None = None
    bad = ""

    def __init__(self, **options: Any) -> None:
        type(self).made = (*self.made, options)
        object.__setattr__(self, "off", 0.0)
        object.__setattr__(self, "fingerprint", f"{options.get('eta', 'default')}------")
        object.__setattr__(self, "settings", {"method": "frot", **options})

    def __call__(self, source: Any, target: Any) -> Any:
        if type(self).calls == self.stop_at:
            raise KeyboardInterrupt
        type(self).calls += 1
        if self.bad and self.bad in str(source):
            raise ValueError("it is bad")
        return super().__call__(source, target)


@pytest.fixture
def matcher(monkeypatch):
    class Fresh(Matcher):
        pass

    monkeypatch.setattr(correspondence, "Matcher", Fresh, raising=False)
    return Fresh


@pytest.fixture
def root(tmp_path):
    return generated.pf_willow(tmp_path / "data")


def test_a_table_and_its_files(run, matcher, root, tmp_path):
    done = run(
        "evaluate", "pf-willow", "--root", root, "--csv", "t.csv", "--latex", "t.tex"
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    said = "incomplete: 12 of the 900 published pairs can be used, none of car(M), "
    assert f"warning: PF-WILLOW is {said}" in done.stderr
    assert f"The data set is {said}" in done.stdout
    assert "12 pairs of PF-WILLOW, kept in pf-willow-frot-default-.sqlite" in done.stderr
    for text in ("PCK 0.1 per image", "PCK 0.1 per point", "car(G)", "OT-HPF", "76.2", "SCOT"):
        assert text in done.stdout
    assert "a point is right within t times the larger side" in done.stdout
    assert "Layers by their mean weight: last 0.750, first 0.250" in done.stdout
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[1]["method"] == "frot"
    assert rows[1]["all"] == "100.0"
    assert r"\toprule" in (tmp_path / "t.tex").read_text()
    assert len(read_evaluation(tmp_path / "pf-willow-frot-default-.sqlite").records) == 12


def test_numbers_of_a_single_pair_have_no_standard_error(run, matcher, root):
    done = run("evaluate", "pf-willow", "--root", root, "--limit", 1, "--json", "-")
    assert done.exit_code == 0, done.output
    measured = [row for row in json.loads(done.stdout)["rows"] if row["source"] == "measured"]
    assert [row["error"] for row in measured] == [None] * len(measured) != []


def test_options_are_the_matchers(run, matcher, root):
    words = ["--method", "best-layer", "--eta", 0.5, "--eps", 0.2, "--no-hough"]
    words += ["--backbone", "resnet101", "--weights", "r.pth", "--preset", "scot", "--limit", 1]
    done = run("evaluate", "pf-willow", "--root", root, *words)
    assert done.exit_code == 0, done.output
    assert matcher.made == (
        {
            "backbone": "resnet101",
            "weights": matcher.made[0]["weights"],
            "preset": "scot",
            "method": "best-layer",
            "eta": 0.5,
            "eps": 0.2,
            "hough": False,
        },
    )
    assert str(matcher.made[0]["weights"]) == "r.pth"
    assert matcher.calls == 1
    assert "best-layer" in done.stdout


def test_options_are_those_of_a_match(run, matcher, root):
    words = ["--layers", "stem, 7", "--layer", 1, "--normalise", "mean", "--mass", "cam"]
    done = run("evaluate", "pf-willow", "--root", root, *words, "--side", 200, "--limit", 1)
    assert done.exit_code == 0, done.output
    expected = {"layers": ["stem", 7], "layer": 1, "normalise": "mean", "mass": "cam", "side": 200}
    assert matcher.made == (expected,)


def test_settings_are_what_they_stand_for(run, matcher, root):
    words = ["--steps", 3, "--stride", 4.5, "--rank", 7, "--tol", 0.01, "--transfer", "soft"]
    words += ["--radius", 5, "--no-edges", "--enlarge", "--power", 1, "--exponent", 1.5]
    done = run("evaluate", "pf-willow", "--root", root, *words, "--limit", 1)
    assert done.exit_code == 0, done.output
    assert matcher.made == (
        {
            "steps": 3, "stride": 4.5, "rank": 7, "tol": 0.01, "transfer": "soft", "radius": 5.0,
            "edges": False, "enlarge": True, "power": 1.0, "exponent": 1.5,
        },
    )  # fmt: skip
    first = run("evaluate", "pf-willow", "--root", root, "--stride", "first", "--store", "s")
    assert first.exit_code == 0
    assert matcher.made[-1] == {"stride": "first"}


def test_an_onnx_file_with_habits_of_its_own(run, root, tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from tests.correspondence.backbones.onnx_files import write

    write(tmp_path / "last.onnx", layout="NHWC")
    words = ["--root", root, "--backbone", "last.onnx", "--limit", 1, "--side", 64]
    habits = ["--colour", "BGR", "--mean", "104,117,123", "--scale", 255]
    words += ["--device", "cpu", "--store", "s.sqlite"]
    done = run("evaluate", "pf-willow", *words, *habits, "--layout", "NHWC", "--layers", "sum_1,2")
    assert done.exit_code == 0, done.output
    (record,) = read_evaluation(tmp_path / "s.sqlite").records
    assert tuple(record.alpha) == ("sum_1", "sum_2")
    refused = run("evaluate", "pf-willow", *words)
    assert refused.exit_code == 2
    assert "try --layout NHWC" in refused.stderr
    other = run("evaluate", "pf-willow", "--root", root, *habits)
    assert other.exit_code == 2
    assert "colour: is for ONNX files alone" in other.stderr


def test_ctrl_c_and_on(run, matcher, root, tmp_path):
    words = ["evaluate", "pf-willow", "--root", root, "--store", "s.sqlite"]
    matcher.stop_at = 5
    done = run(*words)
    assert done.exit_code == 130
    assert "5 of 12 pairs are kept in s.sqlite; the same command with --resume goes" in done.stderr
    matcher.stop_at = None
    refused = run(*words)
    assert refused.exit_code == 2
    assert "s.sqlite is there already; pass --resume to go on from it" in refused.stderr
    other = run(*words, "--resume", "--eta", 0.7)
    assert other.exit_code == 2
    assert "begun with another matcher: eta was None and is 0.7" in other.stderr
    assert run(*words, "--resume").exit_code == 0
    assert matcher.calls == 12


def test_failures_are_counted_named_and_tried_again(run, matcher, root):
    words = ["evaluate", "pf-willow", "--root", root, "--store", "s.sqlite"]
    matcher.bad = "duck(S)/photo_0"
    done = run(*words)
    assert done.exit_code == 1
    assert "2 pairs failed and are left out: duck(S)/photo_0-photo_1 (ValueError" in done.stdout
    assert "2 of 12 pairs failed; --retry-failed does them again" in done.stderr
    matcher.bad = ""
    assert run(*words, "--resume").exit_code == 1
    assert run(*words, "--resume", "--retry-failed").exit_code == 0
    assert matcher.calls == 14


@pytest.mark.parametrize("name", ["spair", "pf-pascal", "caltech"])
def test_the_other_sets(run, matcher, name, tmp_path):
    made = {"spair": generated.spair, "pf-pascal": generated.pf_pascal}
    root = made.get(name, generated.caltech)(tmp_path / "data")
    done = run("evaluate", name, "--root", root)
    assert done.exit_code == 0, done.output
    assert ("IoU" if name == "caltech" else "PCK 0.1 per image") in done.stdout


def test_every_published_row(run, matcher, tmp_path):
    root = generated.spair(tmp_path / "data")
    assert "FROT eta=2.0" not in run("evaluate", "spair", "--root", root).stdout
    done = run("evaluate", "spair", "--root", root, "--resume", "--every")
    assert "FROT eta=2.0" in done.stdout


def test_what_is_missing(run, matcher, root, tmp_path):
    done = run("evaluate", "pf-willow", "--root", root, "--verify")
    assert done.exit_code == 1
    assert "PF-WILLOW in" in done.stdout
    assert "car(M) is missing; get it from https://" in done.stdout
    assert done.stdout.count(" is missing; get it from https://") == 8
    absent = run("evaluate", "spair", "--root", tmp_path / "data")
    assert absent.exit_code == 2
    assert "SPair-71k is not in" in absent.stderr
    assert "get it from https://" in absent.stderr
    assert matcher.made == ()


def test_files_that_cannot_be_written_are_refused_before_the_work(run, matcher, root):
    done = run("evaluate", "pf-willow", "--root", root, "--csv", "nowhere/t.csv")
    assert done.exit_code == 2
    assert "nowhere does not exist" in done.stderr
    assert matcher.made == ()


def test_a_cluster_that_does_not_answer(run, matcher, root, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def client(address: str, timeout: float) -> Any:
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", client)
    done = run("evaluate", "pf-willow", "--root", root, "--dask", "tcp://127.0.0.1:9")
    assert done.exit_code == 2
    assert "dask: no scheduler answers at tcp://127.0.0.1:9 (timed out)" in done.stderr
    assert matcher.calls == 0
