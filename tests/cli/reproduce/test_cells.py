"""The experiment on cells: scores in closed form, a run that resumes, tables that add up."""

from __future__ import annotations

import numpy as np
import pytest

from frot.cells import couple, simulate
from frot.cli.reproduce import cells as module
from frot.cli.reproduce.cells import Setting, cells, measure, scores


def test_scores_of_plans_that_can_be_told():
    first, second = np.array(["a", "a", "b"]), np.array(["a", "b"])
    plan = np.array([[0.4, 0.1], [0.1, 0.1], [0.0, 0.3]])
    mass, types, labels, error = scores(plan, first, second)
    assert mass == pytest.approx(0.8)
    assert types == pytest.approx((5 / 7 + 1) / 2)
    # The second cell is as likely to be either, and the first of two is right.
    assert labels == pytest.approx(1.0)
    assert error == pytest.approx((0.2 + 0.5 + 0.0) / 3)


def test_scores_of_a_coupling_are_what_the_coupling_says():
    made = simulate(40, n_groups=4, seed=0)
    found = couple(made.cells, groups=made.groups)
    first, second = made.fate[:40], made.fate[40:]
    mass, types, labels, _ = scores(found.result.plan, first, second)
    assert mass == pytest.approx(made.kept_fate(np.asarray(found.result.plan)))
    assert types == pytest.approx(np.diag(found.transition_matrix("fate").to_numpy()).mean())
    assert labels == pytest.approx(np.mean(found.transfer_labels("fate")["label"] == first))


def test_a_stopped_run_goes_on_and_says_who_is_ahead(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CELLS", 60)
    small = (Setting("tree", 0.75), Setting("tree", 0.5, growth=3.0))
    first = cells(2, settings=small, folder=tmp_path / "run")
    monkeypatch.setattr(module, "measure", lambda *_, **__: pytest.fail("it was done already"))
    again = cells(2, settings=small, folder=tmp_path / "run")
    assert again.numbers == first.numbers
    names = {path.name for path in again.write(tmp_path)}
    assert names == {"cells.png", "cells.json", "cells.md"}
    mass, gain, others = again.tables
    assert [row[0] for row in mass.rows] == [one.name for one in small]
    runs = first.numbers["settings"][small[0].name]
    ahead = 100 * np.mean([run["couple"][0] - run["FROT, paper"][0] for run in runs])
    assert gain.rows[0][gain.header.index("FROT, paper")].startswith(f"{ahead:+.1f}")
    # Growth rates are only known where cells grow.
    assert mass.rows[0][-1] == ""
    assert mass.rows[1][-1] != ""
    assert len(others.header) == len(others.rows[0])


def test_knowing_growth_helps_where_cells_grow(monkeypatch):
    monkeypatch.setattr(module, "CELLS", 100)
    found = measure(Setting("tree", 0.0, growth=4.0), 0)
    assert found["couple, growth"][0] > found["couple"][0] + 0.1
