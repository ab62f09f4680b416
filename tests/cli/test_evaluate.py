from __future__ import annotations

import csv
import json
from types import SimpleNamespace
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
    settings: dict[str, Any]

    def __init__(self, *backbone: Any, **options: Any) -> None:
        type(self).made = (*self.made, options)
        object.__setattr__(self, "off", 0.0)
        object.__setattr__(self, "backbone", SimpleNamespace(name="network", layers=("a",)))
        object.__setattr__(self, "fingerprint", f"{options.get('side', 'default')}------")
        object.__setattr__(self, "settings", {"method": "frot", **options})

    def with_settings(self, **changes: Any) -> Any:
        if changes == {"method": "frot"}:
            return self
        return type(self)(**self.settings | changes)

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
    done = run("evaluate", "pf-willow", "--root", root, "--table", "t.csv")
    assert done.exit_code == 0, done.output
    said = "incomplete: 12 of the 900 published pairs can be used, none of car(M), "
    assert f"warning: PF-WILLOW is {said}" in done.stderr
    assert f"The data set is {said}" in done.stdout
    assert "12 pairs of PF-WILLOW, kept in pf-willow-frot-" in done.stderr
    for text in ("PCK 0.1 per image", "PCK 0.1 per point", "car(G)", "OT-HPF", "76.2", "SCOT"):
        assert text in done.stdout
    assert "a point is right within t times the larger side" in done.stdout
    assert "Layers by their mean weight: last 0.750, first 0.250" in done.stdout
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[1]["method"] == "frot"
    assert rows[1]["all"] == "100.0"
    (store,) = tmp_path.glob("pf-willow-frot-????????.sqlite")
    assert len(read_evaluation(store)["frot"].records) == 12


def test_numbers_of_a_single_pair_have_no_standard_error(run, matcher, root):
    done = run("evaluate", "pf-willow", "--root", root, "--limit", 1, "--json")
    assert done.exit_code == 0, done.output
    measured = [row for row in json.loads(done.stdout)["rows"] if row["source"] == "measured"]
    assert [row["error"] for row in measured] == [None] * len(measured) != []


def test_options_are_the_matchers(run, matcher, root):
    words = ["--network", "resnet101", "--weights", "r.pth", "--layers", "stem, 7"]
    words += ["--side", 200, "--device", "cpu"]
    done = run("evaluate", "pf-willow", "--root", root, *words, "--limit", 1)
    assert done.exit_code == 0, done.output
    expected = {"backbone": "resnet101", "weights": "r.pth", "layers": ["stem", 7]}
    expected |= {"side": 200, "device": "cpu"}
    assert matcher.made == (expected,)
    assert matcher.calls == 1


def test_several_methods_are_in_one_table_with_their_differences(run, matcher, root, tmp_path):
    words = ["--methods", "frot, nn,scot", "--side", 70, "--limit", 3]
    done = run("evaluate", "pf-willow", "--root", root, *words)
    assert done.exit_code == 0, done.output
    assert matcher.made[0] == {"side": 70}
    assert matcher.made[1]["method"] == "nn"
    assert matcher.made[2] == {"preset": "scot", "side": 70, "device": None}
    assert matcher.calls == 9
    assert "less frot" in done.stdout
    assert "+0.0 ± 0.0" in done.stdout
    (store,) = tmp_path.glob("pf-willow-frot+nn+scot-????????.sqlite")
    assert list(read_evaluation(store)) == ["frot", "nn", "scot"]
    for wrong, said in (("best", "methods: 'best' is not known; give some of frot"), (",", "none")):
        refused = run("evaluate", "pf-willow", "--root", root, "--methods", wrong)
        assert refused.exit_code == 2
        assert said in refused.stderr


def test_ctrl_c_and_on(run, matcher, root, tmp_path):
    words = ["evaluate", "pf-willow", "--root", root, "--store", "s.sqlite"]
    matcher.stop_at = 5
    done = run(*words)
    assert done.exit_code == 130
    assert "5 of 12 pairs are kept in s.sqlite; the same call with --resume goes" in done.stderr
    matcher.stop_at = None
    refused = run(*words)
    assert refused.exit_code == 2
    assert "s.sqlite is there already; pass --resume to go on from it" in refused.stderr
    other = run(*words, "--resume", "--side", 70)
    assert other.exit_code == 2
    assert "begun with another matcher: side was None and is 70" in other.stderr
    assert run(*words, "--resume").exit_code == 0
    assert matcher.calls == 12


def test_failures_are_counted_named_and_tried_again(run, matcher, root):
    words = ["evaluate", "pf-willow", "--root", root, "--store", "s.sqlite"]
    matcher.bad = "duck(S)/photo_0"
    done = run(*words)
    assert done.exit_code == 1
    assert "2 pairs failed and are left out: duck(S)/photo_0-photo_1 (ValueError" in done.stdout
    assert "frot: 2 of 12 pairs failed; --resume tries them again" in done.stderr
    matcher.bad = ""
    assert run(*words, "--resume").exit_code == 0
    assert matcher.calls == 14


@pytest.mark.parametrize("name", ["spair", "pf-pascal", "caltech"])
def test_the_other_sets(run, matcher, name, tmp_path):
    made = {"spair": generated.spair, "pf-pascal": generated.pf_pascal}
    root = made.get(name, generated.caltech)(tmp_path / "data")
    done = run("evaluate", name, "--root", root)
    assert done.exit_code == 0, done.output
    assert ("IoU" if name == "caltech" else "PCK 0.1 per image") in done.stdout


def test_a_set_that_is_not_there(run, matcher, root, tmp_path):
    absent = run("evaluate", "spair", "--root", tmp_path / "data")
    assert absent.exit_code == 2
    assert "SPair-71k is not in" in absent.stderr
    assert "get it from https://" in absent.stderr
    assert matcher.made == ()


def test_files_that_cannot_be_written_are_refused_before_the_work(run, matcher, root):
    done = run("evaluate", "pf-willow", "--root", root, "--table", "nowhere/t.csv")
    assert done.exit_code == 2
    assert "nowhere does not exist" in done.stderr
    assert matcher.made == ()
