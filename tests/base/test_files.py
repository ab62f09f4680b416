import os
import stat
import sys
from pathlib import Path

import pytest

from frot._base.errors import InputError
from frot._base.files import check_path, make_folder, replacing


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
