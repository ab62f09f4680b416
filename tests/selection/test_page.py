import re
import sys
from typing import Any

import numpy as np
import pandas
import pytest
from scipy import sparse

import frot
from frot.selection import (
    FROTSelector,
    permutation_test,
    write_selection_pictures,
    write_selection_report,
)
from frot.selection._pictures import SelectorPictures, view_of
from frot.selection._selector import unfitted
from frot.show.page import Picture
from frot.show.style import new_figure
from tests.selection.planted import planted
from tests.show.test_report import Page

EVIL = ["<script>alert(1)</script>", 'a "quoted" & <b>bold</b>', "$body", "US$ and A$", "plain"]


def text_of(page: str) -> str:
    without = re.sub(r"<(style|script)>.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", without))


@pytest.fixture
def undrawn(monkeypatch):
    """Leave pictures out of a page whose words are looked at."""
    monkeypatch.setattr(
        "frot.selection._page.picture", lambda draw, text, *more: Picture(text, "data:,")
    )


@pytest.fixture
def unrendered(monkeypatch):
    """Have pictures drawn, but not turned into files."""
    monkeypatch.setattr("frot.show.page.png", lambda figure, *rest, **more: b"")


@pytest.fixture(scope="module")
def evil():
    """Names of features, classes and samples that would break out of a careless page."""
    X, y = planted(d=len(EVIL))
    y = np.where(y == "control", "<i>well</i>", "$sick")
    frame = pandas.DataFrame(X, columns=pandas.Index(EVIL))
    selector = FROTSelector(3).fit(frame, y)
    selector.permutation_test(frame, y, n_permutations=19)
    return selector, frame, y


@pytest.fixture(scope="module")
def page(evil, tmp_path_factory):
    selector, X, y = evil
    path = tmp_path_factory.mktemp("report") / "page.html"
    names = [f"<{i}>" for i in range(len(y))]
    options: dict[str, Any] = {
        "title": "A & <B>",
        "command": "frot select 'a b' \"<&>\"",
    }
    assert write_selection_report(selector, X, y, path, sample_names=names, **options) == path
    return path.read_text(encoding="utf-8")


def test_nothing_is_fetched(page):
    parsed = Page(page)
    assert len(parsed.fetched) == 8  # seven pictures and an icon that is none
    assert all(address.startswith("data:") for address in parsed.fetched)
    assert not re.search(r"(https?:)?//[a-z]", re.sub(r"base64,[\w+/=]+", "", page))
    assert "@import" not in page
    assert "url(" not in page


def test_everything_is_escaped(page):
    parsed = Page(page)
    assert parsed.seen.count("script") == 1
    assert "i" not in parsed.seen
    assert parsed.texts["title"] == parsed.texts["h1"] == "A & <B>"
    assert parsed.texts["code"] == "frot select 'a b' \"<&>\""
    assert "$body" in page
    assert all(parsed.alts)


def test_the_table_is_that_of_the_selector(page, evil):
    selector, _, _ = evil
    rows = Page(page).rows
    heads = ["rank", "feature", "up in", "log2 FC", "t", "mean $sick", "mean <i>well</i>"]
    heads += ["p", "q", "q BH", "max-T p", "score", "shift", "shape", "misalignment", "α"]
    assert rows[0] == heads
    table = selector.table_
    shown = rows[1 : len(EVIL) + 1]
    assert [row[1] for row in shown] == table["feature"].tolist()
    assert [row[2] for row in shown] == table["up_in"].tolist()
    names = {"log2 FC": "log2_fold_change", "q BH": "q_bh", "max-T p": "p_max", "α": "alpha"}
    for column, name in enumerate(heads[3:], start=3):
        expected = table[names.get(name, name.replace(" ", "_"))]
        assert [float(row[column]) for row in shown] == pytest.approx(expected, rel=2e-2, abs=5e-3)
    assert page.count('class="marked"') == 3


def test_interval_perplexity_and_notes(page, evil):
    result, text = evil[0].result_, text_of(page)
    assert f"[{result.lower:.8g}, {result.upper:.8g}]" in text
    assert f"perplexity of {result.perplexity:.1f}" in text
    assert "Ranked by moderated |t|" in text
    assert "CONVERGED" in text
    assert "about as accurate as that of the mean difference" in text
    assert "each p holds by itself" in text
    assert "hold only for the hypothesis that nothing differs" not in text
    assert "No permutation test was run" not in text


