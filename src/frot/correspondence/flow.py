"""Dense flow between the pixels of two photographs.

The flow of a match is from points moved on a lattice of whole pixels, all of them in a small
photograph, and bilinear between.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from frot._base.errors import InputError, require
from frot._base.files import check_path, check_writable, load, replacing, write_archive
from frot.correspondence._interpolation import sample_image, sampling
from frot.correspondence._photo import as_bytes

if TYPE_CHECKING:
    from frot.correspondence.match import Match

# What Middlebury's files begin with, and the least that they have where nothing is known.
MAGIC, UNKNOWN = 202021.25, 1e9


class Warped(NamedTuple):
    """A photograph in the frame of another: its pixels there, and which of them are known."""

    pixels: np.ndarray
    valid: np.ndarray

    def __repr__(self) -> str:
        h, w = self.valid.shape
        return f"Warped({w} x {h} pixels, {self.valid.mean():.0%} known)"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture, .png or .webp, with what is not known transparent."""
        path = _check_suffix(path, (".png", ".webp"))
        colours = as_bytes(np.dstack([self.pixels, self.valid]))
        image = require("PIL.Image", "correspondence").fromarray(colours)
        with replacing(path) as draft:
            image.save(draft, **({"lossless": True} if path.suffix.lower() == ".webp" else {}))
        return path


