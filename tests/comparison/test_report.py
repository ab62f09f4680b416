"""The page of a comparison as text."""

import re
import sys

import numpy as np
import pytest

import frot
from tests.show.test_report import Page


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 12, 3))
    Y[:, 0] += 1.0
    names = ["<script>alert(1)</script>", "a & b", "$value"]
    return frot.compare(X, Y, "frot,srw,sliced,ot", k=9, feature_names=names)


def write(found, folder, **options):
    return frot.write_comparison_report(found, folder / "c.html", **options).read_text("utf-8")


def test_nothing_is_fetched_and_all_is_escaped(found, tmp_path):
    page = write(found, tmp_path, title="A & <B>", command="frot 'a b' <&>")
    parsed = Page(page)
    assert len(parsed.fetched) == 4  # three pictures and an icon that is none
    assert all(address.startswith("data:") for address in parsed.fetched)
    assert not re.search(r"(https?:)?//[a-z]", re.sub(r"base64,[\w+/=]+", "", page))
    assert "<script>alert" not in page
    assert "<h1>A &amp; &lt;B&gt;</h1>" in page
    assert parsed.texts["code"] == "frot 'a b' <&>"


def test_the_rows_say_what_was_found(found, tmp_path):
    rows = Page(write(found, tmp_path)).rows
    assert rows[0] == ["Method", "Value", "Interval", "Gap", "Status", "Seconds", "Memory"]
    assert [row[0][:4] for row in rows[1:5]] == ["FROT", "SRWk", "slic", "OTal"]
    assert rows[1][1] == f"{found['frot'].value:.5g}"
    assert rows[2][0] == "SRWk: must be a whole number from 1 to 3 (the number of features), got 9"
    assert rows[2][4] == "FAILED"
    assert rows[-1][0] == "FROT ≤ OT"


def test_without_matplotlib_the_table_is_still_there(found, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = write(found, tmp_path)
    assert page.count("No picture: matplotlib is not installed") == 3
    assert "CONVERGED" in page
