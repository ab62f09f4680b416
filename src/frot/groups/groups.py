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
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from frot._base.contract import refuse_masked
from frot._base.errors import InputError, brief
from frot._base.files import check_path
from frot._base.names import distinct, first_repeated
from frot._base.validate import check_count, check_feature_names, check_names, check_number
from frot.groups import _members as members_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_SPECS = (
    "'each', 'all', 'prefix', sizes, a list of index collections, a mapping from name to members, "
    "one label per feature, or a .gmt, .json, .csv or .tsv file"
)

# Groups of so many sizes are kept: whoever solves many small problems has the same ones each time.
FEW = 64
# Groups that `repr` names.
SHOWN = 3


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
    >>> groups = Groups.from_indices([range(2), range(2, 10)], n_features=10)
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
        set_field(self, "listed", tuple(self.listed))
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
        shown = SHOWN if len(self) > SHOWN + 1 else len(self)
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
        >>> from frot import Groups
        >>> groups = Groups(("a", "b"), np.array([0, 1, 1]), np.array([0, 2, 3]), 2)
        >>> groups.membership().toarray()
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
        >>> import numpy as np
        >>> from frot import Groups
        >>> groups = Groups(("a", "b"), np.array([0, 1, 2]), np.array([0, 2, 3]), 3)
        >>> groups.subset(["b"]).indices
        (array([2]),)
        """
        chosen = self._positions(keep).tolist()
        names, lists = [self.names[at] for at in chosen], [self.indices[at] for at in chosen]
        listed = [self.listed[at] for at in chosen] if self.listed else []
        return self._from_lists(names, lists, self.n_features, self.dropped, listed)

    @cached_property
    def coverage(self) -> NDArray[np.float64]:
        """Share of each set's genes that the data has, shape (L,); 1 for groups of no file."""
        if not self.listed:
            return np.ones(len(self))
        return np.minimum(self.sizes / np.array(self.listed), 1.0)

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

    def _positions(self, keep: Sequence[str] | ArrayLike) -> NDArray[np.intp]:
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

    @classmethod
    def parse(
        cls, spec: Any, n_features: int, feature_names: Sequence[str] | None = None
    ) -> Groups:
        """Read any description of groups, as solvers and the command line do.

        Parameters
        ----------
        spec : object
            One of

            - a `Groups`, checked against `n_features`;
            - None or ``"each"``: one group per feature; ``"all"``: one group;
            - ``"prefix"``: see `from_prefix`;
            - whole numbers, ``[2, 8]`` or ``"2,8"``: sizes of consecutive groups;
            - a list of index collections, slices, masks or lists of feature names;
            - a mapping from name to any of those;
            - one string per feature: its group's label;
            - the path of a file: see `from_file`.
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
            return cls._parse_text(os.fspath(spec), n_features, feature_names)
        if isinstance(spec, Mapping):
            _refuse_named_sizes(spec, n_features)
            return cls.from_mapping(spec, n_features, feature_names)
        items = members_of.listed(spec)
        if items is None:
            raise InputError(f"groups={brief(spec)} is not a list of groups; give {_SPECS}")
        if 0 < len(items) <= FEW and all(type(item) is int for item in items):
            return _few_sizes(tuple(items), n_features)
        if items and all(isinstance(item, str) for item in items):
            if len(items) != n_features:
                raise InputError(
                    f"groups has {len(items)} labels for {n_features} features; give one label per "
                    "feature (for groups of feature names, write a list of lists)"
                )
            return cls.from_labels(items)
        if items and all(isinstance(item, bool | np.bool_) for item in items):
            raise InputError("groups is a single boolean mask; wrap it in a list: groups=[mask]")
        if items and all(isinstance(item, Integral) for item in items):
            return cls.from_sizes(items, n_features)
        if items and all(isinstance(item, Real) for item in items):
            first = next(item for item in items if not isinstance(item, Integral))
            raise InputError(
                f"groups: numbers are sizes of groups, which are whole, and {first} is not; "
                "weights of points are given by name: a=..., b=..."
            )
        return cls.from_indices(items, n_features, feature_names)

    @classmethod
    def _parse_text(cls, text: str, n_features: int, feature_names: Sequence[str] | None) -> Groups:
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
            return cls.from_prefix(feature_names)
        if re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
            return cls.from_sizes([int(size) for size in text.split(",")], n_features)
        if Path(text).suffix.lower() in members_of.GROUP_FILES:
            return cls.from_file(text, n_features, feature_names)
        raise InputError(f"groups={brief(text)} is not known; give {_SPECS}")

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
        cls,
        sizes: Sequence[int] | ArrayLike,
        n_features: int | None = None,
        names: Sequence[str] | None = None,
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
                "(for one label per feature, use Groups.from_labels)"
            )
        total = int(array.sum())
        if n_features is not None and total != n_features:
            fewer = "fewer" if total < n_features else "more"
            raise InputError(
                f"the sizes add up to {total}, {abs(total - n_features)} {fewer} than the "
                f"{n_features} features (for one label per feature, use Groups.from_labels)"
            )
        offsets = np.concatenate([[0], np.cumsum(array)])
        return cls(check_names(names, array.size), np.arange(total), offsets, total)

    @classmethod
    def from_indices(
        cls,
        indices: Sequence[Any],
        n_features: int,
        feature_names: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
    ) -> Groups:
        """One group per element: column numbers, a slice, a mask, or feature names.

        Examples
        --------
        >>> from frot import Groups
        >>> Groups.from_indices([[0, 2], slice(1, 3)], 3).overlapping
        True
        """
        items = list(indices)
        labels = check_names(names, len(items))
        lookup = None if feature_names is None else members_of.column_lookup(feature_names)
        resolved = [
            members_of.resolve_members(name, item, n_features, lookup)
            for name, item in zip(labels, items, strict=True)
        ]
        return cls._from_lists(labels, resolved, n_features)

    @classmethod
    def from_mapping(
        cls,
        mapping: Mapping[str, Any],
        n_features: int,
        feature_names: Sequence[str] | None = None,
    ) -> Groups:
        """Read groups from name -> column numbers, a slice, a mask, or feature names.

        Examples
        --------
        >>> from frot import Groups
        >>> Groups.from_mapping({"lab": ["na", "k"]}, 3, ["age", "na", "k"]).indices[0]
        array([1, 2])
        """
        names = [str(name) for name in mapping]
        return cls.from_indices(list(mapping.values()), n_features, feature_names, names)

    @classmethod
    def from_prefix(cls, feature_names: Sequence[str], separator: str | None = None) -> Groups:
        """Group features by the text before the first ``_``, ``.`` or ``:`` of their names.

        A name without a separator, or that begins with it, is a prefix by itself.

        Parameters
        ----------
        feature_names : sequence of str, length d
        separator : str, optional
            Split at this text in place of the three.

        Examples
        --------
        >>> from frot import Groups
        >>> Groups.from_prefix(["lab_na", "age", "lab_k"])
        Groups(2 groups of 3 features: 'lab' (2), 'age' (1))
        """
        if separator == "":
            raise InputError("separator is empty; give the text that ends a prefix, like '_'")
        pattern = re.compile("[_.:]" if separator is None else re.escape(separator))
        return cls.from_labels(
            [pattern.split(str(name), maxsplit=1)[0] or str(name) for name in feature_names]
        )

    @classmethod
    def from_labels(cls, labels: Sequence[Any] | NDArray[Any]) -> Groups:
        """Group features by a label each, in order of first appearance.

        A feature labelled None, NaN or ``""`` is in no group.

        Examples
        --------
        >>> from frot import Groups
        >>> Groups.from_labels(["a", "b", "a", None])
        Groups(2 groups over 3 of 4 features: 'a' (2), 'b' (1))
        """
        # Only NaN differs from itself.
        found = members_of.gather(
            (str(label), column)
            for column, label in enumerate(labels)
            if label is not None and label == label and label != ""
        )
        return cls._from_lists(tuple(found), list(found.values()), len(labels))

    @classmethod
    def from_gmt(
        cls,
        path: str | os.PathLike[str],
        feature_names: Sequence[str],
        min_size: int = 1,
        missing: Literal["drop", "raise"] = "drop",
    ) -> Groups:
        r"""Gene sets of a .gmt file (a line each: name, description, genes; tabs between).

        Genes that the data does not have are left out; a gene with several columns brings them
        all.

        Parameters
        ----------
        path : path
        feature_names : sequence of str, length d
        min_size : int
            The fewest features of the data that a set must have.
        missing : {"drop", "raise"}
            Whether a smaller set is left out, its name going to `dropped`, or an error.

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
        if not isinstance(missing, str) or missing not in ("drop", "raise"):
            raise InputError(f"missing={brief(missing)} is not known; give 'drop' or 'raise'")
        min_size = check_count(min_size, "min_size", least=0)
        kept, dropped = members_of.match_sets(check_path(path), feature_names, min_size, missing)
        names, columns, listed = zip(*kept, strict=True)
        return cls._from_lists(names, columns, len(feature_names), dropped, listed)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        n_features: int,
        feature_names: Sequence[str] | None = None,
    ) -> Groups:
        r"""Read groups from a .gmt, .json, .csv or .tsv file.

        JSON holds anything `parse` accepts; a table has a feature and a group in each row.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from frot import Groups
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "groups.csv"
        >>> _ = path.write_text("feature,group\n0,signal\n1,noise\n2,noise\n")
        >>> Groups.from_file(path, 3)
        Groups(2 groups of 3 features: 'signal' (1), 'noise' (2))
        """
        path = check_path(path)
        suffix = path.suffix.lower()
        if suffix in members_of.GROUP_FILES and not path.exists():
            raise InputError(f"groups: cannot read {path}: No such file; check the path")
        if suffix == ".gmt":
            if feature_names is None:
                raise InputError(
                    f"groups: the gene sets of {path} need named features; pass DataFrames, or "
                    "feature_names"
                )
            return cls.from_gmt(path, feature_names)
        if suffix == ".json":
            return cls.parse(members_of.read_json(path), n_features, feature_names)
        if suffix not in (".csv", ".tsv"):
            known = ", ".join(members_of.GROUP_FILES)
            raise InputError(f"{path} has an unknown suffix {suffix!r}; known are {known}")
        found = members_of.read_members(path, feature_names)
        return cls.from_mapping(found, n_features, feature_names)

    @classmethod
    def _from_lists(
        cls,
        names: Sequence[str],
        lists: Sequence[Sequence[int] | NDArray[np.intp]],
        n_features: int,
        dropped: tuple[str, ...] = (),
        listed: Sequence[int] = (),
    ) -> Groups:
        sizes = [len(members) for members in lists]
        flat = np.fromiter(chain.from_iterable(lists), dtype=np.intp, count=sum(sizes))
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)])
        return cls(tuple(names), flat, offsets, n_features, dropped, tuple(listed))


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


