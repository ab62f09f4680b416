from __future__ import annotations

import sqlite3
import sys
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import frot
from frot import InputError, MissingDependencyError
from frot._base.errors import warn_caller
from frot._base.store import open_checkpoint
from frot.correspondence.datasets import PairSet, load_pairs
from frot.correspondence.evaluation import evaluate, read_evaluation
from frot.correspondence.evaluation._run import describe, open_store, read_records
from tests.correspondence import generated
from tests.correspondence.evaluation.matchers import Noting


@pytest.fixture
def pairs(tmp_path):
    return load_pairs("pf-willow", generated.pf_willow(tmp_path / "pf-willow"))


@pytest.fixture
def noting(tmp_path):
    return Noting(tmp_path / "calls")


def run(*arguments: Any, **options: Any) -> Any:
    return evaluate(*arguments, progress=False, **options)


def test_the_truth_is_right_and_a_shift_is_as_wrong_as_it_is_large(pairs):
    assert run(pairs, generated.Warp()).pck(1e-9).value == 1.0
    found = run(pairs, generated.Warp(off=3.0))
    assert [record.id for record in found.records] == [pair.id for pair in pairs]
    for record, pair in zip(found.records, pairs, strict=True):
        np.testing.assert_allclose(record.errors, 3.0 / pair.length)
        np.testing.assert_allclose(record.points - pair.target_points, [[3.0, 0.0]] * 10, atol=1e-9)
    errors = np.array([3.0 / pair.length for pair in pairs])
    middle = float(np.median(errors))
    assert 0.0 < found.pck(middle).value < 1.0
    assert found.pck(middle).value == pytest.approx(np.mean(errors <= middle))
    assert found.alpha == {"first": 0.25, "last": 0.75}


def test_masks_are_scored_by_their_overlap(tmp_path):
    pairs = load_pairs("caltech", generated.caltech(tmp_path))
    found = run(pairs, generated.Warp(), tmp_path / "store")
    assert found.mean("iou").value > 0.97
    assert found.mean("lt_acc").value > 0.99
    assert run(pairs, generated.Warp(off=6.0)).mean("iou").value < 0.7
    assert read_evaluation(tmp_path / "store").mean("iou") == found.mean("iou")
    with pytest.raises(InputError, match="Caltech-101 is scored by masks, not by points"):
        found.pck()


def test_what_a_match_says_is_kept(pairs, tmp_path):
    def matcher(source: Any, target: Any) -> Any:
        warn_caller("it went slowly")
        result = frot.solve([[0.0]], [[2.0]])
        match = generated.Warp()(source, target)
        return SimpleNamespace(transfer=match.transfer, alpha={"a": 1.0}, result=result)

    path = tmp_path / "store.sqlite"
    run(pairs.first(1), matcher, path)
    (record,) = read_evaluation(path).records
    assert (record.status, record.value) == ("CONVERGED", 4.0)
    assert record.lower is not None
    assert record.upper is not None
    assert record.lower <= 4.0 <= record.upper
    assert record.warnings == ("it went slowly",)
    assert record.alpha == {"a": 1.0}
    assert record.seconds > 0.0
    assert read_evaluation(path).warned == {record.id: ("it went slowly",)}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_pair_that_raises_stops_no_other(pairs, noting, workers, tmp_path):
    bad = pairs.pairs[3].id
    path = tmp_path / "store"
    matcher = replace(noting, bad=bad)
    found = run(pairs, matcher, path, workers=workers)
    assert found.failed == {bad: "ValueError: it is a bad pair"}
    assert len(found.done) == 11
    assert found.pck().count == 11
    assert set(noting.calls.values()) == {1}
    again = run(pairs, matcher, path, resume=True)
    assert again.failed == found.failed
    assert sum(noting.calls.values()) == 11
    cured = run(pairs, noting, path, resume=True, retry_failed=True)
    assert cured.failed == {}
    assert noting.calls == dict.fromkeys([pair.id for pair in pairs], 1)


@pytest.mark.parametrize("workers", [1, 2])
def test_several_matchers_are_run_on_the_same_pairs(pairs, noting, workers, tmp_path):
    path = tmp_path / "store"
    matchers = {"right": noting, "off": generated.Warp(off=3.0)}
    found = run(pairs, matchers, path, workers=workers)
    assert list(found) == ["right", "off"]
    assert found["right"].pck(1e-9).value == 1.0
    assert found["off"].pck(1e-9).value == 0.0
    for one in found.values():
        assert [record.id for record in one.records] == [pair.id for pair in pairs]
    again = read_evaluation(path)
    assert {name: one.pck() for name, one in again.items()} == {
        name: one.pck() for name, one in found.items()
    }
    run(pairs, matchers, path, resume=True)
    assert sum(noting.calls.values()) == 12
    with pytest.raises(InputError, match="is of right, off, not of right; give another path"):
        run(pairs, {"right": noting}, path, resume=True)
    with pytest.raises(InputError, match="matcher: has no matchers"):
        run(pairs, {})


