"""The store: what is added is there again, whatever ends the process and whoever else writes."""

from __future__ import annotations

import io
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from frot import InputError
from frot._base.store import Store, _checksum, open_checkpoint

ARRAYS = [np.arange(3.0), np.array([[1, 2], [3, 4]]), np.array([np.nan, -0.0, 5e-324])]


def write(path: Path, arrays: list[np.ndarray], fingerprint: str = "f") -> None:
    with open_checkpoint(path, fingerprint) as kept:
        for index, array in enumerate(arrays):
            kept.add(index, array)


def read(path: Path, fingerprint: str = "f", wait: float = 30.0) -> dict[int, np.ndarray]:
    with open_checkpoint(path, fingerprint, wait) as kept:
        return kept.finished()


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@settings(max_examples=25)
@given(st.sets(st.integers(-(2**63), 2**63 - 1) | st.text(), max_size=5), st.data())
def test_any_array_under_any_key(tmp_path_factory, keys, data):
    kinds = st.one_of(hnp.integer_dtypes(), hnp.floating_dtypes(), hnp.boolean_dtypes())
    shapes = hnp.array_shapes(min_dims=0, min_side=0)
    made = {key: data.draw(hnp.arrays(kinds, shapes)) for key in keys}
    path = tmp_path_factory.mktemp("any") / "work"
    with open_checkpoint(path, "f") as kept:
        for key, array in made.items():
            kept.add(key, array)
    found = read(path)
    assert list(found) == list(made)
    assert all(same(found[key], array) for key, array in made.items())


def test_what_is_added_is_there_at_once_and_is_a_copy(tmp_path):
    array = np.ones(2)
    with open_checkpoint(tmp_path / "work", "f") as kept:
        kept.add(4, array)
        array[:] = 0.0
        assert kept.finished()[4].tolist() == [1.0, 1.0]
        kept.add(4, np.zeros(1))
        assert kept.finished()[4].tolist() == [0.0]


def test_json_values_come_back_as_they_were(tmp_path):
    value = {"name": "ä", "numbers": [1, 0.1, 1e300, None], "none": {}}
    with Store(tmp_path / "work", "notes", {}) as kept:
        kept.add("a", value)
    with Store(tmp_path / "work", "notes") as kept:
        assert kept.finished() == {"a": value}


def test_works_of_one_file_are_kept_apart(tmp_path):
    with Store(tmp_path / "work", "notes", {}) as kept:
        kept.add(0, 1, work="version 1")
        kept.add(0, 2, work="version 2")
        assert kept.finished("version 1") == {0: 1}
        assert kept.finished("version 2") == {0: 2}
        assert kept.finished() == {}


def test_a_closed_store_is_one_file(tmp_path):
    write(tmp_path / "work", ARRAYS)
    assert [path.name for path in tmp_path.iterdir()] == ["work"]


def test_a_flipped_bit_is_never_a_result(tmp_path):
    """Wherever it is, what can still be read is right; and in an array it costs that one only."""
    path = tmp_path / "work"
    write(path, ARRAYS)
    content = path.read_bytes()
    dropped = 0
    for where in range(0, len(content), 7):
        if not content[where]:
            continue
        spoilt = bytearray(content)
        spoilt[where] ^= 1 << (where % 8)
        path.write_bytes(spoilt)
        try:
            found = read(path)
        except InputError:
            continue
        assert all(same(array, ARRAYS[key]) for key, array in found.items()), where
        dropped += len(found) < len(ARRAYS)
    assert dropped
    at = content.index(ARRAYS[0].tobytes())
    path.write_bytes(content[:at] + b"\1" + content[at + 1 :])
    assert list(read(path)) == [1, 2]


@pytest.mark.parametrize("length", [0, 1, 100, 4096, 5000])
def test_a_file_cut_short_is_refused_or_empty(tmp_path, length):
    path = tmp_path / "work"
    write(path, ARRAYS)
    path.write_bytes(path.read_bytes()[:length])
    with suppress(InputError):
        assert read(path) == {}


@pytest.mark.parametrize("other", ["e", "ff", ""])
def test_other_work_is_refused_and_left_alone(tmp_path, other):
    path = tmp_path / "work"
    write(path, ARRAYS)
    for _ in range(2):
        with pytest.raises(
            InputError, match=r"checkpoint: .*work is of other data or options; give"
        ):
            open_checkpoint(path, other)
    assert list(read(path)) == [0, 1, 2]


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"\x93NUMPY", b"frot checkpoint 2\n"])
def test_other_files_are_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"checkpoint: .*data.csv is not a store of frot's"):
        open_checkpoint(path, "f")
    assert path.read_bytes() == content


def test_other_databases_are_refused_and_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE pieces (id TEXT)")
    other.close()
    content = (tmp_path / "other").read_bytes()
    with pytest.raises(InputError, match="is not a store of frot's; give another path"):
        open_checkpoint(tmp_path / "other", "f")
    assert (tmp_path / "other").read_bytes() == content


def test_files_of_the_format_before_are_named_as_such(tmp_path):
    with sqlite3.connect(tmp_path / "pairs") as before:
        before.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        before.execute("PRAGMA application_id = 0x66726F74")
        before.execute("PRAGMA user_version = 1")
    before.close()
    with pytest.raises(InputError, match="is of format 1, and this version of frot reads 2"):
        Store(tmp_path / "pairs", "an evaluation", {})


