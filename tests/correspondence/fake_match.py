"""A match without a network: a real photograph, a known warp of it, and a plan around the truth."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

import frot
from frot import InputError
from frot._base.arrays import Home
from frot.correspondence import Match, Photo, Warped
from frot.correspondence._features import Grid
from frot.correspondence.transfer import Transferring
from tests.correspondence.warps import Warp, scaled

LAYERS = tuple(f"stage{stage}.{block}" for stage, count in ((1, 3), (2, 4), (3, 6), (4, 3))
               for block in range(count))  # fmt: skip


COSTS = dict(zip(LAYERS, np.linspace(0.4, 1.1, len(LAYERS)).tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class FakePhoto:
    pixels: np.ndarray
    name: str

    @property
    def size(self) -> tuple[int, int]:
        return self.pixels.shape[0], self.pixels.shape[1]


@dataclass(frozen=True, eq=False)
class FakeTransfer:
    points: np.ndarray
    confidence: np.ndarray


@dataclass(frozen=True, eq=False)
class FakeMatch:
    """What `Match` promises, with scores that are Gaussian about the true place."""

    source: FakePhoto
    target: FakePhoto
    bent: Warp
    stride: float = 8.0
    side: int = 240
    result: frot.Result | None = None
    source_cam: np.ndarray | None = None
    target_cam: np.ndarray | None = None
    method: str = "frot"
    seconds: float = 0.25
    phi: dict[str, float] | None = field(default_factory=lambda: dict(COSTS))
    agreement: float = 0.5
    reflected: bool = False
    looks: tuple[float, ...] = ()

    to_dict = Match.to_dict

    @cached_property
    def source_ratio(self) -> float:
        return self.side / max(self.source.size)

    @cached_property
    def target_ratio(self) -> float:
        return self.side / max(self.target.size)

    @cached_property
    def source_grid(self) -> Grid:
        return self._grid(self.source.size, self.source_ratio)

    @cached_property
    def target_grid(self) -> Grid:
        return self._grid(self.target.size, self.target_ratio)

    def _grid(self, size: tuple[int, int], ratio: float) -> Grid:
        h, w = (int(side * ratio) for side in size)
        return Grid(int(h // self.stride) + 1, int(w // self.stride) + 1, self.stride, 19.0)

    @cached_property
    def a(self) -> np.ndarray:
        return _bump(self.source_grid)

    @cached_property
    def b(self) -> np.ndarray:
        return _bump(self.target_grid)

    @cached_property
    def alpha(self) -> dict[str, float]:
        weights = np.exp(-0.5 * ((np.arange(len(LAYERS)) - 11) / 2.0) ** 2)
        return dict(zip(LAYERS, (weights / weights.sum()).tolist(), strict=True))

    @cached_property
    def scores(self) -> np.ndarray:
        truth = self.bent.points(self.source_grid.centres / self.source_ratio) * self.target_ratio
        square = ((truth[:, None] - self.target_grid.centres) ** 2).sum(axis=2)
        wide = 8.0 + 10.0 * np.random.default_rng(0).random((len(truth), 1))
        return np.exp(-0.5 * square / wide**2).astype(np.float32)

    @property
    def plan(self) -> np.ndarray:
        return self.a[:, None] * self.scores / self.scores.sum(axis=1, keepdims=True)

    @cached_property
    def carried(self) -> np.ndarray:
        """Displacement and confidence of the cells, a row of them a row."""
        grid, scores = self.source_grid, self.scores
        moves = self.target_grid.centres[scores.argmax(axis=1)] - grid.centres
        sure = np.clip(8.0 * scores.max(axis=1) / scores.sum(axis=1), 0.0, 1.0)
        return np.column_stack([moves, sure]).reshape(grid.h, -1)

    def transfer(self, points: object) -> FakeTransfer:
        """Move points by the mean displacement of the cells that see them."""
        p = np.asarray(points, dtype=float).reshape(-1, 2)
        h, w = self.source.size
        if ((p < 0) | (p > [w - 1, h - 1])).any():
            raise InputError(f"points: lie outside the photograph of {w} x {h} pixels")
        near = p * self.source_ratio
        grid = self.source_grid
        reach = grid.receptive_field // 2
        # A box is an interval of columns times one of rows.
        column, row = (
            np.abs(near[:, [axis]] - grid.stride * np.arange(count)) <= reach
            for axis, count in ((0, grid.w), (1, grid.h))
        )
        sums = (row @ self.carried).reshape(len(p), grid.w, 3)
        means = (column[:, :, None] * sums).sum(axis=1)
        means /= column.sum(axis=1, keepdims=True) * row.sum(axis=1, keepdims=True)
        return FakeTransfer((near + means[:, :2]) / self.target_ratio, means[:, 2])

    @cached_property
    def inverse(self) -> FakeMatch:
        """The same from the bent cat to the cat."""
        back: Any = SimpleNamespace(points=self.bent.origins, origins=self.bent.points)
        return replace(self, source=self.target, target=self.source, bent=back)

    def warp(self, onto: str) -> Warped:
        """The source where it belongs in the target."""
        assert onto == "target"
        return Warped(self.target.pixels, np.ones(self.target.size, dtype=bool))

    def heatmap(self, point: object) -> np.ndarray:
        """Mean of the scores, as shares, of the cells within a stride of the point."""
        grid, (h, w), ratio = self.target_grid, self.target.size, self.target_ratio
        near = np.asarray(point, dtype=float) * self.source_ratio
        apart = np.linalg.norm(self.source_grid.centres - near, axis=1)
        rows = self.scores[apart <= max(self.stride, apart.min())].astype(float)
        cells = (rows / rows.sum(axis=1, keepdims=True)).mean(axis=0).reshape(grid.h, grid.w)
        places = np.mgrid[:h, :w] * ratio / self.stride
        heat = map_coordinates(cells, places, order=1, mode="nearest")
        return (heat / heat.max()).astype(np.float32)


def _bump(grid: Grid) -> np.ndarray:
    """Weights that are heavier in the middle, as of an object there."""
    y, x = np.mgrid[-1 : 1 : grid.h * 1j, -1 : 1 : grid.w * 1j]
    mass = np.where(x**2 + y**2 < 0.5, 1.0, 0.5).ravel()
    return mass / mass.sum()


@lru_cache(maxsize=4)
def fake_match(stride: float = 8.0, side: int = 240, grow: float = 1.0, **more) -> Any:
    """A cat and the same cat bent, in another size: `grow` is on top of 1.2.

    Goes wherever a `Match` does, which type checkers are not told.
    """
    data = pytest.importorskip("skimage.data", reason="scikit-image is not installed")
    cat = (data.chelsea() / 255.0).astype(np.float32)[:, 40:400]
    h, w = cat.shape[:2]
    larger = 1.2 * grow
    warp = Warp((h, w), (0.03 * w, 0.03 * h), scaled(larger))
    bent = warp.apply(cat, size=(int(h * larger), int(w * larger) + 40))
    result = frot.solve_costs(np.random.default_rng(0).random((3, 5, 5)), eta=0.3)
    return FakeMatch(
        FakePhoto(cat, "cat.png"), FakePhoto(bent, "bent <cat>.png"), warp, stride, side, result,
        **more,
    )  # fmt: skip


@cache
def bent_match(mode: str = "median") -> tuple[Match, Warp]:
    """A real match of small photographs with sharp scores, and the warp that it is about."""
    data = pytest.importorskip("skimage.data", reason="scikit-image is not installed")
    pixels = (data.chelsea() / 255.0).astype(np.float32)[::2, 40:400:2].copy()
    h, w = pixels.shape[:2]
    warp = Warp((h, w), (0.03 * w, 0.03 * h), scaled(1.2))
    bent = warp.apply(pixels, size=(int(1.2 * h), int(1.2 * w) + 20))
    stride, ratio = 8.0, 1.25
    one, other = (
        Grid(int(ratio * photo.shape[0] // stride) + 1, int(ratio * photo.shape[1] // stride) + 1,
             stride, 19.0)
        for photo in (pixels, bent)
    )  # fmt: skip
    truth = warp.points(one.centres / ratio) * ratio
    scores = np.exp(-0.5 * ((truth[:, None] - other.centres) ** 2).sum(axis=2) / 5.0**2)
    plan = scores / scores.sum()
    match = Match(
        Photo(pixels, "cat.png"), Photo(bent, "bent.png"), one, other, ratio, ratio,
        plan.sum(axis=1), plan.sum(axis=0), {"only": 1.0}, None, None, None, "frot", 0.1, None,
        None, Transferring(scores, one, other, Home.of(scores), mode), plan,
    )  # fmt: skip
    return match, warp
