"""What is known to be no more than what, held against the numbers found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from frot.comparison._row import Row
from frot.problem.adversary import GivenSet, SimplexFamily

__all__ = ["Relation", "relations_of"]

# Bounds of different methods are rounded differently.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Relation:
    """A theorem, left <= right, and what the two intervals say about it here.

    `verdict` is "proven" if the intervals do not even overlap, "consistent" if they do, and
    "violated" if they contradict it: then one of them is wrong, which would be a bug.
    """

    left: str
    right: str
    why: str
    verdict: str

    def to_dict(self) -> dict[str, str]:
        """Return the relation as text."""
        return {
            "left": self.left, "right": self.right, "why": self.why, "verdict": self.verdict
        }  # fmt: skip


def relations_of(
    rows: Sequence[Row],
    sizes: Sequence[int],
    k: Any,
    adversary: SimplexFamily | GivenSet | None = None,
) -> tuple[Relation, ...]:
    """Return the relations between the rows, given how many features each group has.

    Those of FROT are about weights of sum one; of sets that are something else nothing is known.

    Examples
    --------
    >>> import frot
    >>> found = frot.compare([[0.0, 0.0]], [[1.0, 2.0]], ["max_min", "frot", "ot"])
    >>> [(one.left, one.right, one.verdict) for one in found.relations]
    [('max-min', 'FROT', 'consistent'), ('FROT', 'OT', 'proven')]
    """
    there = {row.method: row for row in rows if row.comparable}
    found = []
    for left, right, why, known in _theorems(max(sizes, default=1), k, adversary):
        one, other = there.get(left), there.get(right)
        if known and one is not None and other is not None:
            found.append(Relation(one.title, other.title, why, _verdict(one, other)))
    return tuple(found)


def _theorems(
    largest: int, k: Any, adversary: SimplexFamily | GivenSet | None
) -> list[tuple[str, str, str, bool]]:
    mixes = not isinstance(adversary, GivenSet)
    # A single group is no choice where several have to share the weight.
    alone = mixes and (adversary is None or adversary.k == 1)
    fits = isinstance(k, Integral) and largest <= int(k)
    return [
        ("max_min", "frot", "the adversary chooses before the plan, and a single group", alone),
        ("equitable", "frot", "each group pays for its part of the plan only", mixes),
        ("frot", "srw", "every group lies in a subspace of at most k dimensions", fits and mixes),
        ("frot", "ot", "a mix of groups counts no feature more than once", mixes),
        ("max_min", "max_sliced", "single features are directions", largest == 1),
        ("sliced", "max_sliced", "a mean is no more than the largest", True),
        ("max_sliced", "srw", "a direction chosen first lies in some subspace", True),
        ("srw", "ot", "a subspace counts no direction more than once", True),
        ("generalised_max_sliced", "ot", "the curve stretches no distance", True),
    ]


def _verdict(one: Row, other: Row) -> str:
    assert one.result is not None
    assert other.result is not None
    left, right = one.result, other.result
    if left.upper <= right.lower:
        return "proven"
    room = ROUNDING * (abs(left.lower) + abs(right.upper))
    return "consistent" if left.lower <= right.upper + room else "violated"
