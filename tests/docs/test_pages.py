"""Every page begins with what the reader can do after it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
# Parts that other pages include.
INCLUDED = {"paper_verdicts.md", "paper_remarks.md", "changelog.md"}
BUILT = {"_build", "auto_examples", "generated"}
PAGES = [
    path.relative_to(DOCS)
    for path in sorted(DOCS.rglob("*.md"))
    if path.name not in INCLUDED and not BUILT & {*path.parts}
]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_begins_with_what_the_reader_can_do_after_it(page: Path):
    text = (DOCS / page).read_text(encoding="utf-8")
    opening = text.split("\n## ")[0].split("\n:::")[0]
    assert re.search(r"\bAfter (this page|one of these) ", opening)
