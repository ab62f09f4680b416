"""Photographs: reading, orientation and resizing; red, green and blue in [0, 1]."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from frot._base.contract import refuse_masked
from frot._base.errors import InputError, require
from frot._base.files import check_path
from frot._base.fingerprint import fingerprint
from frot.correspondence._interpolation import interpolation, shrinking

MIN_SIDE = 32
MAX_PIXELS = 89_000_000  # just under what Pillow itself calls a decompression bomb
_COLOURS = (1, 3, 4)  # grey, red green blue, and with opacity


@dataclass(frozen=True, eq=False)
class Photo:
    """A photograph.

    Parameters
    ----------
    pixels : array of shape (H, W, 3)
        Red, green and blue in [0, 1], single precision, upright.
    name : str
        What it is called in messages and pictures.

    Examples
    --------
    >>> Photo(np.zeros((375, 500, 3), dtype="float32"), "cat.jpg").size
    (375, 500)
    """

    pixels: np.ndarray
    name: str = "image"

    @cached_property
    def digest(self) -> str:
        """A hash of the pixels."""
        return fingerprint(pixels=self.pixels)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return int(self.pixels.shape[0]), int(self.pixels.shape[1])

    def check_points(self, points: Any) -> np.ndarray:
        """Return checked points of this photograph, x and y of shape (k, 2)."""
        refuse_masked(points, "points")
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
        height, width = self.size
        low, high = np.array([-0.5, -0.5]), np.array([width - 0.5, height - 0.5])
        bad = ~((found >= low) & (found <= high)).all(axis=1)
        if bad.any():
            x, y = found[bad][0]
            raise InputError(
                f"points: ({x:g}, {y:g}) is outside {self.name}, which is {width} x {height} pixels"
            )
        return found

    def resized(
        self, side: int = 300, enlarge: bool = True, antialias: bool = True
    ) -> tuple[np.ndarray, float]:
        """Return the picture with a longer side of about `side`, and the ratio to this one.

        The ratio r is `side` over the longer side, in single precision, and both sides are cut to
        whole pixels, so that a longer side of 291 gives 299. Bilinear.

        Parameters
        ----------
        side : int
            The longer side that is wanted, in pixels.
        enlarge : bool
            Whether smaller pictures grow; otherwise they are returned as they are, with ratio 1.
        antialias : bool
            Whether all pixels of one that shrinks count, weighed by a triangle as wide as two of
            the new ones, and not only the two next to where it is sampled.

        Returns
        -------
        image : array of shape (h, w, 3)
            Single precision.
        ratio : float
            A point at x here is at `ratio` x there.

        Examples
        --------
        >>> image, ratio = Photo(np.zeros((375, 500, 3), dtype="float32")).resized(300)
        >>> image.shape, round(ratio, 6)
        ((225, 300, 3), 0.6)
        """
        if side < MIN_SIDE:
            raise InputError(f"side is {side}; give at least {MIN_SIDE} pixels")
        height, width = self.size
        ratio = np.float32(side / max(height, width))
        if ratio >= 1 and not enlarge:
            return self.pixels, 1.0
        # The product is in single precision too: that is what decides between 299 and 300.
        h, w = int(np.float32(height) * ratio), int(np.float32(width) * ratio)
        # Below it cells at stride 4 would be fewer than two.
        if min(h, w) < 8:
            raise InputError(
                f"{self.name} is {width} x {height} pixels and would be {w} x {h} at side={side}; "
                "crop it or give a larger side"
            )
        return _resized(self.pixels, h, w, antialias), float(ratio)


def _resized(pixels: np.ndarray, h: int, w: int, antialias: bool) -> np.ndarray:
    """Interpolate the rows, then the columns.

    Few samples count in each place, so matrices without their zeros make short work of photographs
    that are ten times larger than what is matched.
    """
    for new in (h, w):
        old = pixels.shape[0]
        if new != old:
            matrix = shrinking(old, new) if antialias else interpolation(old, new, False)
            matrix = csr_array(matrix.astype(np.float32))
            pixels = (matrix @ pixels.reshape(old, -1)).reshape(new, *pixels.shape[1:])
        pixels = pixels.swapaxes(0, 1)
    return np.ascontiguousarray(pixels)


def as_bytes(pixels: np.ndarray) -> np.ndarray:
    """Return pixels in [0, 1] as bytes: a quarter of the memory, and all that a screen shows.

    Examples
    --------
    >>> as_bytes(np.array([-0.1, 0.5, 1.0]))
    array([  0, 128, 255], dtype=uint8)
    """
    return (255.0 * np.clip(pixels, 0.0, 1.0)).round().astype(np.uint8)


def is_blank(image: np.ndarray, least: float = 2.0 / 255.0) -> bool:
    """Whether an image, (h, w, 3) in [0, 1], has no content: one colour, or an even slope.

    What JPEG does to a wall of one colour has less than the `least` contrast.

    Examples
    --------
    >>> is_blank(np.full((40, 60, 3), 0.5)), is_blank(np.eye(40)[..., None] * np.ones(3))
    (True, False)
    """
    h, w = image.shape[:2]
    even = np.full(h * w, 1.0 / (h * w), dtype=np.float32)
    rest = np.asarray(image, dtype=np.float32)
    rest = np.ascontiguousarray(rest - even @ rest.reshape(h * w, -1))
    # The lines across and down are at right angles to each other and to the mean, so that what is
    # left has the variance less what each of them has.
    squares = float(np.vdot(rest, rest)) / rest.size
    for pixels, count in ((rest.reshape(h, -1), h), (rest.sum(axis=0), w)):
        line = np.linspace(-1.0, 1.0, count)
        sums = (line @ pixels.astype(float)).reshape(-1, rest.shape[2]).sum(axis=0)
        along = float((line**2).sum()) * (h * w / count)
        squares -= float((sums**2).sum()) / along / rest.size
    return max(squares, 0.0) ** 0.5 < least


def read_photo(source: Any, name: str | None = None) -> Photo:
    """Read a photograph from wherever it is.

    Parameters
    ----------
    source : path, PIL image, array, torch tensor or Photo
        Files and PIL images may be grey, RGB, with a palette or a transparent background (laid
        over white), CMYK or of 16 bits, and are turned upright as their EXIF data say. Whole
        numbers in Pillow's mode "I" are of 8 bits if none is over 255, and of 16 otherwise; in
        mode "I;16" they always are of 16. Arrays are (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), of
        uint8, uint16, bool, or floats. Floats, also in mode "F", are in [0, 1]; others are refused.
        Tensors of torch, on any device, may have their colours first, as (3, H, W) or
        (1, 3, H, W), with 1, 3 or 4 of them.
    name : str, optional
        What to call it; by default the name of the file, or "image".

    Raises
    ------
    InputError
        If it is missing or no picture, if a side is under 32 pixels, or if there are more than 89
        million pixels.

    Examples
    --------
    >>> read_photo(np.full((40, 60), 255, dtype="uint8")).pixels[0, 0].tolist()
    [1.0, 1.0, 1.0]
    """
    if isinstance(source, Photo):
        return source if name is None else Photo(source.pixels, name)
    if isinstance(source, str | os.PathLike):
        called = name or Path(source).name
        source = _read_file(check_path(source, "image"))
    elif hasattr(source, "getbands") and hasattr(source, "convert"):
        called = name or Path(str(getattr(source, "filename", "") or "image")).name
        source = _from_pil(source, called)
    else:
        called = name or "image"
        if (torch := sys.modules.get("torch")) is not None and torch.is_tensor(source):
            source = _from_tensor(source)
    pixels = np.ascontiguousarray(_from_array(source, called), dtype=np.float32)
    photo = Photo(pixels, called)
    if isinstance(source, np.ndarray) and source.dtype == np.uint8:
        # They say the same in a quarter of the bytes.
        vars(photo)["digest"] = fingerprint(pixels=source)
    return photo


def _read_file(path: Path) -> np.ndarray:
    pil = require("PIL.Image", "correspondence")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the path of a picture")
    if not path.exists():
        raise InputError(f"{path} does not exist; give the path of a picture")
    try:
        with warnings.catch_warnings():
            # Sizes are checked here, against one limit, by an error.
            warnings.simplefilter("ignore", pil.DecompressionBombWarning)
            with pil.open(path) as image:
                return _from_pil(image, path.name)
    except pil.DecompressionBombError:
        raise InputError(_too_large(path.name)) from None
    except pil.UnidentifiedImageError:
        raise InputError(f"{path} is not a picture that Pillow can read") from None
    except InputError:
        raise
    # Damaged files make Pillow's decoders raise all of these.
    except (OSError, SyntaxError, ValueError, EOFError, IndexError) as error:
        raise InputError(f"{path} cannot be read, it may be cut short: {error}") from None


def _from_pil(image: Any, name: str) -> np.ndarray:
    pil = require("PIL.Image", "correspondence")
    upright = require("PIL.ImageOps", "correspondence").exif_transpose
    _check_size(image.height, image.width, name)
    image = upright(image)
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 65535:
            raise InputError(f"{name} has values beyond 16 bits; give an array in [0, 1] instead")
        # Mode "I" has room for any range, and holds what was converted to it as it was.
        eight = image.mode == "I" and values.max() <= 255
        return values.astype(np.uint8 if eight else np.uint16)
    if image.mode == "F":
        return np.asarray(image)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = pil.new("RGBA", image.size, (255, 255, 255, 255))
        image = pil.alpha_composite(white, image)
    try:
        image = image.convert("RGB")
    except ValueError:
        raise InputError(f"{name} has mode {image.mode}; convert it to RGB first") from None
    return np.asarray(image)


def _from_tensor(tensor: Any) -> np.ndarray:
    """Return the array of a tensor of torch, the colours of which may come first."""
    tensor = tensor.detach().cpu()
    if tensor.ndim == 4 and tensor.shape[0] == 1:
        tensor = tensor[0]
    if tensor.is_floating_point():
        # NumPy has no bfloat16.
        tensor = tensor.float()
    first = tensor.ndim == 3 and tensor.shape[0] in _COLOURS and tensor.shape[2] not in _COLOURS
    return (tensor.permute(1, 2, 0) if first else tensor).numpy()


def _from_array(source: Any, name: str) -> np.ndarray:
    refuse_masked(source, name)
    try:
        values = np.asarray(source)
    except Exception:
        values = np.asarray(None)
    if values.dtype.kind not in "buf" or (values.dtype.kind == "u" and values.itemsize > 2):
        raise InputError(
            f"{name} has type {type(source).__name__} of {values.dtype}; give a path, a PIL image, "
            "or an array of uint8, uint16, or floats in [0, 1]"
        )
    if values.ndim == 4 and values.shape[0] > 1:
        raise InputError(
            f"{name} has shape {values.shape}, a batch of {values.shape[0]} photographs; give one "
            "of them"
        )
    if values.ndim == 2:
        values = values[:, :, None]
    if values.ndim != 3 or values.shape[2] not in _COLOURS:
        hint = "; move the colours to the last axis" if values.shape[:1] in ((1,), (3,)) else ""
        raise InputError(
            f"{name} has shape {np.shape(source)}; give (H, W), (H, W, 3) or (H, W, 4){hint}"
        )
    _check_size(values.shape[0], values.shape[1], name)
    if values.dtype.kind == "f":
        low, high = float(values.min()), float(values.max())
        if not np.isfinite(low) or not np.isfinite(high):
            raise InputError(f"{name} holds values that are not finite; replace them first")
        # Interpolation elsewhere overshoots by rounding; anything more is another scale.
        if low < -1e-3 or high > 1 + 1e-3:
            # Bytes as floats are what most of these are; a network's input has a mean taken off.
            fix = "divide by 255, or give uint8" if low >= 0.0 and high > 2.0 else (
                "bring them to [0, 1], or give uint8"
            )  # fmt: skip
            raise InputError(f"{name} has floats from {low:g} to {high:g}; {fix}")
        values = np.clip(values.astype(np.float32), 0.0, 1.0)
    elif values.dtype.kind == "u":
        values = values.astype(np.float32) / np.float32(np.iinfo(values.dtype).max)
    else:
        values = values.astype(np.float32)
    if values.shape[2] == 1:
        return np.repeat(values, 3, axis=2)
    if values.shape[2] == 4:
        opacity = values[:, :, 3:]
        return values[:, :, :3] * opacity + (1 - opacity)
    return values


def _check_size(height: int, width: int, name: str) -> None:
    if min(height, width) < MIN_SIDE:
        raise InputError(
            f"{name} is {width} x {height} pixels; give at least {MIN_SIDE} pixels a side"
        )
    if height * width > MAX_PIXELS:
        raise InputError(_too_large(name))


def _too_large(name: str) -> str:
    return f"{name} has more than {MAX_PIXELS:,} pixels, the limit; make it smaller first"
