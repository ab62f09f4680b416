"""The house: rooms as on the map, and private modules private. `make lint` holds the arrows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "frot"


def modules() -> dict[str, Path]:
    """Return every module of the package and its file."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


MODULES = modules()


def imported(path: Path) -> Iterator[str]:
    """Yield the modules of frot that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else node.module for name in names]
        else:
            continue
        yield from (name for name in names if name in MODULES)


def private_folders(module: str) -> Iterator[str]:
    """Yield the folders that alone may import a module, for every underscore in its name."""
    parts = module.split(".")
    for depth, part in enumerate(parts):
        # `_base` is below every room, and private only to users.
        if part.startswith("_") and part != "_base":
            yield ".".join(parts[:depth])


def test_no_room_goes_through_another_rooms_private_door():
    trespasses = [
        f"{module} imports {target}"
        for module, path in MODULES.items()
        for target in imported(path)
        for folder in private_folders(target)
        if not f"{module}.".startswith(f"{folder}.")
    ]
    assert trespasses == []


def test_the_map_shows_every_room():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("## Rooms")[2].partition("## The walk")[0]
    on_the_map = re.findall(r"^\| `(\w+)/`", table, flags=re.MULTILINE)
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(on_the_map) == rooms
    assert len(on_the_map) == len(rooms)


def defines(path: Path, name: str) -> bool:
    return bool(re.search(rf"^(def|class) {name}\b", path.read_text("utf-8"), re.M))


def test_the_walks_name_what_is_there():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"\| `([\w/]+\.py)` \| `(\w+)` \|", text)
    assert len(text.splitlines()) <= 90, "two screens"
    assert len(re.findall(r"^\| \d+ \| `", text, flags=re.MULTILINE)) == 10
    assert len(named) > 15
    assert [(file, name) for file, name in named if not defines(PACKAGE / file, name)] == []


def test_rooms_that_list_their_files_name_what_is_there():
    listed = 0
    for path in PACKAGE.rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for file, name in re.findall(r"^- ``([\w/]+\.py)``(?:, `(\w+)`)?:", text, re.M):
            assert (path.parent / file).is_file(), f"{path}: {file}"
            assert not name or defines(path.parent / file, name), f"{path}: {name}"
            listed += 1
    assert listed > 30


PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page: Path):
    named = re.findall(r"`([\w/]+(?:\.py|/))`", page.read_text(encoding="utf-8"))
    roots = (PACKAGE, ROOT, ROOT / "benchmarks")
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []
    assert len(named) > 20 or page.name != "ARCHITECTURE.md"


def test_every_room_says_what_it_is_for():
    for path in PACKAGE.glob("*/__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert text is not None, path
        assert len(text.splitlines()) >= 3, f"{path}: what goes in, what comes out?"
