"""Several methods on the same points: their values, what fails, and what is kept."""

import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pandas
import pytest

import frot
from frot.comparison import METHODS
from frot.comparison import _compare as memory
from frot.comparison._compare import peak_memory
from frot.comparison.methods import Method

EVERY = list(METHODS)
WARM = np.random.default_rng(0).normal(size=(2, 8, 3)).shape[1]


def clouds(n=30, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(n + 5, d))
    Y[:, :2] += 1.5 * np.sign(Y[:, :2])
    return X, Y


@pytest.fixture(scope="module")
def found():
    X, Y = clouds()
    return frot.compare(X, Y, EVERY, k=2, tol=1e-6)


def swap(monkeypatch, name, run):
    """Let a method do something else, on the real points only."""
    real = METHODS[name].run

    def either(task):
        return real(task) if len(task.points[0]) == WARM else run(task)

    monkeypatch.setitem(METHODS, name, replace(METHODS[name], run=either))


def test_every_row_is_what_the_method_itself_returns(found):
    X, Y = clouds()
    alone = {
        "frot": frot.solve(X, Y),
        "srw": frot.srw(X, Y, 2, tol=1e-6),
        "max_sliced": frot.max_sliced(X, Y),
        "generalised_max_sliced": frot.generalised_max_sliced(X, Y, "circular"),
        "sliced": frot.sliced(X, Y),
        "max_min": frot.max_min(X, Y),
        "ot": frot.wasserstein(X, Y),
        "equitable": frot.equitable(
            np.stack([(X[:, None, f] - Y[None, :, f]) ** 2 for f in range(4)]), tol=1e-6
        ),
    }
    assert [row.method for row in found.rows] == EVERY
    assert found.missing == ()
    for name, result in alone.items():
        assert found[name].value == pytest.approx(result.value, rel=1e-6), name
        assert found[name].lower <= found[name].upper


def test_values_are_in_one_unit_and_in_the_order_of_the_theorems(found):
    assert {row.unit for row in found.rows} == {"squared cost"}
    verdicts = {(one.left, one.right): one.verdict for one in found.relations}
    assert len(verdicts) == 9
    assert "violated" not in verdicts.values()
    assert verdicts["FROT", "OT"] == "proven"
    assert verdicts["max-sliced", "SRW"] == "proven"
    # In other units of the features every value changes by the same factor.
    X, Y = clouds()
    scaled = frot.compare(10 * X, 10 * Y, "frot,srw,max_sliced,sliced,max_min,ot", tol=1e-6)
    for row in scaled.rows:
        assert row.result is not None
        assert row.result.value == pytest.approx(100 * found[row.method].value, rel=1e-4)


def test_a_theorem_that_does_not_apply_is_not_told():
    X, Y = clouds(12)
    wide = frot.compare(X, Y, "frot,srw,max_min,max_sliced", groups=[3, 1], k=2)
    three: Any = np.int64(3)
    fits = frot.compare(X, Y, "frot,srw", groups=[3, 1], k=three)
    assert [(one.left, one.right) for one in fits.relations] == [("FROT", "SRW")]
    assert json.loads(json.dumps(fits.to_dict()))["k"] == 3
    pairs = {(one.left, one.right) for one in wide.relations}
    assert ("FROT", "SRW") not in pairs
    assert ("max-min", "max-sliced") not in pairs
    assert ("max-sliced", "SRW") in pairs


def test_contradicting_intervals_are_called_violated(found):
    rows = [
        replace(row, result=replace(row.result, lower=1e6, upper=2e6))
        if row.method == "srw"
        else row
        for row in found.rows
    ]
    verdicts = {(r.left, r.right): r.verdict for r in replace(found, rows=tuple(rows)).relations}
    assert verdicts["SRW", "OT"] == "violated"
    assert verdicts["FROT", "SRW"] == "proven"


def test_bent_features_have_a_unit_of_their_own():
    X, Y = clouds(10)
    bent = frot.compare(X, Y, "generalised_max_sliced,ot", curve="cubic")
    assert bent.rows[0].unit == "squared cost of cubic features"
    assert bent.relations == ()
    assert any("not to be held against" in note for note in bent.notes)
    own = frot.compare(X, Y, ["generalised_max_sliced"], curve=lambda p, t: p @ t)
    assert not own.rows[0].comparable


