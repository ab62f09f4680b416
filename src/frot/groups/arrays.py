"""What groups of features are: names, members, and the questions solvers ask of them.

How they are made, from whatever the user has, is `frot.groups.groups`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from frot._base.errors import InputError, brief
from frot._base.names import first_repeated

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from typing_extensions import Self

_SHOWN = 3


@dataclass(frozen=True, eq=False, repr=False)
class GroupArrays:
    """L named groups of d features, stored flat.

    Group l holds the features ``flat[offsets[l]:offsets[l + 1]]``. Groups may differ in size and
    share features; a feature in no group is ignored.

    Parameters
    ----------
    names : tuple of str, length L
        Distinct.
    flat : numpy.ndarray of intp
        The members of all groups, one group after the other. Read-only.
    offsets : numpy.ndarray of intp, shape (L + 1,)
        Where each group starts in `flat`. Read-only.
    n_features : int
        d.
    dropped : tuple of str
        Names of sets in a .gmt file that were left out, having too few features in the data.

    Examples
    --------
    The flat arrays serve sums over groups without a loop:

    >>> import numpy as np
    >>> from frot.groups.arrays import GroupArrays
    >>> groups = GroupArrays(("a", "b"), np.array([0, 1, 2]), np.array([0, 2, 3]), 3)
    >>> np.add.reduceat(np.array([1.0, 2.0, 5.0])[groups.flat], groups.offsets[:-1])
    array([3., 5.])
    """

    names: tuple[str, ...]
    flat: NDArray[np.intp]
    offsets: NDArray[np.intp]
    n_features: int
    dropped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        if isinstance(self.names, str | bytes | Set) or not isinstance(self.names, Iterable):
            raise InputError(f"names: {brief(self.names)} is not a list of names")
        set_field(self, "names", tuple(map(str, self.names)))
        set_field(self, "flat", _whole_numbers(self.flat, "flat"))
        set_field(self, "offsets", _whole_numbers(self.offsets, "offsets"))
        if not isinstance(self.n_features, Integral) or isinstance(self.n_features, bool):
            raise InputError(f"n_features: {brief(self.n_features)} is not a whole number")
        set_field(self, "n_features", int(self.n_features))
        set_field(self, "dropped", tuple(self.dropped))
        _check(self)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[tuple[str, NDArray[np.intp]]]:
        return zip(self.names, self.indices, strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroupArrays):
            return NotImplemented
        return (
            self.n_features == other.n_features
            and self.names == other.names
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.flat, other.flat)
        )

    def __hash__(self) -> int:
        return hash((self.n_features, self.names, self.flat.tobytes()))

    def __repr__(self) -> str:
        shown = _SHOWN if len(self) > _SHOWN + 1 else len(self)
        parts = [
            f"{name!r} ({size})"
            for name, size in zip(self.names[:shown], self.sizes[:shown], strict=True)
        ]
        if shown < len(self):
            parts.append("…")
        plural = "" if len(self) == 1 else "s"
        used = "of" if self.covers else f"over {np.unique(self.flat).size} of"
        total = f"{self.n_features} feature" + ("" if self.n_features == 1 else "s")
        return (
            f"{type(self).__name__}({len(self)} group{plural} {used} {total}: {', '.join(parts)})"
        )

    @cached_property
    def indices(self) -> tuple[NDArray[np.intp], ...]:
        """Members of each group: L read-only views into `flat`."""
        bounds = self.offsets.tolist()
        return tuple(self.flat[start:stop] for start, stop in pairwise(bounds))

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """Number of features in each group, shape (L,)."""
        return _read_only(np.diff(self.offsets))

    @cached_property
    def _counts(self) -> NDArray[np.intp]:
        return np.bincount(self.flat, minlength=self.n_features)

    @cached_property
    def overlapping(self) -> bool:
        """Whether some feature is in two groups."""
        return bool(self._counts.max() > 1)

    @cached_property
    def covers(self) -> bool:
        """Whether every feature is in some group."""
        return bool(self._counts.min() > 0)

    @cached_property
    def contiguous(self) -> bool:
        """Whether every group is one ascending run of features, so that a slice serves."""
        steps = np.diff(self.flat)
        steps[self.offsets[1:-1] - 1] = 1  # from one group to the next, any step will do
        return bool(np.all(steps == 1))

    @cached_property
    def in_order(self) -> bool:
        """Whether ``flat`` is 0, 1, …, d − 1, so that ``X[:, flat]`` is X itself."""
        return self.flat.size == self.n_features and bool(
            np.array_equal(self.flat, np.arange(self.n_features))
        )

    def membership(self) -> csr_array:
        """Sparse matrix B, shape (L, d), with B[l, j] = 1 where group l holds feature j.

        Examples
        --------
        >>> import numpy as np
        >>> from frot.groups.arrays import GroupArrays
        >>> groups = GroupArrays(("a", "b"), np.array([0, 1, 1]), np.array([0, 2, 3]), 2)
        >>> groups.membership().toarray()
        array([[1., 1.],
               [0., 1.]])
        """
        from scipy.sparse import csr_array

        parts = (np.ones(self.flat.size), self.flat, self.offsets)
        # Copied, because a sparse matrix may sort its indices in place.
        return csr_array(parts, shape=(len(self), self.n_features), copy=True)

    def subset(self, keep: Sequence[str] | ArrayLike) -> Self:
        """Only some of the groups, of the same d features.

        Parameters
        ----------
        keep : sequence of str, sequence of int, or boolean mask of length L
            Which groups, in which order.

        Examples
        --------
        >>> import numpy as np
        >>> from frot.groups.arrays import GroupArrays
        >>> groups = GroupArrays(("a", "b"), np.array([0, 1, 2]), np.array([0, 2, 3]), 3)
        >>> groups.subset(["b"]).indices
        (array([2]),)
        """
        chosen = self._positions(keep)
        indices = [self.indices[position] for position in chosen]
        return type(self)(
            tuple(self.names[position] for position in chosen),
            np.concatenate([np.empty(0, dtype=np.intp), *indices]),
            np.concatenate([[0], np.cumsum(self.sizes[chosen])]),
            self.n_features,
            self.dropped,
        )

    def _positions(self, keep: Sequence[str] | ArrayLike) -> NDArray[np.intp]:
        array = np.atleast_1d(np.asarray(keep))
        if array.ndim != 1 or array.size == 0:
            raise InputError("keep chooses no group; name at least one")
        if array.dtype == np.bool_:
            if array.size != len(self):
                raise InputError(
                    f"keep is a mask of length {array.size}; "
                    f"it needs one entry for each of the {len(self)} groups"
                )
            return np.flatnonzero(array)
        if np.issubdtype(array.dtype, np.integer):
            outside = array[(array < 0) | (array >= len(self))]
            if outside.size:
                raise InputError(
                    f"keep holds {outside[0]}; groups are numbered 0 to {len(self) - 1}"
                )
            return array.astype(np.intp)
        where = {name: position for position, name in enumerate(self.names)}
        unknown = [name for name in array.tolist() if name not in where]
        if unknown:
            raise InputError(f"keep holds {unknown[0]!r}, which is no group's name or number")
        return np.array([where[name] for name in array.tolist()], dtype=np.intp)

    def require_disjoint(self) -> Self:
        """Return these groups, or raise if two of them share a feature.

        Examples
        --------
        >>> import numpy as np
        >>> from frot.groups.arrays import GroupArrays
        >>> GroupArrays(
        ...     ("a", "b"), np.array([0, 1, 1]), np.array([0, 2, 3]), 2
        ... ).require_disjoint()
        Traceback (most recent call last):
        ...
        frot.InputError: groups 'a' and 'b' share feature 1; put it in one of them
        """
        if self.overlapping:
            feature = int(np.argmax(self._counts > 1))
            where = np.flatnonzero(self.flat == feature)[:2]
            first, second = np.searchsorted(self.offsets, where, side="right") - 1
            raise InputError(
                f"groups {self.names[first]!r} and {self.names[second]!r} share feature {feature}; "
                "put it in one of them"
            )
        return self


def _whole_numbers(values: Any, name: str) -> NDArray[np.intp]:
    """Return whole numbers that cannot be changed."""
    try:
        array = np.asarray(values)
    except Exception:
        # Objects of other libraries may raise anything when they are asked for their numbers.
        array = np.empty(0, dtype=object)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.intp)  # what an empty list is to NumPy
    if array.dtype.kind not in "iu":
        raise InputError(f"{name}: {brief(values)} is not a list of whole numbers")
    return _read_only(array)


def _read_only(array: ArrayLike) -> NDArray[np.intp]:
    array = np.asarray(array)
    if array.dtype != np.intp or array.flags.writeable:
        array = array.astype(np.intp)  # a copy: the caller's own array stays writeable
        array.flags.writeable = False
    return array


def _check(groups: GroupArrays) -> None:
    names, flat, offsets, d = groups.names, groups.flat, groups.offsets, groups.n_features
    if d < 1:
        raise InputError(f"n_features is {d}; there must be at least one feature")
    if not names:
        raise InputError("there are no groups; give at least one (groups='all' makes one)")
    if flat.ndim != 1:
        raise InputError(f"flat has shape {flat.shape}; it needs one entry a member")
    if offsets.shape != (len(names) + 1,):
        raise InputError(f"offsets has shape {offsets.shape}; it needs ({len(names) + 1},)")
    if offsets[0] != 0 or offsets[-1] != flat.size or np.any(np.diff(offsets) < 0):
        raise InputError("offsets must rise from 0 to the length of flat")
    if (twice := first_repeated(names)) is not None:
        raise InputError(f"two groups are named {brief(twice)}; give each group its own name")
    sizes = np.diff(offsets)
    if not sizes.all():
        raise InputError(f"group {names[int(np.argmin(sizes))]!r} is empty; remove it or fill it")
    owner = np.repeat(np.arange(len(names)), sizes)
    outside = np.flatnonzero((flat < 0) | (flat >= d))
    if outside.size:
        member = flat[outside[0]]
        note = " (negative numbers are not accepted)" if member < 0 else ""
        raise InputError(
            f"group {names[owner[outside[0]]]!r} holds feature {member}, but features are numbered "
            f"0 to {d - 1}{note}"
        )
    pairs = np.sort(owner * d + flat)
    repeated = np.flatnonzero(pairs[1:] == pairs[:-1])
    if repeated.size:
        group, member = divmod(int(pairs[repeated[0]]), d)
        raise InputError(f"group {names[group]!r} holds feature {member} twice; list it once")
