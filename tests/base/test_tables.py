import gzip
import sys
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.extra import numpy as arrays

import frot
from frot._base.errors import InputError, MissingDependencyError
from frot._base.tables import read_pair, read_table


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


class TestText:
    @pytest.mark.parametrize(
        ("text", "columns", "ids"),
        [
            ("1,2\n3,4\n", None, None),
            ("u,v\n1,2\n3,4\n", ("u", "v"), None),
            ("id,u,v\np,1,2\nq,3,4\n", ("u", "v"), ("p", "q")),
            (",u,v\n0,1,2\n1,3,4\n", ("u", "v"), ("0", "1")),  # pandas, with its index
            (",0,1\n0,1,2\n1,3,4\n", ("0", "1"), ("0", "1")),  # pandas, columns without names
            ("u,v\np,1,2\nq,3,4\n", ("u", "v"), ("p", "q")),  # R, write.table
            ('"","u","v"\n"p",1,2\n"q",3,4\n', ("u", "v"), ("p", "q")),  # R, write.csv
            ("p,1,2\nq,3,4\n", None, ("p", "q")),
            ("\ufeffu,v\r\n1,2\r\n\r\n3,4", ("u", "v"), None),
            (" u , v \n 1 , 2 \n 3 , 4 \n", ("u", "v"), None),
            ('"u, left",v\n"1",2\n3,4\n', ("u, left", "v"), None),
            ("u,v\n1e0,+2\n3.,4\n", ("u", "v"), None),
        ],
    )
    def test_header_and_row_names_are_told_apart(self, write, text, columns, ids):
        table = read_table(write("a.csv", text))
        assert table.columns == columns
        assert table.ids == ids
        assert table.values.tolist() == [[1, 2], [3, 4]]
        assert table.values.dtype == np.float64

    def test_one_row_and_one_column(self, write):
        assert read_table(write("a.csv", "1,2\n")).shape == (1, 2)
        assert read_table(write("a.csv", "1\n2\n")).shape == (2, 1)
        assert read_table(write("a.csv", "u\n1\n2\n")).columns == ("u",)
        assert read_table(write("a.csv", "p,1,2\n")).ids == ("p",)

    def test_tabs_and_gzip(self, write, tmp_path):
        assert read_table(write("a.tsv", "u\tv\n1\t2\n")).values.tolist() == [[1, 2]]
        packed = tmp_path / "a.v2.csv.gz"
        packed.write_bytes(gzip.compress(b"u,v\n1,2\n"))
        assert read_table(packed).columns == ("u", "v")
        packed.write_bytes(b"not gzip")
        with pytest.raises(InputError, match="cannot read"):
            read_table(packed)

    # The file is written anew for every example.
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        arrays.arrays(
            np.float64,
            arrays.array_shapes(min_dims=2, max_dims=2, max_side=5),
            elements=st.floats(allow_nan=False),
        ),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    )
    def test_numbers_come_back_exactly(self, write, values, with_header, with_ids, quoted):
        n, d = values.shape
        columns = tuple(f"c{j}" for j in range(d)) if with_header else None
        ids = tuple(f"p{i}" for i in range(n)) if with_ids else None
        rows = [[repr(float(value)) for value in row] for row in values]
        if ids is not None:
            rows = [[name, *row] for name, row in zip(ids, rows, strict=True)]
        if columns is not None:
            rows.insert(0, [*(["id"] if with_ids else []), *columns])
        quote = '"' if quoted else ""
        text = "\n".join(",".join(f"{quote}{cell}{quote}" for cell in row) for row in rows)
        table = read_table(write("a.csv", text))
        assert (table.columns, table.ids) == (columns, ids)
        np.testing.assert_array_equal(table.values, values)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty"),
            ("\n\n", "is empty"),
            ("u,v\n", "a header and no points"),
            ("u,v\n1,2\n3\n", "line 3: 1 cells where there should be 2"),
            ("u,v\n1,2\n3,4,5\n", "line 3: 3 cells where there should be 2"),
            ("u,v,w\n1,2\n3,4\n", "line 2: 2 cells where there should be 3"),
            ("u\n1,2,3\n", "line 2: 3 cells where there should be 1"),
            ("id,u\np,1\nq\n", "line 3: 1 cells where there should be 2"),
            ("id,u\np,1\nq,2,3\n", "line 3: 3 cells where there should be 2"),
            ("u,v\n1,2\n\n3,high\n", "line 4, column 'v': 'high' is not a number"),
            ("1,2\n3,NA\n", "line 2, column 2: 'NA' is not a number"),
            ("p,1,2\nq,3,NA\n", "line 2, column 3: 'NA' is not a number"),
            ("1,x,3\n4,5,6\n", "line 1, column 2: 'x' is not a number"),
            ("1,,3\n4,5,6\n", "line 1, column 2: the cell is empty"),
            (",2,3\n4,5,6\n", "line 1, column 1: the cell is empty"),
            ("u,v\n1,2\n3,nan\n", "line 3, column 'v': 'nan' is not a number"),
            ("u,v\n1,9007199254740993\n", "line 2, column 'v': .* a whole number beyond"),
            ("u,v\n1,2.5\n\n3,-9007199254740993\n", "line 4, column 'v': .* a whole number beyond"),
            ('u,"v\nw"\n1,2\n', "a column's name has a line break"),
            ("u,v\n1,2\n3," + "4" * 131_073 + "\n", r"line 3: field larger than field limit"),
            ("u," + "v" * 131_073 + "\n1,2\n", r"line 1: field larger than field limit"),
        ],
    )
    def test_errors_say_where(self, write, text, message):
        with pytest.raises(InputError, match=message):
            read_table(write("a.csv", text))

    def test_not_utf8(self, tmp_path):
        (tmp_path / "a.csv").write_bytes("é,v\n1,2\n".encode("latin-1"))
        with pytest.raises(InputError, match="UTF-8"):
            read_table(tmp_path / "a.csv")


