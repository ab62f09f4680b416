"""Named groups of features: ragged, possibly overlapping, from whatever the user has."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from frot._base.contract import refuse_masked
from frot._base.errors import InputError, brief
from frot._base.files import check_path
from frot._base.names import distinct, first_repeated
from frot._base.validate import check_count, check_feature_names, check_names, check_number
from frot.groups import readers

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """L named groups of d features; ragged, possibly overlapping.

    Most callers want `Groups.parse`, which reads any description of groups. Groups iterate as
    (name, members) pairs.

    Parameters
    ----------
    names : tuple of str, length L
        Distinct.
    flat : numpy.ndarray of intp
        The members of all groups, one group after the other: group l holds the features
        ``flat[offsets[l]:offsets[l + 1]]``. Read-only.
    offsets : numpy.ndarray of intp, shape (L + 1,)
        Where each group starts in `flat`. Read-only.
    n_features : int
        d. A feature in no group is ignored.
    dropped : tuple of str
        Sets that were left out, having too few features in the data, or too many.
    listed : tuple of int, length L or 0
        Genes that each set has in its .gmt file; empty where the groups are from elsewhere.

    Attributes
    ----------
    indices : tuple of L arrays of intp
        The members of each group.
    sizes : numpy.ndarray, shape (L,)

    Examples
    --------
    >>> from frot import Groups
    >>> groups = Groups.parse([range(2), range(2, 10)], n_features=10)
    >>> groups
    Groups(2 groups of 10 features: 'g0' (2), 'g1' (8))
    >>> groups.indices[0]
    array([0, 1])

    The flat arrays serve sums over groups without a loop:

    >>> import numpy as np
    >>> np.add.reduceat(np.arange(10.0)[groups.flat], groups.offsets[:-1])
    array([ 1., 44.])
    """

    names: tuple[str, ...]
    flat: NDArray[np.intp]
    offsets: NDArray[np.intp]
    n_features: int
    dropped: tuple[str, ...] = ()
    listed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.names, str | bytes | Set) or not isinstance(self.names, Iterable):
            raise InputError(f"names: {brief(self.names)} is not a list of names")
        object.__setattr__(self, "names", tuple(map(str, self.names)))
        object.__setattr__(self, "flat", _whole_numbers(self.flat, "flat"))
        object.__setattr__(self, "offsets", _whole_numbers(self.offsets, "offsets"))
        object.__setattr__(self, "n_features", check_count(self.n_features, "n_features"))
        _check(self)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[tuple[str, NDArray[np.intp]]]:
        return zip(self.names, self.indices, strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Groups):
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
        shown = 3 if len(self) > 4 else len(self)
        parts = [
            f"{name!r} ({size})"
            for name, size in zip(self.names[:shown], self.sizes[:shown], strict=True)
        ]
        if shown < len(self):
            parts.append("…")
        plural = "" if len(self) == 1 else "s"
        used = "of" if self.covers else f"over {np.unique(self.flat).size} of"
        total = f"{self.n_features} feature" + ("" if self.n_features == 1 else "s")
        return f"Groups({len(self)} group{plural} {used} {total}: {', '.join(parts)})"

    @cached_property
    def indices(self) -> tuple[NDArray[np.intp], ...]:
        """Members of each group: L read-only views into `flat`."""
        bounds = self.offsets.tolist()
        return tuple(self.flat[start:stop] for start, stop in pairwise(bounds))

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """Number of features in each group, shape (L,)."""
        return _whole_numbers(np.diff(self.offsets), "sizes")

    @cached_property
    def covers(self) -> bool:
        """Whether every feature is in some group."""
        return bool(np.bincount(self.flat, minlength=self.n_features).min() > 0)

    @cached_property
    def in_order(self) -> bool:
        """Whether ``flat`` is 0, 1, …, d − 1, so that ``X[:, flat]`` is X itself."""
        return self.flat.size == self.n_features and bool(
            np.array_equal(self.flat, np.arange(self.n_features))
        )

    @cached_property
    def coverage(self) -> NDArray[np.float64]:
        """Share of each set's genes that the data has, shape (L,); 1 for groups of no file."""
        if not self.listed:
            return np.ones(len(self))
        return np.minimum(self.sizes / np.array(self.listed), 1.0)

    def membership(self) -> csr_array:
        """Sparse matrix B, shape (L, d), with B[l, j] = 1 where group l holds feature j.

        Examples
        --------
        >>> from frot import Groups
        >>> Groups.parse({"a": [0, 1], "b": [1]}, 2).membership().toarray()
        array([[1., 1.],
               [0., 1.]])
        """
        from scipy.sparse import csr_array

        parts = (np.ones(self.flat.size), self.flat, self.offsets)
        # Copied, because a sparse matrix may sort its indices in place.
        return csr_array(parts, shape=(len(self), self.n_features), copy=True)

    def subset(self, keep: Sequence[str] | ArrayLike) -> Groups:
        """Return some of the groups, over the same d features.

        Parameters
        ----------
        keep : sequence of str, sequence of int, or boolean mask of length L
            Which groups, in which order.

        Examples
        --------
        >>> from frot import Groups
        >>> Groups.parse({"a": [0, 1], "b": [2]}, 3).subset(["b"]).indices
        (array([2]),)
        """
        refuse_masked(keep, "keep")
        array = np.atleast_1d(np.asarray(keep))
        if array.ndim != 1 or array.size == 0:
            raise InputError("keep chooses no group; name at least one")
        if array.dtype == np.bool_:
            if array.size != len(self):
                raise InputError(
                    f"keep is a mask of length {array.size}; "
                    f"it needs one entry for each of the {len(self)} groups"
                )
            array = np.flatnonzero(array)
        elif not np.issubdtype(array.dtype, np.integer):
            numbers = {name: number for number, name in enumerate(self.names)}
            array = np.array([numbers.get(name, name) for name in array.tolist()], dtype=object)
        chosen = array.tolist()
        for number in chosen:
            if not (isinstance(number, int) and 0 <= number < len(self)):
                raise InputError(
                    f"keep holds {number!r}, which is no group's name, nor a number from 0 to "
                    f"{len(self) - 1}"
                )
        names, lists = [self.names[k] for k in chosen], [self.indices[k] for k in chosen]
        listed = [self.listed[k] for k in chosen] if self.listed else []
        return self._of_columns(names, lists, self.n_features, self.dropped, listed)

    def limited(
        self,
        min_size: int | None = None,
        max_size: int | None = None,
        min_coverage: float = 0.0,
    ) -> Groups:
        """Drop groups that are too small, too large, or of which the data has too few members.

        Parameters
        ----------
        min_size, max_size : int, optional
            Features of the data that a group must have, and may have. By default 5 and 500 for
            gene sets of a .gmt file, and any number for other groups.
        min_coverage : float
            Share of a set's genes that the data must have.

        Returns
        -------
        Groups
            With the names of those left out added to `dropped`.

        Examples
        --------
        >>> from frot import Groups
        >>> Groups.parse({"few": [0], "some": [1, 2], "all": [0, 1, 2]}, 3).limited(2, 2).dropped
        ('few', 'all')
        """
        low, high = (5, 500) if self.listed else (1, self.n_features)
        low = low if min_size is None else check_count(min_size, "min_size")
        high = high if max_size is None else check_count(max_size, "max_size", least=low)
        share = check_number(min_coverage, "min_coverage")
        keep = (self.sizes >= low) & (self.sizes <= high) & (self.coverage >= share)
        if not keep.any():
            raise InputError(
                f"groups: none of {len(self)} has {low} to {high} features of the data"
                + (f" and {share:.0%} of its genes there" if share > 0.0 else "")
                + f" (sizes are {self.sizes.min()} to {self.sizes.max()}); change min_size=, "
                "max_size= or min_coverage=, or name the features as the sets name genes"
            )
        if keep.all():
            return self
        left = tuple(name for name, kept in zip(self.names, keep, strict=True) if not kept)
        return replace(self.subset(keep), dropped=(*self.dropped, *left))

    @classmethod
    def parse(
        cls, spec: Any, n_features: int, feature_names: Sequence[str] | None = None
    ) -> Groups:
        r"""Read any description of groups, as solvers and the command line do.

        Parameters
        ----------
        spec : object
            One of

            - a `Groups`, checked against `n_features`;
            - None or ``"each"``: one group per feature; ``"all"``: one group;
            - ``"prefix"``: by the text before the first ``_``, ``.`` or ``:`` of feature names;
            - whole numbers, ``[2, 8]`` or ``"2,8"``: sizes of consecutive groups;
            - a list of index collections, slices, masks or lists of feature names;
            - a mapping from name to any of those;
            - one label per feature, as text: its group's; a feature labelled ``""`` is in none;
            - the path of a file: .gmt (a gene set a line: name, description, genes, with tabs
              between), .csv or .tsv (a feature and its group in each row), or .json, which holds
              any of these.
        n_features : int
            d, the number of columns of the data.
        feature_names : sequence of str, length d, optional

        Examples
        --------
        >>> from frot import Groups
        >>> Groups.parse([2, 8], 10)
        Groups(2 groups of 10 features: 'g0' (2), 'g1' (8))
        >>> Groups.parse("prefix", 3, ["age", "lab_na", "lab_k"])
        Groups(2 groups of 3 features: 'age' (1), 'lab' (2))
        >>> Groups.parse({"signal": [0], "rest": slice(1, 4)}, 4)
        Groups(2 groups of 4 features: 'signal' (1), 'rest' (3))
        >>> Groups.parse(["a", "b", "a", ""], 4)
        Groups(2 groups over 3 of 4 features: 'a' (2), 'b' (1))
        """
        n_features = check_count(n_features, "n_features")
        feature_names = check_feature_names(feature_names, n_features)
        if isinstance(spec, Groups):
            if spec.n_features != n_features:
                raise InputError(
                    f"groups were made for {spec.n_features} features but the data has "
                    f"{n_features}; make them with n_features={n_features}"
                )
            return spec
        if spec is None:
            return cls.each(n_features, feature_names)
        if isinstance(spec, str | os.PathLike):
            return cls._of_text(os.fspath(spec), n_features, feature_names)
        if isinstance(spec, Mapping):
            readers.refuse_named_sizes(spec, n_features)
            names = tuple(map(str, spec))
            return cls._of_members(names, list(spec.values()), n_features, feature_names)
        items = readers.listed(spec)
        if items is None:
            raise InputError(f"groups={brief(spec)} is not a list of groups; {WRITTEN}")
        if items and all(isinstance(item, str) for item in items):
            if len(items) != n_features:
                raise InputError(
                    f"groups has {len(items)} labels for {n_features} features; give one label per "
                    "feature (for groups of feature names, write a list of lists)"
                )
            return cls._of_labels(items)
        if items and all(isinstance(item, bool | np.bool_) for item in items):
            raise InputError("groups is a single boolean mask; wrap it in a list: groups=[mask]")
        if items and all(isinstance(item, Integral) for item in items):
            return _consecutive(tuple(map(int, items)), n_features)
        if items and all(isinstance(item, Real) for item in items):
            first = next(item for item in items if not isinstance(item, Integral))
            raise InputError(
                f"groups: numbers are sizes of groups, which are whole, and {first} is not; "
                "weights of points are given by name: a=..., b=..."
            )
        return cls._of_members(check_names(None, len(items)), items, n_features, feature_names)

    @classmethod
    def _of_text(cls, text: str, n_features: int, feature_names: Sequence[str] | None) -> Groups:
        """Read a word, sizes with commas between, or the file of a path."""
        if text == "each":
            return cls.each(n_features, feature_names)
        if text == "all":
            return cls.all(n_features)
        if text == "prefix":
            if feature_names is None:
                raise InputError(
                    "groups='prefix' needs named features; pass DataFrames, or feature_names, or "
                    "give tables a header"
                )
            # A name without a separator, or that begins with it, is a prefix by itself.
            return cls._of_labels([re.split("[_.:]", n, maxsplit=1)[0] or n for n in feature_names])
        if re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
            return _consecutive(tuple(map(int, text.split(","))), n_features)
        suffix = Path(text).suffix.lower()
        if suffix not in readers.GROUP_FILES:
            raise InputError(f"groups={brief(text)} is not known; {WRITTEN}")
        path = check_path(text)
        if not path.exists():
            raise InputError(f"groups: cannot read {path}: No such file; check the path")
        if suffix == ".json":
            return cls.parse(readers.read_json(path), n_features, feature_names)
        if suffix != ".gmt":
            members = readers.read_members(path, feature_names)
            return cls.parse(members, n_features, feature_names)
        if feature_names is None:
            raise InputError(
                f"groups: the gene sets of {path} need named features; pass DataFrames, or "
                "feature_names"
            )
        return cls.from_gmt(path, feature_names)

    @classmethod
    def each(cls, n_features: int, feature_names: Sequence[str] | None = None) -> Groups:
        """One group per feature, named after it.

        A feature name that occurs again gets ``#2``, ``#3``, … appended.

        Examples
        --------
        >>> from frot import Groups
        >>> Groups.each(3).names
        ('x0', 'x1', 'x2')
        >>> Groups.each(2, ["TP53", "TP53"]).names
        ('TP53', 'TP53#2')
        """
        if feature_names is None:
            names = [f"x{column}" for column in range(n_features)]
        else:
            names = distinct([str(name) for name in feature_names])
        return cls(tuple(names), np.arange(n_features), np.arange(n_features + 1), n_features)

    @classmethod
    def all(cls, n_features: int) -> Groups:
        """One group of every feature: ordinary optimal transport.

        Examples
        --------
        >>> from frot import Groups
        >>> Groups.all(3)
        Groups(1 group of 3 features: 'all' (3))
        """
        return cls(("all",), np.arange(n_features), np.array([0, n_features]), n_features)

    @classmethod
    def from_sizes(
        cls, sizes: Sequence[int] | ArrayLike, names: Sequence[str] | None = None
    ) -> Groups:
        """Consecutive groups of the given sizes.

        Examples
        --------
        >>> from frot import Groups
        >>> Groups.from_sizes([2, 3], names=["signal", "noise"]).indices[1]
        array([2, 3, 4])
        """
        refuse_masked(sizes, "sizes")
        array = np.asarray(sizes)
        if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
            raise InputError(
                f"sizes={brief(sizes)} is not a flat list of whole numbers, like [2, 8]"
            )
        if array.min() < 1:
            raise InputError(
                f"size {int(np.argmin(array))} is {array.min()}; every group needs a feature "
                "(for one label per feature, write these as text)"
            )
        total = int(array.sum())
        offsets = np.concatenate([[0], np.cumsum(array)])
        return cls(check_names(names, array.size), np.arange(total), offsets, total)

    @classmethod
    def from_gmt(
        cls, path: str | os.PathLike[str], feature_names: Sequence[str], min_size: int = 1
    ) -> Groups:
        r"""Gene sets of a .gmt file (a line each: name, description, genes; tabs between).

        Genes that the data does not have are left out; a gene with several columns brings them
        all.

        Parameters
        ----------
        path : path
        feature_names : sequence of str, length d
        min_size : int
            The fewest features of the data that a set must have; the names of smaller ones go to
            `dropped`.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from frot import Groups
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sets.gmt"
        >>> _ = path.write_text("HYPOXIA\t-\tVEGFA\tLDHA\nEMPTY\t-\tINS\n")
        >>> groups = Groups.from_gmt(path, ["MYC", "LDHA", "VEGFA"])
        >>> groups, groups.dropped
        (Groups(1 group over 2 of 3 features: 'HYPOXIA' (2)), ('EMPTY',))
        """
        min_size = check_count(min_size, "min_size", least=0)
        kept, dropped = readers.match_sets(check_path(path), feature_names, min_size)
        names, columns, listed = zip(*kept, strict=True)
        return cls._of_columns(names, columns, len(feature_names), dropped, listed)

    @classmethod
    def _of_labels(cls, labels: Sequence[str]) -> Groups:
        """Group features by a label each, in order of first appearance."""
        members = readers.gather((label, k) for k, label in enumerate(labels) if label)
        return cls._of_columns(tuple(members), list(members.values()), len(labels))

    @classmethod
    def _of_members(
        cls,
        names: Sequence[str],
        members: Sequence[Any],
        n_features: int,
        feature_names: Sequence[str] | None,
    ) -> Groups:
        """Read each group's members: column numbers, a slice, a mask, or feature names."""
        lookup = None if feature_names is None else readers.column_lookup(feature_names)
        columns = [
            readers.columns_of(name, item, n_features, lookup)
            for name, item in zip(names, members, strict=True)
        ]
        return cls._of_columns(names, columns, n_features)

    @classmethod
    def _of_columns(
        cls,
        names: Sequence[str],
        columns: Sequence[Sequence[int] | NDArray[np.intp]],
        n_features: int,
        dropped: tuple[str, ...] = (),
        listed: Sequence[int] = (),
    ) -> Groups:
        sizes = [len(members) for members in columns]
        flat = np.fromiter(chain.from_iterable(columns), dtype=np.intp, count=sum(sizes))
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)])
        return cls(tuple(names), flat, offsets, n_features, dropped, tuple(listed))