@pytest.mark.usefixtures("undrawn")
def test_p_values_of_the_plan_come_with_what_they_mean(evil, tmp_path):
    selector, X, y = evil
    quick = FROTSelector(3, max_iter=3)
    test = permutation_test(X, y, selector=quick, statistic="alpha", n_permutations=99)
    path = write_selection_report(selector, X, y, tmp_path / "p.html", permutation=test)
    assert "hold only for the hypothesis that nothing differs" in text_of(path.read_text("utf-8"))


@pytest.mark.usefixtures("undrawn")
def test_without_a_test_nothing_has_a_p_value(tmp_path):
    X, y = planted()
    selector = FROTSelector(3).fit(X, y)
    path = write_selection_report(selector, X, y, tmp_path / "p.html")
    page = path.read_text(encoding="utf-8")
    heads = Page(page).rows[0]
    assert "q" not in heads
    assert "No permutation test was run" in text_of(page)
    assert "3 of 40 features selected; nothing was tested" in text_of(page)
    assert any(text.startswith("Volcano") for text in Page(page).alts)
    assert "To get this again" not in page


@pytest.mark.usefixtures("undrawn")
def test_only_the_best_rows_of_many(tmp_path):
    X, y = planted(d=700)
    selector = FROTSelector(3).fit(X, y)
    path = write_selection_report(selector, X, y, tmp_path / "p.html", full_table="genes.tsv")
    page = path.read_text(encoding="utf-8")
    assert "The best 500 of 700 features; the full table is in genes.tsv." in text_of(page)
    assert page.count("<tr") == 1 + 500 + 1 + 24


@pytest.mark.usefixtures("undrawn")
def test_a_panel_for_each_comparison(tmp_path):
    X, y = planted(classes=3)
    selector = FROTSelector(3, multiclass="ovo").fit(X, y)
    page = write_selection_report(selector, X, y, tmp_path / "p.html").read_text(encoding="utf-8")
    assert page.count('role="tabpanel"') == page.count('role="tab"') == 3
    assert len(Page(page).alts) == 18
    counts = Page(page).rows[1:4]
    table = selector.table_
    for row in counts:
        there = table[(table["comparison"] == row[0]) & (table["rank"] <= 3)]
        first = row[0].split(" vs ")[0]
        up = int((there["up_in"] == first).sum())
        assert [int(cell) for cell in row[1:4]] == [len(there), up, len(there) - up]
    for one in selector.comparisons_:
        assert f"{one.solved.lower:.6g}" in page


@pytest.mark.usefixtures("unrendered")
def test_groups_sparse_tables_and_missing_values(tmp_path):
    X, y = planted()
    X = np.where(X > 0.5, X, 0.0)
    selector = FROTSelector(1, groups={"signal": [0, 1, 2], "noise": [5, 6]}).fit(
        sparse.csr_array(X), y
    )
    path = tmp_path / "p.html"
    page = write_selection_report(selector, sparse.csr_array(X), y, path).read_text("utf-8")
    assert "Ranked groups" in page
    assert "Groups that overlap" in page
    X[3, 4] = np.nan
    selector = FROTSelector(2, missing="impute").fit(X, y)
    assert write_selection_report(selector, X, y, path).is_file()


@pytest.mark.usefixtures("unrendered")
def test_a_single_feature(tmp_path):
    X, y = planted(d=3)
    X = X[:, :1]
    selector = FROTSelector(1).fit(X, y)
    assert write_selection_report(selector, X, y, tmp_path / "p.html").is_file()


@pytest.mark.parametrize("tested", [True, False])
@pytest.mark.usefixtures("undrawn")
def test_the_headline_counts_what_the_table_has(tmp_path, tested):
    X, y = planted()
    X[y == "control", 5] += 2.5
    selector = FROTSelector(6, plan=False).fit(X, y)
    if tested:
        selector.permutation_test(X, y, n_permutations=99)
    page = write_selection_report(selector, X, y, tmp_path / "p.html").read_text("utf-8")
    table = selector.table_
    chosen = table[table["q"] <= 0.05] if tested else table[table["rank"] <= 6]
    text = text_of(page)
    what = "differ at FDR 0.05" if tested else "selected; nothing"
    assert f"{len(chosen)} of 40 features {what}" in text
    for label in ("control", "treated"):
        assert f"{(chosen['up_in'] == label).sum()} of them up in {label}" in text
    assert 0 < (chosen["up_in"] == "control").sum() < len(chosen)


