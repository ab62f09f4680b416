"""Dense flow between the pixels of two photographs, and warps by a formula.

The flow of a match is from points moved on a lattice of whole pixels, all of them in a small
photograph, and bilinear between. A warp makes pairs whose every correspondence is known exactly.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from frot._base.errors import InputError, require
from frot._base.files import check_path, check_writable, replacing, write_archive
from frot._base.spelling import second_names
from frot.correspondence._interpolation import sample_image, sampling
from frot.correspondence._photo import as_bytes

if TYPE_CHECKING:
    from frot.correspondence.match import Match

FLOWS = (".flo", ".npy", ".npz")
IMAGES = (".png", ".webp")
# Points that are moved: every pixel of a photograph of 450 x 330.
MAX_POINTS = 150_000
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
        path = _check_suffix(path, IMAGES)
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
        path = _check_suffix(path, FLOWS)
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
    try:
        if suffix == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return rebuilt(stored)
        if suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            content = path.read_bytes()
            magic, w, h = struct.unpack_from("<fii", content)
            if magic != MAGIC or w < 1 or h < 1:
                raise ValueError("it does not begin as Middlebury's files do")
            values = np.frombuffer(content, "<f4", 2 * h * w, offset=12).reshape(h, w, 2)
    except (KeyError, ValueError, OSError, EOFError, struct.error) as error:
        raise InputError(f"{path} is not a flow, or cut short: {error}") from None
    if values.ndim != 3 or values.shape[2] != 2 or values.dtype.kind not in "fiu":
        raise InputError(f"{path} has shape {values.shape}; a flow has (H, W, 2)")
    valid = np.all(np.abs(values) < UNKNOWN, axis=2)
    known = np.where(valid[..., None], values, 0.0).astype(np.float32)
    return Flow(known, valid.astype(np.float32), valid)


def rebuilt(arrays: Any) -> Flow:
    """Make the flow that `Flow.save` wrote."""
    return Flow(*(arrays[name] for name in ("displacement", "certainty", "valid")))


def flow_of(match: Match) -> Flow:
    """Return where every pixel of a match's source is in its target; see `Match.flow`."""
    (h, w), ratio, read = match.source.size, match.source_ratio, match.transferring
    step = spacing(match.source.size, MAX_POINTS)
    x, y = (_lattice(length, step) for length in (w, h))
    points = ratio * np.stack(np.meshgrid(x, y), axis=-1)
    moved = read.moved(points.reshape(-1, 2)).reshape(points.shape)
    # How sure places are changes slowly: it is asked for twice a stride.
    apart = max(1, int(0.5 * match.source_grid.stride / ratio / step))
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
    return _sampled(image, flow.points)


def _sampled(image: np.ndarray, points: np.ndarray) -> np.ndarray:
    """What an image has at places x and y, (H, W, 2), between its pixels."""
    return sample_image(image, np.moveaxis(points[..., ::-1], -1, 0))


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


# The fixed point of the inverse is taken for found within this many pixels.
_CLOSE = 1e-9
_STEPS = 500


@dataclass(frozen=True, eq=False)
class Warp:
    r"""A smooth map of the plane: thin plates first, then a homography.

    .. math::
        w(p) = H\Big(p + A p + t + \sum_k w_k U(|p - c_k|)\Big), \qquad U(r) = r^2 \log r^2

    Without anchors the middle part is the identity. Points are x, y in pixels counted from zero,
    at the centres of pixels.

    Parameters
    ----------
    matrix : array of shape (3, 3)
        The homography H, on homogeneous points (x, y, 1).
    anchors : array of shape (k, 2)
        The places c where thin plates are held.
    bend : array of shape (k + 3, 2)
        Their coefficients w, then t and the rows of A; see `thin_plate`.

    Examples
    --------
    >>> shift = Warp.shift(8, 0)
    >>> shift.points([[1, 2]])
    array([[9., 2.]])
    >>> shift.apply(np.eye(10))[0, 8:]
    array([1., 0.])
    """

    matrix: np.ndarray = field(default_factory=lambda: np.eye(3))
    anchors: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    bend: np.ndarray = field(default_factory=lambda: np.zeros((3, 2)))

    @staticmethod
    def shift(x: float, y: float) -> Warp:
        """Return the warp that moves everything by (x, y)."""
        return Warp(np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]]))

    @staticmethod
    def thin_plate(anchors: np.ndarray, targets: np.ndarray) -> Warp:
        """Return the thin plate that takes anchors to targets, both of shape (k, 2).

        Of all such maps it has the least bending energy.

        Examples
        --------
        >>> corners = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]])
        >>> warp = Warp.thin_plate(corners, corners + [[1, 0], [0, 0], [0, 0], [0, 0]])
        >>> warp.points(corners).round(9)[:2]
        array([[1., 0.],
               [9., 0.]])
        """
        anchors, targets = np.asarray(anchors, float), np.asarray(targets, float)
        if anchors.shape != targets.shape or anchors.ndim != 2 or anchors.shape[1] != 2:
            raise InputError("targets: must have the shape of anchors, (k, 2)")
        k = len(anchors)
        plane = np.column_stack([np.ones(k), anchors])
        if np.linalg.matrix_rank(plane) < 3:
            raise InputError("anchors: lie on a line; give three or more that do not")
        system = np.zeros((k + 3, k + 3))
        system[:k, :k] = _plate(anchors, anchors)
        system[:k, k:] = plane
        system[k:, :k] = plane.T
        right = np.vstack([targets - anchors, np.zeros((3, 2))])
        return Warp(anchors=anchors, bend=np.linalg.solve(system, right))

    def points(self, points: object) -> np.ndarray:
        """Return where points of the photograph, shape (k, 2), are in the warped one."""
        p = _checked(points)
        return _project(self.matrix, p + self._bend(p))

    def origins(self, points: object) -> np.ndarray:
        """Return where points of the warped photograph, shape (k, 2), come from."""
        flat = _project(np.linalg.inv(self.matrix), _checked(points))
        if not len(self.anchors):
            return flat
        found = flat
        for _ in range(_STEPS):
            found, before = flat - self._bend(found), found
            if np.abs(found - before).max(initial=0.0) <= _CLOSE:
                return found
        raise InputError("warp: bends so much that it folds; move the anchors less far")

    def apply(self, image: np.ndarray, size: tuple[int, int] | None = None) -> np.ndarray:
        """Return the warped photograph.

        Parameters
        ----------
        image : array of shape (h, w) or (h, w, channels)
        size : pair of int, optional
            Height and width of the answer; by default those of the image.

        Returns
        -------
        array
            Bilinearly sampled, of the image's own type: integers are rounded. What comes from
            beyond the image's edge is as at the edge.
        """
        if image.ndim not in (2, 3):
            raise InputError(f"image: has {image.ndim} axes; give (h, w) or (h, w, channels)")
        whole = image.dtype.kind != "f"
        h, w = size or image.shape[:2]
        y, x = np.mgrid[:h, :w]
        origins = self.origins(np.stack([x.ravel(), y.ravel()], axis=1)).reshape(h, w, 2)
        warped = _sampled(image.astype(float) if whole else image, origins)
        return np.rint(warped).astype(image.dtype) if whole else warped

    def _bend(self, p: np.ndarray) -> np.ndarray:
        k = len(self.anchors)
        affine = self.bend[k] + p @ self.bend[k + 1 :]
        return affine + _plate(p, self.anchors) @ self.bend[:k] if k else affine