@dataclass(frozen=True, eq=False)
class Flow:
    r"""Where the pixels of A are in B.

    .. math:: t(x, y) = (x, y) + u(x, y)

    Attributes
    ----------
    displacement : float32 array of shape (H, W, 2)
        u, across and down, in pixels of B less those of A.
    certainty : float32 array of shape (H, W)
        As the confidence of points, from 0 to 1.
    valid : bool array of shape (H, W)
        False where nothing is known, as off a mask, or beyond B.

    Examples
    --------
    >>> flow = Flow.still((2, 3))
    >>> flow.points[1, 2]
    array([2., 1.], dtype=float32)
    """

    displacement: np.ndarray
    certainty: np.ndarray
    valid: np.ndarray

    @classmethod
    def still(cls, size: tuple[int, int]) -> Flow:
        """Return the flow that leaves a photograph of size (H, W) where it is."""
        zeros = np.zeros((*size, 2), dtype=np.float32)
        return cls(zeros, np.ones(size, dtype=np.float32), np.ones(size, dtype=bool))

    def __repr__(self) -> str:
        h, w = self.size
        return f"Flow({w} x {h} pixels, {self.valid.mean():.0%} valid)"

    @property
    def size(self) -> tuple[int, int]:
        """H and W."""
        h, w = self.valid.shape
        return h, w

    @property
    def points(self) -> np.ndarray:
        """Places in B of the pixels of A, x and y, (H, W, 2)."""
        h, w = self.size
        x, y = np.arange(w, dtype=np.float32), np.arange(h, dtype=np.float32)
        return self.displacement + np.stack(np.meshgrid(x, y), axis=-1)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the flow; the file is complete or not there.

        ``.flo`` is Middlebury's format (single precision; 1e10 where the flow is not valid),
        ``.npy`` the displacement alone, of shape (H, W, 2), with NaN there, and ``.npz`` all of
        displacement, certainty and valid.
        """
        path = _check_suffix(path, (".flo", ".npy", ".npz"))
        suffix = path.suffix.lower()
        if suffix == ".npz":
            return write_archive(path, "flow", vars(self))
        with replacing(path) as draft:
            if suffix == ".npy":
                np.save(draft, self._masked(np.nan))
            else:
                h, w = self.size
                head = struct.pack("<fii", MAGIC, w, h)
                draft.write_bytes(head + self._masked(10 * UNKNOWN).astype("<f4").tobytes())
        return path

    def _masked(self, value: float) -> np.ndarray:
        return np.where(self.valid[..., None], self.displacement, np.float32(value))


def _check_suffix(path: str | os.PathLike[str], suffixes: tuple[str, ...]) -> Path:
    path = check_path(path)
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{path} must end in {' or '.join(suffixes)}")
    check_writable(path)
    return path


def read_flow(path: str | os.PathLike[str]) -> Flow:
    """Read a flow from a file that `Flow.save`, or another program, wrote.

    Files of ``.flo`` and ``.npy`` have no certainty: it is 1 where the flow is known, else 0, and
    there the displacement is 0.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "still.flo"
    >>> read_flow(Flow.still((2, 3)).save(path)).size
    (2, 3)
    """
    path = check_path(path)
    if not path.is_file():
        raise InputError(f"{path} does not exist; give the path of a flow")
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return load(path, "flow")
    try:
        if suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            content = path.read_bytes()
            magic, w, h = struct.unpack_from("<fii", content)
            if magic != MAGIC or w < 1 or h < 1:
                raise ValueError("it does not begin as Middlebury's files do")
            values = np.frombuffer(content, "<f4", 2 * h * w, offset=12).reshape(h, w, 2)
    except (ValueError, OSError, EOFError, MemoryError, struct.error) as error:
        raise InputError(f"{path} is not a flow, or cut short: {error}") from None
    if values.ndim != 3 or values.shape[2] != 2 or values.dtype.kind not in "fiu":
        raise InputError(f"{path} has shape {values.shape}; a flow has (H, W, 2)")
    valid = np.all(np.abs(values) < UNKNOWN, axis=2)
    known = np.where(valid[..., None], values, 0.0).astype(np.float32)
    return Flow(known, valid.astype(np.float32), valid)


def rebuilt(arrays: Any) -> Flow:
    """Make the flow that `Flow.save` wrote."""
    return Flow(*(arrays[name] for name in ("displacement", "certainty", "valid")))


def flow_of(match: Match, most: int = 150_000) -> Flow:
    """Return where every pixel of a match's source is in its target; see `Match.flow`.

    At most so many points are moved: every pixel of a photograph of 450 x 330.
    """
    (h, w), ratio, read = match.source.size, match.source_ratio, match.transferring
    step = spacing(match.source.size, most)
    x, y = (_lattice(length, step) for length in (w, h))
    points = ratio * np.stack(np.meshgrid(x, y), axis=-1)
    moved = read.moved(points.reshape(-1, 2)).reshape(points.shape)
    # How sure places are changes slowly: it is asked for twice a stride.
    apart = max(1, int(0.5 * match.source_grid.spacing / ratio / step))
    some = [_lattice(len(line), apart) for line in (y, x)]
    chosen = np.ix_(*some)
    sure, _ = match.sure(points[chosen].reshape(-1, 2), moved[chosen].reshape(-1, 2))
    tall, wide = match.target.size
    places = moved / match.target_ratio
    edge = np.array([wide - 1.0, tall - 1.0])
    inside = ((places >= -0.5) & (places <= edge + 0.5)).all(axis=2)
    moves = np.clip(places, 0.0, edge) - points / ratio
    down, across = _between(y, h), _between(x, w)
    displacement = np.stack([_spread(moves[..., c], down, across) for c in (0, 1)], axis=-1)
    certainty = _spread(
        sure.reshape(len(some[0]), len(some[1])), _between(y[some[0]], h), _between(x[some[1]], w)
    )
    # A pixel is known where all of the lattice around it is.
    valid = _spread(inside.astype(float), down, across) > 1.0 - 1e-6
    valid &= read.votes_at(ratio * np.arange(h), ratio * np.arange(w))
    return Flow(displacement.astype(np.float32), certainty.astype(np.float32), valid)


def look_up(image: np.ndarray, flow: Flow, nearest: bool = False) -> np.ndarray:
    """Return what an image, (h, w) or (h, w, c), has where a flow leads to, (H, W) or (H, W, c).

    Bilinear, or the nearest pixel as it is.

    Examples
    --------
    >>> look_up(np.array([[1, 2, 3]]), Flow.still((1, 2)))
    array([[1, 2]])
    """
    if nearest:
        h, w = image.shape[:2]
        x, y = np.moveaxis(np.rint(flow.points).astype(int), -1, 0)
        return image[np.clip(y, 0, h - 1), np.clip(x, 0, w - 1)]
    return sample_image(image, np.moveaxis(flow.points[..., ::-1], -1, 0))


def spacing(size: tuple[int, int], most: int) -> int:
    """Return the least step in pixels with which a photograph has at most so many points.

    Examples
    --------
    >>> spacing((300, 400), 120_000), spacing((300, 400), 30_000)
    (1, 2)
    """
    step = 1
    while -(-size[0] // step) * -(-size[1] // step) > most:
        step += 1
    return step


def _lattice(length: int, step: int) -> np.ndarray:
    """Every step-th pixel of a line, and the last."""
    return np.unique([*range(0, length, step), length - 1])


def _between(places: np.ndarray, length: int) -> csr_array:
    """The matrix that takes samples at some pixels of a line to all pixels."""
    return csr_array(
        sampling(np.interp(np.arange(length), places, np.arange(len(places))), len(places))
    )


def _spread(values: np.ndarray, down: csr_array, across: csr_array) -> np.ndarray:
    return down @ (across @ values.T).T
