"""Code in README and in the pages runs as written, top to bottom; commands and names exist.

In a page, blocks of ``python`` run one after another in one namespace, in an empty folder. A line
``<!-- needs NAME, ... -->`` right above a block names modules without which this block and those
after it are skipped. Blocks of ``console`` are commands: their options are checked, none is run.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer

import frot
from frot.cli.app import app
from frot.costs import METRICS

ROOT = Path(__file__).resolve().parents[2]
MADE = {"_build", "auto_examples", "generated"}
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not MADE & set(page.parts)),
]
BLOCK = re.compile(
    r"(?:^<!-- needs (?P<needs>[^>]*) -->\n)?^```python\n(?P<code>.*?)^```", re.M | re.S
)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(text_of(page))], ids=name_of
)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text, scope, before = text_of(page), {"__name__": "page"}, dict(METRICS)
    try:
        for block in BLOCK.finditer(text):
            absent = [n for n in (block["needs"] or "").split(", ") if n and not find_spec(n)]
            if absent:
                pytest.skip(f"the rest of {page.name} needs {', '.join(absent)}")
            line = text.count("\n", 0, block.start("code"))
            # Tracebacks show the line of the page.
            exec(compile("\n" * line + block["code"], str(page), "exec"), scope)
    finally:
        METRICS.clear()
        METRICS.update(before)


def test_most_pages_have_code():
    """The test above finds blocks, and a block in another notation is not passed over."""
    assert sum(len(BLOCK.findall(text_of(page))) for page in PAGES) > 30
    for page in PAGES:
        fences = re.findall(r"^```(\S*)", text_of(page), re.M)[::2]
        known = {"python", "console", "text", "{toctree}", "{eval-rst}", "{include}"}
        assert set(fences) <= known, page


def test_readme_shows_what_its_first_block_prints(capsys):
    text = text_of(ROOT / "README.md")
    ((code, shown),) = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.S)
    exec(code, {})
    printed = capsys.readouterr().out
    # Seconds, and digits below the gap, are those of a machine.
    varies = r"\d+\.\d+ s,|gap [\d.e-]+|(?<=\.\d{6})\d+"
    assert re.sub(varies, "", printed) == re.sub(varies, "", shown)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_and_names_exist(page):
    group = typer.main.get_command(app)
    for line in re.findall(r"^\$ frot (.*)$", text_of(page), re.M):
        command, words = group, line.partition("  #")[0].split()
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]  # pyright: ignore[reportAttributeAccessIssue]
        known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
        known |= {"--help", "-h"}
        assert set(re.findall(r"(?<=\s)--[a-z0-9-]+", f" {line}")) <= known, line
        assert command is not group, line
    for name in re.findall(r"\bfrot\.(\w+)\(", text_of(page)):
        assert hasattr(frot, name), name


def test_readme_stands_alone():
    """It is shown on package indexes too, where relative links and pictures are dead."""
    text = text_of(ROOT / "README.md")
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert targets
    assert all(target.startswith("https://") for target in targets)
    assert len(text.split()) < 850
    raw = "https://raw.githubusercontent.com/frot-developers/frot/main/"
    for target in targets:
        path = re.sub(rf"^({raw}|https://github.com/frot-developers/frot/blob/main/)", "", target)
        assert path.startswith("https://") or (ROOT / path).is_file(), target
        site = re.sub(r"^https://frot-developers.github.io/frot/(.*)\.html$", r"docs/\1.md", target)
        assert not site.startswith("docs/") or (ROOT / site).is_file() or "auto_examples" in site


def test_pages_name_no_private_module():
    for page in PAGES:
        if page.name != "changelog.md":
            assert re.findall(r"`[\w/.]*/_\w+\.py`|`_\w+\.py`", text_of(page)) == [], page
