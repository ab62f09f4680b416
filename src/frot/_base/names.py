"""Lists of names: shown in messages, checked for repeats, made distinct."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from frot._base.errors import brief


def quote_some(names: Sequence[str], limit: int = 5) -> str:
    """Join names for a message, at most `limit` of them.

    Examples
    --------
    >>> quote_some(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(brief(str(name)) for name in names[:limit])
    more = len(names) - limit
    return f"{shown} and {more} more" if more > 0 else shown


def did_you_mean(name: object, known: Sequence[object]) -> str:
    """Return a question that ends a message, or nothing where no known name is near.

    Examples
    --------
    >>> did_you_mean("clas", ["class", "age"]), did_you_mean("x", ["class"])
    ("; did you mean 'class'?", '')
    """
    by_letters = {str(word).strip().casefold(): str(word) for word in reversed(known)}
    near = difflib.get_close_matches(str(name)[:50].strip().casefold(), by_letters, n=1)
    return f"; did you mean {brief(by_letters[near[0]])}?" if near else ""


def first_repeated(names: Sequence[str]) -> str | None:
    """Return the first name that occurs a second time, or None."""
    if len(set(names)) == len(names):
        return None
    seen: set[str] = set()
    # set.add returns None, so that the test is only whether the name was there before.
    return next(name for name in names if name in seen or seen.add(name))


def distinct(names: list[str]) -> list[str]:
    """Append #2, #3, … to a name that occurs again.

    Examples
    --------
    >>> distinct(["TP53", "MYC", "TP53"])
    ['TP53', 'MYC', 'TP53#2']
    """
    taken = set(names)
    if len(taken) == len(names):
        return names
    count: dict[str, int] = {}
    result = []
    for name in names:
        count[name] = count.get(name, 0) + 1
        label = name
        while count[name] > 1 and (label := f"{name}#{count[name]}") in taken:
            count[name] += 1
        taken.add(label)
        result.append(label)
    return result
