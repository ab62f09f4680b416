"""`frot.load`: every save comes back, and nothing else does."""

import numpy as np
import pytest

import frot
from frot._base.archive import write_archive
from frot.correspondence.flow import Flow


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
    assert other.plan.is_sparse == one.plan.is_sparse
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


def test_what_is_no_file_of_frots(tmp_path):
    whole = frot.solve(X, Y, GROUPS).save(tmp_path / "answer.npz")
    content = whole.read_bytes()
    cut, other = tmp_path / "cut.npz", tmp_path / "other.npz"
    for size in (0, 10, len(content) // 2, len(content) - 30):
        cut.write_bytes(content[:size])
        with pytest.raises(frot.InputError, match=r"cut.npz is damaged, or no file that frot"):
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
    with pytest.raises(OSError, match="no space"):
        frot.solve(X, Y, GROUPS, eta=1.0).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["answer.npz"]
