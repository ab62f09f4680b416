"""Matching two images as it is usually written: every channel interpolated, every cost stacked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from frot.correspondence._features import FeatureMap

__all__ = ["plain_plan", "plain_stack", "synthetic_maps"]

# ResNet-101 on an image of 300 x 225: the stem and 33 bottlenecks, 32,576 channels.
GRIDS = [(75, 57)] * 4 + [(38, 29)] * 4 + [(19, 15)] * 23 + [(10, 8)] * 3
CHANNELS = [64] + [256] * 3 + [512] * 4 + [1024] * 23 + [2048] * 3
FIELDS = 24


def synthetic_maps(shrink: int = 1) -> tuple[list[FeatureMap], list[FeatureMap]]:
    """Maps of the sizes of ResNet-101's: smooth fields of a scene, seen from two places, in noise.

    `shrink` divides the channels and the sides of the grids.
    """
    rng = np.random.default_rng(0)
    rough = torch.tensor(rng.normal(size=(1, FIELDS, 24, 20)))
    scene = functional.interpolate(rough, (83, 65), mode="bicubic", align_corners=True)
    views = scene[:, :, :75, :57], scene[:, :, 5:80, 7:64]
    pair: tuple[list[FeatureMap], list[FeatureMap]] = ([], [])
    for layer, ((h, w), c) in enumerate(zip(GRIDS, CHANNELS, strict=True)):
        size = (max(1, h // shrink), max(1, w // shrink))
        channels = max(1, c // shrink)
        spread = rng.normal(size=(channels, FIELDS)) / np.sqrt(FIELDS)
        for view, maps in zip(views, pair, strict=True):
            seen = functional.interpolate(view, size, mode="area")[0].numpy()
            noise = rng.normal(size=(channels, *size))
            values = np.maximum(np.tensordot(spread, seen, 1) + 0.5 * noise, -0.5)
            maps.append(FeatureMap(f"layer{layer}", values.astype("float32"), 4 * 75 / h, 11))
    return pair


def plain_stack(source: Sequence[FeatureMap], target: Sequence[FeatureMap]) -> np.ndarray:
    """Return all costs, (L, n, m) in single precision."""
    sizes = [maps[0].values.shape[1:] for maps in (source, target)]
    n, m = (h * w for h, w in sizes)
    stack = np.empty((len(source), n, m), dtype="float32")
    for cost, *pair in zip(stack, source, target, strict=True):
        X, Y = (
            functional.normalize(
                functional.interpolate(
                    torch.from_numpy(one.values)[None], size, mode="bilinear", align_corners=True
                )[0].flatten(1),
                dim=0,
            ).numpy()
            for one, size in zip(pair, sizes, strict=True)
        )
        np.matmul(X.T, Y, out=cost)
        cost *= -2.0
        cost += 2.0
    return stack


def plain_plan(
    stack: np.ndarray, eta: float, eps: float, steps: int, tol: float
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """The paper's algorithm 2 on the stack; return plan, phi, error and sweeps."""
    count, n, m = stack.shape
    flat = stack.reshape(count, n * m)
    plan = np.full((n, m), 1.0 / (n * m), dtype="float32")
    phi = flat @ plan.ravel()
    v, worst, sweeps = np.ones(m, dtype="float32"), 0.0, 0
    for step in range(steps):
        alpha = np.exp((phi - phi.max()) / eta)
        kernel = ((alpha / alpha.sum()).astype("float32") @ flat).reshape(n, m)
        kernel /= -eps
        np.exp(kernel, out=kernel)
        while True:
            u = (1.0 / n) / (kernel @ v)
            columns = u @ kernel
            error = float(np.abs(v * columns - 1.0 / m).sum())
            if error <= tol:
                break
            v, sweeps = (1.0 / m) / columns, sweeps + 1
        kernel *= u[:, None]
        kernel *= v
        gamma = 2.0 / (2.0 + step)
        plan *= 1.0 - gamma
        kernel *= gamma
        plan += kernel
        phi = flat @ plan.ravel()
        worst = max(worst, error)
    return plan, phi, worst, sweeps