def test_a_missing_library_is_no_failure_of_a_pair(pairs):
    def matcher(source: Any, target: Any) -> Any:
        raise MissingDependencyError("torch is not installed")

    with pytest.raises(MissingDependencyError, match="torch"):
        run(pairs, matcher)


def test_pairs_of_one_source_follow_one_another(pairs):
    seen = []

    def matcher(source: Any, target: Any) -> Any:
        seen.append(source)
        return generated.Warp()(source, target)

    order = [i % 2 * 6 + i // 2 for i in range(12)]
    run(PairSet("mixed", tuple(pairs.pairs[i] for i in order)), matcher)
    changes = sum(one != other for one, other in pairwise(seen))
    assert changes == len(set(seen)) - 1


class TestResume:
    def test_only_what_is_left_is_done(self, pairs, noting, tmp_path):
        path = tmp_path / "store.sqlite"
        run(pairs, noting, path, limit=5)
        assert sum(noting.calls.values()) == 5
        found = run(pairs, noting, path, resume=True)
        assert noting.calls == dict.fromkeys([pair.id for pair in pairs], 1)
        assert len(found.records) == 12

    def test_a_store_that_is_not_there_is_begun(self, pairs, noting, tmp_path):
        assert len(run(pairs, noting, tmp_path / "new", resume=True).records) == 12

    def test_a_store_is_not_overwritten(self, pairs, noting, tmp_path):
        run(pairs, noting, tmp_path / "store", limit=1)
        with pytest.raises(InputError, match="is there already; pass resume=True to go on from it"):
            run(pairs, noting, tmp_path / "store")
        assert sum(noting.calls.values()) == 1

    def test_another_matcher_is_refused_and_the_difference_named(self, pairs, noting, tmp_path):
        @dataclass(frozen=True)
        class Other(Noting):
            settings = {"eta": "0.5"}  # noqa: RUF012

        run(pairs, noting, tmp_path / "store", limit=1)
        other = Other(noting.log, fingerprint="other")
        with pytest.raises(
            InputError, match=r"begun with another matcher: eta was 0.3 and is 0.5;"
        ):
            run(pairs, other, tmp_path / "store", resume=True)
        same = replace(noting, fingerprint="same in words")
        with pytest.raises(InputError, match=r"another matcher: its fingerprint has changed;"):
            run(pairs, same, tmp_path / "store", resume=True)

    def test_settings_may_be_a_dataclass_and_the_network_is_named(self, pairs, tmp_path):
        @dataclass(frozen=True)
        class Settings:
            eta: float

        class Matcher(generated.Warp):
            def __init__(self, eta: float, name: str) -> None:
                object.__setattr__(self, "settings", Settings(eta))
                object.__setattr__(self, "backbone", SimpleNamespace(name=name, layers=("a", "b")))
                object.__setattr__(self, "off", 0.0)
                object.__setattr__(self, "fingerprint", f"{eta} {name}")

        run(pairs, Matcher(0.3, "resnet50"), tmp_path / "store", limit=1)
        with pytest.raises(
            InputError, match=r"eta was 0.3 and is 0.1; backbone was resnet50 and is resnet101;"
        ):
            run(pairs, Matcher(0.1, "resnet101"), tmp_path / "store", resume=True)
        settings = read_evaluation(tmp_path / "store").settings
        assert settings == {"eta": "0.3", "backbone": "resnet50", "layers": "2"}

    def test_another_data_set_is_refused(self, pairs, noting, tmp_path):
        run(pairs, noting, tmp_path / "store", limit=1)
        with pytest.raises(InputError, match=r"is of PF-WILLOW, not of other; give another path"):
            run(replace(pairs, name="other"), noting, tmp_path / "store", resume=True)
        with pytest.raises(InputError, match=r"is of other pairs, points or photographs of PF-W"):
            run(pairs.only("duck(S)"), noting, tmp_path / "store", resume=True)

    def test_ctrl_c_says_how_to_go_on(self, pairs, noting, tmp_path):
        def matcher(source: Any, target: Any) -> Any:
            if sum(noting.calls.values()) == 4:
                raise KeyboardInterrupt
            return noting(source, target)

        matcher.fingerprint = noting.fingerprint  # type: ignore[attr-defined]
        path = tmp_path / "store"
        with pytest.raises(
            KeyboardInterrupt, match=r"4 of 12 pairs are kept in .*store; .* resume=True goes on"
        ):
            run(pairs, matcher, path)
        run(pairs, noting, path, resume=True)
        assert noting.calls == dict.fromkeys([pair.id for pair in pairs], 1)
        with pytest.raises(KeyboardInterrupt, match="lost for want of a store"):
            run(pairs, lambda source, target: sys.exit(_interrupt()))

    def test_a_solver_that_was_interrupted_leaves_no_pair(self, pairs, tmp_path):
        def matcher(source: Any, target: Any) -> Any:
            raise frot.Interrupted(generated.Warp()(source, target))

        with pytest.raises(KeyboardInterrupt, match="0 of 12 pairs"):
            run(pairs, matcher, tmp_path / "store")
        assert read_evaluation(tmp_path / "store").records == ()


def _interrupt() -> int:
    raise KeyboardInterrupt


class TestStore:
    def test_files_that_are_none(self, pairs, noting, tmp_path):
        (tmp_path / "text").write_text("what is this, and why is it here?")
        with sqlite3.connect(tmp_path / "other") as other:
            other.execute("CREATE TABLE pairs (id TEXT)")
        other.close()
        for name in ("text", "other"):
            with pytest.raises(InputError, match=f"store: .*{name} is not a store of frot's"):
                run(pairs, noting, tmp_path / name, resume=True)
        with pytest.raises(InputError, match="is a folder"):
            run(pairs, noting, tmp_path, resume=True)
        with pytest.raises(InputError, match="nowhere does not exist; make that folder"):
            run(pairs, noting, tmp_path / "nowhere" / "store")
        with pytest.raises(InputError, match="store: 3 is not a path of a file"):
            run(pairs, noting, 3)
        with pytest.raises(InputError, match=r"store: .*none is not there"):
            read_evaluation(tmp_path / "none")
        assert not noting.calls

    def test_an_empty_file_is_a_beginning(self, pairs, noting, tmp_path):
        (tmp_path / "store").touch()
        assert len(run(pairs, noting, tmp_path / "store").records) == 12

    def test_two_runs_may_share_a_store(self, pairs, noting, tmp_path):
        about = describe(pairs, {"": noting})
        with open_store(tmp_path / "store", about) as other:
            assert len(run(pairs, noting, tmp_path / "store", resume=True).records) == 12
            assert len(read_records(other)) == 12
            assert len(read_evaluation(tmp_path / "store").records) == 12

    def test_pairs_of_another_version_do_not_belong_to_the_same_table(
        self, pairs, noting, tmp_path, monkeypatch
    ):
        run(pairs, noting, tmp_path / "store", limit=1)
        monkeypatch.setattr("importlib.metadata.version", lambda name: "99.0")
        with pytest.raises(InputError, match=r"was begun with frot .*, and this is 99\.0; give"):
            run(pairs, noting, tmp_path / "store", resume=True)

    def test_a_store_of_other_work_is_refused(self, pairs, noting, tmp_path):
        open_checkpoint(tmp_path / "store", "f").close()
        with pytest.raises(InputError, match="is a store of numbered tasks, not of an evaluation"):
            run(pairs, noting, tmp_path / "store", resume=True)

    def test_a_later_format_is_refused(self, pairs, noting, tmp_path):
        run(pairs, noting, tmp_path / "store", limit=1)
        with sqlite3.connect(tmp_path / "store") as file:
            file.execute("PRAGMA user_version = 99")
        file.close()
        with pytest.raises(InputError, match="is of format 99, and this version of frot reads 2"):
            read_evaluation(tmp_path / "store")

    def test_errors_come_back_as_they_were(self, pairs, noting, tmp_path):
        from frot.correspondence.evaluation import Record

        errors = np.array([0.1, np.inf, 1 / 3])
        made = Record("x", "c", errors=errors, points=np.ones((3, 2)), warnings=("w",))
        about = describe(pairs, {"": noting})
        with open_store(tmp_path / "store", about) as store:
            store.add("x", made.as_json())
        with open_store(tmp_path / "store", None) as store:
            (record,) = read_records(store).values()
            assert store.about == {"kind": "an evaluation", **about}
        assert [path.name for path in tmp_path.glob("store*")] == ["store"]
        np.testing.assert_array_equal(record.errors, errors)
        assert record.points.shape == (3, 2)
        assert record.warnings == ("w",)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"backend": "threads"}, "backend='threads' is not known; give 'loky' or 'dask'"),
        ({"workers": 0}, "workers: 0 is not a number of workers; use 1, 2, "),
        ({"limit": 0}, "limit=0 leaves no pair"),
    ],
)
def test_arguments_that_cannot_be(pairs, noting, options, text):
    with pytest.raises(InputError, match=text):
        run(pairs, noting, **options)
    assert not noting.calls


def test_pairs_that_are_none(noting):
    with pytest.raises(InputError, match="pairs: is a list; use load_pairs"):
        run([], noting)
    with pytest.raises(InputError, match="pairs: empty has none"):
        run(PairSet("empty", ()), noting)


def test_dask_needs_a_client(pairs, noting):
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=r"needs a cluster; open a distributed.Client\(address\)"):
        run(pairs, noting, backend="dask")


def test_a_matcher_that_cannot_travel(pairs, tmp_path):
    with pytest.raises(
        InputError, match=r"matcher: cannot be sent to other processes .* workers=1"
    ):
        run(pairs, _Stuck(), workers=2)


class _Stuck(generated.Warp):
    def __reduce__(self) -> Any:
        raise TypeError("it is stuck")


def test_the_bar_counts_what_was_done_before(pairs, noting, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    evaluate(pairs, noting, tmp_path / "store", limit=5)
    capsys.readouterr()
    evaluate(pairs, noting, tmp_path / "store", resume=True)
    assert "5/12" in capsys.readouterr().err
