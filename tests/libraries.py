"""The array libraries that tests run on, and what an array has to be to be one of theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from frot._base.arrays import Home, to_numpy

__all__ = ["FOREIGN", "LIBRARIES", "Library"]


@dataclass(frozen=True)
class Library:
    """One library in one precision."""

    name: str
    precision: str

    def __str__(self) -> str:
        return f"{self.name}-{self.precision}"

    def __call__(self, values: Any) -> Any:
        """Numbers as an array of this library and precision."""
        values = np.array(values, dtype=self.precision)
        return torch.tensor(values) if self.name == "torch" else values

    def owns(self, array: Any) -> bool:
        """Whether an array is of this library, device and precision; NumPy's come in double."""
        like = self(np.zeros(1))
        if self.name == "numpy":
            return isinstance(array, np.ndarray) and array.dtype == np.float64
        return type(array) is type(like) and Home.of(array) == Home.of(like)

    @property
    def close(self) -> float:
        """How far answers may be apart that came from numbers of this precision."""
        return 1e-9 if self.precision == "float64" else 2e-5

    @staticmethod
    def host(array: Any) -> np.ndarray:
        """An array as NumPy's."""
        return to_numpy(array)


FOREIGN = [Library("torch", precision) for precision in ("float64", "float32")]
LIBRARIES = [*FOREIGN, Library("numpy", "float64"), Library("numpy", "float32")]
