"""The tab *Genes*: a table of samples in, ranked features, a volcano, pathways and a report out.

The work is ``frot select`` in a process of its own, which can be stopped and has its own folder.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frot._base.errors import InputError, require
from frot.show.page import image_html, number

ROWS = 100
# Columns that are shown of a table that has more, and how.
COLUMNS = {
    "rank": "d", "feature": "", "pathway": "", "size": "d", "up_in": "",
    "log2_fold_change": "+.2f", "score": ".3g", "p": ".2g", "q": ".2g",
    "p_competitive": ".2g", "q_competitive": ".2g", "alpha": ".2g",
}  # fmt: skip
TEXTS = (".csv", ".tsv", ".txt")
MANY = 200


def label_choices(path: str | Path | None) -> list[str]:
    r"""Return the columns that may hold classes: those of text first, then the others.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("age,arm\n50,treated\n61,control\n")
    >>> label_choices(folder / "a.csv")
    ['arm', 'age']
    """
    if not path:
        return []
    path = Path(path)
    name = path.name.lower()
    if name.endswith(".h5ad"):
        adata = require("anndata", "anndata").read_h5ad(path, backed="r")
        try:
            return [str(column) for column in adata.obs.columns]
        finally:
            adata.file.close()
    packed = name.endswith(".gz")
    if not name.removesuffix(".gz").endswith(TEXTS):
        return []
    try:
        with gzip.open(path, "rt") if packed else path.open(encoding="utf-8-sig") as file:
            lines = [file.readline() for _ in range(2)]
    except (OSError, UnicodeDecodeError, EOFError):
        raise InputError(f"{path.name} is not a table of text") from None
    mark = max("\t;,", key=lines[0].count)
    heads, first = (next(csv.reader([line], delimiter=mark), []) for line in lines)
    text = [_is_text(first[at]) if at < len(first) else False for at in range(len(heads))]
    words = [head for head, is_text in zip(heads, text, strict=True) if is_text]
    rest = [head for head, is_text in zip(heads, text, strict=True) if not is_text]
    return [*words, *rest][:MANY]


def _is_text(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return bool(cell.strip())
    return False


@dataclass(frozen=True)
class Selected:
    """What a selection found: rows to show, pictures, files to download, the same in Python."""

    heads: list[str]
    rows: list[list[str]]
    said: str
    volcano: str
    pathways: str
    report: Path
    table: Path
    python: str


@dataclass
class Job:
    """``frot select`` in a process and a folder of its own, which `close` removes."""

    folder: Path
    # What comes after ``frot``.
    words: list[str]
    process: Any = field(repr=False)
    started: float = field(default_factory=time.monotonic)
    stopped: bool = False

    @property
    def running(self) -> bool:
        """Whether it still works."""
        return self.process.poll() is None

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self.started

    def stop(self) -> None:
        """End it now, if it runs."""
        if self.running:
            self.stopped = True
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def close(self) -> None:
        """End it and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def answer(self) -> Selected:
        """Read what it found; if that is nothing, its own sentence is raised as an `InputError`."""
        errors = (self.folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")
        numbers = self.folder / "numbers.json"
        if not numbers.is_file():
            said = [line for line in errors.splitlines() if line.startswith("error: ")]
            text = said[-1].removeprefix("error: ") if said else "the work was stopped"
            raise InputError(text)
        found = json.loads(numbers.read_text(encoding="utf-8"))
        heads = [head for head in COLUMNS if head in found["table"][0]]
        rows = [
            [_cell(row[head], COLUMNS[head]) for head in heads] for row in found["table"][:ROWS]
        ]
        made = self.folder / "pictures"
        warned = [line for line in errors.splitlines() if line.startswith("warning: ")]
        plain = (self.folder / "stdout.txt").read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in plain.splitlines() if " selected" in line]
        sets = [path for path in sorted(made.glob("*.svg")) if path.stem in ("sets", "pathways")]
        volcano = sorted(made.glob("volcano*.svg"))
        return Selected(
            heads,
            rows,
            "\n".join([*lines, *warned]),
            _picture(volcano, "volcano: fold change against certainty"),
            _picture(sets, "gene sets by how far they stand out"),
            self.folder / "report.html",
            self.folder / "features.tsv",
            found["python"],
        )


def start_selection(
    data: str | Path | None,
    label: str | None,
    sets: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    root: str | Path | None = None,
) -> Job:
    """Begin to select; files are written into a new folder below `root`.

    `label` is the column of classes, `sets` a .gmt file, and `options` are others of
    ``frot select`` by name: ``{"top": 20, "permutations": 200}``.
    """
    if not data:
        raise InputError("give a table of samples")
    if not label:
        raise InputError("label: choose the column of the classes")
    folder = Path(tempfile.mkdtemp(prefix="genes-", dir=root))
    words = ["select", _copied(data, folder), "--label", str(label)]
    if sets:
        words += ["--groups", _copied(sets, folder)]
    for name, value in (options or {}).items():
        flag = f"--{name.replace('_', '-')}"
        words += [flag] if value is True else [flag, str(value)] if value else []
    files = ["--out", "features.tsv", "--report", "report.html", "--json", "numbers.json"]
    files += ["--pictures", "pictures", "--no-progress"]
    with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "frot", *words, *files],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            # Wide, so that no line is folded, and without colours.
            env={**os.environ, "COLUMNS": "400", "NO_COLOR": "1"},
        )
    return Job(folder, words, process)


def _copied(path: str | Path, folder: Path) -> str:
    """Put a file into a folder under its own name, which commands then show."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path.name} is not there any more; upload it again")
    shutil.copyfile(path, folder / path.name)
    return path.name


def _picture(files: list[Path], text: str) -> str:
    """Return the first of .svg files as HTML, if there is one."""
    return image_html("image/svg+xml", files[0].read_bytes(), text) if files else ""


def _cell(value: Any, form: str) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    return number(value, form).text if form != "d" else str(value)
