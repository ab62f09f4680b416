"""The tab *Photographs*: two photographs in; a point, its heat map and masks of A found in B."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError, collect_warnings, require

if TYPE_CHECKING:
    from frot.correspondence import Match


@dataclass(frozen=True, eq=False)
class Found:
    """What belongs to one visitor: a match, and the folder that its files are in."""

    match: Match
    folder: Path

    @classmethod
    def of(cls, match: Match, root: str | Path | None = None) -> Found:
        """Keep a match, with a new folder below `root`."""
        return cls(match, Path(tempfile.mkdtemp(prefix="match-", dir=root)))

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


# Colours of marks and masks: Okabe and Ito's orange, blue.
MARK, MASK = (213, 94, 0), (0, 114, 178)


def example_photos() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a photograph, the same bent like rubber, and a mask of an object in the first.

    The cat of scikit-image where that is installed, otherwise the temple of scikit-learn.

    Examples
    --------
    >>> first, second, mask = example_photos()
    >>> first.shape == second.shape, mask.shape == first.shape[:2]
    (True, True)
    """
    from frot.correspondence import random_thin_plate

    try:
        from skimage.data import chelsea

        photo, (x, y, width, height) = chelsea(), (245, 155, 130, 115)
    except ImportError:
        samples = require("sklearn.datasets", "selection")
        photo, (x, y, width, height) = samples.load_sample_image("china.jpg"), (320, 190, 140, 100)
    rows, columns = np.mgrid[: photo.shape[0], : photo.shape[1]]
    mask = ((columns - x) / width) ** 2 + ((rows - y) / height) ** 2 <= 1.0
    return photo, random_thin_plate(photo.shape[:2], 0.7, 1).apply(photo), mask


def match_photos(first: Any, second: Any, side: float = 256) -> Match:
    """Match two photographs, their longer sides brought to `side` pixels."""
    if first is None or second is None:
        raise InputError("give two photographs, A and B, or take the example")
    from frot.correspondence import Matcher, read_photo

    pair = (first, "A"), (second, "B")
    source, target = (
        read_photo(one, name if isinstance(one, np.ndarray) else None) for one, name in pair
    )
    with collect_warnings():
        return Matcher(side=int(side))(source, target)


def show_point(match: Match, point: Any) -> tuple[np.ndarray, np.ndarray, str]:
    """Return A with a point marked, B with its heat map and the place found, and a sentence."""
    x, y = (float(one) for one in point)
    moved = match.transfer([[x, y]])
    (u, v), sure = moved.points[0], float(moved.confidence[0])
    heat = match.heatmap([x, y])[..., None]
    # A spotlight: what is not meant is dark, whatever colours the photograph has.
    after = (0.35 + 0.65 * heat) * match.target.pixels + 0.25 * heat * np.array(MARK) / 255.0
    said = f"({x:.0f}, {y:.0f}) in A is ({u:.0f}, {v:.0f}) in B, with confidence {sure:.0%}."
    before = _marked(_bytes(match.source.pixels), x, y)
    return before, _marked(_bytes(after), float(u), float(v)), said


def move_mask(match: Match, mask: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return B with the object of a mask of A laid over it, and the mask of B, bool (H, W).

    The mask is a bool array or a picture, white where the object is, as large as A.
    """
    if not isinstance(mask, np.ndarray):
        from frot.correspondence import read_photo

        mask = read_photo(mask).pixels.mean(axis=2) > 0.5
    if mask.shape != match.source.size:
        (h, w), (height, width) = mask.shape, match.source.size
        raise InputError(f"mask: is {w} x {h} pixels, and A is {width} x {height}; give one as A")
    found = match.transfer_mask(mask)
    tint = np.where(found[..., None], np.array(MASK) / 255.0, match.target.pixels)
    return _bytes(0.5 * match.target.pixels + 0.5 * tint), found


def write_files(match: Match, folder: Path) -> list[str]:
    """Write what is there to download: a page to click on, the match itself, A in B's frame."""
    page = match.write_page(folder / "match.html", call=python_of(match, None, None))
    return [str(one) for one in (page, match.save(folder / "match.npz"),
                                 match.warp().save(folder / "a_on_b.png"))]  # fmt: skip


def python_of(match: Match, point: Any, side: Any) -> str:
    """Return the Python that does the same."""
    given = f"side={int(side)}" if side else ""
    names = [photo.name if "." in photo.name else f"{letter}.jpg"
             for photo, letter in ((match.source, "a"), (match.target, "b"))]  # fmt: skip
    lines = [
        "from frot.correspondence import Matcher",
        "",
        f"match = Matcher({given})({names[0]!r}, {names[1]!r})",
        "match.alpha  # weights of the layers",
    ]
    if point is not None:
        x, y = (int(one) for one in point)
        lines += [f"match.transfer([[{x}, {y}]]).points", f"match.heatmap([{x}, {y}])"]
    return "\n".join([*lines, "match.transfer_mask(mask)  # bool, as large as A"])


def _bytes(pixels: np.ndarray) -> np.ndarray:
    return (255.0 * np.clip(pixels, 0.0, 1.0)).round().astype(np.uint8)


def _marked(pixels: np.ndarray, x: float, y: float) -> np.ndarray:
    """Return a picture with a ring around a place."""
    image = require("PIL.Image", "correspondence").fromarray(pixels)
    draw = require("PIL.ImageDraw", "correspondence").Draw(image)
    radius = max(4.0, max(pixels.shape) / 60.0)
    for grow, colour in ((2.0, (255, 255, 255)), (0.0, MARK)):
        size = radius + grow
        box = [x - size, y - size, x + size, y + size]
        draw.ellipse(box, outline=colour, width=max(2, int(radius / 3)))
    return np.asarray(image)
