import gzip

import numpy as np
import pandas
import pytest

import frot
from frot._base.cells import as_text, holds_text, is_missing, read_cells


def cells_of(tmp_path, name, text, *columns):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return read_cells(path, *columns)


def rows_of(cells):
    return [cells.names, *map(cells.row, range(len(cells.rows)))]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.txt"])
@pytest.mark.parametrize(("delimiter", "point"), [(",", "."), ("\t", ","), (";", ","), ("\t", ".")])
def test_numbers_and_text_by_column(tmp_path, name, delimiter, point):
    rows = [["gene", "s1", "kind", "s2"], ["7", "1.5", "x", "-2e3"], ["MYC", "3", "y", ""]]
    text = "\n".join(delimiter.join(row) for row in rows).replace(".", point)
    cells = cells_of(tmp_path, name, text)
    assert cells.names == rows[0]
    assert [cells.text(place).tolist() for place in (0, 2)] == [["7", "MYC"], ["x", "y"]]
    np.testing.assert_array_equal(cells.numbers([1, 3]), [[1.5, -2000.0], [3.0, np.nan]])


def test_columns_that_stay_text(tmp_path):
    text = "id,kind,u\n007,01,1\n008,None,2\n"
    assert rows_of(cells_of(tmp_path, "a.csv", text, ["kind"]))[1:] == [
        ["007", "01", 1], ["008", "None", 2],
    ]  # fmt: skip
    assert rows_of(cells_of(tmp_path, "a.csv", text, None))[1] == ["007", "01", "1"]


def test_names_that_repeat_stay_as_they_are(tmp_path):
    cells = cells_of(tmp_path, "a.csv", "id,u,u\np,1,2\n")
    assert rows_of(cells) == [["id", "u", "u"], ["p", 1, 2]]


def test_decimals_are_read_exactly(tmp_path):
    values = np.random.default_rng(0).lognormal(0.0, 100.0, 5_000)
    path = tmp_path / "a.csv"
    path.write_text("id,u\n" + "\n".join(f"p,{value!r}" for value in values.tolist()))
    np.testing.assert_array_equal(read_cells(path).numbers([1])[:, 0], values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,u,v\np,1,2\nq,3\n", "line 3: 2 cells where there should be 3"),
        ("id,u,v\np,1,2\nq,3,4,5\n", "line 3: 4 cells where there should be 3"),
        ("id,u,v\np,1\nq,3\n", "line 2: 2 cells where there should be 3"),
        ("id,u,kind\np,1,a\nq,3\n", "line 3: 2 cells where there should be 3"),
        ('id,u\np,"1\nq,2\n', "cannot read .*a.csv"),
        ('id,"u\nv"\np,1\n', "a column's name has a line break"),
    ],
)
def test_ragged_files(tmp_path, text, message):
    with pytest.raises(frot.InputError, match=message):
        cells_of(tmp_path, "a.csv", text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,u\np,1\n\nq,high\n", "line 4, column 'u': 'high' is not a number; write a number"),
        ("id,u\np,9007199254740993\n", r"line 2, column 'u': .* beyond 2\^53"),
        ("id,u\np,1\nq,\nr,9007199254740993\n", r"line 4, column 'u': .* beyond 2\^53"),
        ("id,u\np,1.5\nq,-9007199254740993\n", r"line 3, column 'u': .* beyond 2\^53"),
        ("id,u\np,1\nq,123456789012345678901234\n", r"column 'u': .* beyond 2\^53"),
    ],
)
def test_cells_that_are_no_numbers(tmp_path, text, message):
    cells = cells_of(tmp_path, "a.csv", text)
    with pytest.raises(frot.InputError, match=message):
        cells.numbers([1])


def test_large_numbers_that_a_double_holds(tmp_path):
    cells = cells_of(tmp_path, "a.csv", "id,u,v\np,1e300,9007199254740992\nq,2e300,inf\n")
    assert cells.numbers([1, 2]).tolist() == [[1e300, 2.0**53], [2e300, np.inf]]


