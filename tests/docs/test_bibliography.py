"""Every work that is cited is in the bibliography, and every work in it is cited."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIBLIOGRAPHY = ROOT / "docs" / "bibliography.md"
NAME = r"[A-ZÀ-Þ][\w’'-]+"
YEAR = r"(?:18|19|20)\d\d[ab]?"
# "Jaggi 2013", "Paty and Cuturi 2019", "Niles-Weed and Rigollet (2022)", "Liu et al. 2020".
CITATION = re.compile(rf"({NAME}(?:\s+and\s+{NAME}|\s+et\s+al\.)?)\s+\(?({YEAR})\b")
# What looks like one and is none: the paper's conference, and a volume of proceedings.
OTHERS = {"PKDD 2022", "SPIE 1905"}


def entries() -> list[str]:
    return re.findall(r"^- \*\*(.+?)\*\*:", BIBLIOGRAPHY.read_text(encoding="utf-8"), re.M)


def citations() -> dict[str, str]:
    """Every citation, and a file that has it."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
    files = [path for path in pages if path != BIBLIOGRAPHY]
    files += [ROOT / "README.md", ROOT / "ARCHITECTURE.md"]
    for folder in ("src", "examples", "experiments", "benchmarks"):
        files += (ROOT / folder).rglob("*.py")
    return {
        f"{' '.join(names.split())} {year}": str(path.relative_to(ROOT))
        for path in files
        for names, year in CITATION.findall(path.read_text(encoding="utf-8"))
    }


def test_every_work_that_is_cited_is_there():
    known = {*entries(), *OTHERS}
    assert {name: path for name, path in citations().items() if name not in known} == {}


def test_every_work_that_is_there_is_cited():
    assert set(entries()) - set(citations()) == set()


def test_no_work_is_there_twice():
    assert len(entries()) == len(set(entries())) > 40
