"""What a user may write for groups, turned into column numbers; and files of groups.

Nothing here knows the class `Groups`: these functions read one group's members, or a file of
groups, and `frot.groups.groups` checks and stores what they return.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from frot._base.contract import refuse_masked
from frot._base.errors import InputError, brief
from frot._base.names import quote_some
from frot._base.text import kind_of, read_rows, read_text

Lookup = Mapping[str, NDArray[np.intp]]

_Member = TypeVar("_Member")

GROUP_FILES = (".gmt", ".json", ".csv", ".tsv")


def listed(spec: Any) -> list[Any] | None:
    """Return what a list of groups holds; None where it is none, or has no order."""
    if isinstance(spec, range | slice | bytes | Set):
        return None
    try:
        return list(spec)
    except Exception:
        # Objects of other libraries may raise anything when they are read one by one.
        return None


def gather(labelled: Iterable[tuple[str, _Member]]) -> dict[str, list[_Member]]:
    """Collect (label, member) pairs into label -> members, in order of first appearance."""
    members: dict[str, list[_Member]] = {}
    for label, member in labelled:
        members.setdefault(label, []).append(member)
    return members


def column_lookup(feature_names: Sequence[str]) -> dict[str, NDArray[np.intp]]:
    """Find the columns of each feature name; a name that occurs twice has both its columns."""
    columns = gather((str(name), column) for column, name in enumerate(feature_names))
    return {name: np.array(own, dtype=np.intp) for name, own in columns.items()}


def columns_of(
    group: str, members: Any, n_features: int, lookup: Lookup | None
) -> NDArray[np.intp]:
    """Find the column numbers of one group.

    In the order given; whether they are in range and distinct is checked by `Groups`. `lookup` is
    None where the columns have no names.
    """
    if isinstance(members, slice):
        return _of_slice(group, members, n_features)
    if isinstance(members, str | Integral):
        members = [members]
    refuse_masked(members, f"group {brief(group)}")
    try:
        if isinstance(members, Set):
            # Sets have no order; sorting makes two runs agree.
            members = sorted(members, key=lambda member: (isinstance(member, str), member))
        array = np.asarray(members if hasattr(members, "__array__") else list(members))
    except (TypeError, ValueError):
        raise InputError(
            f"group {brief(group)} is {brief(members)}; give column numbers, feature names, a "
            "slice or a mask"
        ) from None
    if array.ndim != 1:
        raise InputError(
            f"group {brief(group)} has shape {array.shape}; give a flat list of members"
        )
    if array.size == 0:
        return np.empty(0, dtype=np.intp)
    if array.dtype == np.bool_:
        if array.size != n_features:
            raise InputError(
                f"group {brief(group)} is a mask of length {array.size}; "
                f"it needs one entry for each of the {n_features} features"
            )
        return np.flatnonzero(array)
    if np.issubdtype(array.dtype, np.integer):
        return array.astype(np.intp)
    if array.dtype.kind in "UOT" and all(isinstance(member, str) for member in members):
        return _of_names(group, [str(member) for member in members], lookup)
    raise InputError(
        f"group {brief(group)} holds members of type {array.dtype}; "
        "give whole column numbers, feature names, a slice or a boolean mask"
    )


def _of_slice(group: str, members: slice, n_features: int) -> NDArray[np.intp]:
    # Python clips a slice that runs past the end, which would hide a wrong number of features.
    for bound in (members.start, members.stop):
        if bound is not None and not 0 <= bound <= n_features:
            raise InputError(
                f"group {brief(group)} is {members}, which leaves 0..{n_features}; "
                "write its bounds inside that range (negative bounds are not accepted)"
            )
    return np.arange(n_features, dtype=np.intp)[members]


def _of_names(group: str, members: list[str], lookup: Lookup | None) -> NDArray[np.intp]:
    if lookup is None:
        raise InputError(
            f"group {brief(group)} names features, but the features have no names; "
            "pass DataFrames, or feature_names, or give column numbers"
        )
    unknown = [member for member in members if member not in lookup]
    if unknown:
        raise InputError(
            f"group {brief(group)} names {quote_some(unknown)}, which the data does not have; "
            f"its features are {quote_some(list(lookup))}"
        )
    return np.concatenate([lookup[member] for member in members])


def refuse_named_sizes(spec: Mapping[Any, Any], n_features: int) -> None:
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


def read_json(path: Path) -> Any:
    """Read a groups specification from a JSON file."""
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        # Brackets within brackets, and numbers of thousands of digits, are no JSONDecodeError.
        raise InputError(f"{path} is not valid JSON: {error}") from None


def read_members(path: Path, feature_names: Sequence[str] | None) -> dict[str, list[Any]]:
    r"""Read group -> members, column numbers or feature names, from a .csv or .tsv file.

    A row has a feature and its group; a first row that reads ``feature,group``, in either order,
    is a header. A feature may have several rows, one for each group it is in. Whole numbers are
    column numbers, unless the data has features of those names.
    """
    rows: list[tuple[str, str]] = []
    for number, row in read_rows(path, "\t" if kind_of(path) == ".tsv" else ","):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != 2 or not all(cells):
            raise InputError(
                f"{path}, line {number}: expected two cells, a feature and its group, got "
                f"{brief(cells)}"
            )
        rows.append((cells[0], cells[1]))
    header = [cell.lower() for cell in rows[0]] if rows else []
    if header == ["group", "feature"]:
        rows = [(feature, group) for group, feature in rows[1:]]
    elif header == ["feature", "group"]:
        rows = rows[1:]
    known = set() if feature_names is None else set(map(str, feature_names))
    numbers = all(feature.isdecimal() and feature not in known for feature, _ in rows)
    return gather((group, int(feature) if numbers else feature) for feature, group in rows)


def read_gmt(path: Path) -> list[tuple[str, list[str]]]:
    r"""Read the (name, genes) pairs of a gene-matrix-transposed file.

    Each line is a set: its name, a description, then its genes, separated by tabs.
    """
    sets = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        name, *rest = (cell.strip() for cell in line.split("\t"))
        if not name or not rest:
            raise InputError(
                f"{path}, line {number}: a .gmt line is a set's name, a description and its genes, "
                "separated by tabs"
            )
        # A gene listed twice in a set is one member.
        sets.append((name, list(dict.fromkeys(gene for gene in rest[1:] if gene))))
    return sets


def match_sets(
    path: Path, feature_names: Sequence[str], min_size: int
) -> tuple[list[tuple[str, list[int], int]], tuple[str, ...]]:
    r"""Match the sets of a .gmt file to columns of the data; name those that are too small.

    A set is its name, its columns, and how many genes the file lists.
    """
    lookup, fewest = column_lookup(feature_names), max(min_size, 1)
    kept: list[tuple[str, list[int], int]] = []
    dropped: list[str] = []
    for name, genes in read_gmt(path):
        columns = [int(column) for gene in genes for column in lookup.get(gene, ())]
        if len(columns) >= fewest:
            kept.append((name, columns, len(genes)))
        else:
            dropped.append(name)
    if not kept:
        raise InputError(
            f"no gene set of {path} has {fewest} of the data's features, which are like "
            f"{quote_some(list(lookup), 3)}; name the features as the sets name genes"
        )
    return kept, tuple(dropped)