def test_a_point_among_decimal_commas_is_refused_wherever_it_is(tmp_path):
    text = "id;u\n" + "p;1,5\n" * 60 + "q;2.500\n"
    with pytest.raises(frot.InputError, match=r"numbers with commas and such as '2\.500'"):
        cells_of(tmp_path, "a.csv", text)


def test_gct(tmp_path):
    text = "#1.2\n2\t2\nName\tDescription\ts1\ts2\nTP53\ttumor protein\t1\t2\nMYC\tna\t3\tx\n"
    cells = cells_of(tmp_path, "a.gct", text)
    assert rows_of(cells) == [["Name", "s1", "s2"], ["TP53", 1, "2"], ["MYC", 3, "x"]]
    with pytest.raises(frot.InputError, match="line 5, column 's2': 'x' is not a number"):
        cells.numbers([2])
    text = "#1.3\n1\t1\t2\t1\nid\tchr\tlen\ts1\nkind\tna\tna\tsick\nTP53\t17\t9\t1\n"
    cells = cells_of(tmp_path, "b.gct.gz", text)
    assert rows_of(cells) == [["id", "s1"], ["kind", "sick"], ["TP53", "1"]]
    text = "#1.3\n1\t1\t0\t0\nid\ts1\nTP53\t1\n"
    assert rows_of(cells_of(tmp_path, "d.gct", text)) == [["id", "s1"], ["TP53", 1]]
    with pytest.raises(frot.InputError, match=r"is no \.gct file: it must start with #1\.2"):
        cells_of(tmp_path, "c.gct", "Name\ts1\nTP53\t1\n")


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["gene", "s1", "s2", None], ["TP53", 1.5, -2000], [None], ["MYC", 3]):
        book.active.append(row)
    path = tmp_path / "a.xlsx"
    book.save(path)
    cells = read_cells(path)
    assert rows_of(cells) == [["gene", "s1", "s2"], ["TP53", "1.5", "-2000"], ["MYC", "3", ""]]
    assert cells.rows == [2, 4]
    np.testing.assert_array_equal(cells.numbers([1, 2]), [[1.5, -2000.0], [3.0, np.nan]])
    book.create_sheet("notes")
    book.save(path)
    with pytest.warns(frot.DataWarning, match="has 2 sheets; the first, 'Sheet', is read") as told:
        read_cells(path)
    assert len(told) == 1
    book.active.append(["BAX", 1, 2, 3])
    book.save(path)
    with pytest.raises(frot.InputError, match="line 5: there are cells to the right"):
        read_cells(path)


def test_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    frame = pandas.DataFrame(
        {"u": [1, 3], "kind": ["x", None], "v": [2.5, None], "w": [True, False]}
    )
    frame.to_parquet(path)
    cells = read_cells(path)
    assert (cells.names, list(cells.words)) == (["u", "kind", "v", "w"], [1])
    assert cells.holds_text(1)
    np.testing.assert_array_equal(cells.numbers([0, 2, 3]), [[1.0, 2.5, 1.0], [3.0, np.nan, 0.0]])
    assert read_cells(path, ["u"]).text(0).tolist() == ["1", "3"]
    frame.set_index(pandas.Index(["p", "q"])).to_parquet(path)
    assert read_cells(path).text(0).tolist() == ["p", "q"]
    frame.assign(u=[1, 2**53 + 1]).to_parquet(path)
    with pytest.raises(frot.InputError, match=r"line 1, column 'u': .* beyond 2\^53"):
        read_cells(path).numbers([0])


def test_cells():
    assert list(map(is_missing, ("", " NA ", None, np.nan, "0", 0.0))) == [True] * 4 + [False] * 2
    assert not holds_text(["x", "1"])
    assert holds_text([np.nan, "x"])
    assert not holds_text([])
    assert holds_text(pandas.Series([True, False]))
    assert as_text([1, 2]).tolist() == ["1", "2"]
    assert as_text(np.array([" a", np.nan, None], dtype=object)).tolist() == ["a", "", "None"]
