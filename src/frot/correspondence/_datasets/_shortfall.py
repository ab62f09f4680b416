"""What a copy of a data set lacks of the published one, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frot.correspondence._pair import Pair

__all__ = ["shortfall"]

# Classes that are named; `verify_pairs` names everything.
NAMED = 5


def shortfall(pairs: Sequence[Pair], classes: Iterable[str], published: int) -> tuple[str, ...]:
    """Return a sentence if pairs or whole classes are missing, and nothing otherwise.

    Parameters
    ----------
    pairs : sequence of Pair
        Those that can be used.
    classes : iterable of str
        Those that there should be.
    published : int
        How many pairs there should be.

    Examples
    --------
    >>> shortfall((), ["cat", "dog"], 12)[0]
    'incomplete: 0 of the 12 published pairs can be used, none of cat, dog; --verify names all ...'
    """
    there = {pair.category for pair in pairs}
    absent = [name for name in dict.fromkeys(classes) if name not in there]
    if not absent and len(pairs) >= published:
        return ()
    more = f" and {len(absent) - NAMED} more classes" if len(absent) > NAMED else ""
    none = f", none of {', '.join(absent[:NAMED])}{more}" if absent else ""
    return (
        f"incomplete: {len(pairs)} of the {published} published pairs can be used{none}; "
        "--verify names all that is missing",
    )
