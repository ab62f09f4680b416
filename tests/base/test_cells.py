import gzip

import pytest

import frot
from frot._base.cells import delimiter_of, read_rows

ROWS = [["gene", "s1", "s2"], ["TP53", "1.5", "-2e3"], ["MYC", "3", ""]]


def rows_of(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return [row for _, row in read_rows(path)]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.tsv.gz"])
@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_what_is_between_cells_is_told_by_the_text(tmp_path, name, delimiter):
    text = "\n".join(delimiter.join(row) for row in ROWS)
    assert rows_of(tmp_path, name, text) == ROWS


@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_decimal_commas(tmp_path, delimiter):
    text = "\n".join(delimiter.join(row) for row in ROWS)
    assert rows_of(tmp_path, "a.csv", text.replace(".", ",")) == ROWS
    assert rows_of(tmp_path, "b.csv", text.replace("1.5", '"1,5"')) == ROWS


def test_runs_of_spaces_in_txt_files(tmp_path):
    assert rows_of(tmp_path, "a.txt", '"s 1"  s2\n TP53 1   2 \n') == [
        ["s 1", "s2"],
        ["TP53", "1", "2"],
    ]


def test_commas_in_names_are_no_decimals(tmp_path):
    text = "gene\tleft, upper\tx,1\nTP53\t1.5\t2\n"
    assert rows_of(tmp_path, "a.tsv", text)[0] == ["gene", "left, upper", "x,1"]
    text = "name;alias,u\nTP53;p53,1\nMYC;c-Myc,2\n"
    assert rows_of(tmp_path, "a.csv", text)[1] == ["TP53;p53", "1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("u;v\n1,234;5,678\n", r"'1,234' may be 1\.234 or 1234; write numbers with points"),
        ("u;v\n1,5;2.5\n", r"numbers such as '1,5' and such as '2\.5'; write all of them"),
    ],
)
def test_numbers_that_can_be_read_in_two_ways_are_refused(tmp_path, text, message):
    with pytest.raises(frot.InputError, match=message):
        rows_of(tmp_path, "a.csv", text)


def test_ragged_text_has_the_delimiter_of_its_suffix(tmp_path):
    assert delimiter_of(tmp_path / "a.csv", "a,b\n1,2\n3\n") == ","
    assert delimiter_of(tmp_path / "a.tsv", "only one column\n1\n") == "\t"


def test_gct(tmp_path):
    text = "#1.2\n2\t2\nName\tDescription\ts1\ts2\nTP53\ttumor protein\t1\t2\nMYC\tna\t3\t4\n"
    assert rows_of(tmp_path, "a.gct", text)[:2] == [["Name", "s1", "s2"], ["TP53", "1", "2"]]
    text = "#1.3\n1\t1\t2\t1\nid\tchr\tlen\ts1\nkind\tna\tna\tsick\nTP53\t17\t9\t1\n"
    assert rows_of(tmp_path, "b.gct", text)[1:] == [["kind", "sick"], ["TP53", "1"]]
    with pytest.raises(frot.InputError, match=r"is no \.gct file: it must start with #1\.2"):
        rows_of(tmp_path, "c.gct", "Name\ts1\nTP53\t1\n")


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["gene", "s1", "s2", None], ["TP53", 1.5, -2000], [None], ["MYC", 3]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert [row for _, row in read_rows(tmp_path / "a.xlsx")] == [
        ["gene", "s1", "s2"], ["TP53", "1.5", "-2000"], ["MYC", "3", ""],
    ]  # fmt: skip
    table = frot.read_table
    book.active.delete_rows(3, 2)
    book.create_sheet("notes")
    book.save(tmp_path / "b.xlsx")
    with pytest.warns(frot.DataWarning, match="has 2 sheets; the first, 'Sheet', is read"):
        assert table(tmp_path / "b.xlsx").values.tolist() == [[1.5, -2000.0]]
    (tmp_path / "c.xlsx").write_bytes(b"not what the name says")
    with pytest.raises(frot.InputError, match=r"cannot read .*c\.xlsx"):
        table(tmp_path / "c.xlsx")


def test_excel_without_openpyxl(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"")
    with pytest.raises(frot.MissingDependencyError, match=r'pip install "frot\[excel\]"'):
        frot.read_table(tmp_path / "a.xlsx")


def test_point_clouds_of_european_spreadsheets(tmp_path):
    (tmp_path / "a.csv").write_text("point;u;v\np;1,5;2\nq;3;-4,25\n")
    table = frot.read_table(tmp_path / "a.csv")
    assert table.columns == ("u", "v")
    assert table.ids == ("p", "q")
    assert table.values.tolist() == [[1.5, 2.0], [3.0, -4.25]]
