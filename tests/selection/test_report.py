import re
import sys
from typing import Any

import numpy as np
import pandas
import pytest
from scipy import sparse

import frot
from frot.selection import FROTSelector, write_selection_report
from frot.selection._report import MAX_ROWS
from frot.show.page import Picture
from tests.selection.planted import planted
from tests.show.test_report import Page

EVIL = ["<script>alert(1)</script>", 'a "quoted" & <b>bold</b>', "$body", "US$ and A$", "plain"]


def text_of(page: str) -> str:
    without = re.sub(r"<(style|script)>.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", without))


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write reports of which words are looked at, without pictures."""
    monkeypatch.setattr(
        "frot.selection._report.picture", lambda draw, text, *more: Picture(text, "data:,")
    )

    def write(selector, X, y, **options):
        path = write_selection_report(selector, X, y, tmp_path / "page.html", **options)
        return path.read_text(encoding="utf-8")

    return write


@pytest.fixture(scope="module")
def evil():
    """Names of features, classes and samples that would break out of a careless page."""
    X, y = planted(d=len(EVIL))
    y = np.where(y == "control", "<i>well</i>", "$sick")
    frame = pandas.DataFrame(X, columns=pandas.Index(EVIL))
    selector = FROTSelector(3).fit(frame, y)
    selector.permutation_test(frame, y, n_permutations=19)
    selector.shape_test(frame, y, n_permutations=19)
    return selector, frame, y


@pytest.fixture(scope="module")
def page(evil, tmp_path_factory):
    selector, X, y = evil
    path = tmp_path_factory.mktemp("report") / "page.html"
    names = [f"<{i}>" for i in range(len(y))]
    options: dict[str, Any] = {"title": "A & <B>", "command": "frot select 'a b' \"<&>\""}
    assert write_selection_report(selector, X, y, path, sample_names=names, **options) == path
    return path.read_text(encoding="utf-8")


def test_nothing_is_fetched(page):
    parsed = Page(page)
    assert len(parsed.fetched) >= 4  # pictures, and an icon that is none
    assert all(address.startswith("data:") for address in parsed.fetched)
    assert not re.search(r"(https?:)?//[a-z]", re.sub(r"base64,[\w+/=]+", "", page))
    assert "@import" not in page
    assert "url(" not in page


def test_everything_is_escaped(page):
    parsed = Page(page)
    assert parsed.seen.count("script") == 1
    assert "i" not in parsed.seen
    assert parsed.texts["title"] == parsed.texts["h1"] == "A & <B>"
    assert "frot select &#39;a b&#39; &#34;&lt;&amp;&gt;&#34;" in page
    assert "$body" in page
    assert all(parsed.alts)


def test_the_table_is_that_of_the_selector(page, evil):
    selector, _, _ = evil
    rows = Page(page).rows
    heads = ["rank", "feature", "up in", "log2 FC", "t", "p", "q", "max-T p"]
    heads += ["mean $sick", "mean <i>well</i>", "form q", "spread q"]
    assert rows[0] == heads
    table = selector.table_
    shown = rows[1 : len(EVIL) + 1]
    assert [row[1] for row in shown] == table["feature"].tolist()
    assert [row[2] for row in shown] == table["up_in"].tolist()
    names = {"log2 FC": "log2_fold_change", "max-T p": "p_max", "form q": "q_form",
             "spread q": "q_spread"}  # fmt: skip
    for column, name in enumerate(heads[3:], start=3):
        expected = table[names.get(name, name.replace(" ", "_"))]
        assert [float(row[column]) for row in shown] == pytest.approx(expected, rel=2e-2, abs=6e-3)
    assert page.count('class="marked"') == 3


def test_details_are_at_the_end(page, evil):
    result, text = evil[0].result_, text_of(page)
    end = text.index("Details: optimiser and α")
    assert end < text.index(f"[{result.lower:.6g}, {result.upper:.6g}]")
    assert end < text.index("CONVERGED")
    assert end < text.index("misalignment")
    assert text.index("For the methods section") < end
    assert "corresponds" not in text
    assert "positive for what is higher in $sick." in text


def test_a_methods_section_can_be_pasted(page, written):
    text = text_of(page)
    assert "by a moderated t-test of a linear model with class (Smyth 2004)" in text
    assert "from 19 permutations of the labels of Welch&#39;s t, q with the pooled null" in text
    assert "Neyman&#39;s smooth test on the ranks of aligned classes, with 19 permutations" in text
    X, y = planted()
    batch = np.arange(40) % 2
    plain = text_of(written(FROTSelector(3).fit(X, y, batch), X, y))
    assert "a linear model with class and block (Smyth 2004); q-values are by Benjamini" in plain
    assert "control (24), treated (16), within blocks" in plain
    by_alpha = written(FROTSelector(3, score="alpha").fit(X, y), X, y)
    assert "ranked by their weights in feature-robust optimal transport" in text_of(by_alpha)


def test_what_differs_comes_first(written):
    X, y = planted(gap=3.0)
    text = text_of(written(FROTSelector(3).fit(X, y), X, y))
    assert re.search(
        r"Summary (\d) of 40 features differ at FDR 0.05 \(q ≤ 0.05\) \d of them up i", text
    )
    assert "None of" not in text


def test_where_nothing_is_found_the_page_says_what_would_have_been(written):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 100)), np.repeat(["a", "b"], 15)
    selector = FROTSelector(3).fit(X, y)
    text = text_of(written(selector, X, y))
    found = re.search(
        r"None of 100 features has q ≤ 0.05: one alone that differs by ([\d.]+) st", text
    )
    assert found is not None
    # And it would, in every second study.
    shift, hits = float(found[1]), []
    for seed in range(60):
        moved = np.random.default_rng(seed + 1).normal(size=(30, 100))
        moved[:15, 0] += shift
        hits.append(FROTSelector(3, plan=False).fit(moved, y).p_values[1][0] <= 0.05)
    assert 0.3 <= np.mean(hits) <= 0.75


def test_sets_come_first_with_their_leading_edges(written):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 90)), np.repeat(["sick", "well"], 20)
    X[y == "sick", :5] += 1.5
    frame = pandas.DataFrame(X, columns=[f"g{k // 2}" for k in range(90)])
    sets = {"response": [f"g{k}" for k in range(12)], "other": [f"g{k}" for k in range(12, 40)]}
    selector = FROTSelector(1, groups=sets).fit(frame, y)
    untested = text_of(written(selector, frame, y))
    assert "1 of 2 sets selected; nothing was tested" in untested
    assert "with a blue edge in the table" in untested
    test = selector.pathway_test(frame, y, n_permutations=99)
    page = written(selector, frame, y)
    rows, text = Page(page).rows, text_of(page)
    assert text.index("Gene sets") < text.index("Ranked sets") < text.index("Volcano")
    assert "90 features are 45 genes" in text
    heads = ["rank", "set", "score", "up in", "size", "p", "q", "q self"]
    assert rows[0] == [*heads, "leading edge", "same as"]
    assert [row[1] for row in rows[1:3]] == test.table["pathway"].tolist()
    assert rows[1][8] == ", ".join(test.leading_edge("response")[:8])
    assert rows[2][8].startswith("none: differs no more than") or test.edges[1].size
    assert "restandardised (Efron and Tibshirani 2007)" in text
    # Here it is what q <= .05 has.
    assert "with a blue edge in the table" not in text


def test_three_classes_have_a_panel_each(written):
    X, y = planted(classes=3, gap=3.0)
    page = written(FROTSelector(3).fit(X, y), X, y)
    assert page.count('role="tabpanel"') == 3
    assert "comparison" in Page(page).rows[0]
    text = text_of(page)
    assert "Features that stand out in each comparison" not in text
    assert "control vs rest" in text
    many = np.arange(48) % 12
    wide = np.random.default_rng(0).normal(size=(48, 5))
    page = written(FROTSelector(2, plan=False).fit(wide, many), wide, many)
    assert page.count('role="tabpanel"') == 10
    assert "The first 10 of 12 are drawn." in text_of(page)


def test_subgroups_are_named(written):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 12)), np.repeat(["sick", "well"], 60)
    X[:12, 3] += 7.0
    names = [f"P{row:03d}" for row in range(120)]
    selector = FROTSelector(3).fit(X, y)
    test = selector.shape_test(X, y, n_permutations=199)
    text = text_of(written(selector, X, y, sample_names=names))
    rows = test.subgroups[3]
    assert f"x3: {len(rows)} of sick ({names[rows[0]]}, {names[rows[1]]}" in text
    assert re.search(r"of 12 features differ in spread \(q ≤ 0.05\); .* differ in form", text)


def test_large_tables_have_their_best_rows_and_sparse_ones_are_drawn(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.poisson(0.5, size=(40, MAX_ROWS + 20)).astype(float))
    y = np.repeat(["a", "b"], 20)
    selector = FROTSelector(3, plan=False, values="log1p").fit(X, y)
    path = write_selection_report(selector, X, y, tmp_path / "p.html", full_table="all.tsv")
    page = path.read_text(encoding="utf-8")
    assert f"The best {MAX_ROWS} of {MAX_ROWS + 20} features; the full table is in all.tsv" in page
    assert len(Page(page).rows) == MAX_ROWS + 1
    assert "no plan between 20 and 20 samples: plan=True makes one" in text_of(page)


def test_without_matplotlib_the_page_says_so(tmp_path, monkeypatch):
    X, y = planted()
    selector = FROTSelector(3).fit(X, y)
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = write_selection_report(selector, X, y, tmp_path / "p.html").read_text(encoding="utf-8")
    assert "matplotlib is not installed" in page
    assert "treated" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "page.pdf"}, "must end in .html"),
        ({"title": 3}, "title: is 3; use text"),
        ({"feature_names": ["a"]}, "feature_names: has 1 names for 40"),
        ({"sample_names": ["a"]}, "sample_names: has 1 names for 40"),
    ],
)
def test_bad_input(tmp_path, options, message):
    X, y = planted()
    selector = FROTSelector(3).fit(X, y)
    path = tmp_path / options.pop("path", "page.html")
    with pytest.raises(frot.InputError, match=message):
        write_selection_report(selector, X, y, path, **options)
    with pytest.raises(frot.InputError, match="X, y: are not what the selector was fitted on"):
        write_selection_report(selector, X[:, :9], y, tmp_path / "page.html")