WRITTEN = (
    "give 'each', 'all', 'prefix', sizes, a list of index collections, a mapping from name to "
    f"members, one label per feature, or a file ({', '.join(readers.GROUP_FILES)})"
)


def _whole_numbers(values: ArrayLike, name: str) -> NDArray[np.intp]:
    """Return whole numbers that cannot be changed."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        array = np.empty(0, dtype=object)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"{name}: {brief(values)} is not a list of whole numbers")
    if array.dtype != np.intp or array.flags.writeable:
        array = array.astype(np.intp)  # a copy: the caller's own array stays writeable
        array.flags.writeable = False
    return array


def _check(groups: Groups) -> None:
    names, flat, offsets, d = groups.names, groups.flat, groups.offsets, groups.n_features
    if not names:
        raise InputError("there are no groups; give at least one (groups='all' makes one)")
    rises = offsets.shape == (len(names) + 1,) and not np.any(np.diff(offsets) < 0)
    if not rises or offsets[0] != 0 or offsets[-1] != flat.size:
        raise InputError("offsets: have to rise from 0 to the length of flat, one for each name")
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


@lru_cache(maxsize=32)
def _consecutive(sizes: tuple[int, ...], n_features: int) -> Groups:
    """Return groups of these sizes: 40 microseconds once, where a small solve takes 500."""
    groups = Groups.from_sizes(sizes)
    if groups.n_features != n_features:
        apart = abs(groups.n_features - n_features)
        fewer = "fewer" if groups.n_features < n_features else "more"
        raise InputError(
            f"the sizes add up to {groups.n_features}, {apart} {fewer} than the {n_features} "
            "features (for one label per feature, write these as text)"
        )
    return groups