class TestBinary:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.bool_])
    def test_npy(self, tmp_path, dtype):
        np.save(tmp_path / "a.npy", np.eye(2, 3, dtype=dtype))
        table = read_table(str(tmp_path / "a.npy"))
        np.testing.assert_array_equal(table.values, np.eye(2, 3))
        assert table.values.dtype == np.float64
        assert table.columns is None
        assert table.ids is None

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.zeros(3), r"shape \(3,\).*reshape"),
            (np.zeros((1, 2, 3)), "shape"),
            (np.array([["a"]]), "real numbers"),
            (np.array([[1j]]), "real numbers"),
            (np.array([[None]]), "Python objects"),
            (np.zeros((0, 3)), "0 rows of 3 features"),
            (np.array([[2**53 + 1]]), r"integers beyond 2\^53"),
        ],
    )
    def test_npy_errors(self, tmp_path, array, message):
        np.save(tmp_path / "a.npy", array)
        with pytest.raises(InputError, match=message):
            read_table(tmp_path / "a.npy")

    def test_npz(self, tmp_path):
        path = tmp_path / "a.npz"
        np.savez(path, X=np.eye(2), y=np.array(["s", "t"]), genes=np.array(["A", "B"]))
        assert read_table(path).columns == ("A", "B")
        np.savez(path, cloud=np.eye(2), columns=np.array(["A", "B"]), ids=np.array(["p", "q"]))
        table = read_table(path)
        assert (table.columns, table.ids) == (("A", "B"), ("p", "q"))
        np.testing.assert_array_equal(table.values, np.eye(2))

    def test_npz_errors(self, tmp_path):
        path = tmp_path / "a.npz"
        np.savez(path, a=np.eye(2), b=np.eye(2))
        with pytest.raises(InputError, match="'a', 'b'; name the point cloud 'X'"):
            read_table(path)
        np.savez(path, X=np.array([[None]]))
        with pytest.raises(InputError, match="Python objects"):
            read_table(path)
        np.savez(path, X=np.eye(2), columns=np.array(["A"]))
        with pytest.raises(InputError, match="1 names for 2 columns"):
            read_table(path)

    @pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.parquet"])
    def test_files_that_are_not_what_they_say(self, write, name):
        with pytest.raises(InputError, match=r"cannot read|plain numbers"):
            read_table(write(name, "nothing of the sort, at some length"))

    def test_parquet(self, tmp_path):
        path = tmp_path / "a.parquet"
        frame = pandas.DataFrame({"u": [1, 3], "v": [2.0, 4.0]})
        frame.to_parquet(path)
        table = read_table(path)
        assert (table.columns, table.ids) == (("u", "v"), None)
        assert table.values.tolist() == [[1, 2], [3, 4]]
        frame.index = pandas.Index(["p", "q"])
        frame.to_parquet(path)
        assert read_table(path).ids == ("p", "q")
        frame.reset_index().to_parquet(path)
        assert read_table(path).ids == ("p", "q")
        frame.assign(w=["s", "t"]).to_parquet(path)
        with pytest.raises(InputError, match="column 'w'"):
            read_table(path)

    @pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.xlsx"])
    def test_without_pandas(self, write, monkeypatch, name):
        path = write(name, "u,v\n1,2\n")
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingDependencyError, match=r'pip install "frot\[tables\]"'):
            read_table(path)

    def test_arrays_need_no_pandas(self, tmp_path, monkeypatch):
        np.save(tmp_path / "a.npy", np.eye(2))
        monkeypatch.setitem(sys.modules, "pandas", None)
        assert read_table(tmp_path / "a.npy").shape == (2, 2)


