"""A batch as plain arrays by name, and back: what `BatchResult.save` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from frot._base.arrays import to_numpy
from frot.api.batch_result import BatchResult
from frot.problem.result_file import arrays_of_groups, groups_in
from frot.problem.status import Status
from frot.solvers.sinkhorn.certificate import Certificate

__all__ = ["SavedBatch", "arrays_of", "rebuilt"]

NUMBERS = ("eta", "eps", "mean_cost")
PROVEN = ("value", "lower", "upper", "plain_lower", "plain_upper", "alpha", "phi")


@dataclass(frozen=True, eq=False, repr=False)
class SavedBatch(BatchResult):
    """A batch from a file: its plans are arrays, and it needs no costs to make them."""

    owed: tuple[dict[str, Any], ...] = ()

    def plans(self) -> np.ndarray:
        """Return all plans as one fresh array of shape (B, n, m)."""
        return np.stack([self.explicit[at] for at in range(len(self))])

    def products(self, U: Any, V: Any) -> tuple[Any, Any]:
        """Return ``plans @ V`` and ``plans^T @ U``; None for what is not given."""
        plans = self.plans()
        ahead = None if V is None else plans @ V
        return ahead, None if U is None else plans.transpose(0, 2, 1) @ U

    def _owed(self, at: int) -> dict[str, Any]:
        return self.owed[at]


def arrays_of(batch: BatchResult) -> dict[str, Any]:
    """Return all of a batch as arrays by name."""
    f, g = batch.duals
    owed = [batch._owed(at) for at in range(len(batch))]
    return {
        "status": np.array([status.name for status in batch.status]),
        "iterations": batch.iterations,
        "time": batch.time,
        "solver": batch.solver,
        "f": to_numpy(f),
        "g": to_numpy(g),
        "plans": to_numpy(batch.plans()),
        **{name: getattr(batch, name) for name in NUMBERS},
        **{name: to_numpy(getattr(batch.proof, name)) for name in PROVEN},
        **{name: np.array([one[name] for one in owed]) for name in owed[0]},
        **arrays_of_groups(batch.groups),
    }


def rebuilt(arrays: Mapping[str, np.ndarray]) -> SavedBatch:
    """Make the batch that `arrays_of` took apart."""
    proof = dict.fromkeys((field.name for field in fields(Certificate)), None)
    proof |= {name: arrays[name] for name in PROVEN}
    prices = [name for name in ("tau", "totals") if name in arrays]
    count = len(arrays["status"])
    engine: Any = None
    return SavedBatch(
        status=tuple(Status[name] for name in arrays["status"].tolist()),
        proof=Certificate(**proof),
        duals=(arrays["f"], arrays["g"]),
        explicit=dict(enumerate(arrays["plans"])),
        engine=engine,
        iterations=tuple(arrays["iterations"].tolist()),
        time=float(arrays["time"]),
        groups=groups_in(arrays),
        solver=str(arrays["solver"]),
        home=None,
        owed=tuple(
            {name: tuple(arrays[name][at].tolist()) for name in prices} for at in range(count)
        ),
        **{name: arrays[name] for name in NUMBERS},
    )
