import gzip

import pytest

import frot
from frot._base.dialect import dialect_of, is_number, with_point

ROWS = [["gene", "s1", "s2"], ["TP53", "1.5", "-2e3"], ["MYC", "3", ""]]


def dialect(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return dialect_of(path)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.tsv.gz"])
@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_what_is_between_cells_is_told_by_the_text(tmp_path, name, delimiter):
    text = "\n".join(delimiter.join(row) for row in ROWS)
    assert dialect(tmp_path, name, text) == (delimiter, ".")


@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_decimal_commas(tmp_path, delimiter):
    text = "\n".join(delimiter.join(row) for row in ROWS)
    assert dialect(tmp_path, "a.csv", text.replace(".", ",")) == (delimiter, ",")
    assert dialect(tmp_path, "b.csv", text.replace("1.5", '"1,5"')) == (delimiter, ",")


def test_runs_of_spaces_in_txt_files(tmp_path):
    assert dialect(tmp_path, "a.txt", '"s 1"  s2\n TP53 1   2 \n') == (" ", ".")


def test_commas_in_names_are_no_decimals(tmp_path):
    text = "gene\tleft, upper\tx,1\nTP53\t1.5\t2\n"
    assert dialect(tmp_path, "a.tsv", text) == ("\t", ".")
    text = "name;alias,u\nTP53;p53,1\nMYC;c-Myc,2\n"
    assert dialect(tmp_path, "a.csv", text) == (",", ".")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("u;v\n1,234;5,678\n", r"'1,234' may be 1\.234 or 1234; write numbers with points"),
        ("u;v\n1,5;2.5\n", r"numbers such as '1,5' and such as '2\.5'; write all of them"),
    ],
)
def test_numbers_that_can_be_read_in_two_ways_are_refused(tmp_path, text, message):
    with pytest.raises(frot.InputError, match=message):
        dialect(tmp_path, "a.csv", text)


def test_ragged_text_has_the_delimiter_of_its_suffix(tmp_path):
    assert dialect(tmp_path, "a.csv", "a,b\n1,2\n3\n")[0] == ","
    assert dialect(tmp_path, "a.tsv", "only one column\n1\n")[0] == "\t"
    assert dialect(tmp_path, "b.tsv", "") == ("\t", ".")


def test_cells():
    cells = (" 1e3", "-2", "many", "", "1,5", True, None)
    assert list(map(is_number, cells)) == [True, True] + 5 * [False]
    assert list(map(with_point, ("-1,5e3", "x,1", "1.5"))) == ["-1.5e3", "x,1", "1.5"]
