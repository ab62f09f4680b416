"""Change single operators of a room, and see whether its tests notice.

    python .ci/mutants.py problem [--file bounds.py] [--n 30] [--seed 0] [--jobs 2]
    python .ci/mutants.py problem --file bounds.py:120      # the changes of one line again

A change replaces one comparison or arithmetic operator (`<` by `<=` and by `>`, `+` by `-`, `*` by
`/`, `==` by `!=`, `and` by `or`, and back), or takes away a minus sign. Each is made in a copy of
the repository, as it was at the start, and the room's tests run on it until the first failure: the
tests of the changed file first, then its doctests and all others of the room. The same seed draws
the same changes of the same files. A change that survives shows code that does nothing, or a
missing test. Exit code 1 if more than one in ten survive.
"""

from __future__ import annotations

import argparse
import ast
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHANGES = {
    ast.Lt: ("<=", ">"), ast.LtE: ("<", ">="), ast.Gt: (">=", "<"), ast.GtE: (">", "<="),
    ast.Eq: ("!=",), ast.NotEq: ("==",), ast.Add: ("-",), ast.Sub: ("+",), ast.Mult: ("/",),
    ast.Div: ("*",), ast.And: ("or",), ast.Or: ("and",),
}  # fmt: skip
OPERATOR = re.compile(r"<=|>=|==|!=|[<>+\-*/]|\band\b|\bor\b")
# What the tests of a room may read.
COPIED = (
    "src", "tests", "experiments", "benchmarks", "examples", "docs", "conftest.py",
    "pyproject.toml", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md",
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A file, relative to the repository, whose characters from `start` to `end` are replaced."""

    path: Path
    source: str
    line: int
    start: int
    end: int
    new: str

    def text(self) -> str:
        """Return the changed file."""
        return self.source[: self.start] + self.new + self.source[self.end :]

    def __str__(self) -> str:
        code = self.source.splitlines()[self.line - 1].strip()
        old = self.source[self.start : self.end]
        return f"{self.path}:{self.line}: {old} -> {self.new or 'nothing'}   {code}"


def mutants_of(path: Path) -> list[Mutant]:
    """Return every change of a file, in the order of the file."""
    source = (ROOT / path).read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))

    def position(line: int, column: int) -> int:
        return offsets[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def mutant(start: int, end: int, new: str) -> Mutant:
        return Mutant(path, source, source.count("\n", 0, start) + 1, start, end, new)

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> list[Mutant]:
        first = position(left.end_lineno or 0, left.end_col_offset or 0)
        last = position(right.lineno, right.col_offset)
        sign = OPERATOR.search(source, first, last)
        if sign is None:
            return []
        return [mutant(*sign.span(), new) for new in CHANGES.get(type(operator), ())]

    mutants: list[Mutant] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp):
            mutants += between(node.left, node.right, node.op)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                mutants += between(left, right, node.op)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, right, operator in zip(sides, sides[1:], node.ops, strict=False):
                mutants += between(left, right, operator)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            start = position(node.lineno, node.col_offset)
            mutants.append(mutant(start, start + 1, ""))
    return sorted(mutants, key=lambda one: (one.start, one.new))


def drawn(files: list[Path], wanted: list[str], n: int, seed: int) -> tuple[list[Mutant], int]:
    """Draw `n` changes of the wanted files or lines; return them and how many there are."""
    every = []
    for path in files:
        for mutant in mutants_of(path):
            names = (path.name, path.as_posix(), f"{path.name}:{mutant.line}",
                     f"{path.as_posix()}:{mutant.line}")  # fmt: skip
            if not wanted or set(names) & set(wanted):
                every.append(mutant)
    return random.Random(seed).sample(every, min(n, len(every))), len(every)


def tests_of(path: Path, tests: list[Path]) -> list[str]:
    """Return the tests to run on a changed file: its own first, which fail soonest."""
    stem = path.stem.lstrip("_")
    own = [test for test in tests if test.stem.removeprefix("test_").lstrip("_") == stem]
    doctests = [path] if ">>>" in (ROOT / path).read_text(encoding="utf-8") else []
    return [str(test) for test in [*own, *doctests, *(t for t in tests if t not in own)]]


def copy_repository(folder: Path) -> Path:
    """Copy what the tests read, so that edits meanwhile change nothing."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "_build", "auto_examples", "generated")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name)
    return folder


def run(folder: Path, tests: list[str], seconds: float | None) -> subprocess.CompletedProcess[str]:
    """Run tests in a copy of the repository until the first failure."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
               "--tb=line", *tests]  # fmt: skip
    paths = os.pathsep.join([str(folder / "src"), str(folder / "experiments")])
    more = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=folder, env=os.environ | more, capture_output=True, text=True, timeout=seconds
    )


def survives(mutant: Mutant, folder: Path, tests: list[str], seconds: float) -> bool:
    """Make a change in a copy, run the tests there, and undo it; True if nothing fails."""
    (folder / mutant.path).write_text(mutant.text(), encoding="utf-8")
    try:
        return run(folder, tests, seconds).returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        (folder / mutant.path).write_text(mutant.source, encoding="utf-8")


def main() -> int:
    """Draw changes, try them, print the survivors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("room", help="a folder of src/frot")
    parser.add_argument("--file", action="append", default=[], help="FILE.py or FILE.py:LINE only")
    parser.add_argument("--tests", nargs="+", type=Path, help="instead of the tests of the room")
    parser.add_argument("--n", type=int, default=30, help="changes to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    room = ROOT / "src" / "frot" / options.room
    files = [path.relative_to(ROOT) for path in sorted(room.rglob("*.py"))]
    changes, possible = drawn(files, options.file, options.n, options.seed)
    if not changes:
        parser.error(f"nothing to change in {room.relative_to(ROOT)} {' '.join(options.file)}")
    given = options.tests or [Path("tests") / options.room.removeprefix("_")]
    tests = [
        path.resolve().relative_to(ROOT)
        for start in given
        for path in (sorted(start.rglob("test_*.py")) if start.is_dir() else [start])
    ]
    with tempfile.TemporaryDirectory() as scratch:
        folders: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(options.jobs):
            folders.put(copy_repository(Path(scratch) / str(number)))
        folder = folders.get()
        start = time.monotonic()
        unchanged = run(folder, [str(test) for test in tests], None)
        took = time.monotonic() - start
        folders.put(folder)
        if unchanged.returncode:
            print(unchanged.stdout[-3000:], unchanged.stderr[-3000:], sep="\n")
            parser.error("the tests fail without any change")
        print(f"{len(changes)} of {possible} changes; the tests take {took:.0f} s", flush=True)

        def alive(mutant: Mutant) -> bool:
            folder = folders.get()
            try:
                # A change that makes a loop endless is noticed by the time it takes.
                return survives(mutant, folder, tests_of(mutant.path, tests), 5.0 * took + 60.0)
            finally:
                folders.put(folder)

        survivors = []
        with ThreadPoolExecutor(options.jobs) as pool:
            for mutant, lives in zip(changes, pool.map(alive, changes), strict=True):
                print("SURVIVED" if lives else "noticed ", mutant, flush=True)
                survivors += [mutant] if lives else []
    print(f"{len(changes) - len(survivors)} of {len(changes)} changes noticed; survivors:")
    print(*(survivors or ["none"]), sep="\n")
    return int(len(survivors) > len(changes) // 10)


if __name__ == "__main__":
    sys.exit(main())
