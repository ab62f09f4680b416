"""Runs that resume: nothing finished is done twice, unless something it depends on has changed."""

import pytest

import frot
from frot.cli.reproduce.experiment import finish, open_store, work_fingerprint


def squares(calls, stop_at=None):
    def do(key):
        if key == stop_at:
            raise KeyboardInterrupt
        calls.append(key)
        return key**2

    return do


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    calls, ticks = [], []
    with open_store(tmp_path / "new") as kept, pytest.raises(KeyboardInterrupt):
        finish(kept, "w", [3, 1, 2], squares(calls, stop_at=2))
    with open_store(tmp_path / "new") as kept:
        found = finish(kept, "w", [3, 1, 2, 5], squares(calls), tick=ticks.append)
    assert list(found.items()) == [(3, 9), (1, 1), (2, 4), (5, 25)]
    assert calls == [3, 1, 2, 5]
    assert ticks == [2, 1, 1]


def test_other_work_and_other_versions_are_done_anew(tmp_path, monkeypatch):
    one, other = work_fingerprint(seed=0), work_fingerprint(seed=1)
    monkeypatch.setattr(frot, "__version__", "99.0")
    later = work_fingerprint(seed=0)
    assert len({one, other, later}) == 3
    calls = []
    with open_store(tmp_path) as kept:
        for work in (one, other, later, one):
            finish(kept, work, [7], squares(calls))
    assert calls == [7, 7, 7]


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    calls = []
    for _ in range(2):
        with open_store(None) as kept:
            finish(kept, "w", [1], squares(calls))
    assert calls == [1, 1]
    assert list(tmp_path.iterdir()) == []
