"""What is probably not meant in a table of samples: each is one warning that names the fix.

None of it stops a fit: a table of counts, or a sample that was measured twice, may be meant.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from frot._base.errors import DataWarning, brief, warn_caller
from frot._base.names import quote_some


def mention(text: str) -> None:
    """Warn of data that may not be meant so."""
    warn_caller(text, category=DataWarning)


def warn_of_alike_labels(classes: np.ndarray, name: str = "y") -> None:
    """Warn of classes that differ by case or blanks only: they are compared with each other.

    Examples
    --------
    >>> warn_of_alike_labels(np.array(["ALL", "AML"]))
    """
    written: dict[str, list[str]] = {}
    for label in map(str, classes.tolist()):
        written.setdefault("".join(label.split()).casefold(), []).append(label)
    for alike in written.values():
        if len(alike) > 1:
            mention(
                f"{name}: {quote_some(alike)} are taken for {len(alike)} classes though they "
                f"differ by case or blanks only; write them alike if they are one"
            )


def warn_of_repeated_samples(
    table: Any, names: Sequence[str] | None = None, in_blocks: bool = False
) -> None:
    """Warn of samples that are there twice: with the same name, or the same values throughout.

    Values are compared in dense tables of 20 features or more, not all of them whole numbers,
    where two samples are not alike by chance. Patients that are blocks are named more than once.
    """
    if not in_blocks and names is not None and len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        mention(
            f"X: {len(twice)} sample{'s are' if len(twice) > 1 else ' is'} named more than once "
            f"({quote_some(twice)}); a sample counts as often as it is there: average them, or "
            "give the patient as block"
        )
        return
    if sparse.issparse(table) or table.shape[1] < 20 or (table[0] == np.floor(table[0])).all():
        return
    first: dict[bytes, int] = {}
    for row in range(len(table)):
        other = first.setdefault(table[row].tobytes(), row)
        if other != row:
            pair = " and ".join(row_name(names, index) for index in (other, row))
            mention(f"X: {pair} hold the same values; leave one out if it is a copy")
            return


def row_names(table: Any) -> list[str] | None:
    """Return the names of a frame's rows; None where they are merely counted, or have none."""
    index = getattr(table, "index", None)
    if not hasattr(table, "columns") or index is None or index.dtype.kind in "iu":
        return None
    return list(map(str, index))


def row_name(names: Sequence[str] | None, row: int) -> str:
    """Return how a row is called in messages.

    Examples
    --------
    >>> row_name(None, 3), row_name(["a", "s1"], 1)
    ('row 3', "row 1 ('s1')")
    """
    return f"row {row}" if names is None else f"row {row} ({brief(str(names[row]))})"


def warn_of_empty_features(table: Any, names: Sequence[str] | None = None) -> None:
    """Warn of features that no sample has a value of: whatever is put there, they score zero."""
    if sparse.issparse(table):
        return
    empty = np.flatnonzero(np.isnan(table).all(axis=0)).tolist()
    if empty:
        named = [str(index) if names is None else str(names[index]) for index in empty]
        mention(
            f"X: {len(empty):,} feature{'s have' if len(empty) > 1 else ' has'} no value in any "
            f"sample ({quote_some(named)}), and score zero; leave them out"
        )


# Counts go further than scores, ages and percents do.
LARGE_COUNT = 100
# No logarithm of a measurement is as large as this; no table of raw ones is as small.
LARGEST_LOGARITHM = 50.0


