"""What the adversary of a relative of feature-robust transport chose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from frot._base.arrays import read_only, to_numpy

__all__ = ["Chosen"]

# Entries named in a line; more would not be read.
NAMED = 3


@dataclass(frozen=True, eq=False)
class Chosen:
    """The adversary's answer, whatever it chooses from.

    Parameters
    ----------
    kind : {"weights", "subspace", "direction", "costs"}
        Weights of groups; orthonormal directions; one direction (or the parameters of a defining
        function); the share of mass that each cost carries.
    array : array
        Of shape (L,), (d, s), (d,) or (L,), in this order. NumPy's is read-only.
    names : tuple of str
        Names of what the entries, or the features of directions, stand for.
    weights : array of shape (s,), optional
        What each direction of a subspace counts, in [0, 1].

    Examples
    --------
    >>> Chosen("weights", np.array([0.25, 0.75]), ("red", "blue")).describe()
    'weights: blue 0.75, red 0.25'
    """

    kind: Literal["weights", "subspace", "direction", "costs"]
    array: np.ndarray
    names: tuple[str, ...] = ()
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("array", "weights"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickle does not keep that an array is read-only.
        self.__dict__.update(state)
        self.__post_init__()

    def moved(self, bring: Callable[[Any], Any]) -> Chosen:
        """The same choice with its arrays brought elsewhere.

        Examples
        --------
        >>> Chosen("weights", np.ones(1)).moved(lambda array: array.astype("float32")).array.dtype
        dtype('float32')
        """
        weights = None if self.weights is None else bring(self.weights)
        return replace(self, array=bring(self.array), weights=weights)

    def describe(self) -> str:
        """Return the choice in one line: the heaviest entries by name."""
        array = to_numpy(self.array)
        if self.kind == "subspace":
            weights = np.ones(array.shape[1]) if self.weights is None else to_numpy(self.weights)
            # A feature's share of the subspace is its squared projection.
            shares = array**2 @ weights
            head = f"{self.kind} of dimension {weights.sum():.3g} in {len(weights)} directions"
            return f"{head}: {self._heaviest(shares)}"
        return f"{self.kind}: {self._heaviest(np.ravel(array))}"

    def _heaviest(self, values: np.ndarray) -> str:
        order = np.argsort(-np.abs(values), kind="stable")
        shown = [at for at in order[:NAMED] if values[at] != 0.0] or list(order[:1])
        named = len(self.names) == len(values)
        text = ", ".join(
            f"{self.names[at] if named else at} {values[at]:.3g}" for at in map(int, shown)
        )
        left = int(np.count_nonzero(values)) - len(shown)
        return f"{text} and {left} more" if left > 0 else text
