"""The writer of pages: sections, tables, what is escaped and what is missing."""

import math
import sys
from importlib import resources

import pytest

import frot
from frot.show.page import (
    Cell,
    Claim,
    Column,
    PageTable,
    Picture,
    Section,
    check_page,
    data_address,
    number,
    picture,
    plural,
    render,
    write_page,
)
from frot.show.style import new_figure
from tests.show.test_report import Page

EVIL = "<script>alert(1)</script>"


def table(**more):
    columns = [Column("method", "text"), Column("value"), Column("rank", first="ascending")]
    rows = [
        [Cell(EVIL, note="a & b"), number(0.125, ".2f"), number(1, ".0f")],
        [Cell("plain", badge="open", title='"why"'), number(math.nan, ".2f"), number(2, ".0f")],
    ]
    return PageTable(columns, rows, EVIL, "values", **more)


def test_everything_is_there_and_escaped(tmp_path):
    section = Section(
        EVIL,
        [EVIL],
        [(EVIL, EVIL)],
        [
            Claim(EVIL, True, "1 < 2"),
            Claim("b", False, checks=[Claim(EVIL, True, word="yes")]),
            Claim("c", None),
            Claim("d", None, word="in part"),
        ],
        [Picture(EVIL, missing=EVIL)],
        [table(search=EVIL, marked=[1], note=EVIL)],
        [EVIL],
        EVIL,
    )
    path = write_page(tmp_path / "a.html", EVIL, [section], command=EVIL)
    text = path.read_text(encoding="utf-8")
    parsed = Page(text)
    assert parsed.seen.count("script") == 1
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 17
    assert parsed.rows[0] == ["method", "value", "rank"]
    assert parsed.rows[1] == [EVIL + "a & b", "0.12", "1"]
    assert parsed.rows[2] == ["plain", "–", "2"]
    assert text.count('class="marked"') == 1
    for word in ("holds", "fails", "skipped", "in part", "yes"):
        assert f">{word}</span>" in text


def test_a_cell_may_lead_to_a_section(tmp_path):
    rows = [[Cell("FROT", link="frot"), number(1.0, ".0f")]]
    first = PageTable([Column("method", "text"), Column("rank")], rows, "All", "all")
    sections = [Section("Overview", tables=[first]), Section("FROT", key="frot")]
    text = write_page(tmp_path / "a.html", "t", sections).read_text(encoding="utf-8")
    assert '<a href="#frot">FROT</a>' in text
    assert '<section id="section1">' in text
    assert '<section id="frot">' in text


def test_cells_sort_by_what_they_are_not_by_what_they_show(tmp_path):
    section = Section("a", tables=[table()])
    text = write_page(tmp_path / "a.html", "t", [section]).read_text(encoding="utf-8")
    assert '<td data-value="0.125">0.12</td>' in text
    assert '<td data-value="">–</td>' in text
    assert 'data-kind="text" data-first="ascending"' in text
    assert 'data-kind="number" data-first="descending"' in text
    assert "input type" not in text


def test_a_figure_is_inside_the_page_on_a_clear_ground():
    import base64

    made = picture(lambda: new_figure(2.0, 1.0), "nothing")
    head, _, data = made.source.partition(",")
    assert head == "data:image/png;base64"
    # The fourth byte of the header of a PNG after its size and depth: red, green, blue and alpha.
    assert base64.b64decode(data)[25] == 6
    assert (made.width, made.height) == (192, 96)


def test_without_matplotlib_a_picture_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    made = picture(lambda: new_figure(2.0, 1.0), "nothing")
    assert made.source == ""
    assert made.missing.startswith('matplotlib is not installed; pip install "frot[plot]"')


def test_without_jinja_one_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(frot.MissingDependencyError, match=r'jinja2 is not .* "frot\[plot\]"'):
        write_page(tmp_path / "a.html", "t", [])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("no/such/a.html", "does not exist"),
        (".", "is a folder"),
        (3, "a path"),
        ("a.pdf", "end in .html"),
    ],
)
def test_where_no_page_can_be(tmp_path, monkeypatch, path, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(frot.InputError, match=text):
        check_page(path)


def test_a_name_that_a_template_lacks_is_an_error():
    import jinja2

    with pytest.raises(jinja2.UndefinedError, match="sections"):
        render("sections.html", title="t")


def test_templates_style_and_script_come_with_the_package():
    for room, names in (
        ("frot.show", ["page.css", "table.js", "templates/page.html", "templates/parts.html"]),
        ("frot.selection", ["templates/selection.html"]),
        ("frot.correspondence", ["templates/match.html", "templates/match.js"]),
    ):
        for name in names:
            assert resources.files(room).joinpath(name).read_text(encoding="utf-8")


def test_the_style_fetches_nothing():
    style = resources.files("frot.show").joinpath("page.css").read_text(encoding="utf-8")
    assert "url(" not in style
    assert "@import" not in style


def test_counts_and_addresses_of_images():
    assert (plural(1, "group"), plural(1200, "group")) == ("1 group", "1,200 groups")
    assert data_address("image/png", b"abc") == "data:image/png;base64,YWJj"
