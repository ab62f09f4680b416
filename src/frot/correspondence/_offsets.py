r"""Where the cells of convolutions look, told from maps of images and of their mirror images.

Cell i of a layer with the stride s looks at the pixel :math:`s i + d`, and d is rarely 0: windows
are padded, and networks were trained with another padding or learned to look to one side. Mirrored,
an image of width W has at :math:`s j + d` what is at :math:`W - 1 - s j - d` of the image itself.
Maps and mirrored maps therefore agree best where

.. math:: i + j = (W - 1 - 2 d) / s

which needs no label. Images are of discs that cover each other (dead leaves), as photographs are of
things: on them d is what it is on photographs, within .3 pixels at strides up to 8 and 1 beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from frot._base.errors import InputError
from frot.correspondence._features import Backbone, FeatureMap


def measured_offsets(backbone: Backbone, images: int = 2) -> dict[str, float]:
    """Return where the first cell of each layer looks, in pixels.

    Where that cannot be told it is that of the layer of the same stride before it, or else 0.

    Layers of one stride behind each other have the mean of theirs while they are within a sixth
    of the stride, so that they share their cells.
    """
    strides: dict[str, float] = {}
    told: dict[str, list[float]] = {}
    for seed in range(images):
        image = leaves(seed)
        try:
            both = (backbone.extract(image), backbone.extract(image[:, ::-1].copy()))
        except InputError:
            # It takes images of another size alone.
            return dict.fromkeys(backbone.layers, 0.0)
        for one, mirrored in zip(*both, strict=True):
            strides[one.name] = one.grid.strides[1]
            if (offset := _offset(one, mirrored)) is not None:
                told.setdefault(one.name, []).append(offset)
    alike: list[dict[str, float]] = []
    for name, each in told.items():
        offset, stride = float(np.mean(each)), strides[name]
        first = next(iter(alike[-1])) if alike else name
        if not alike or strides[first] != stride or abs(alike[-1][first] - offset) > stride / 6:
            alike.append({})
        alike[-1][name] = offset
    known = {name: float(np.mean(list(group.values()))) for group in alike for name in group}
    found: dict[str, float] = {}
    last: dict[float, float] = {}
    for name, stride in strides.items():
        # A layer that does not tell lies as the one of its stride before it does.
        found[name] = last[stride] = known.get(name, last.get(stride, 0.0))
    return found


def placed(maps: Sequence[FeatureMap], offsets: dict[str, float]) -> tuple[FeatureMap, ...]:
    """Return maps with the places of their cells, where they do not say these themselves."""
    return tuple(
        one if one.start is not None else replace(one, start=(offsets[one.name],) * 2)
        for one in maps
    )


def _offset(one: FeatureMap, mirrored: FeatureMap, reach: int = 2) -> float | None:
    """Return the offset of a layer, or None where no shift of the mirrored map fits best."""
    F, G = (_unit(np.asarray(layer.values, dtype=float)) for layer in (one, mirrored))
    G, w = G[:, :, ::-1], F.shape[2]
    if w < 4 * reach:
        return None
    own = np.arange(reach, w - reach)
    fit = np.array(
        [(F[:, :, own] * G[:, :, own - k]).sum(axis=0).mean() for k in range(-reach, reach + 1)]
    )
    best = int(fit.argmax())
    # Layers of noise fit within .02 everywhere, those of networks differ by .1 and more.
    if best in (0, 2 * reach) or fit[best] - fit.min() < 0.05:
        return None
    before, top, after = fit[best - 1 : best + 2]
    shift = best - reach + 0.5 * (before - after) / (before - 2.0 * top + after)
    return -0.5 * one.grid.strides[1] * float(shift)


def _unit(values: np.ndarray) -> np.ndarray:
    return values / np.maximum(np.linalg.norm(values, axis=0), 1e-12)


def leaves(seed: int, h: int = 321, w: int = 449, discs: int = 300) -> np.ndarray:
    """Return an image of shaded discs of many greys that cover each other, (h, w, 3) in [0, 1].

    There are as many of half the radius as covers the same area, from 10 to 80 pixels. Both sides
    are one pixel more than multiples of 64, so that cells lie alike in the mirror image.
    """
    rng = np.random.default_rng(seed)
    image = np.full((h, w, 3), 0.5, dtype=np.float32)
    y, x = np.arange(h)[:, None], np.arange(w)
    for _ in range(discs):
        radius = (10.0**-2 + rng.random() * (80.0**-2 - 10.0**-2)) ** -0.5
        across, down = rng.random(2) * (w, h)
        rows = slice(max(int(down - radius), 0), int(down + radius) + 2)
        columns = slice(max(int(across - radius), 0), int(across + radius) + 2)
        right, below = (x[columns] - across) / radius, (y[rows] - down) / radius
        light = rng.normal(0.0, 0.15, size=2)
        shade = (light[0] * right + light[1] * below)[..., None]
        colour = 0.8 * rng.random() + 0.2 * rng.random(3)
        inside = right**2 + below**2 < 1.0
        image[rows, columns][inside] = (colour + shade)[inside]
    return image.clip(0.0, 1.0)
