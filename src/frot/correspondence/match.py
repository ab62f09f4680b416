"""What matching two photographs gives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot._base.errors import InputError
from frot.correspondence._features import Grid
from frot.correspondence._photo import Photo
from frot.correspondence.transfer import Transfer, Transferring
from frot.problem.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Match"]


@dataclass(frozen=True, eq=False, repr=False)
class Match:
    """Two matched photographs: moves points from A to B, and says how sure it is and why.

    Attributes
    ----------
    source, target : Photo
        A and B.
    source_grid, target_grid : Grid
        Their n and m cells, in pixels of the resized photographs.
    source_ratio, target_ratio : float
        Pixels of the resized photograph a pixel of the one on disk.
    a, b : arrays of shape (n,) and (m,)
        Weights of the cells.
    alpha, phi : dicts
        Weights of the layers by name, and what the plan costs in each.
    prior : dict, optional
        The weights that the adversary started from, where it had some.
    result : Result, optional
        The transport: interval, status, potentials. None for methods without one.
    method : str
    seconds : float
        For everything, features included.
    source_cam, target_cam : arrays of shape (H, W), optional
        Where the network's classifier looks, from 0 to 1, over the photographs' own pixels.
    """

    source: Photo
    target: Photo
    source_grid: Grid
    target_grid: Grid
    source_ratio: float
    target_ratio: float
    a: np.ndarray
    b: np.ndarray
    alpha: dict[str, float]
    phi: dict[str, float] | None
    prior: dict[str, float] | None
    result: Result | None
    method: str
    seconds: float
    source_cam: np.ndarray | None
    target_cam: np.ndarray | None
    transferring: Transferring
    raw_plan: Any

    @property
    def home(self) -> Home:
        """Where the scores live."""
        return self.transferring.home

    @cached_property
    def scores(self) -> np.ndarray:
        """How strongly cells are matched, after Hough matching where asked, (n, m)."""
        return to_numpy(self.transferring.scores).astype(np.float32, copy=False)

    @cached_property
    def plan(self) -> np.ndarray | None:
        """The transport plan between cells, (n, m); None for methods without one."""
        return None if self.raw_plan is None else to_numpy(self.raw_plan)

    def transfer(self, points: Any) -> Transfer:
        """Move points of A to B.

        Parameters
        ----------
        points : array of shape (k, 2)
            x and y in pixels of A as it is on disk, upright, counted from zero.

        Returns
        -------
        Transfer
            ``points``, (k, 2), in pixels of B, within it; ``confidence``, (k,).
        """
        moved = self.transferring(self.source_ratio * self._checked(points))
        height, width = self.target.size
        inside = np.clip(moved.points / self.target_ratio, 0.0, [width - 1.0, height - 1.0])
        return Transfer(inside, moved.confidence)

    def heatmap(self, point: Any) -> np.ndarray:
        """Return how strongly every pixel of B is matched with a point of A, (H, W), at most 1."""
        at = self.source_ratio * self._checked([point])[0]
        return self.transferring.heatmap(at, self.target.size, self.target_ratio)

    def _checked(self, points: Any) -> np.ndarray:
        try:
            found: np.ndarray = np.asarray(points, dtype=float)
        except (TypeError, ValueError):
            found = np.asarray(None)
        if found.ndim != 2 or found.shape[1] != 2:
            raise InputError(
                "points: must be pairs of x and y, of shape (k, 2), such as [[120, 80], [60, 200]]"
            )
        if np.isnan(found).any():
            raise InputError("points: have coordinates that are not numbers; drop those points")
        height, width = self.source.size
        low, high = np.array([-0.5, -0.5]), np.array([width - 0.5, height - 0.5])
        bad = ~((found >= low) & (found <= high)).all(axis=1)
        if bad.any():
            x, y = found[bad][0]
            raise InputError(
                f"points: ({x:g}, {y:g}) is outside {self.source.name}, which is {width} x "
                f"{height} pixels"
            )
        return found

    def plot(self, points: Any = None, **options: Any) -> Figure:
        """Draw the photographs side by side with points and where they go."""
        from frot.correspondence.pictures import plot_matches

        return plot_matches(self, points, **options)

    def write_page(self, path: str | Path, **options: Any) -> Path:
        """Write a page where one clicks a point in A and sees it in B."""
        from frot.correspondence.page import write_match_page

        return write_match_page(self, path, **options)

    def __repr__(self) -> str:
        top = sorted(self.alpha.items(), key=lambda item: -item[1])[:3]
        layers = ", ".join(f"{name} {weight:.2f}" for name, weight in top)
        return f"Match({self.source.name} -> {self.target.name}, {self.method}; {layers})"
