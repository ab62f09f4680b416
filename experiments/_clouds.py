"""Pairs of clouds with two informative features among noise, and every method's true value.

Noise of the same distribution on both sides changes none of the true values: a plan that leaves it
where it is pays nothing for it, in whatever direction. What changes is how far a sample is off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import ortho_group

INFORMATIVE = 2

Points = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Draw:
    """One draw, to be measured; `turned` mixes the noise into every feature by a rotation."""

    cloud: str
    n: int
    noise: int
    level: float
    seed: int
    turned: bool = False

    @property
    def key(self) -> str:
        return " ".join(map(str, vars(self).values()))


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
    """Integrate the annulus's true values: radii are moved in order, lines are sorted."""
    share = (np.arange(grid) + 0.5) / grid
    # Of the mass within radius r of the disk r^2, of the annulus's (r^2 - 4) / 5.
    whole = float(np.mean((np.sqrt(4.0 + 5.0 * share) - np.sqrt(share)) ** 2))
    x = np.linspace(-3.0, 3.0, grid)
    disk = _left_of(x)
    ring = (9.0 * _left_of(x / 3.0) - 4.0 * _left_of(x / 2.0)) / 5.0
    line = float(np.mean((np.interp(share, disk, x) - np.interp(share, ring, x)) ** 2))
    return {"frot": whole / 2.0, "srw": whole, "max_sliced": line, "ot": whole}


def _left_of(x: np.ndarray) -> np.ndarray:
    """Share of the unit disk to the left of x."""
    x = np.clip(x, -1.0, 1.0)
    return 0.5 + (x * np.sqrt(1.0 - x**2) + np.arcsin(x)) / np.pi


CLOUDS = {"hypercube": hypercube, "annulus": annulus}
NAMES = {"hypercube": "fragmented hypercube", "annulus": "disk to annulus"}
# Each of the hypercube's features moves by 2; no other feature, and no direction, by more.
TRUTH = {
    "hypercube": {"frot": 4.0, "srw": 8.0, "max_sliced": 4.0, "ot": 8.0},
    "annulus": annulus_truth(),
}


def sample(draw: Draw) -> tuple[Points, Points]:
    """Return the clouds in their informative features alone, and with the noise.

    A seed gives the same points and the same noise at every level, so that levels can be compared.
    """
    first, second = map(np.random.default_rng, np.random.SeedSequence(draw.seed).spawn(2))
    clean = CLOUDS[draw.cloud](draw.n, first)
    x, y = (
        np.hstack([side, draw.level * second.normal(size=(draw.n, draw.noise))]) for side in clean
    )
    if draw.turned:
        turn = ortho_group.rvs(x.shape[1], random_state=draw.seed)
        x, y = x @ turn, y @ turn
    return clean, (x, y)