def _check(groups: Groups) -> None:
    names, flat, offsets, d = groups.names, groups.flat, groups.offsets, groups.n_features
    if d < 1:
        raise InputError(f"n_features is {d}; there must be at least one feature")
    if not names:
        raise InputError("there are no groups; give at least one (groups='all' makes one)")
    if flat.ndim != 1:
        raise InputError(f"flat has shape {flat.shape}; it needs one entry per member")
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


def _refuse_named_sizes(spec: Mapping[Any, Any], n_features: int) -> None:
    """Refuse names with a whole number each that may be sizes: a number alone is a column."""
    numbers = list(spec.values())
    if any(isinstance(n, bool) or not isinstance(n, Integral) for n in numbers):
        return
    if numbers and min(numbers) > 0 and sum(numbers) == n_features:
        name, size = next(iter(spec.items()))
        raise InputError(
            f"groups gives a whole number to each name, which may be sizes or columns; for sizes, "
            f"use Groups.from_sizes([{size}, ...], names=[{brief(name)}, ...]), for columns lists, "
            f"{{{brief(name)}: [{size}], ...}}"
        )


@lru_cache(maxsize=32)
def _few_sizes(sizes: tuple[int, ...], n_features: int) -> Groups:
    return Groups.from_sizes(sizes, n_features)