def test_one_failing_loses_no_other(monkeypatch):
    X, Y = clouds(10)
    found = frot.compare(X, Y, ["frot", "srw", "ot"], k=99)
    assert found.missing == ("srw",)
    assert (
        found.rows[1].problem
        == "k: must be a whole number from 1 to 4 (the number of features), got 99"
    )
    assert found["ot"].value > found["frot"].value
    with pytest.raises(frot.InputError, match="srw has no result: k: must"):
        found["srw"]

    def broken(task):
        raise ZeroDivisionError("a bug")

    swap(monkeypatch, "frot", broken)
    found = frot.compare(X, Y, ["frot", "ot"])
    assert found.rows[0].problem == "ZeroDivisionError: a bug"
    assert found.rows[0].cells["status"] == "FAILED"
    assert found.missing == ("frot",)


def test_interrupting_keeps_what_is_finished(monkeypatch):
    X, Y = clouds(10)

    def interrupted(task):
        raise KeyboardInterrupt

    swap(monkeypatch, "max_min", interrupted)
    seen = []
    with pytest.raises(frot.Interrupted) as stop:
        frot.compare(X, Y, "ot,max_min,frot,srw", callback=lambda row: seen.append(row.method))
    found = stop.value.result
    assert found.interrupted
    assert found.missing == ("max_min", "frot", "srw")
    assert seen == ["ot", "max_min"]
    problems = [row.problem for row in found.rows]
    assert problems[1] == "interrupted before it had an answer"
    assert problems[2:] == ["not run: interrupted before its turn"] * 2
    assert found.to_dict()["interrupted"] is True


def test_the_best_answer_of_an_interrupted_solver_is_kept(monkeypatch):
    X, Y = clouds(10)
    real = METHODS["srw"].run

    def interrupted(task):
        raise frot.Interrupted(replace(real(task), status=frot.Status.INTERRUPTED))

    swap(monkeypatch, "srw", interrupted)
    with pytest.raises(frot.Interrupted) as stop:
        frot.compare(X, Y, "srw,ot")
    found = stop.value.result
    assert found.interrupted
    assert found["srw"].value > 0.0
    assert found.missing == ("ot",)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"methods": ["frott"]}, "'frott' is none of frot, srw, max_sliced"),
        ({"methods": [range(2), range(2, 4)]}, "is no list of names, .* groups=..."),
        ({"methods": []}, "methods: none given"),
        ({"groups": [3, 3]}, "the sizes add up to 6"),
        ({"tol": -1.0}, "tol"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"random_state": -1}, "random_state"),
        ({"feature_names": ["a"]}, "feature_names: 1 names for 4 features"),
        ({"a": [1.0]}, "a"),
    ],
)
def test_mistakes_are_told_before_any_work(options, part, monkeypatch):
    X, Y = clouds(6)
    monkeypatch.setattr(Method, "warm_up", lambda self: pytest.fail("work was done"))
    with pytest.raises(frot.InputError, match=part):
        frot.compare(X, Y, **options)


def test_names_of_features_come_from_columns_or_as_given():
    X, Y = clouds(10)
    frames = [pandas.DataFrame(points, columns=pandas.Index(list("abcd"))) for points in (X, Y)]
    framed = frot.compare(frames[0], frames[1], ["srw", "frot", "max_sliced"])
    named = frot.compare(X, Y, ["srw", "frot", "max_sliced"], feature_names=list("abcd"))
    for row, other in zip(framed.rows, named.rows, strict=True):
        assert row.chosen is not None
        assert row.chosen.names == tuple("abcd")
        assert row.cells["chose"] == other.cells["chose"]
    unnamed = frot.compare(X, Y, "max_sliced").rows[0].chosen
    assert unnamed is not None
    assert unnamed.names[0] == "x0"


def test_weights_reach_every_method():
    X, Y = clouds(6, 2)
    a = np.zeros(6)
    a[0] = 2.0
    found = frot.compare(X, Y, EVERY, k=1, a=a, normalise_weights=True)
    assert found.missing == ()
    for row in found.rows:
        assert row.result is not None
        assert row.result.plan.sum(axis=1)[0] == pytest.approx(1.0), row.method


