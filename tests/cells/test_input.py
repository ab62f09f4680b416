"""Cells from tables: what is a gene, what is known of cells, and matching by name."""

from __future__ import annotations

import numpy as np
import pytest

import frot
from frot.cells import read_cells


def test_another_table_is_matched_by_name(tmp_path):
    (tmp_path / "x.tsv").write_text("cell\tg1\tg2\na\t1\t2\nb\t3\t4\n")
    (tmp_path / "obs.csv").write_text("cell,day,kind\nb,2,old\nc,9,none\na,1,young\n")
    cells = read_cells(tmp_path / "x.tsv", tmp_path / "obs.csv", columns=["day"])
    np.testing.assert_array_equal(cells.X, [[1.0, 2.0], [3.0, 4.0]])
    assert cells.obs["day"].tolist() == [1, 2]
    assert cells.obs["kind"].tolist() == ["young", "old"]
    assert cells.obs_names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "obs", "message"),
    [
        ("cell,g\na,1\na,2\n", None, "two cells are called 'a'"),
        ("cell,day\na,1\nb,2\n", None, "no column of numbers besides 'day'"),
        ("cell,g\na,1\nb,2\n", "cell,day\na,1\n", "obs: has no row for 'b'"),
        (None, None, "there is no such file"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, text, obs, message):
    path, other = tmp_path / "x.csv", tmp_path / "obs.csv"
    if text is not None:
        path.write_text(text)
    if obs is not None:
        other.write_text(obs)
    with pytest.raises(frot.InputError, match=message):
        read_cells(path, other if obs is not None else None, columns=["day"])


def test_other_kinds_of_files_are_refused(tmp_path):
    (tmp_path / "x.docx").write_text("")
    with pytest.raises(frot.InputError, match=r"is not an .h5ad, .csv, .tsv or .txt file"):
        read_cells(tmp_path / "x.docx")
