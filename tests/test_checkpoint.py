from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from frot import InputError
from frot._checkpoint import Checkpoint

ARRAYS = [np.arange(3.0), np.array([[1, 2], [3, 4]]), np.array([np.nan, -0.0, 5e-324])]


def write(path: Path, arrays: list[np.ndarray], fingerprint: str = "f" * 64) -> list[int]:
    """Write a checkpoint and return the size of the file after each record."""
    sizes = []
    with Checkpoint(path, fingerprint) as checkpoint:
        sizes.append(path.stat().st_size)
        for index, array in enumerate(arrays):
            checkpoint.add(index, array)
            sizes.append(path.stat().st_size)
    return sizes


def read(path: Path, fingerprint: str = "f" * 64) -> dict[int, np.ndarray]:
    with Checkpoint(path, fingerprint) as checkpoint:
        return checkpoint.done


def same(found: dict[int, np.ndarray], expected: list[np.ndarray]) -> bool:
    return list(found) == list(range(len(expected))) and all(
        found[k].dtype == one.dtype and found[k].tobytes() == one.tobytes()
        for k, one in enumerate(expected)
    )


def test_what_is_added_is_there_again(tmp_path):
    path = tmp_path / "work"
    write(path, ARRAYS)
    assert same(read(path), ARRAYS)


def test_what_is_added_is_there_at_once(tmp_path):
    array = np.ones(2)
    with Checkpoint(tmp_path / "work", "f") as checkpoint:
        checkpoint.add(4, array)
        array[:] = 0.0
        assert checkpoint.done[4].tolist() == [1.0, 1.0]


@settings(max_examples=25)
@given(st.sets(st.integers(-(2**63), 2**63 - 1), max_size=5), st.data())
def test_any_array_under_any_number(tmp_path_factory, keys, data):
    kinds = st.one_of(hnp.integer_dtypes(), hnp.floating_dtypes(), hnp.boolean_dtypes())
    shapes = hnp.array_shapes(min_dims=0, min_side=0)
    given = {key: data.draw(hnp.arrays(kinds, shapes)) for key in keys}
    path = tmp_path_factory.mktemp("any") / "work"
    with Checkpoint(path, "f") as checkpoint:
        for key, array in given.items():
            checkpoint.add(key, array)
    found = read(path, "f")
    assert list(found) == list(given)
    for key, array in given.items():
        assert found[key].shape == array.shape
        assert found[key].dtype == array.dtype
        assert found[key].tobytes() == array.tobytes()


def test_the_last_record_of_a_number_wins(tmp_path):
    with Checkpoint(tmp_path / "work", "f") as checkpoint:
        checkpoint.add(1, np.zeros(1))
        checkpoint.add(1, np.ones(1))
    assert read(tmp_path / "work", "f")[1].tolist() == [1.0]


def test_cut_at_every_byte_of_the_last_record(tmp_path):
    """However little of it was written, what came before is kept and work can go on."""
    path = tmp_path / "work"
    sizes = write(path, ARRAYS)
    content = path.read_bytes()
    for length in range(sizes[-2], sizes[-1]):
        path.write_bytes(content[:length])
        with Checkpoint(path, "f" * 64) as checkpoint:
            assert same(checkpoint.done, ARRAYS[:-1]), length
            checkpoint.add(2, ARRAYS[-1])
        assert path.read_bytes() == content, length


def test_cut_at_every_byte_of_the_header(tmp_path):
    path = tmp_path / "work"
    start = write(path, ARRAYS)[0]
    content = path.read_bytes()
    for length in range(start):
        path.write_bytes(content[:length])
        write(path, ARRAYS)
        assert path.read_bytes() == content, length


def test_a_flipped_bit_is_never_a_result(tmp_path):
    """A byte of the last record that changed, wherever it is, drops that record."""
    path = tmp_path / "work"
    sizes = write(path, ARRAYS)
    content = path.read_bytes()
    for where in range(sizes[-2], sizes[-1]):
        spoilt = bytearray(content)
        spoilt[where] ^= 1 << (where % 8)
        path.write_bytes(spoilt)
        assert same(read(path), ARRAYS[:-1]), where