@pytest.mark.usefixtures("undrawn")
def test_without_a_plan(tmp_path):
    X, y = planted()
    selector = FROTSelector(3, plan=False).fit(X, y)
    page = write_selection_report(selector, X, y, tmp_path / "p.html").read_text("utf-8")
    text = text_of(page)
    assert "There is no plan between 24 and 16 samples, so that who corresponds" in text
    assert "perplexity of" not in text
    assert len(Page(page).alts) == 3
    assert "misalignment" not in Page(page).rows[0]


@pytest.mark.usefixtures("undrawn")
def test_too_few_permutations_are_said_to_be(tmp_path):
    X, y = planted()
    selector = FROTSelector(3, plan=False).fit(X, y)
    with pytest.warns(frot.ConvergenceWarning):
        test = selector.permutation_test(X, y, n_permutations=9)
    page = write_selection_report(selector, X, y, tmp_path / "p.html").read_text("utf-8")
    assert f"9 permutations are too few: {test.outstanding.sum()} features stand out" in text_of(
        page
    )
    assert f"{test.needed} would allow 0.05" in text_of(page)


@pytest.mark.usefixtures("undrawn")
def test_sets_that_were_tested(tmp_path):
    X, y = planted(d=80)
    sets = {"S" * 60: range(8), "twin": range(9), "noise": range(20, 50)}
    selector = FROTSelector(1, groups=sets, plan=False).fit(X, y)
    test = selector.pathway_test(X, y, n_permutations=99)
    page = write_selection_report(selector, X, y, tmp_path / "p.html").read_text("utf-8")
    rows = Page(page).rows
    assert rows[0][:5] == ["rank", "set", "score", "up in", "direction"]
    table = test.table
    assert [row[1] for row in rows[1:4]] == table["pathway"].tolist()
    assert [row[3] for row in rows[1:4]] == table["up_in"].tolist()
    edge = rows[0].index("leading edge")
    assert rows[1][edge].split(", ")[:3] == table["leading_edge"][0].split(", ")[:3]
    assert rows[2][edge + 1].startswith(table["redundant_with"][1])
    text = text_of(page)
    assert f"{(test.q_competitive <= 0.05).sum()} of 3 groups differ more than others" in text
    assert f"{(test.q_self_contained <= 0.05).sum()} differ at all at FDR 0.05" in text
    assert "The best groups as bars, by score" in Page(page).alts
    assert "Ranked by set score" in text


@pytest.mark.usefixtures("undrawn")
def test_pictures_for_a_paper(tmp_path):
    X, y = planted(d=6)
    y = np.where(y == "control", "../a/b $ <x>", y)
    selector = FROTSelector(1, groups={"one": [0, 1], "$x": [2, 3, 4, 5]}, plan=False).fit(X, y)
    write_selection_report(selector, X, y, tmp_path / "p.html", pictures=tmp_path / "new" / "all")
    names = ("heat_map", "pathways", "strips", "volcano")
    found = sorted(path.name for path in (tmp_path / "new" / "all").iterdir())
    assert found == sorted(f"{name}.{kind}" for name in names for kind in ("svg", "pdf"))
    for path in (tmp_path / "new" / "all").iterdir():
        begin = path.read_bytes()
        assert begin.startswith(b"%PDF") if path.suffix == ".pdf" else b"<svg" in begin
    # Text is text, and escaped.
    volcano = (tmp_path / "new" / "all" / "volcano.svg").read_text("utf-8")
    assert "&lt;x&gt;" in volcano
    assert "<x>" not in volcano


def test_pictures_of_each_comparison(tmp_path, monkeypatch):
    monkeypatch.setattr("frot.selection._pictures.save_vector", lambda figure, path: path.touch())
    for name in ("volcano", "strips"):
        monkeypatch.setattr(SelectorPictures, name, lambda self, place: new_figure(1, 1))
    X, y = planted(d=5, classes=3, n=6, m=6)
    y = np.where(y == "control", "a/b", y)
    selector = FROTSelector(2, plan=False).fit(X, y)
    written = write_selection_pictures(selector, X, y, tmp_path)
    assert sorted(written) == sorted(tmp_path.iterdir())
    assert "volcano-1-a-b-vs-rest.svg" in [path.name for path in written]
    assert len(written) == 3 * 3 * 2


