"""Hypothesis generators of problems: ties, zeros, duplicated groups, odd weights, all scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis.extra import numpy as hnp

__all__ = ["SCALES", "Given", "cost_problems", "group_lists", "marginals", "point_clouds", "seeds"]

SCALES = (1e-6, 1e-3, 1.0, 1e3, 1e6)

seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True, eq=False)
class Given:
    """A drawn problem: costs (L, n, m) and weights that sum to one."""

    stack: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def __repr__(self) -> str:
        parts = (np.array2string(x, floatmode="unique") for x in (self.stack, self.a, self.b))
        return "Given({})".format(", ".join(parts))


@st.composite
def marginals(draw: Any, size: int, *, zeros: bool = True) -> np.ndarray:
    """Weights of `size` points: uniform, tied, uneven, tiny, or zero here and there."""
    kind = draw(st.sampled_from(["uniform", "counts", "uneven"]))
    if kind == "uniform":
        return np.full(size, 1.0 / size)
    if kind == "counts":
        least = 0 if zeros else 1
        counts = np.array(draw(st.lists(st.integers(least, 3), min_size=size, max_size=size)))
        counts = counts if counts.any() else np.ones(size)
        return counts / counts.sum()
    powers = st.floats(-9.0, 0.0, allow_nan=False)
    uneven = 10.0 ** np.array(draw(st.lists(powers, min_size=size, max_size=size)))
    return uneven / uneven.sum()


@st.composite
def cost_problems(
    draw: Any,
    *,
    most_points: int = 5,
    most_groups: int = 4,
    negative: bool = False,
    scaled: bool = True,
    zeros: bool = True,
) -> Given:
    """A stack of costs that is likely to have ties, zeros and equal groups, with weights."""
    n, m = draw(st.integers(1, most_points)), draw(st.integers(1, most_points))
    count = draw(st.integers(1, most_groups))
    least = -4 if negative else 0
    whole = st.integers(least, 4).map(float)
    real = st.floats(float(least), 4.0, allow_nan=False, allow_subnormal=False)
    elements = whole if draw(st.booleans()) else real.map(lambda x: round(x, 6))
    stack = draw(hnp.arrays(float, (count, n, m), elements=elements))
    if count > 1 and draw(st.booleans()):
        stack[-1] = stack[0]
    scale = draw(st.sampled_from(SCALES)) if scaled else 1.0
    a, b = draw(marginals(n, zeros=zeros)), draw(marginals(m, zeros=zeros))
    return Given(stack * scale, a, b)


@st.composite
def group_lists(
    draw: Any, features: int, *, overlap: bool = True, covering: bool = False
) -> list[list[int]]:
    """Groups of features as lists of columns; `covering` ones leave none out."""
    if not overlap:
        cuts = sorted(draw(st.sets(st.integers(1, max(1, features - 1)), max_size=3)))
        parts = np.split(np.arange(features), cuts)
        return [part.tolist() for part in parts if len(part)]
    member = st.lists(st.integers(0, features - 1), min_size=1, max_size=features, unique=True)
    groups = draw(st.lists(member, min_size=1, max_size=4))
    left_out = sorted(set(range(features)).difference(*groups))
    return [*groups, left_out] if covering and left_out else groups


@st.composite
def point_clouds(
    draw: Any, *, clouds: int = 2, most_points: int = 6, most_features: int = 5
) -> list[np.ndarray]:
    """Some sets of points with the same features: on a grid, so with ties, or normal."""
    features = draw(st.integers(1, most_features))
    sizes = [draw(st.integers(1, most_points)) for _ in range(clouds)]
    rng = np.random.default_rng(draw(seeds))
    if draw(st.booleans()):
        return [rng.integers(0, 3, (size, features)).astype(float) for size in sizes]
    return [rng.normal(size=(size, features)) for size in sizes]
