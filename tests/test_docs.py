"""Code in the documents runs, and pictures they show are there."""

import re
from pathlib import Path

import pytest

from frot.cli.app import app

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = [DOCS / "relatives.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    scope = {}
    for block in blocks:
        exec(block, scope)
    assert "FROT" in capsys.readouterr().out


def test_costs_of_ones_own_run():
    """Blocks check themselves; what they register is taken out again."""
    from frot.costs import METRICS

    text = (DOCS / "costs.md").read_text(encoding="utf-8")
    before = dict(METRICS)
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, scope)
    added = set(METRICS) - set(before)
    for name in added:
        del METRICS[name]
    assert added == {"circular"}
    for file in re.findall(r"^\| `([\w/]+\.py)`", text, re.MULTILINE):
        assert (DOCS.parent / "src" / "frot" / file).is_file()


@pytest.mark.parametrize("page", ["cells.md", "unbalanced.md"])
def test_mass_that_may_go_and_cells_run(page):
    """Blocks check themselves."""
    text = (DOCS / page).read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(block, {})
    for file in re.findall(r"`(\w+/[\w/]+\.py)`", text):
        assert (DOCS.parent / "src" / "frot" / file).is_file() or (DOCS.parent / file).is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pictures_and_functions_are_there(page):
    import frot

    text = page.read_text(encoding="utf-8")
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (DOCS / picture).is_file()
    for name in re.findall(r"\bfrot\.(\w+)\(", text):
        assert hasattr(frot, name), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_options_are_there(page):
    import typer

    commands = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]
    lines = re.findall(r"^\$ frot (\w+)(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert lines
    for name, rest in lines:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known