def test_what_a_method_warns_of_is_in_its_row_only():
    X, Y = clouds(120, 60)
    found = frot.compare(X, Y, "srw,ot", tol=1e-12, time_limit=0.3)
    assert found.rows[0].status == "TIME_LIMIT"
    assert "Stopped at time_limit" in found.rows[0].warnings[0]
    assert found.rows[1].warnings == ()
    assert any(note.startswith("SRW: srw(k=2)") for note in found.notes)


def test_everything_goes_into_json(found):
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    rows = {row["method"]: row for row in content["rows"]}
    assert content["points"] == [30, 35]
    assert rows["generalised_max_sliced"]["upper"] is None
    assert rows["srw"]["chosen"]["kind"] == "subspace"
    assert len(rows["srw"]["chosen"]["array"]) == 4
    assert rows["ot"]["value"] == found["ot"].value
    assert all(row["seconds"] > 0.0 and row["memory_bytes"] >= 0 for row in rows.values())


def test_the_table_lines_up(found):
    lines = found.table().splitlines()
    assert lines[0].split()[:4] == ["method", "value", "interval", "gap"]
    assert len(lines) == 1 + len(EVERY)
    place = lines[0].index("status")
    assert all(line[place - 1] == " " and line[place] != " " for line in lines)
    assert repr(found).startswith("Comparison of FROT, SRW,")


def test_equitable_refuses_what_would_not_fit(monkeypatch):
    from frot.comparison import methods as _methods

    monkeypatch.setattr(_methods, "STACK_BYTES", 2_000)
    X, Y = clouds(10)
    assert "take 0.0 GiB; give fewer" in frot.compare(X, Y, ["equitable"]).rows[0].problem


def test_torch_tensors_are_taken_to_the_host():
    torch = pytest.importorskip("torch")
    X, Y = clouds(8)
    found = frot.compare(torch.tensor(X), torch.tensor(Y), "frot,max_sliced,ot,equitable", k=1)
    assert found.missing == ()
    assert isinstance(found["frot"].alpha, np.ndarray)
    assert found["ot"].value == pytest.approx(frot.wasserstein(X, Y).value)


FREED = """
import ctypes
import numpy as np
from frot.comparison._compare import peak_memory

libc = ctypes.CDLL(None)
if not hasattr(libc, "mallopt"):
    raise SystemExit(77)
# Large arrays from the heap, of which nothing goes back to the system by itself.
libc.mallopt(-3, 2**30)
libc.mallopt(-1, 2**31 - 1)
array = np.ones(40_000_000)
kept = np.ones(1_000)
del array
with peak_memory() as peak:
    np.ones(12_000_000).sum()
assert peak.kind != "resident" or 60e6 < peak.size < 200e6, peak
"""


@pytest.mark.skipif(not memory.STATUS.exists(), reason="no /proc here")
def test_memory_that_was_freed_before_is_counted_when_it_is_taken_again():
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("no glibc here")
    assert not done.returncode, done.stderr


@pytest.mark.parametrize("kernel", [True, False])
def test_memory_of_an_array_is_measured(kernel, monkeypatch, tmp_path):
    if not kernel:
        monkeypatch.setattr(memory, "STATUS", tmp_path / "none")
    elif not memory.STATUS.exists():
        pytest.skip("no /proc here")
    with peak_memory() as peak:
        # Large, since a process that has freed memory takes some of it again unseen.
        assert np.ones(25_000_000).sum() > 0
    assert peak.kind == ("resident" if kernel else "python")
    assert 100e6 < peak.size < 300e6
    with peak_memory() as peak:
        pass
    assert peak.size < 30e6
    assert not tracemalloc.is_tracing()


def test_with_tau_only_those_that_take_it_are_compared():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(8, 3)) + 1.0
    a = rng.random(6)
    with pytest.raises(frot.InputError, match=r"tau: srw, max_sliced, max_min keep all mass"):
        frot.compare(X, Y, tau=1.0)
    with pytest.raises(frot.InputError, match="tau: a share is of each method's own mean cost"):
        frot.compare(X, Y, "frot,ot", tau=frot.relative(1.0))
    found = frot.compare(X, Y, "frot,ot", a=a, tau=(2.0, np.inf))
    assert found["frot"].value == frot.solve(X, Y, a=a, tau=(2.0, np.inf)).value
    assert found["ot"].marginals[1].sum() == pytest.approx(1.0)
    assert [one.verdict for one in found.relations] == ["proven"]
    assert any("paid" in note for note in found.notes)
