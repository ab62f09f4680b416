from __future__ import annotations

import io
import os
import stat
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frot
from frot._base.errors import InputError
from frot._base.files import check_path, make_folder, replacing, write_archive
from frot.correspondence._photo import read_photo
from frot.correspondence.flow import Flow
from frot.datasets import load_expression
from frot.plans.plan import is_sparse
from frot.selection import read_samples
from tests.damage import check_damaged


def test_the_old_file_survives_a_failure(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as draft:
            draft.write_text("half of the new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_the_old_file_is_there_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "a.npz"
    path.write_text("old")
    with replacing(path) as draft:
        draft.write_text("new")
        assert draft.suffix == ".npz"
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.skipif(sys.platform == "win32", reason="no file modes")
def test_the_file_is_as_public_as_any_other(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    with replacing(tmp_path / "ours") as draft:
        draft.write_text("")
    modes = [stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("plain", "ours")]
    assert modes[0] == modes[1]


def test_what_cannot_be_written_is_bad_input(tmp_path):
    with pytest.raises(InputError, match="cannot be written"), replacing(tmp_path / "no" / "a"):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made a folder"):
        make_folder(tmp_path / "file")


@pytest.mark.parametrize("path", ["a.csv", Path("a.csv")])
def test_paths(path):
    assert check_path(path) == Path("a.csv")


@pytest.mark.parametrize("path", [5, None, b"a.csv", ["a.csv"]])
def test_no_paths(path):
    with pytest.raises(
        InputError, match=r"checkpoint: .* is not a path of a file; pass a string or"
    ):
        check_path(path, "checkpoint")


def same(one: frot.Result, other: frot.Result) -> None:
    assert other.summary() == one.summary()
    before, after = one.to_dict(), other.to_dict()
    # A lazy plan adds its mass up block by block.
    assert after.pop("mass") == pytest.approx(before.pop("mass"), rel=1e-12)
    assert after == before
    for name in ("history", "names", "groups", "plain", "tau", "totals", "mean_cost"):
        assert getattr(other, name) == getattr(one, name)
    np.testing.assert_array_equal(np.asarray(other.plan), np.asarray(one.plan))
    for pair in ("potentials", "points"):
        for found, wanted in zip(getattr(other, pair), getattr(one, pair), strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert is_sparse(other.plan) == is_sparse(one.plan)
    assert not other.alpha.flags.writeable


X, Y, GROUPS = frot.toy(12)


@pytest.mark.parametrize(
    "options",
    [{"eta": 1.0}, {"eps": 0.5, "tol": 1e-2}, {"tau": (3.0, np.inf), "penalty": "tv"}],
    ids=["sparse", "dense", "partial"],
)
def test_a_result_comes_back(options, tmp_path):
    result = frot.solve(X, Y, GROUPS, **options)
    again = frot.load(result.save(tmp_path / "answer"))
    same(result, again)
    assert [file.name for file in tmp_path.iterdir()] == ["answer.npz"]


def test_what_the_adversary_chose_comes_back(tmp_path):
    found = frot.srw(X, Y, k=2)
    chosen, again = found.chosen, frot.load(found.save(tmp_path / "srw.npz")).chosen
    assert chosen is not None
    assert again is not None
    assert again.describe() == chosen.describe()


def test_flows_come_back_from_every_format(tmp_path):
    for suffix in ("npz", "npy", "flo"):
        again = frot.load(Flow.still((3, 4)).save(tmp_path / f"still.{suffix}"))
        np.testing.assert_array_equal(again.points, Flow.still((3, 4)).points)


def saved(kind: str, path: Path) -> Path:
    if kind == "flow":
        return Flow.still((3, 4)).save(path)
    options: dict[str, Any] = {"lazy": {"eps": 0.5}, "sparse": {"eta": 1.0}}[kind]
    return frot.solve(X, Y, GROUPS, **options).save(path)


@pytest.mark.parametrize("kind", ["lazy", "sparse", "flow"])
def test_a_damaged_file_is_refused_or_read_as_it_was(kind: str, tmp_path):
    check_damaged(saved(kind, tmp_path / "whole.npz"), tmp_path, 100)


def test_sizes_are_looked_at_before_anything_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "huge.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("value.npy", header.getvalue() + bytes(8))
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(frot.InputError, match="which is not its size"):
        frot.load(path)


@pytest.mark.parametrize("name", ["x" * 5_000, "a\0b"])
def test_a_path_that_no_system_takes_is_bad_input(tmp_path, name):
    path = tmp_path / name
    calls = {
        "load": lambda: frot.load(path),
        "save": lambda: Flow.still((3, 4)).save(path),
        "table": lambda: frot.read_table(f"{path}.csv"),
        "groups": lambda: frot.Groups.parse(f"{path}.gmt", 2, ["u", "v"]),
        "page": lambda: frot.write_report(frot.solve(X, Y, GROUPS), f"{path}.html"),
        "checkpoint": lambda: frot.pairwise([X, Y], groups=GROUPS, checkpoint=path),
        "data": lambda: load_expression("colon", root=path),
        "samples": lambda: read_samples(f"{path}.csv", "class"),
        "picture": lambda: read_photo(f"{path}.png"),
    }
    for call in calls.values():
        with pytest.raises(frot.InputError, match="is no path of a file: "):
            call()


def test_what_is_no_file_of_frots(tmp_path):
    whole = frot.solve(X, Y, GROUPS).save(tmp_path / "answer.npz")
    content = whole.read_bytes()
    cut, other = tmp_path / "cut.npz", tmp_path / "other.npz"
    for size in (0, 10, len(content) // 2, len(content) - 30):
        cut.write_bytes(content[:size])
        with pytest.raises(frot.InputError, match=r"cut.npz is damaged, or no file that frot"):
            frot.load(cut)
    cut.write_text("hello")
    with pytest.raises(frot.InputError, match=r"it is no \.npz file$"):
        frot.load(cut)
    np.savez(other, kind=np.array({"a": 1}, dtype=object), allow_pickle=True)
    with pytest.raises(frot.InputError, match=r"other\.npz is damaged, or"):
        frot.load(other)
    write_archive(other, "result", {"value": 1.0})
    with pytest.raises(frot.InputError, match=r"it has no 'plan_shape'|it has no 'plan_rows'"):
        frot.load(other)
    write_archive(other, "spell", {})
    with pytest.raises(frot.InputError, match="it holds a 'spell'"):
        frot.load(other)
    with pytest.raises(frot.InputError, match="it holds a result, not a match"):
        frot.load(whole, "match")
    with pytest.raises(frot.InputError, match="does not exist"):
        frot.load(tmp_path / "none.npz")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = frot.solve(X, Y, GROUPS).save(tmp_path / "answer.npz")
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(InputError, match=r"answer.npz cannot be written: no space"):
        frot.solve(X, Y, GROUPS, eta=1.0).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["answer.npz"]


def test_a_folder_is_called_one(tmp_path):
    with pytest.raises(frot.InputError, match="is a folder; give a file that a save of frot wrote"):
        frot.load(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_full_disk_is_bad_input(tmp_path):
    message = r"a.txt cannot be written: No space left on device"
    with pytest.raises(InputError, match=message), replacing(tmp_path / "a.txt"):
        Path("/dev/full").write_text("x")
    assert list(tmp_path.iterdir()) == []
