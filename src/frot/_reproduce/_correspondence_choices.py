"""Ways to match that are held against each other on PF-WILLOW."""

from __future__ import annotations

from frot._reproduce._pair_runs import Choice

__all__ = ["CHOICES", "PICKED", "PROPOSED", "RARE", "READINGS", "SEARCHED"]

# How points are read off: by the mean of the cells within a stride, or by the library's median;
# without and with Hough matching.
READINGS: tuple[tuple[str, bool], ...] = (
    ("near", False),
    ("near", True),
    ("median", False),
    ("median", True),
)
PROPOSED = "frot"
PICKED = "best-layer"
# Methods whose layers are searched for with the labels of cars, as their authors search theirs.
SEARCHED = ("hpf-picked", "scot-picked")
# Run on one pair in ten: they take seconds a pair.
RARE = ("max-min", "srw")

CHOICES: dict[str, Choice] = {
    "nn": Choice("nearest neighbour, mean of layers", "nn"),
    "hpf": Choice("HPF, all layers end to end", "hpf"),
    "hpf-picked": Choice("HPF, layers searched on the cars", "hpf"),
    "uniform": Choice("OT, mean of layers", "uniform"),
    "ot": Choice("OT, layers end to end", "ot"),
    "scot": Choice("OT-HPF (SCOT), all layers", "scot", {"eps": 0.05}),
    "scot-picked": Choice("OT-HPF (SCOT), layers searched on the cars", "scot", {"eps": 0.05}),
    PICKED: Choice("OT, best layer (picked on the cars)", "best-layer"),
    "max-min": Choice("max-min FROT", "max-min"),
    "srw": Choice("SRW, k = 50", "srw"),
    "paper": Choice("FROT, the paper's", "frot", {"steps": 3, "prior": "uniform", "eta": 0.3}),
    "solved": Choice("FROT, solved, eta = .1", "frot", {"prior": "uniform", "eta": 0.1}),
    "weighted": Choice("OT, mean weighted by coherence", "weighted"),
    PROPOSED: Choice("FROT, coherence prior (default)", "frot"),
}
