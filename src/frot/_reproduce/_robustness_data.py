"""Points of two informative features whose transport is known, and features of pure noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["CLOUDS", "INFORMATIVE", "Cloud", "with_noise"]

# The informative features of both clouds, which come first.
INFORMATIVE = 2

Points = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Cloud:
    """A pair of distributions: how it is drawn, and the true value of every method on it.

    Noise of the same distribution on both sides changes none of the true values: a plan that
    leaves it where it is pays nothing for it, in whatever direction.
    """

    name: str
    draw: Callable[[int, np.random.Generator], Points]
    truth: dict[str, float]


def with_noise(points: Points, count: int, level: float, rng: np.random.Generator) -> Points:
    """Add `count` features of normal noise of standard deviation `level` to both clouds.

    The same generator gives the same noise at every level, so that levels can be compared.

    Examples
    --------
    >>> x, y = with_noise((np.zeros((3, 2)), np.ones((4, 2))), 5, 0.0, np.random.default_rng(0))
    >>> x.shape, y.shape, float(abs(x).max())
    ((3, 7), (4, 7), 0.0)
    """
    x, y = (np.hstack([side, level * rng.normal(size=(len(side), count))]) for side in points)
    return x, y


def hypercube(n: int, rng: np.random.Generator) -> Points:
    """Draw from a square, and from the same square torn apart: x + 2 sign(x) (Paty & Cuturi)."""
    x, y = rng.uniform(-1.0, 1.0, size=(2, n, INFORMATIVE))
    return x, y + 2.0 * np.sign(y)


def annulus(n: int, rng: np.random.Generator) -> Points:
    """Draw from the disk of radius 1, and from the annulus between radii 2 and 3."""
    radii = np.sqrt(rng.uniform(0.0, 1.0, n)), np.sqrt(rng.uniform(4.0, 9.0, n))
    angles = rng.uniform(0.0, 2.0 * np.pi, size=(2, n))
    x, y = (
        np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        for radius, angle in zip(radii, angles, strict=True)
    )
    return x, y


def annulus_truth(grid: int = 200_001) -> dict[str, float]:
    """Integrate the annulus's true values: radii are moved in order, lines are sorted.

    Examples
    --------
    >>> {name: round(value, 3) for name, value in annulus_truth().items()}
    {'frot': 1.744, 'srw': 3.489, 'max_sliced': 1.714, 'ot': 3.489}
    """
    share = (np.arange(grid) + 0.5) / grid
    # Of the mass within radius r of the disk r^2, of the annulus's (r^2 - 4) / 5.
    whole = float(np.mean((np.sqrt(4.0 + 5.0 * share) - np.sqrt(share)) ** 2))
    at = np.linspace(-3.0, 3.0, grid)
    disk = _below(at)
    ring = (9.0 * _below(at / 3.0) - 4.0 * _below(at / 2.0)) / 5.0
    line = float(np.mean((np.interp(share, disk, at) - np.interp(share, ring, at)) ** 2))
    return {"frot": whole / 2.0, "srw": whole, "max_sliced": line, "ot": whole}


def _below(x: np.ndarray) -> np.ndarray:
    """Share of the unit disk to the left of x."""
    x = np.clip(x, -1.0, 1.0)
    return 0.5 + (x * np.sqrt(1.0 - x**2) + np.arcsin(x)) / np.pi


def clouds() -> dict[str, Cloud]:
    """Return both pairs by name."""
    # Each of the two features moves by 2; no other feature, and no direction, by more.
    torn = {"frot": 4.0, "srw": 8.0, "max_sliced": 4.0, "ot": 8.0}
    return {
        "hypercube": Cloud("fragmented hypercube", hypercube, torn),
        "annulus": Cloud("disk to annulus", annulus, annulus_truth()),
    }


CLOUDS = clouds()
