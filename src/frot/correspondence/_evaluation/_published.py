"""What others report, to stand beside ours."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from frot.correspondence._datasets._spair import CLASSES

__all__ = ["PAIRS_PER_CLASS", "Published", "published"]

PAPER = "the FROT paper's supplement, per-class table"
HPF, SCOT = "HPF (ICCV 2019)", "SCOT (CVPR 2020)"
# Test pairs of each class of SPair-71k, in the order of the columns.
PAIRS_PER_CLASS = (
    *(690, 650, 702, 702, 870, 644, 564, 600, 646),
    *(640, 600, 600, 702, 650, 862, 664, 756, 692),
)
# What the layers or the network were chosen with.
CHOSEN = {
    "original": "trained on other data",
    "fine-tuned": "trained on SPair-71k",
    "validation": "layers chosen on SPair-71k",
    "nothing": "nothing chosen",
}
# The rows of the paper's short table.
SHORT = ("HPF", "OT-HPF", "OT", "FROT eta=0.3", "FROT eta=0.5", "FROT eta=0.7")


@dataclass(frozen=True)
class Published:
    """A row of somebody's table: PCK at 0.1 per image, in per cent.

    Parameters
    ----------
    method : str
    source : str
        Where the figures are from.
    all : float
        Over all pairs.
    classes : dict
        By class; empty where only the total is known.
    note : str
        What was chosen or trained on what.
    short : bool
        Whether it is among the few that are shown unless all are asked for.
    """

    method: str
    source: str
    all: float
    classes: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    short: bool = True


def published(name: str) -> tuple[Published, ...]:
    """Return what is published for a data set; nothing for splits other than the test's.

    Examples
    --------
    >>> [(row.method, row.all) for row in published("PF-WILLOW")]
    [('HPF', 74.4), ('OT-HPF', 76.2)]
    """
    return ROWS.get(name, ())


def _paper() -> Iterator[Published]:
    """Read the rows of the paper's long table, a copy of which is beside this file."""
    text = (
        files("frot.correspondence._evaluation")
        .joinpath("published_spair.csv")
        .read_text(encoding="utf-8")
    )
    for row in csv.DictReader(text.splitlines()):
        kind, method = row["chosen"], row["method"]
        short = kind != "original" and (method in SHORT or method.startswith("SRW k=50 T=3"))
        classes = {name: float(row[name]) for name in CLASSES}
        yield Published(method, PAPER, float(row["all"]), classes, CHOSEN[kind], short)


ROWS: dict[str, tuple[Published, ...]] = {
    "SPair-71k test": (
        *_paper(),
        Published("OT-HPF", SCOT, 35.4, note="its own release"),
        Published("OT-HPF without CAM", SCOT, 34.8, note="its own release"),
    ),
    "PF-PASCAL test": (
        Published("HPF", HPF, 84.8, note="ResNet-101, layers chosen"),
        Published("OT-HPF", SCOT, 85.4, note="ResNet-101, layers chosen"),
    ),
    "PF-WILLOW": (
        Published("HPF", HPF, 74.4, note="ResNet-101, layers chosen on PF-PASCAL"),
        Published("OT-HPF", SCOT, 76.2, note="ResNet-101, layers chosen on PF-PASCAL"),
    ),
}
