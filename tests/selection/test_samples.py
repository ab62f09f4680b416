import numpy as np
import pytest

import frot
from frot.selection import read_samples
from tests.selection.data_files import frame, write


def test_every_kind_of_file_reads_the_same(tmp_path):
    table = frame()
    for suffix in (".csv", ".tsv", ".tsv.gz", ".parquet", ".npz"):
        found = read_samples(write(tmp_path / f"data{suffix}"), "class", block="batch")
        assert found.names == tuple(f"gene{i}" for i in range(40))
        assert pytest.approx(table[list(found.names)].to_numpy()) == found.X
        assert found.y.tolist() == table["class"].tolist()
        assert found.ids == tuple(table["patient"])
        assert found.block is not None
        assert found.block.tolist() == [str(number) for number in table["batch"]]
        assert found.ignored == (() if suffix == ".npz" else ("remark",))


@pytest.mark.parametrize(
    ("text", "ids", "names"),
    [
        ("u,kind,v\n1,a,2\n3,b,4\n", None, ("u", "v")),
        (",u,kind,v\n0,1,a,2\n1,3,b,4\n", ("0", "1"), ("u", "v")),  # pandas' index
        ("u,kind,v\np,1,a,2\nq,3,b,4\n", ("p", "q"), ("u", "v")),  # R's row names
        ('"x, y",kind,v\r\n1,"a",2\r\n3,"b",4\r\n', None, ("x, y", "v")),
        ("\ufeffu,kind,v\n1,a,2\n\n3,b,4\n", None, ("u", "v")),
    ],
)
def test_layouts_of_text(tmp_path, text, ids, names):
    (tmp_path / "data.csv").write_bytes(text.encode())
    found = read_samples(tmp_path / "data.csv", "kind")
    assert (found.ids, found.names, found.y.tolist()) == (ids, names, ["a", "b"])
    assert found.X.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_missing_cells(tmp_path):
    (tmp_path / "data.csv").write_text("kind,u,v\na,NA,1\nb,2,\nb,nan,3\n")
    found = read_samples(tmp_path / "data.csv", "kind").X
    assert np.isnan(found).tolist() == [[True, False], [False, True], [True, False]]


def test_arrays_without_names(tmp_path):
    np.savez(tmp_path / "data.npz", X=np.eye(3), y=np.array([0, 1, 1]))
    found = read_samples(tmp_path / "data.npz", "y", drop=["x1"])
    assert found.names == ("x0", "x2")
    assert found.y.tolist() == ["0", "1", "1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind,kind,u\na,b,1\n", "two columns named 'kind'; rename one"),
        ("kind,remark\na,x\nb,y\n", "no column of numbers besides 'kind'"),
        ("u,v\n1,2\n", "label: .* has no column 'kind'; it has 'u', 'v'"),
    ],
)
def test_bad_text(tmp_path, text, message):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(frot.InputError, match=message):
        read_samples(tmp_path / "data.csv", "kind")


def test_a_label_that_the_archive_does_not_have(tmp_path):
    np.savez(tmp_path / "data.npz", X=np.eye(3), y=np.array([0, 1, 1]))
    with pytest.raises(frot.InputError, match=r"label: .* has no column 'kind'; it has 'y'"):
        read_samples(tmp_path / "data.npz", "kind")
