"""Hough matching: votes weighed by how many others agree; tests of reflection and rigidity.

After the probabilistic Hough matching of Cho et al. 2015, regularised as in Min et al. 2019a.

What stands still in both photographs moves by the same displacement all over, and votes for that
one are worth more. Where things face opposite ways no displacement is common, but the sum of the
places across is: right matches lie on a reflection. Votes are counted both ways, and which of the
two counts has the higher peak says, without labels, which it is: mostly by one look, and where
that leaves it open by a second look at the source, mirrored (`frot.correspondence._looks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.correspondence._features import Grid

# The smoothing's spread and reach in bins, as in the original.
NARROW = (7 / 2.0 / 2.354, 3)
AUTO = "auto"


@dataclass(frozen=True)
class Rule:
    """What "auto" does, chosen on pairs of cars and of four species of birds with two networks.

    Attributes
    ----------
    strength, rigid_strength, rigid : float
        The strength, of pairs that bend and of those that are more rigid than so much.
    wide : (float, int)
        The smoothing: wider than the original's, so that votes for far places lose and those for
        close ones are not moved.
    open, confirmed : float
        From this evidence on it is open which way things face, and the source is looked at
        mirrored; the evidence of both looks together has to exceed the second. What is its own
        mirror image has as much for a reflection in the one as against it in the other.
    reflected : float
        Where there is no second look the first has to exceed this.
    """

    strength: float = 0.5
    rigid_strength: float = 0.75
    rigid: float = 0.1
    wide: tuple[float, int] = (3.0, 9)
    open: float = -0.75
    confirmed: float = 1.0
    reflected: float = -0.5


RULE = Rule()
# Places, x and y, mirrored: right matches of a reflection have their displacement from there in
# common.
MIRRORED = np.array([-1.0, 1.0])


def hough_bins(
    source_size: tuple[int, int], target_size: tuple[int, int], bins: int = 8192
) -> tuple[float, int, int]:
    """Return the size of a bin in pixels, and the numbers of bins down and across.

    There are so many bins in all in the original.

    Examples
    --------
    >>> size, down, across = hough_bins((225, 300), (225, 300))
    >>> round(size, 5), across, down
    (5.74099, 105, 79)
    """
    tall = source_size[0] + target_size[0]
    wide = source_size[1] + target_size[1]
    size = float(np.sqrt(tall * wide / bins))
    return size, int(tall / size) + 1, int(wide / size) + 1


@dataclass(frozen=True, eq=False)
class _Counted:
    """Votes, (h_s h_t, w_s w_t), and which rows and columns of them are in which bin."""

    votes: Any
    shape: tuple[int, int, int, int]
    down: Any
    across: Any
    home: Home

    @classmethod
    def of(
        cls, votes: Any, source_grid: Grid, target_grid: Grid, source_size: tuple[int, int],
        target_size: tuple[int, int], home: Home, reflected: bool,
    ) -> _Counted:  # fmt: skip
        # Grids are regular, so the bins of x and of y are found apart, and sums over bins are two
        # products with zeros and ones: no scattering, the same in every library.
        size, count_y, count_x = hough_bins(source_size, target_size)
        (y, x), (y_there, x_there) = source_grid.places, target_grid.places
        one_y = _one_hot(y, y_there, source_size[0], size, count_y, home)
        one_x = _one_hot(x, x_there, source_size[1], size, count_x, home, reflected)
        shape = (source_grid.h, source_grid.w, target_grid.h, target_grid.w)
        turned = home.xp.permute_dims(home.xp.reshape(votes, shape), (0, 2, 1, 3))
        turned = home.xp.reshape(turned, (one_y.shape[0], one_x.shape[0]))
        return cls(turned, shape, one_y, one_x, home)

    def bins(self, votes: Any) -> Any:
        """Sums of votes, arranged as these are, by bin."""
        return self.home.xp.matrix_transpose(self.down) @ votes @ self.across

    def smooth(self, counts: Any, smoothing: tuple[float, int]) -> Any:
        down, across = (self.home.bring(_smoothing(n, *smoothing)) for n in counts.shape)
        return down @ counts @ across

    def peak(self) -> Any:
        """The highest count of squared votes beyond what votes without a preference would give."""
        xp, squares = self.home.xp, self.votes * self.votes
        down, across = (xp.sum(one, axis=0) for one in (self.down, self.across))
        mean = xp.sum(squares) / (self.votes.shape[0] * self.votes.shape[1])
        beyond = self.bins(squares) - mean * down[:, None] * across[None, :]
        return xp.max(self.smooth(beyond, NARROW))

    def scored(self, agreed: Any) -> Any:
        """Votes times what their bins have, (n, m)."""
        xp, (h, w, tall, wide) = self.home.xp, self.shape
        found = self.votes * (self.down @ agreed @ xp.matrix_transpose(self.across))
        found = xp.permute_dims(xp.reshape(found, (h, tall, w, wide)), (0, 2, 1, 3))
        return xp.reshape(found, (h * w, tall * wide))


def hough(
    votes: Any,
    source_grid: Grid,
    target_grid: Grid,
    source_size: tuple[int, int],
    target_size: tuple[int, int],
    home: Home,
    strength: float = 1.0,
    smoothing: tuple[float, int] = NARROW,
    reflected: bool = False,
) -> Any:
    r"""Weigh votes by how much others agree on their displacement.

    .. math::
        \mathrm{score}_{ij} = V_{ij}\, (k * h)(\mathrm{bin}_{ij})^\lambda, \qquad
        h(\beta) = \sum_{\mathrm{bin}_{ij} = \beta} V_{ij}, \qquad
        \mathrm{bin}_{ij} = \Big\lfloor \frac{s - c_i + c_j}{\mathrm{cell}} \Big\rfloor

    with s the size of the source image, c the centres of the cells and k a Gaussian, of 7 x 7 bins
    in the original. Across, reflected votes are counted by :math:`c_i + c_j`, which is common to
    the right matches of things that face opposite ways.

    Parameters
    ----------
    votes : array of shape (n, m)
    source_grid, target_grid : Grid
    source_size, target_size : (h, w)
        Sizes of the images in pixels of the grids.
    home : Home
        Where the votes live.
    strength : float
        The power lambda; 1 is the original's.
    smoothing : (float, int)
        The Gaussian's standard deviation and reach, in bins.
    reflected : bool
        Whether matches lie on a reflection rather than a displacement.

    Returns
    -------
    array of shape (n, m)
    """
    grids, sizes = (source_grid, target_grid), (source_size, target_size)
    counted = _Counted.of(votes, *grids, *sizes, home, reflected)
    agreed = counted.smooth(counted.bins(counted.votes), smoothing)
    if strength != 1.0:
        agreed = home.xp.clip(agreed, 0.0, None) ** strength
    return counted.scored(agreed)


@dataclass(frozen=True, eq=False)
class Matches:
    """The best matches of the source's cells and of the target's, found once for all who ask.

    Attributes
    ----------
    there, back : integer arrays of shape (n,) and (m,)
        The number of the cell of the other side with the most votes.
    voting : bool array of shape (n,)
        Which cells of the source have votes at all.
    source, target : Grid
    """

    there: np.ndarray
    back: np.ndarray
    voting: np.ndarray
    source: Grid
    target: Grid

    @classmethod
    def of(cls, votes: Any, source: Grid, target: Grid, home: Home) -> Matches:
        """Find the matches of votes, (n, m)."""
        xp = home.xp
        best = [xp.argmax(votes, axis=axis) for axis in (1, 0)]
        some = xp.astype(xp.max(votes, axis=1) > 0.0, best[0].dtype)
        # One wait for all.
        found = to_numpy(xp.concat([*best, some]))
        n, m = source.count, target.count
        return cls(found[:n], found[n : n + m], found[n + m :] > 0, source, target)

    @cached_property
    def mutual(self) -> np.ndarray:
        """Which matches lead back to within a cell, (n,)."""
        y, x = np.divmod(np.arange(self.source.count), self.source.w)
        back_y, back_x = np.divmod(self.back[self.there], self.source.w)
        return (np.abs(back_y - y) <= 1) & (np.abs(back_x - x) <= 1) & self.voting


def reflection(
    votes: Any,
    matches: Matches,
    source_size: tuple[int, int],
    target_size: tuple[int, int],
    home: Home,
) -> float:
    r"""Return what speaks for things that face opposite ways, less what speaks against it.

    .. math:: \log \frac{\max k * h'_r}{\max k * h'_d} + \frac12 \log \frac{r + 10}{d + 40}

    The first part compares the highest counts of the squared votes by reflections, :math:`h_r`, and
    by displacements, :math:`h_d`, each less what the same votes spread evenly would give. The
    second asks pairs of mutual best matches, two to four cells apart across and up to four down:
    d of them are apart in the target as they are in the source, r in the other order across. What
    is its own mirror image has counts alike, but matches in order.

    Parameters
    ----------
    votes : array of shape (n, m)
    matches : Matches
        Of these votes.
    source_size, target_size, home :
        As of `hough`.

    Examples
    --------
    >>> grid, home = Grid(8, 8, 8.0, 19.0), Home.of(np.zeros(1))
    >>> there = np.arange(64).reshape(8, 8)
    >>> for cells in (there, there[:, ::-1]):
    ...     votes = np.eye(64)[cells.ravel()]
    ...     matches = Matches.of(votes, grid, grid, home)
    ...     print(reflection(votes, matches, (64, 64), (64, 64), home) > RULE.reflected)
    False
    True
    """
    places = (matches.source, matches.target, source_size, target_size, home)
    # One wait for both.
    peaks = to_numpy(
        home.xp.stack([_Counted.of(votes, *places, way).peak() for way in (True, False)])
    )
    least = np.finfo(np.float32).tiny
    higher = float(np.diff(np.log(np.maximum(peaks[::-1].astype(float), least)))[0])
    return higher + 0.5 * _reversed(matches)


def told(looks: Sequence[float]) -> str:
    """Return what speaks for a reflection, look by look, as text.

    Examples
    --------
    >>> told((-2.31,)), told((-0.071, 1.78))
    ('-2.3 by one look', '-0.071 + 1.8 by two looks, and more than 1 is asked for')
    """
    numbers = " + ".join(f"{look:.2g}" for look in looks)
    if len(looks) == 1:
        return f"{numbers} by one look"
    return f"{numbers} by two looks, and more than {RULE.confirmed:g} is asked for"


def _reversed(
    matches: Matches, nearest: int = 2, furthest: int = 4, added: tuple[float, float] = (10.0, 40.0)
) -> float:
    """How many more pairs of matches are in the other order across than in the same, a logarithm.

    Of pairs that are as far apart in the target as in the source, within one and a half cells
    across and two down. What is `added` to the counts says: where nothing is known it is none.
    """
    source = matches.source
    shape = (source.h, source.w)
    on = matches.mutual.reshape(shape)
    # In cells of the source.
    x, y = matches.target.centres[matches.there].T.reshape(2, *shape)
    x, y = x / source.strides[1], y / source.strides[0]
    same = other = 0
    for dx in range(nearest, furthest + 1):
        for dy in range(-furthest, furthest + 1):
            if dx >= source.w or abs(dy) >= source.h:
                continue
            here = slice(max(-dy, 0), source.h - max(dy, 0)), slice(0, source.w - dx)
            next_ = slice(max(dy, 0), source.h - max(-dy, 0)), slice(dx, source.w)
            asked = on[here] & on[next_] & (np.abs(y[next_] - y[here] - dy) <= 2.0)
            step = x[next_] - x[here]
            same += np.count_nonzero(asked & (np.abs(step - dx) <= 1.5))
            other += np.count_nonzero(asked & (np.abs(step + dx) <= 1.5))
    return float(np.log((other + added[0]) / (same + added[1])))


def rigidity(
    matches: Matches, home: Home, reflected: bool = False, share: float = 0.05, most: int = 1_000
) -> float:
    r"""Return the chance that two of the mutual best matches move alike, from 0 to 1.

    .. math:: \Pr_{i, i' \in \mathcal{M}} \big[\, \|d_i - d_{i'}\|_\infty \le r \,\big],
        \qquad d_i = c_{j(i)} - c_i

    with j(i) the best match of cell i, M the cells that their match leads back to within a cell,
    and r a `share` of the source's longer side, at least a cell. It needs no label;
    0 where nothing is mutual. Matches of a reflection have displacements from the places mirrored,
    (-x, y), in common.
    """
    source = matches.source
    some = np.flatnonzero(matches.mutual)
    # So many say as much as all.
    some = some[:: -(-len(some) // most) or 1]
    places = source.centres[some]
    if reflected:
        places = places * MIRRORED
    moves = matches.target.centres[matches.there[some]] - places
    if not len(moves):
        return 0.0
    xp = home.xp
    sides = np.array(source.strides) * (source.h, source.w)
    reach = max(share * float(sides.max()), source.spacing)
    x, y = home.bring(np.ascontiguousarray(moves.T))
    alike = xp.abs(x[:, None] - x[None, :]) <= reach
    alike = alike & (xp.abs(y[:, None] - y[None, :]) <= reach)
    return float(xp.count_nonzero(alike)) / len(moves) ** 2


def suited_strength(rigid: float) -> float:
    """Return the strength of Hough matching that suits a pair of this rigidity.

    Examples
    --------
    >>> suited_strength(0.05), suited_strength(0.2)
    (0.5, 0.75)
    """
    return RULE.rigid_strength if rigid > RULE.rigid else RULE.strength


def _one_hot(
    here: np.ndarray, there: np.ndarray, length: int, size: float, bins: int, home: Home,
    reflected: bool = False,
) -> Any:  # fmt: skip
    """Which pairs of places along one side are in which bin, (pairs, bins)."""
    start = here if reflected else length - here
    places = np.floor((start[:, None] + there[None, :]) / size)
    # Made where it is used: most of it is zeros.
    places = home.bring(np.clip(places.ravel(), 0, bins - 1))
    numbers = home.xp.arange(bins, dtype=home.dtype, device=home.device)
    return home.xp.astype(places[:, None] == numbers[None, :], home.dtype)


@lru_cache(maxsize=256)
def _smoothing(count: int, spread: float, reach: int) -> np.ndarray:
    """The Gaussian along one side as a banded matrix; beyond the ends there is nothing."""
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / spread) ** 2)
    kernel = kernel / kernel.sum()
    apart = np.arange(count)[:, None] - np.arange(count)[None, :]
    return np.where(np.abs(apart) <= reach, kernel[np.clip(apart + reach, 0, 2 * reach)], 0.0)