def largest_count(values: np.ndarray) -> int:
    """Return the largest of numbers that are whole, none negative, some large; else zero.

    Examples
    --------
    >>> largest_count(np.array([0.0, 5312.0])), largest_count(np.array([0.5, 5312.0]))
    (5312, 0)
    """
    part = np.ravel(values[: max(1, len(values) // 50)])
    for some in (part, np.ravel(values)):
        known = some[np.isfinite(some)]
        if not known.size or known.min() < 0.0 or (known != np.floor(known)).any():
            return 0
    return int(known.max()) if known.max() > LARGE_COUNT else 0


def warn_of_intensities(table: Any) -> None:
    """Warn of numbers that are no logarithms though not whole, such as intensities of a chip.

    They are told by a spread that grows with the level: over the features the logarithm of the
    standard deviation follows that of the mean (correlation above .8; .81 to .99 on five chips), in
    100 features or more of means above zero. A t-test of such numbers hears the samples of high
    level alone.
    """
    if sparse.issparse(table) or table.shape[1] < 100 or not table.size:
        return
    some = table[:, :: max(1, table.shape[1] // 2_000)]
    some = some[:, np.isfinite(some).all(axis=0)]
    if not some.size or some.max() <= LARGEST_LOGARITHM or largest_count(some):
        return
    mean, spread = some.mean(axis=0), some.std(axis=0)
    seen = (mean > 0.0) & (spread > 0.0)
    # A background that was subtracted leaves numbers below zero: .26 to .29 of three old chips'.
    if seen.sum() < 100 or (some < 0.0).mean() > 0.4:
        return
    if np.corrcoef(np.log(mean[seen]), np.log(spread[seen]))[0, 1] > 0.8:
        mention(
            f"X: numbers up to {some.max():,.0f} whose spread grows with their level are no "
            "logarithms, and the largest samples decide; take np.log2(np.maximum(X, 1)), or give "
            "log1p=True where a file is read"
        )


DATE = re.compile(
    r"\d{4}-\d\d-\d\d( 00:00:00)?|\d{1,2}-(?:sep|mar|dec|oct|apr|feb|nov)|"
    r"(?:sep|mar|dec|oct|apr|feb|nov)-\d{1,2}",
    re.IGNORECASE,
)
# Days since 1900 as a spreadsheet writes SEPT2 once the cell lost its format: 1982 to 2064.
SERIAL = re.compile(r"[345]\d{4}(\.0)?")


def warn_of_names(names: Sequence[str], whose: str) -> None:
    """Warn of features whose names repeat, or are what a spreadsheet makes of SEPT2.

    Examples
    --------
    >>> warn_of_names(["TP53", "MYC"], "genes.csv")
    """
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        mention(
            f"{whose}: {len(repeated)} {'name stands' if len(repeated) == 1 else 'names stand'} "
            f"for several features ({quote_some(repeated)}); each is ranked by itself, the second "
            f"as {brief(repeated[0] + '#2')}: keep or average one of each if they are the same gene"
        )
    dates = [name for name in names if DATE.fullmatch(name)]
    serials = [name for name in names if SERIAL.fullmatch(name)]
    # Where most names are numbers they are identifiers, of Entrez say.
    numbers = sum(name.isdigit() for name in names) if serials else 0
    if len(serials) > 0 and 2 * numbers < len(names):
        dates += serials
    if dates:
        mention(
            f"{whose}: features are named like dates ({quote_some(dates)}), as spreadsheets make "
            "of SEPT2 or MARCH1; take the names from the original file"
        )


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


def looks_like_metadata(name: str, values: np.ndarray | None = None) -> bool:
    """Say whether a column of numbers is probably no feature, by its name or by counting rows.

    Five rows or more that count up from 0 or 1 do not do so by chance.

    Examples
    --------
    >>> [looks_like_metadata(name) for name in ("Age at diagnosis", "patientID", "ID1", "TP53")]
    [True, True, False, False]
    >>> looks_like_metadata("x", np.arange(1.0, 21.0))
    True
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    parts = re.findall(r"[a-z]+|\d+", words.lower())
    known = set(_WORDS.split())
    if known.intersection(parts) and known.union(_FILLERS.split()).issuperset(parts):
        return True
    if values is None or len(values) < 5 or values[0] not in (0.0, 1.0):
        return False
    return bool((np.diff(values) == 1.0).all())