def test_another_kind_is_refused(tmp_path):
    Store(tmp_path / "work", "splits", {}).close()
    with pytest.raises(InputError, match="is a store of splits, not of numbered tasks"):
        open_checkpoint(tmp_path / "work", "f")


def test_paths_that_cannot_be(tmp_path):
    with pytest.raises(InputError, match=r"checkpoint: .*no does not exist; make that folder"):
        open_checkpoint(tmp_path / "no" / "work", "f")
    with pytest.raises(InputError, match=r"checkpoint: .* is a folder; give the path of a file"):
        open_checkpoint(tmp_path, "f")
    with pytest.raises(InputError, match=r"checkpoint: 3 is not a path of a file"):
        open_checkpoint(3, "f")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"store: .*none is not there"):
        Store(tmp_path / "none", "splits")
    assert list(tmp_path.iterdir()) == []


def test_objects_are_no_results(tmp_path):
    with open_checkpoint(tmp_path / "work", "f") as kept:
        with pytest.raises(ValueError, match="Object arrays"):
            kept.add(0, np.array([{}]))
        with pytest.raises(TypeError, match="not JSON serializable"):
            kept.add(0, object())
        kept.add(1, np.zeros(1))
    assert list(read(tmp_path / "work")) == [1]


def test_a_damaged_store_is_called_damaged(tmp_path):
    path = tmp_path / "work"
    write(path, [np.arange(1000.0)] * 20)
    content = bytearray(path.read_bytes())
    # Past the first page, which is the header: the tree of the table.
    content[4096:12288] = b"\xff" * 8192
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"work is damaged \(.*\); remove it to start anew"):
        read(path)


def test_a_damaged_store_is_refused_or_has_lost_some_pieces(tmp_path):
    path, broken = tmp_path / "work", tmp_path / "broken"
    arrays = [np.arange(200.0) + number for number in range(6)]
    write(path, arrays)
    content = path.read_bytes()
    refused = lost = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        damaged = bytearray(content)
        start = int(rng.integers(len(content)))
        if seed % 3 == 0:
            del damaged[start:]
        else:
            # The header of the file, or anything in it.
            start %= 100 if seed % 3 == 1 else len(content)
            for place in range(start, min(start + int(rng.integers(1, 40)), len(content))):
                damaged[place] ^= int(rng.integers(1, 256))
        for name in tmp_path.glob("broken*"):
            name.unlink()
        broken.write_bytes(damaged)
        try:
            pieces = read(broken)
        except InputError:
            refused += 1
            continue
        lost += len(pieces) < len(arrays)
        for key, array in pieces.items():
            np.testing.assert_array_equal(array, arrays[key])
    assert refused > 40
    assert lost > 5


def test_sizes_of_a_piece_are_looked_at_before_it_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "work"
    write(path, [np.zeros(3)])
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    )
    value = header.getvalue() + bytes(24)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE pieces SET value = ?, checksum = ?", (value, _checksum("", 0, value)))
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(InputError, match=r"is damaged .states shape"):
        read(path)


@pytest.mark.parametrize("when", ["begin", "add"])
def test_a_locked_store_is_called_locked(tmp_path, when):
    path = tmp_path / "work"
    write(path, ARRAYS)
    kept = open_checkpoint(path, "f", wait=0.01) if when == "add" else None
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(InputError, match=r"work is locked: another process .* wait until"):
        read(path, wait=0.01) if kept is None else kept.add(7, ARRAYS[0])
    other.close()
    if kept is not None:
        kept.close()
    assert list(read(path)) == [0, 1, 2]


def test_a_full_disk_raises_and_keeps_what_was_there(tmp_path):
    with open_checkpoint(tmp_path / "work", "f") as kept:
        kept.add(0, ARRAYS[0])
        pages = kept._file.execute("PRAGMA page_count").fetchone()[0]
        kept._file.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(InputError, match=r"checkpoint: .*work cannot be written: .* full"):
            kept.add(1, np.zeros(100_000))
        assert list(kept.finished()) == [0]
    assert list(read(tmp_path / "work")) == [0]


WRITER = """
import sys
import numpy as np
from frot._base.store import open_checkpoint

path, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open_checkpoint(path, "f") as kept:
    for index in range(first, first + count):
        kept.add(index, np.full(200, index))
        print(index, flush=True)
"""


def writer(path: Path, first: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_several_processes_write_at_once(tmp_path):
    processes = [writer(tmp_path / "work", 1000 * k, 100) for k in range(3)]
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    found = read(tmp_path / "work")
    assert sorted(found) == [1000 * k + index for k in range(3) for index in range(100)]
    assert all((array == index).all() for index, array in found.items())


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_kill_loses_nothing_that_was_added(tmp_path):
    path, told = tmp_path / "work", -1
    for _ in range(3):
        process = writer(path, told + 1, 10**9)
        assert process.stdout is not None
        for line in process.stdout:
            told = int(line)
            if told % 20 == 19:
                break
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        found = read(path)
        # Some more may have been added before the kill came, and none by halves.
        assert sorted(found) == list(range(len(found)))
        assert len(found) > told
        assert all((array == np.full(200, index)).all() for index, array in found.items())
        told = max(found)
