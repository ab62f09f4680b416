"""Warps of real photographs: pairs whose every correspondence is known exactly."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from frot._base.errors import InputError
from frot._base.spelling import second_names
from frot.correspondence._interpolation import sample_image

__all__ = ["Warp", "random_affine", "random_homography", "random_thin_plate"]

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
        origins = self.origins(np.stack([x.ravel(), y.ravel()], axis=1))
        where = origins[:, ::-1].T.reshape(2, h, w)
        warped = sample_image(image.astype(float) if whole else image, where)
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
