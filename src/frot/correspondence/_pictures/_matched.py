"""What pictures and pages need to know of a match."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

__all__ = ["Matched", "Moved", "Pictured"]


class Pictured(Protocol):
    """A photograph."""

    @property
    def pixels(self) -> np.ndarray:
        """Red, green and blue in [0, 1], shape (h, w, 3)."""
        ...

    @property
    def name(self) -> str:
        """What to call it."""
        ...

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        ...


class Moved(Protocol):
    """Points in the target, and how sure they are."""

    @property
    def points(self) -> np.ndarray:
        """Pixels of the target, shape (k, 2)."""
        ...

    @property
    def confidence(self) -> np.ndarray:
        """In [0, 1], shape (k,)."""
        ...


class Matched(Protocol):
    """Two photographs, and how the cells of one go to those of the other: what `Match` is.

    What a match may work out only when asked is of type Any here, because type checkers do not
    take a cached property for a property.
    """

    @property
    def source(self) -> Pictured:
        """The photograph that points are moved from."""
        ...

    @property
    def target(self) -> Pictured:
        """The photograph that they are moved to."""
        ...

    @property
    def source_grid(self) -> Any:
        """Cells of the source, a `Grid` in its resized pixels."""
        ...

    @property
    def target_grid(self) -> Any:
        """Cells of the target."""
        ...

    @property
    def source_ratio(self) -> Any:
        """Resized pixels a pixel of the source."""
        ...

    @property
    def target_ratio(self) -> Any:
        """Resized pixels a pixel of the target."""
        ...

    @property
    def a(self) -> Any:
        """Weights of the source's cells, shape (n,)."""
        ...

    @property
    def b(self) -> Any:
        """Weights of the target's cells, shape (m,)."""
        ...

    @property
    def alpha(self) -> Any:
        """Weights of the layers by name."""
        ...

    @property
    def phi(self) -> Any:
        """Costs of the plan in the layers by name."""
        ...

    @property
    def result(self) -> Any:
        """The `frot.Result`, or None where no transport was solved."""
        ...

    @property
    def scores(self) -> Any:
        """How well cells fit each other, shape (n, m)."""
        ...

    @property
    def method(self) -> str:
        """What matched them."""
        ...

    @property
    def seconds(self) -> float:
        """How long it took."""
        ...

    def transfer(self, points: Any) -> Moved:
        """Move points of the source, shape (k, 2)."""
        ...

    def heatmap(self, point: Any) -> np.ndarray:
        """Say where a point may go, over the target's pixels, at most 1."""
        ...
