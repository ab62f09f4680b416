import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import frot
from frot.datasets import toy
from frot.show import write_report

# Attributes by which a page fetches something.
FETCHING = {"src", "href", "srcset", "action", "data", "poster"}
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """Collects what the tests ask for, and fails on tags that are not closed."""

    def __init__(self, text: str):
        super().__init__()
        self.fetched: list[str] = []
        self.alts: list[str] = []
        self.rows: list[list[str]] = []
        self.texts: dict[str, str] = {}
        self.tags: list[str] = []
        self.seen: list[str] = []
        self.feed(text)
        self.close()
        assert self.tags == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in FETCHING]
        self.alts += [value or "" for name, value in attrs if name == "alt"]
        if tag not in VOID:
            self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.tags.pop() == tag

    def handle_data(self, data):
        if not self.tags:
            return
        self.texts[self.tags[-1]] = self.texts.get(self.tags[-1], "") + data
        if "td" in self.tags or "th" in self.tags:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def evil():
    """Group names that would break out of a page that does not escape them."""
    names = ["<script>alert(1)</script>", 'a "quoted" & <b>bold</b> one', "$value", "plain"]
    return frot.solve_costs(np.random.default_rng(0).random((4, 5, 6)), names=names)


@pytest.fixture(scope="module")
def page(evil, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    command = "frot solve 'a b' \"<&>\""
    assert write_report(evil, path, "A & <B>", command=command) == path
    return path.read_text(encoding="utf-8")


def test_nothing_is_fetched(page):
    parsed = Page(page)
    assert len(parsed.fetched) == 4  # three pictures and an icon that is none
    assert all(address.startswith("data:") for address in parsed.fetched)
    assert not re.search(r"(https?:)?//[a-z]", re.sub(r"base64,[\w+/=]+", "", page))
    assert "@import" not in page
    assert "url(" not in page


def test_all_groups_are_there_in_order_and_escaped(page, evil):
    parsed = Page(page)
    assert parsed.rows[0] == ["Rank", "Group", "α", "φ"]
    assert [row[1] for row in parsed.rows[1:]] == [evil.names[i] for i in evil.ranking()]
    weights = [float(row[2]) for row in parsed.rows[1:]]
    assert weights == pytest.approx(np.sort(evil.alpha)[::-1], abs=1e-6)
    assert parsed.seen.count("script") == 1  # the one that sorts
    assert parsed.seen.count("b") == 0


def test_numbers_status_and_calls(page, evil):
    parsed = Page(page)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    for part in (f"{evil.value:.10g}", f"{evil.lower:.10g}", f"{evil.gap:.1e}", "CONVERGED"):
        assert part in text
    assert evil.status.sentence in text
    assert "5 to 6" in text
    assert parsed.texts["code"] == "frot solve 'a b' \"<&>\""
    assert parsed.texts["title"] == parsed.texts["h1"] == "A & <B>"
    assert len(parsed.alts) == 3


def test_a_group_count_column_where_groups_are_known(tmp_path):
    X, Y, groups = toy(10)
    result = frot.solve(X, Y, groups)
    path = write_report(result, tmp_path / "page.html", groups=groups)
    rows = Page(path.read_text(encoding="utf-8")).rows
    assert rows[0][2] == "Features"
    assert {row[1]: row[2] for row in rows[1:]} == {"true": "2", "noise": "8"}


def test_only_the_first_thousand_groups(tmp_path):
    result = frot.solve_costs(np.random.default_rng(0).random((1005, 2, 2)))
    text = write_report(result, tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(Page(text).rows) == 1001
    assert "The heaviest 1,000 of 1,005 groups" in text


def test_an_unfinished_run_is_marked(tmp_path):
    X, Y, groups = toy(10)
    with pytest.warns(frot.ConvergenceWarning):
        result = frot.solve(X, Y, groups, eta=50.0, solver="frank_wolfe", max_iter=1, tol=0.0)
    text = write_report(result, tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<span class="badge open">MAX_ITER</span>' in text
    assert "To get this again" not in text


def test_without_matplotlib_the_page_says_so(evil, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = write_report(evil, tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count("No picture: matplotlib is not installed") == 3
    assert len(Page(text).rows) == 5


def test_without_jinja_one_error_names_the_extra(evil, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(frot.MissingDependencyError, match=r'jinja2 is not .* "frot\[plot\]"'):
        write_report(evil, tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


def test_a_report_says_what_a_methods_section_needs(tmp_path):
    X, Y, groups = toy(n=8)
    result = frot.solve(X, Y, groups, eta=0.5, metric="cityblock", tol=0.01)
    page = write_report(result, tmp_path / "page.html").read_text(encoding="utf-8")
    for said in (result.describe_problem(), result.describe_run()):
        assert said in page