class TestPaths:
    def test_too_long(self):
        with pytest.raises(
            InputError, match=r"path: '/x{20}.*' is no path of a file: File name too long"
        ):
            read_table("/" + "x" * 5_000 + ".csv")

    def test_missing_unknown_and_folder(self, tmp_path):
        with pytest.raises(InputError, match="does not exist"):
            read_table(tmp_path / "a.csv")
        with pytest.raises(InputError, match=r"unknown suffix '\.ods'; known are \.csv, \.tsv"):
            read_table(tmp_path / "a.ods")
        (tmp_path / "folder.csv").mkdir()
        with pytest.raises(InputError, match="is a folder"):
            read_table(tmp_path / "folder.csv")


class TestPair:
    def test_columns_are_matched_by_name(self, write):
        a, b = read_pair(
            write("a.csv", "u,v,w\n1,2,3\n"), write("b.csv", "id,w,u,v\np,3,1,2\nq,6,4,5\n")
        )
        assert a.columns == b.columns == ("u", "v", "w")
        assert b.values.tolist() == [[1, 2, 3], [4, 5, 6]]
        assert b.ids == ("p", "q")

    def test_columns_without_names_are_matched_by_position(self, write):
        a, b = read_pair(write("a.csv", "u,v\n1,2\n"), write("b.csv", "3,4\n"))
        assert a.columns == ("u", "v")
        assert b.values.tolist() == [[3, 4]]

    def test_repeated_names_in_the_same_order_are_fine(self, write):
        a, b = read_pair(write("a.csv", "u,u\n1,2\n"), write("b.csv", "u,u\n3,4\n"))
        assert b.values.tolist() == [[3, 4]]
        assert a.columns == b.columns

    @pytest.mark.parametrize(
        ("a", "b", "message"),
        [
            ("1,2\n", "1,2,3\n", "a.csv has 2 features and .*b.csv has 3"),
            ("u,v\n1,2\n", "u,x\n1,2\n", "b.csv lacks 'v', which .*a.csv has"),
            ("u,v\n1,2\n", "u,v,x\n1,2,3\n", "a.csv lacks 'x', which .*b.csv has"),
            ("a,b,c,d,e,f\n1,2,3,4,5,6\n", "z\n1\n", "'a', 'b', 'c', 'd', 'e' and 1 more"),
            ("u,u,v\n1,2,3\n", "v,u,u\n1,2,3\n", "a.csv has two columns named 'u'"),
        ],
    )
    def test_errors(self, write, a, b, message):
        with pytest.raises(InputError, match=message):
            read_pair(write("a.csv", a), write("b.csv", b))


def test_numbered_header_is_not_a_point(tmp_path: Path) -> None:
    """A frame without column names is written with 0, 1, 2, ... above its columns."""
    path = tmp_path / "numbered.csv"
    path.write_text("0,1,2\n1.5,2.5,3.5\n4.5,5.5,6.5\n")
    table = read_table(path)
    assert table.columns == ("0", "1", "2")
    np.testing.assert_array_equal(table.values, [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]])


def test_point_clouds_of_european_spreadsheets(tmp_path):
    (tmp_path / "a.csv").write_text("point;u;v\np;1,5;2\nq;3;-4,25\n")
    table = frot.read_table(tmp_path / "a.csv")
    assert table.columns == ("u", "v")
    assert table.ids == ("p", "q")
    assert table.values.tolist() == [[1.5, 2.0], [3.0, -4.25]]


def test_excel(tmp_path, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["gene", "s1", "s2"], ["TP53", 1.5, -2000]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    table = frot.read_table(tmp_path / "a.xlsx")
    assert (table.columns, table.ids) == (("s1", "s2"), ("TP53",))
    assert table.values.tolist() == [[1.5, -2000.0]]
    book.active.append(["MYC", "high", 3])
    book.save(tmp_path / "b.xlsx")
    with pytest.raises(InputError, match="line 3, column 's1': 'high' is not a number"):
        frot.read_table(tmp_path / "b.xlsx")
    (tmp_path / "c.xlsx").write_bytes(b"not what the name says")
    with pytest.raises(InputError, match=r"cannot read .*c\.xlsx"):
        frot.read_table(tmp_path / "c.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "frot\[tables\]"'):
        frot.read_table(tmp_path / "a.xlsx")
