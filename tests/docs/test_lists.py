"""Lists in prose name what the registries have, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

import frot
from frot.costs import METRICS
from frot.costs.distances import NORMS
from frot.problem.adversary import KNOWN
from frot.relatives.compare import METHODS
from frot.solvers import SOLVERS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next one."""
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def listed(heading: str) -> set[str]:
    """The names below a heading of the reference of `frot`."""
    return set(re.findall(r"^   frot\.(\w+)$", section(page("api/frot.md"), heading), re.M))


def quoted(text: str) -> set[str]:
    return set(re.findall(r'"(\w+)"', text))


def argument(doc: str | None, name: str) -> str:
    """What a docstring says of an argument."""
    found = re.search(rf"^    {name} : .*\n((?:        .*\n)+)", doc or "", re.M)
    assert found is not None, name
    return found[1]


def test_relatives():
    relatives = {*METHODS} - {"frot"}
    assert listed("Related methods") == relatives | {"compare", "Comparison"}
    assert quoted(argument(frot.compare.__doc__, "methods")) == {*METHODS}
    methods = re.findall(r"^\| `frot\.(\w+)\(", page("relatives.md"), re.M)
    assert {*methods} - {"solve"} == relatives


def test_sets_of_weights():
    sets = listed("Sets of weights")
    assert {*re.findall(r"frot\.(\w+)", KNOWN)} == sets
    assert sets <= {*re.findall(r"`(\w+)`", argument(frot.solve.__doc__, "adversary"))}
    assert sets - {"Simplex"} <= {*re.findall(r"(?:frot\.|`)(\w+)", page("exact.md"))}


def test_solvers():
    assert quoted(argument(frot.solve.__doc__, "solver")) == {"auto", *SOLVERS}
    assert {type(solver).__name__ for solver in SOLVERS.values()} <= listed("Solvers")


def test_metrics():
    assert quoted(argument(frot.solve.__doc__, "metric")) == {*METRICS}
    own = section(page("entropic.md"), "Gradients").partition("**Costs of your own.**")[2]
    assert quoted(own.partition("\n\n")[0]) == {*NORMS}
    told = quoted(argument(frot.torch.FRWDLoss.__doc__, "metric"))
    assert told == {*METRICS, *NORMS}


def test_scores_of_features():
    pytest.importorskip("sklearn")
    from frot.cli.select import Score
    from frot.selection import FROTSelector
    from frot.selection._inputs import SCORES

    scores = {*SCORES}
    assert {*get_args(Score)} == scores
    assert scores <= quoted(argument(FROTSelector.__doc__, "score"))


def test_networks_methods_presets_and_sets_of_pairs():
    pytest.importorskip("torch")
    from frot.cli.evaluate import DataSet
    from frot.cli.match import Method, Network, Preset
    from frot.correspondence import PAIR_SETS, PRESETS
    from frot.correspondence.backbones import FORMS
    from frot.correspondence.methods import METHODS

    assert {*get_args(DataSet)} == {*PAIR_SETS}
    forms = {form for form in FORMS if not form[0].islower() or ":" in form}
    network, method, preset = (get_args(kind)[1].help for kind in (Network, Method, Preset))
    assert {*re.findall(r"[\w.]+(?::[A-Z]+)|FILE\.\w+", network)} == forms
    assert {*re.findall(r"\b(?!default)[a-z]+\b", method)} - {"or"} == {*METHODS}
    assert {*re.findall(r"[a-z-]+", preset.partition(":")[2])} - {"or"} == {*PRESETS} - {"frot"}


def test_statuses():
    table = section(page("certificates.md"), "What the status means")
    names = [
        re.findall(r"`([A-Z_]+)`", line.split("|")[1]) for line in re.findall(r"^\|.*", table, re.M)
    ]
    assert {name for row in names for name in row} == {status.name for status in frot.Status}
