"""What in a table is probably not meant: metadata among features, raw counts, repeated names."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from frot._base.errors import DataWarning, InputError, brief, warn_caller
from frot._base.names import quote_some

__all__ = ["apply_log1p", "looks_like_metadata", "matching_names", "mention", "say_what_is_odd"]

# A name of these and of fillers alone is that of metadata. No gene symbol is among them.
_WORDS = """
age sex gender race ethnicity bmi height weight batch plate well lane run slide chip array date time
timepoint day days week weeks month months year years hour hours dose dosage concentration survival
event status death dead alive os pfs dfs followup censored censor vital outcome response
stage grade id identifier index barcode patient sample subject donor person participant individual
animal cage litter case replicate visit site center centre hospital cohort study class label group
condition treatment cluster rin passage smoker smoking karnofsky ecog row
"""
_FILLERS = """
at of to in on the since from until and no nr num number n code name unnamed overall progression
disease free relapse last first follow up diagnosis onset birth surgery total collection processing
sequencing library technical biological point score pack scan experiment tumor tumour mg ml kg cm
"""
WORDS, FILLERS = frozenset(_WORDS.split()), frozenset(_FILLERS.split())
# Fewer rows that count up may do so by chance.
COUNTED = 5


def mention(text: str) -> None:
    """Warn of data that may not be meant so."""
    warn_caller(text, category=DataWarning)


def looks_like_metadata(name: str, values: np.ndarray | None = None) -> bool:
    """Say whether a column of numbers is probably no feature, by its name or by counting rows.

    Examples
    --------
    >>> [looks_like_metadata(name) for name in ("Age at diagnosis", "patientID", "ID1", "TP53")]
    [True, True, False, False]
    >>> looks_like_metadata("x", np.arange(1.0, 21.0))
    True
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    parts = re.findall(r"[a-z]+|\d+", words.lower())
    if parts and WORDS.intersection(parts) and WORDS.union(FILLERS).issuperset(parts):
        return True
    if values is None or len(values) < COUNTED or values[0] not in (0.0, 1.0):
        return False
    return bool((np.diff(values) == 1.0).all())


def say_what_is_odd(X: Any, names: Sequence[str], path: Path, logged: bool) -> None:
    """Give a sentence with the fix for names that repeat or are dates, and for raw counts."""
    count: dict[str, int] = {}
    for name in names:
        count[name] = count.get(name, 0) + 1
    repeated = [name for name, times in count.items() if times > 1]
    if repeated:
        mention(
            f"{path}: {len(repeated)} names are those of several features "
            f"({quote_some(repeated)}); each is ranked by itself, the second as "
            f"{brief(repeated[0] + '#2')}: keep or average one of each if they are the same gene"
        )
    dates = [name for name in names if DATE.fullmatch(name)]
    if dates:
        mention(
            f"{path}: features are named like dates ({quote_some(dates)}), as spreadsheets make of "
            "SEPT2 or MARCH1; take the names from the original file"
        )
    values = X.data if sparse.issparse(X) else X
    if not logged and (largest := _largest_count(values)):
        mention(
            f"{path} looks like raw counts (whole numbers up to {largest:,}); log1p=True ranks "
            "log(1 + x), in which the largest do not hide the others"
        )


DATE = re.compile(
    r"\d{4}-\d\d-\d\d( 00:00:00)?|\d{1,2}-(?:sep|mar|dec|oct|apr|feb|nov)|"
    r"(?:sep|mar|dec|oct|apr|feb|nov)-\d{1,2}",
    re.IGNORECASE,
)
# Counts go further than scores, ages and percents do.
LARGE = 100


def _largest_count(values: np.ndarray) -> int:
    """Return the largest of numbers that are whole, none negative, some large; else zero."""
    part = np.ravel(values[: max(1, len(values) // 50)])
    for some in (part, np.ravel(values)):
        known = some[np.isfinite(some)]
        if not known.size or known.min() < 0.0 or (known != np.floor(known)).any():
            return 0
    return int(known.max()) if known.max() > LARGE else 0


def apply_log1p(X: Any, path: Path) -> Any:
    """Return log(1 + x), sparse where X is sparse; refuses negative numbers.

    Examples
    --------
    >>> apply_log1p(np.array([[0.0, 99.0]]), Path("a.csv")).round(3)
    array([[0.   , 4.605]])
    """
    values = X.data if sparse.issparse(X) else X
    known = values[np.isfinite(values)]
    if known.size and known.min() < 0.0:
        raise InputError(
            f"log1p: {path} has negative numbers, the least {known.min():.6g}, and so is no table "
            "of counts; leave log1p=True out"
        )
    if known.size and known.max() < 25.0 and (known != np.floor(known)).any():
        mention(
            f"log1p: the largest number in {path} is {known.max():.4g}, as if logarithms were "
            "taken before; if they were, leave log1p=True out"
        )
    if sparse.issparse(X):
        return X.log1p()
    return np.log1p(X)


VERSION = re.compile(r"(ENS[A-Z]*\d{6,})\.\d+(?:_\d+)?")


def matching_names(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return other ways to write names of genes, each with what was done.

    Examples
    --------
    >>> matching_names(["ENSG00000141510.12"])
    [('without their versions', ['ENSG00000141510'])]
    >>> matching_names(["Trp53", "Myc"])
    [('in capitals', ['TRP53', 'MYC'])]
    """
    ways = {
        "without their versions": [VERSION.sub(r"\1", name) for name in names],
        "in capitals": [name.upper() for name in names],
    }
    return [(how, other) for how, other in ways.items() if other != list(names)]


def drop_metadata(
    X: Any, names: Sequence[str], kept: Collection[str], path: Path
) -> tuple[list[int], tuple[str, ...]]:
    """Return the columns that are features, and the names of those that are not."""
    odd = [
        place
        for place, name in enumerate(names)
        if name not in kept and looks_like_metadata(name, X[:, place])
    ]
    found = tuple(names[place] for place in odd)
    if found:
        one, are = brief(found[0]), "looks" if len(found) == 1 else "look"
        mention(
            f"{path}: {quote_some(found, 8)} {are} like metadata; left out of the ranking "
            f"(keep={one} ranks it, drop={one} leaves it out without this warning)"
        )
    left_out = set(odd)
    return [place for place in range(len(names)) if place not in left_out], found