@second_names
def random_affine(size: tuple[int, int], strength: float = 0.5, random_state: int = 0) -> Warp:
    """Turn, scale, shear and move a photograph of size (h, w) about its middle.

    At strength 1 by up to 30 degrees, a quarter, a fifth and a tenth of the size.

    Examples
    --------
    >>> random_affine((200, 300), strength=0).matrix.tolist() == np.eye(3).tolist()
    True
    """
    _check_strength(strength)
    draw = np.random.default_rng(random_state).uniform(-strength, strength, 6)
    h, w = size
    angle, shear = np.pi / 6 * draw[0], 0.2 * draw[3]
    scale = np.exp(np.log(1.25) * draw[1:3])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    linear = turn @ np.array([[1.0, shear], [0.0, 1.0]]) @ np.diag(scale)
    middle = np.array([(w - 1) / 2, (h - 1) / 2])
    matrix = np.eye(3)
    matrix[:2, :2] = linear
    matrix[:2, 2] = middle - linear @ middle + 0.1 * draw[4:] * [w, h]
    return Warp(matrix)


@second_names
def random_homography(size: tuple[int, int], strength: float = 0.5, random_state: int = 0) -> Warp:
    """Move the four corners of a photograph of size (h, w), each by up to a fifth of it.

    Examples
    --------
    >>> corners = [[0, 0], [299, 0], [299, 199], [0, 199]]
    >>> moved = random_homography((200, 300), random_state=3).points(corners) - corners
    >>> bool((np.abs(moved) <= 0.5 * np.array([60, 40])).all())
    True
    """
    _check_strength(strength)
    h, w = size
    corners = np.array([[0, 0], [w - 1, 0], [w - 1, h - 1], [0, h - 1]], dtype=float)
    draw = np.random.default_rng(random_state).uniform(-strength, strength, (4, 2))
    moved = corners + 0.2 * draw * [w, h]
    rows, right = [], []
    for (x, y), (u, v) in zip(corners, moved, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    return Warp(np.append(np.linalg.solve(rows, right), 1.0).reshape(3, 3))


@second_names
def random_thin_plate(
    size: tuple[int, int], strength: float = 0.5, random_state: int = 0, anchors: int = 4
) -> Warp:
    """Bend a photograph of size (h, w) by moving a grid of anchors at random.

    At strength 1 each moves by up to a quarter of the way to its neighbour, so that nothing folds.

    Examples
    --------
    >>> len(random_thin_plate((200, 300)).anchors)
    16
    """
    _check_strength(strength)
    if anchors < 2:
        raise InputError(f"anchors: {anchors} a side do not span a plate; give two or more")
    h, w = size
    x, y = np.linspace(0, w - 1, anchors), np.linspace(0, h - 1, anchors)
    held = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    reach = 0.25 * np.array([w - 1, h - 1]) / (anchors - 1)
    draw = np.random.default_rng(random_state).uniform(-strength, strength, held.shape)
    return Warp.thin_plate(held, held + reach * draw)


def _check_strength(strength: float) -> None:
    if not 0.0 <= strength <= 1.0:
        raise InputError(f"strength: {strength} is not in [0, 1]")


def _checked(points: object) -> np.ndarray:
    p = np.asarray(points, dtype=float)
    if p.ndim != 2 or p.shape[1] != 2:
        raise InputError(f"points: shape {p.shape} is not (k, 2)")
    return p


def _project(matrix: np.ndarray, p: np.ndarray) -> np.ndarray:
    lifted = p @ matrix[:, :2].T + matrix[:, 2]
    return lifted[:, :2] / lifted[:, 2:]


def _plate(p: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    square = ((p[:, None] - anchors) ** 2).sum(axis=2)
    return square * np.log(np.maximum(square, 1e-300))
