"""Labelled samples written as every kind of file that can be read."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas

from tests.selection.planted import planted

GENES = 40


def frame(classes: int = 2) -> pandas.DataFrame:
    """Patients, class, batch, a remark, and genes of which the first three differ."""
    X, y = planted(d=GENES, classes=classes)
    table = pandas.DataFrame(X, columns=pandas.Index([f"gene{i}" for i in range(GENES)]))
    table.insert(0, "patient", np.array([f"P{i:02d}" for i in range(len(y))]))
    table.insert(3, "class", y)
    table.insert(5, "batch", np.arange(len(y)) % 2)
    table["remark"] = "fine"
    return table


def write(path: Path, classes: int = 2) -> Path:
    """Write the samples in the format of the suffix."""
    table = frame(classes)
    kind = "".join(path.suffixes)
    if kind == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, sep="\t" if ".tsv" in kind else ",", index=False)
    return path


def read_tsv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table that was written."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))
