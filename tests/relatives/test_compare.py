"""Several methods on the same points: a table and one picture."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import frot
from frot.relatives.compare import METHODS


def clouds(n=30, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(n + 5, d))
    Y[:, :2] += 1.5 * np.sign(Y[:, :2])
    return X, Y


@pytest.fixture(scope="module")
def table():
    return frot.compare(*clouds(), methods=METHODS, k=2, tol=1e-3)


def test_every_result_is_what_the_method_itself_returns(table):
    X, Y = clouds()
    alone = {
        "frot": frot.solve(X, Y, tol=1e-3),
        "srw": frot.srw(X, Y, 2),
        "max_sliced": frot.max_sliced(X, Y),
        "sliced": frot.sliced(X, Y),
        "max_min": frot.max_min(X, Y),
        "wasserstein": frot.wasserstein(X, Y, tol=1e-3),
        "equitable": frot.equitable((X.T[:, :, None] - Y.T[:, None, :]) ** 2, tol=1e-3),
    }
    assert tuple(table.results) == METHODS
    assert {*alone} == {*METHODS}
    for name, result in alone.items():
        assert table[name].value == pytest.approx(result.value, rel=1e-9), name
    order = ("max_min", "frot", "srw", "wasserstein")
    for left, right in pairwise(order):
        assert table[left].lower <= table[right].upper
    assert table["max_sliced"].lower <= table["srw"].upper


def test_the_choice_falls_on_the_features_that_move(table):
    for name in METHODS:
        shares = table.shares(name)
        assert shares.shape == (4,)
        assert shares.sum() == pytest.approx(1.0)
        assert (shares >= 0.0).all()
    for name in ("frot", "srw", "max_sliced", "max_min"):
        assert table.shares(name)[:2].sum() > 0.6, name
    assert table.shares("wasserstein") == pytest.approx(np.full(4, 0.25))


def test_weights_of_groups_are_shared_by_their_features():
    X, Y = clouds()
    table = frot.compare(X, Y, {"moving": [0, 1], "still": [3]}, methods=["frot", "max_min"])
    assert table["max_min"].alpha.tolist() == [1.0, 0.0]
    assert table.shares("max_min").tolist() == [0.5, 0.5, 0.0, 0.0]
    assert table.chosen("frot").names == ("moving", "still")


def test_text_frame_and_html_tell_the_same(table):
    frame = table.to_frame()
    assert frame["method"].tolist() == list(METHODS)
    assert frame["lower"].tolist() == [one.lower for one in table.results.values()]
    assert set(frame["status"]) == {"CONVERGED", "LOWER_BOUND", "ESTIMATE"}
    lines = str(table).splitlines()
    assert lines[0].split() == list(frame.columns)
    assert [line.split()[0] for line in lines[1:]] == list(METHODS)
    assert len({line.index(lines[1].split()[4]) for line in lines[1:2]}) == 1
    page = table._repr_html_()
    assert page.count("<tr") == len(METHODS) + 1
    for chosen in frame["chose"]:
        assert chosen in page


def test_the_picture_has_every_interval_and_the_heaviest_features(table):
    pytest.importorskip("matplotlib")
    values, chosen, _ = table.plot().axes
    assert [label.get_text() for label in values.get_yticklabels()] == list(METHODS)
    marks = [line.get_xdata()[0] for line in values.lines]
    assert marks == [one.value for one in table.results.values()]
    image = chosen.images[0].get_array()
    assert np.asarray(image) == pytest.approx(np.stack([table.shares(name) for name in METHODS]))
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(10, 30)), rng.normal(size=(10, 30))
    Y[:, 29] += 9.0
    wide = frot.compare(X, Y, methods=["frot", "max_sliced"]).plot().axes[1]
    assert np.asarray(wide.images[0].get_array()).shape == (2, 12)
    assert "18 more" in wide.get_xlabel()
    assert "x29" in [label.get_text() for label in wide.get_xticklabels()]


def test_bad_input_is_refused():
    X, Y = clouds(6)
    wrong: list[Any] = ["srv", [], ["frot", "ot"], 5, [3]]
    for methods in wrong:
        with pytest.raises(frot.InputError, match=r"^methods: "):
            frot.compare(X, Y, methods=methods)
    with pytest.raises(frot.InputError, match=r"^k: .* from 1 to 4"):
        frot.compare(X, Y, k=5)
    with pytest.raises(frot.InputError, match="'srw' was not compared; there are frot"):
        frot.compare(X, Y, methods="frot")["srw"]


def test_an_interrupt_keeps_what_is_finished(monkeypatch):
    X, Y = clouds(10)
    result = frot.srw(X, Y, 1)

    def interrupted(*points, **options):
        raise frot.Interrupted(result)

    monkeypatch.setitem(vars(sys.modules["frot.relatives.compare"]), "srw", interrupted)
    with pytest.raises(frot.Interrupted) as stop:
        frot.compare(X, Y, methods=["frot", "srw", "wasserstein"], k=1)
    assert list(stop.value.result.results) == ["frot", "srw"]