def test_ten_classes_make_a_page_that_can_be_sent(tmp_path, monkeypatch, request):
    """One of ten panels is drawn here; the pictures of the others are as large."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 500)), np.repeat([f"type {i}" for i in range(10)], 30)
    # How large a page is does not depend on how good its plans are.
    selector = FROTSelector(20, tol=0.5).fit(X, y)

    def size(panels):
        monkeypatch.setattr("frot.selection._pictures.MAX_DRAWN", panels)
        return write_selection_report(selector, X, y, tmp_path / "p.html").stat().st_size

    drawn = size(1)
    request.getfixturevalue("undrawn")
    size(9)
    assert "The first 9 of 10 are drawn" in text_of((tmp_path / "p.html").read_text("utf-8"))
    assert size(10) + 10 * (drawn - size(1)) < 4_000_000


@pytest.mark.usefixtures("undrawn")
def test_many_samples(tmp_path):
    X, y = planted(n=500, m=90)
    selector = FROTSelector(2, tol=0.1).fit(X, y)
    page = write_selection_report(selector, X, y, tmp_path / "p.html").read_text("utf-8")
    assert "the first 300 of 500" in page


def test_what_is_drawn():
    X, y = planted()
    selector = FROTSelector(3).fit(X, y)
    one = selector.comparisons_[0]
    names, ids = [f"x{i}" for i in range(40)], [str(i) for i in range(40)]
    view = view_of(one, X, selector.groups_, one.scores("moderated"), 3, names, ids)
    best = np.argsort(-one.scores("moderated"))[:30]
    assert view.top_names == tuple(names[i] for i in best) == view.features
    n, m = one.plan.shape
    assert sorted(view.order[0]) == list(range(n))
    assert sorted(view.order[1]) == list(range(m))
    # Scaled so that the mean squares of the two classes sum to two.
    energy = sum((values**2).mean(axis=1) for values in view.values)
    assert energy == pytest.approx(np.full(30, 2.0))
    # The barycentric map keeps the mean: mass is moved, none is made.
    mass = np.asarray(one.plan.sum(axis=1)).ravel()
    assert mass @ view.destinations == pytest.approx(view.coordinates[1].mean(axis=0), abs=1e-9)
    assert 0.0 < view.explained[1] <= view.explained[0] <= 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((40, 39))}, "are not what the selector was fitted on"),
        ({"y": np.repeat(["u", "v"], 20)}, "are not what the selector was fitted on"),
        ({"sample_names": ["a"]}, "sample_names: has 1 names for 40; give one for each"),
        ({"feature_names": ["a"]}, "feature_names: has 1 names for 40"),
        ({"path": "no/such/page.html"}, "does not exist"),
    ],
)
def test_bad_input(tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    X, y = planted()
    selector = FROTSelector(3).fit(X, y)
    given = {"X": X, "y": y, "path": tmp_path / "p.html"} | change
    with pytest.raises(frot.InputError, match=message):
        write_selection_report(selector, **given)


def test_a_test_of_other_features_is_refused(tmp_path):
    X, y = planted()
    selector = FROTSelector(3).fit(X, y)
    other = permutation_test(X[:, :9], y, selector=unfitted(selector), n_permutations=19)
    with pytest.raises(frot.InputError, match="permutation: is of other features"):
        write_selection_report(selector, X, y, tmp_path / "p.html", permutation=other)


def test_without_matplotlib_the_page_says_so(evil, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    selector, X, y = evil
    page = write_selection_report(selector, X, y, tmp_path / "p.html").read_text("utf-8")
    assert "No picture: matplotlib is not installed" in page
    assert "<img" not in page


@pytest.mark.usefixtures("unrendered")
def test_features_without_a_fold_change_are_counted_below_the_volcano(tmp_path):
    rng = np.random.default_rng(0)
    # Intensities less a background: the means of two features are negative.
    X = 100.0 + 20.0 * rng.normal(size=(20, 5))
    X[:, :2] -= 200.0
    y = np.repeat(["a", "b"], 10)
    selector = FROTSelector(2).fit(X, y)
    page = write_selection_report(selector, X, y, tmp_path / "p.html").read_text(encoding="utf-8")
    assert " 2 without a fold change, since the mean of a class is negative" in page
