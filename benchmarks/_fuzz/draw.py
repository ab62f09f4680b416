"""Small things to draw: sizes, weights, groups."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Rng", "chance", "groups", "pick", "size", "weights"]

Rng = np.random.Generator

SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12)


def pick(rng: Rng, *choices: Any) -> Any:
    """Draw one of some things."""
    return choices[int(rng.integers(len(choices)))]


def chance(rng: Rng, share: float) -> bool:
    """Whether something happens that does so in this share of cases."""
    return bool(rng.random() < share)


def size(rng: Rng, least: int = 2) -> int:
    """Draw a number of points."""
    return int(pick(rng, *(count for count in SIZES if count >= least)))


def weights(rng: Rng, count: int) -> np.ndarray | None:
    """Draw weights of points as people have them; None is uniform."""
    kind = pick(rng, "none", "none", "dirichlet", "sparse", "ties", "float32", "counts", "one-hot")
    if kind == "none" or count == 1:
        return None
    if kind == "one-hot":
        return np.eye(1, count, int(rng.integers(count)))[0]
    if kind == "float32":
        return np.full(count, 1.0 / count, dtype=np.float32)
    if kind in ("ties", "counts"):
        tallies = rng.integers(1, 4, count) if kind == "ties" else rng.poisson(1.5, count)
        tallies[0] += not tallies.any()
        return tallies / tallies.sum()
    drawn = rng.dirichlet(np.full(count, 1.0 if kind == "dirichlet" else 0.2))
    # Lighter ones count as zero, which is said in a warning.
    drawn[drawn < 1e-12 * drawn.max()] = 0.0
    return drawn / drawn.sum()


def groups(rng: Rng, features: int, covering: bool = False) -> tuple[Any, list[list[int]]]:
    """Draw groups of features: as a user writes them, and their members; or `covering` all."""
    kind = pick(rng, "default", "each", "all", "sizes", "lists", "mapping")
    if kind in ("default", "each"):
        return (None if kind == "default" else "each"), [[at] for at in range(features)]
    if kind == "all":
        return "all", [list(range(features))]
    if kind == "sizes":
        cut = int(rng.integers(1, features + 1))
        sizes = [cut, features - cut] if cut < features else [features]
        ends = np.cumsum([0, *sizes])
        return sizes, [list(range(ends[at], ends[at + 1])) for at in range(len(sizes))]
    members = [
        sorted(rng.permutation(features)[: rng.integers(1, features + 1)].tolist())
        for _ in range(int(rng.integers(1, 5)))
    ]
    left_out = sorted(set(range(features)).difference(*members))
    if covering and left_out:
        members.append(left_out)
    if kind == "mapping":
        return {f"set {at}": member for at, member in enumerate(members)}, members
    return members, members
