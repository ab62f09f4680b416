"""What notebooks show: short, escaped, and without anything to fetch or to run."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import frot
from frot.correspondence import Match
from tests.correspondence.fake_match import fake_match

BAD = "<b>&'\"</b>"
X, Y, _ = frot.toy(12)


def answers() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    clouds = rng.normal(size=(2, 12, 6, 3))
    groups = {BAD: [0, 1], "rest": range(2, 10)}
    result = frot.solve(X, Y, groups)
    assert result.groups is not None
    match = fake_match()
    match = replace(match, source=replace(match.source, name=BAD))
    return {
        "result": result,
        "chosen": frot.srw(X, Y, k=1),
        "batch": frot.solve_batch(*clouds, groups={BAD: [0], "b": [1, 2]}, eps=1.0),
        "comparison": frot.compare(X, Y, groups, methods=["frot", "max_min"]),
        "match": FakeHTML(
            Match._repr_html_(replace(match, source=replace(match.source, name=BAD)))
        ),
    }


class FakeHTML(str):
    def _repr_html_(self) -> str:
        return self


class Tags(HTMLParser):
    """Collects tags, and refuses those that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: one._repr_html_() for name, one in answers().items() if name != "batch"}


@pytest.mark.parametrize("name", ["result", "chosen", "comparison", "match"])
def test_pages_are_plain_and_short(pages, name):
    page, tags = pages[name], Tags()
    tags.feed(page)
    assert tags.open == []
    # No script, no style sheet, nothing to fetch: safe in any notebook.
    assert tags.seen <= {"div", "table", "thead", "tbody", "tr", "th", "td", "span"}
    assert tags.attributes <= {"style"}
    assert "url(" not in page
    # The notebook's own colours: none is set but that of bars.
    assert set(re.findall(r"[^-]color:([^;\"]+)", page)) <= {"inherit"}
    assert len(page) < 12_000


def test_text_is_escaped(pages):
    for name in ("result", "comparison", "match"):
        assert BAD not in pages[name]
        assert "&lt;b&gt;&amp;" in pages[name]


def test_long_answers_are_cut():
    many = frot.solve(X, Y, "each")._repr_html_()
    assert "and 2 more" in many
    assert many.count("<tr") == 5 + 1 + 8


def test_frames_hold_the_same_numbers():
    found = answers()
    result, batch, comparison = found["result"], found["batch"], found["comparison"]
    frame = result.to_frame()
    assert frame["alpha"].is_monotonic_decreasing
    assert frame.set_index("group")["phi"].to_dict() == {
        one["name"]: one["phi"] for one in result.to_dict()["groups"]
    }
    frame = batch.to_frame()
    assert frame["upper"].tolist() == batch.upper.tolist()
    members = batch.to_dict()["members"]
    assert [one["groups"][1]["alpha"] for one in members] == frame["alpha_b"].tolist()
    frame = comparison.to_frame()
    assert frame["value"].tolist() == [one.value for one in comparison.results.values()]
