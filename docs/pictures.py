"""Draw the picture of the page *Reading alpha*: ``python docs/pictures.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import frot

BLUE, ORANGE = "#0072B2", "#D55E00"
WAYS = {
    "none": {},
    "mean": {"normalise": "mean"},
    "regret": {"normalise": "regret"},
    "prior .8, .2": {"eta": frot.relative(0.1), "prior": [0.8, 0.2]},
    "CappedSimplex(2)": {"adversary": frot.CappedSimplex(2)},
}


def points(noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw the page's points: two features shifted by 1.5, eight that are the same."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 10)), rng.normal(size=(30, 10))
    Y[:, :2] += 1.5
    X[:, 2:] *= noise
    Y[:, 2:] *= noise
    return X, Y


def weight(noise: float, **options: object) -> float:
    """Return the weight of the group that is shifted."""
    return float(frot.solve(*points(noise), groups=[2, 8], **options).alpha[0])


def draw() -> plt.Figure:
    """Draw the weights for five settings, and over the size of the unshifted features."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
    shifted = np.array([weight(1.0, **options) for options in WAYS.values()])
    places = np.arange(len(WAYS))
    left.barh(places, shifted, color=BLUE, label="shifted, 2 features")
    left.barh(places, 1.0 - shifted, left=shifted, color=ORANGE, label="same, 8 features")
    left.set_yticks(places, list(WAYS))
    left.invert_yaxis()
    left.set_xlabel("weight alpha")
    left.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=2, frameon=False)
    sizes = np.geomspace(0.2, 3.0, 15)
    for name, style in (("none", "-"), ("mean", "--"), ("regret", ":")):
        weights = [weight(size, **WAYS[name]) for size in sizes]
        right.plot(sizes, weights, style, color="k", label=f'normalise="{name}"')
    right.set_xscale("log")
    right.set_xticks([0.2, 0.5, 1.0, 2.0, 3.0], ["0.2", "0.5", "1", "2", "3"])
    right.minorticks_off()
    right.set_xlabel("standard deviation of the eight unshifted features")
    right.set_ylabel("alpha of the shifted group")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    draw().savefig(Path(__file__).with_name("reading-alpha.png"), dpi=150)
