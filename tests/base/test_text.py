import gzip

import pytest

import frot
from frot._base.text import read_rows, read_text


def test_compressed_or_not(tmp_path):
    text = "\ufeffu,v\r\n1,2\r\n\r\n3,4"
    (tmp_path / "a.csv").write_bytes(text.encode())
    (tmp_path / "a.csv.GZ").write_bytes(gzip.compress(text.encode()))
    for name in ("a.csv", "a.csv.GZ"):
        rows = list(read_rows(tmp_path / name, ","))
        assert rows == [(1, ["u", "v"]), (2, ["1", "2"]), (4, ["3", "4"])]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "é".encode("latin-1"), "is not UTF-8 text; save it as UTF-8"),
        ("a.csv.gz", b"not gzip", "cannot read .*gzip"),
        ("a.csv.gz", gzip.compress(b"1,2\n" * 99, mtime=0)[:-12], "cannot read "),
        ("a.csv.gz", gzip.compress(b"1,2\n", mtime=0)[:10] + b"\xff" * 9, "cannot read "),
    ],
)
def test_what_cannot_be_read(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(frot.InputError, match=message):
        read_text(tmp_path / name)
    with pytest.raises(frot.InputError, match=message):
        list(read_rows(tmp_path / name, ","))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(frot.InputError, match=r"cannot read .*No such file"):
        read_text(tmp_path / "a.txt")


def test_a_cell_that_is_too_long(tmp_path):
    (tmp_path / "a.csv").write_text("1\n" + "x" * 131_073)
    with pytest.raises(frot.InputError, match="line 2: field larger than field limit"):
        list(read_rows(tmp_path / "a.csv", ","))
