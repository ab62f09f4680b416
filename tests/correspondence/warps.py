"""Photographs bent and moved by a formula, so that it is known where every pixel has gone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Warp:
    """Waves across, then waves down, then a homography; each of them has a plain inverse.

    `size` is that of the photograph, (h, w), and `waves` how far they go, across and down, in
    pixels.
    """

    size: tuple[int, int]
    waves: tuple[float, float] = (0.0, 0.0)
    matrix: np.ndarray = field(default_factory=lambda: np.eye(3))

    def points(self, points: Any) -> np.ndarray:
        """Where points of the photograph, (k, 2), are in the warped one."""
        (x, y), (h, w) = np.asarray(points, dtype=float).T, self.size
        x = x + self.waves[0] * np.sin(2 * np.pi * y / h)
        y = y + self.waves[1] * np.sin(2 * np.pi * x / w)
        return project(self.matrix, np.column_stack([x, y]))

    def origins(self, points: Any) -> np.ndarray:
        """Where points of the warped photograph, (k, 2), come from."""
        (x, y), (h, w) = project(np.linalg.inv(self.matrix), np.asarray(points, float)).T, self.size
        y = y - self.waves[1] * np.sin(2 * np.pi * x / w)
        x = x - self.waves[0] * np.sin(2 * np.pi * y / h)
        return np.column_stack([x, y])

    def apply(self, image: np.ndarray, size: tuple[int, int] | None = None) -> np.ndarray:
        """The warped photograph; what comes from beyond its edge is as at the edge."""
        from skimage.transform import warp

        found = warp(
            image, self.origins, output_shape=size, order=1, mode="edge", preserve_range=True
        )
        return found.astype(image.dtype)


def project(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    lifted = points @ matrix[:, :2].T + matrix[:, 2]
    return lifted[:, :2] / lifted[:, 2:]


def scaled(ratio: float) -> np.ndarray:
    """The matrix of a photograph that is so much larger."""
    return np.diag([ratio, ratio, 1.0])


def shifted(x: float, y: float) -> np.ndarray:
    """The matrix of a photograph that is moved."""
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])