@pytest.mark.parametrize("tail", [bytes(100), b"\xff" * 100, bytes(5)])
def test_rubbish_at_the_end_is_dropped(tmp_path, tail):
    path = tmp_path / "work"
    write(path, ARRAYS)
    content = path.read_bytes()
    path.write_bytes(content + tail)
    assert same(read(path), ARRAYS)
    assert path.read_bytes() == content


def test_damage_in_the_middle_keeps_what_came_before(tmp_path):
    path = tmp_path / "work"
    sizes = write(path, ARRAYS)
    content = bytearray(path.read_bytes())
    content[sizes[1] + 30] ^= 1
    path.write_bytes(content)
    assert same(read(path), ARRAYS[:1])


@pytest.mark.parametrize("other", ["e" * 64, "f" * 63, "f" * 65, ""])
def test_other_work_is_refused_and_left_alone(tmp_path, other):
    path = tmp_path / "work"
    write(path, ARRAYS)
    content = path.read_bytes()
    with pytest.raises(InputError, match=r"checkpoint: .*work is of other data or options; give"):
        Checkpoint(path, other)
    assert path.read_bytes() == content
    assert same(read(path), ARRAYS)


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"\x93NUMPY", b"frot checkpoint 2\n"])
def test_other_files_are_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"checkpoint: .*data.csv exists and is no checkpoint"):
        Checkpoint(path, "f")
    assert path.read_bytes() == content


def test_one_at_a_time(tmp_path):
    path = tmp_path / "work"
    with (
        Checkpoint(path, "f"),
        pytest.raises(InputError, match=r"checkpoint: .* is in use by another run; wait for it"),
    ):
        Checkpoint(path, "f")
    Checkpoint(path, "f").close()


def test_one_at_a_time_across_processes(tmp_path):
    path = tmp_path / "work"
    code = f"from frot._checkpoint import Checkpoint; Checkpoint({str(path)!r}, 'f')"
    with Checkpoint(path, "f"):
        tried = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert tried.returncode == 1
    assert "is in use by another run" in tried.stderr
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_refused_file_is_not_kept_open(tmp_path):
    path = tmp_path / "work"
    write(path, ARRAYS)
    for _ in range(3):
        with pytest.raises(InputError, match="other data"):
            Checkpoint(path, "e")
    assert same(read(path), ARRAYS)


def test_paths_that_cannot_be(tmp_path):
    with pytest.raises(InputError, match=r"checkpoint: .* cannot be opened: No such file"):
        Checkpoint(tmp_path / "no" / "work", "f")
    with pytest.raises(InputError, match=r"checkpoint: .* cannot be opened"):
        Checkpoint(tmp_path, "f")
    with pytest.raises(InputError, match=r"checkpoint: 3 is no path of a file"):
        Checkpoint(3, "f")  # type: ignore[arg-type]


def test_objects_are_no_results(tmp_path):
    with Checkpoint(tmp_path / "work", "f") as checkpoint:
        with pytest.raises(ValueError, match="Object arrays"):
            checkpoint.add(0, np.array([{}]))
        checkpoint.add(1, np.zeros(1))
    assert list(read(tmp_path / "work", "f")) == [1]


def test_a_write_that_failed_half_way_is_overwritten(tmp_path, monkeypatch):
    """A full disk, say: it raises, and the file is as good as it was."""
    path = tmp_path / "work"
    with Checkpoint(path, "f") as checkpoint:
        checkpoint.add(0, ARRAYS[0])
        sync = os.fsync

        def fail(handle: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="checkpoint: No space left on device"):
            checkpoint.add(1, np.zeros(1000))
        monkeypatch.setattr(os, "fsync", sync)
        assert list(checkpoint.done) == [0]
        checkpoint.add(1, ARRAYS[1])
    assert same(read(path, "f"), ARRAYS[:2])
