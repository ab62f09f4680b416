"""`BatchResult`: what `solve_batch` returns, how it is saved, and what is read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.arrays import Home, read_only, to_numpy
from frot._base.contract import gap_floor, relative_gap
from frot._base.errors import require
from frot._base.files import write_archive
from frot.costs import DeviceCosts
from frot.groups.groups import Groups
from frot.plans.lazy import LazyPlan
from frot.plans.plan import Plan
from frot.problem.adversary import simplex_of
from frot.problem.marginals import Marginals
from frot.problem.problem import Problem
from frot.problem.result import Progress, Result, Status, arrays_of_groups, groups_in
from frot.solvers.sinkhorn.certificate import Certificate
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.kernel import Gibbs

# Rows in a notebook; more would not be read.
SHOWN = 8


@dataclass(frozen=True, eq=False, repr=False)
class BatchResult(Sequence[Result]):
    """Results of a batch: all numbers as arrays, and each member as a `Result`.

    Attributes
    ----------
    value, lower, upper : NumPy arrays of shape (B,)
        Read-only, like all NumPy arrays here.
    alpha, phi : arrays of shape (B, L)
        In the array library of the points; for other libraries than NumPy, copies.
    status : tuple of Status, one per member

    Examples
    --------
    >>> import numpy as np, frot
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(3, 5, 2)), rng.normal(size=(3, 6, 2))
    >>> found = frot.solve_batch(X, Y, eta=0.1, eps=0.1)
    >>> len(found), found.value.shape, found[0].status
    (3, (3,), Status.CONVERGED)
    >>> found
    BatchResult(3 members: 3 CONVERGED; value 0.5753 to 3.319, largest gap ...)
    """

    status: tuple[Status, ...]
    proof: Certificate
    duals: tuple[Any, Any]
    engine: DenseEngine
    iterations: tuple[int, ...]
    time: float
    eta: np.ndarray
    eps: np.ndarray
    mean_cost: np.ndarray
    groups: Groups
    solver: str
    home: Home | None

    def __post_init__(self) -> None:
        for name in ("eta", "eps", "mean_cost"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickle does not keep that an array is read-only.
        self.__dict__.update(state)
        self.__post_init__()

    def __repr__(self) -> str:
        count = len(self)
        members = f"{count} member{'s' * (count != 1)}"
        ends = ", ".join(f"{many} {status}" for status, many in Counter(self.status).most_common())
        low, high = float(self.value.min()), float(self.value.max())
        values = f"{low:.4g} to {high:.4g}" if low < high else f"{low:.4g}"
        return f"BatchResult({members}: {ends}; value {values}, largest gap {self.gap.max():.0e})"

    def to_dict(self) -> dict[str, Any]:
        """Return every member as numbers and text ready for JSON; see `Result.to_dict`."""
        return {"members": [member.to_dict() for member in self]}

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per member; weights are in columns ``alpha_NAME``.

        Examples
        --------
        >>> import numpy as np, frot
        >>> X, Y = np.random.default_rng(0).normal(size=(2, 3, 5, 2))
        >>> list(frot.solve_batch(X, Y, eps=0.1).to_frame().columns)
        ['value', 'lower', 'upper', 'gap', 'status', 'iterations', 'alpha_x0', 'alpha_x1']
        """
        alpha = to_numpy(self.alpha)
        columns: dict[str, Any] = {
            **{name: getattr(self, name) for name in ("value", "lower", "upper", "gap")},
            "status": [status.name for status in self.status],
            "iterations": self.iterations,
            **{f"alpha_{name}": alpha[:, at] for at, name in enumerate(self.groups.names)},
        }
        return require("pandas", "tables").DataFrame(columns)

    def save(self, path: str | Path) -> Path:
        """Write the batch to an .npz file, with all plans; `frot.load` reads it back.

        Examples
        --------
        >>> import numpy as np, frot, pathlib, tempfile
        >>> X, Y = np.random.default_rng(0).normal(size=(2, 3, 5, 2))
        >>> found = frot.solve_batch(X, Y, eps=0.1)
        >>> again = frot.load(found.save(pathlib.Path(tempfile.mkdtemp()) / "batch.npz"))
        >>> bool((again.value == found.value).all())
        True
        """
        return write_archive(path, "batch", arrays_of(self))

    def _repr_html_(self) -> str:
        from frot.show.page import card

        shown = range(min(len(self), SHOWN))
        alpha, gap = to_numpy(self.alpha), self.gap
        rows = [
            [
                at,
                *(float(array[at]) for array in (self.value, self.lower, self.upper)),
                f"{gap[at]:.1e}",
                str(self.status[at]),
                self.groups.names[int(alpha[at].argmax())],
            ]
            for at in shown
        ]
        heads = ["", "value", "lower", "upper", "gap", "status", "heaviest group"]
        facts = [
            ("groups", f"{len(self.groups):,}"),
            ("solver", f"{self.solver}, {self.time:.3g} s"),
            ("largest gap", f"{gap.max():.1e}"),
        ]
        left = len(self) - len(shown)
        note = f"and {left:,} more" if left else ""
        return card(f"Batch of {len(self):,} transports", facts, heads, rows, note)

    @property
    def value(self) -> np.ndarray:
        """Objectives of the plans, (B,)."""
        return read_only(to_numpy(self.proof.value))

    @property
    def lower(self) -> np.ndarray:
        """Proven lower bounds, (B,)."""
        return read_only(to_numpy(self.proof.lower))

    @property
    def upper(self) -> np.ndarray:
        """Proven upper bounds, (B,)."""
        return read_only(to_numpy(self.proof.upper))

    @property
    def potentials(self) -> tuple[Any, Any]:
        """Potentials f and g of the two sides, (B, n) and (B, m)."""
        return self._out(self.duals[0]), self._out(self.duals[1])

    @property
    def alpha(self) -> Any:
        """Weights of the groups, (B, L)."""
        return self._out(self.proof.alpha)

    @property
    def phi(self) -> Any:
        """Group costs of the plans, (B, L)."""
        return self._out(self.proof.phi)

    @property
    def gap(self) -> np.ndarray:
        """Relative gaps, (B,)."""
        gaps = np.empty(len(self))
        for index, (lower, upper) in enumerate(zip(self.lower, self.upper, strict=True)):
            owed = self._owed(index)
            scales = float(self.eta[index]), float(self.eps[index]), *owed.get("tau", ())
            mass, mean = min(owed.get("totals", (1.0,))), float(self.mean_cost[index])
            gaps[index] = relative_gap(float(lower), float(upper), mass * gap_floor(mean, *scales))
        return read_only(gaps)

    def plans(self) -> Any:
        """Return all plans as one fresh array of shape (B, n, m), in double precision."""
        gibbs, proof = self._gibbs, self.proof
        plans = proof.weight[:, None, None] * gibbs.dense()
        plans += proof.left[:, :, None] * proof.right[:, None, :]
        return plans

    def products(self, U: Any, V: Any) -> tuple[Any, Any]:
        """Return ``plans @ V``, (B, n, k), and ``plans^T @ U``, (B, m, k), without the plans.

        U, (B, n, k), or V, (B, m, k), may be None; its product is then None.
        """
        xp, proof = self.engine.terms.home.xp, self.proof
        turn, parts = xp.matrix_transpose, []
        ahead: Any = None
        back: Any = None
        for part, block in self._gibbs.batches(self.engine.parts):
            if V is not None:
                parts.append(block @ V)
            if U is not None:
                found = turn(block) @ U[:, part, :]
                back = found if back is None else back + found
        weight, left, right = proof.weight[:, None, None], proof.left, proof.right
        if V is not None:
            ahead = weight * xp.concat(parts, axis=1)
            ahead = ahead + left[:, :, None] * (right[:, None, :] @ V)
        if U is not None:
            back = weight * back + right[:, :, None] * (left[:, None, :] @ U)
        return ahead, back

    @property
    def _gibbs(self) -> Gibbs:
        proof = self.proof
        return Gibbs(self.engine.geometry, self.engine.terms, proof.alpha, proof.g, proof.thin)

    def _plan(self, at: int) -> Plan:
        """The plan of one member."""
        row, proof, terms = slice(at, at + 1), self.proof, self.engine.terms
        alone = terms.home.indices([at])
        gibbs = Gibbs(
            self.engine.geometry.members(alone),
            terms.members(alone),
            proof.alpha[row, :],
            proof.g[row, :],
            proof.thin[row, :],
            crowd=len(self),
        )
        rank = (proof.left[at, :], proof.right[at, :])
        return LazyPlan([(float(proof.weight[at]), gibbs)], [rank])

    def _out(self, array: Any) -> Any:
        if self.home is None:
            return read_only(array)
        return self.home.xp.astype(array, self.home.dtype, copy=True)

    def __len__(self) -> int:
        return len(self.status)

    def __iter__(self) -> Iterator[Result]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        proof = self.proof
        lower, upper = float(self.lower[at]), float(self.upper[at])
        now = Progress(self.iterations[at], self.time, lower, upper, float(self.gap[at]))
        return Result(
            value=float(self.value[at]),
            lower=lower,
            upper=upper,
            status=self.status[at],
            alpha=proof.alpha[at, :],
            phi=proof.phi[at, :],
            plan=self._plan(at),
            potentials=(self.duals[0][at, :], self.duals[1][at, :]),
            mean_cost=float(self.mean_cost[at]),
            names=self.groups.names,
            solver=self.solver,
            iterations=self.iterations[at],
            time=self.time,
            history=(now,),
            eta=float(self.eta[at]),
            eps=float(self.eps[at]),
            groups=self.groups,
            **self._without_eps(at),
            **self._owed(at),
        ).at(self.home)

    def _without_eps(self, at: int) -> dict[str, Any]:
        """What a member's interval without eps is computed from, if it is asked for."""
        terms, geometry = self.engine.terms, self.engine.geometry
        home = terms.home
        prior = None if terms.log_prior is None else to_numpy(terms.log_prior)[0]
        tau_a, tau_b = (
            np.inf if price is None else float(price[at, 0]) for price in (terms.tau_a, terms.tau_b)
        )
        problem = Problem(
            DeviceCosts(geometry.members(home.indices([at])), home),
            to_numpy(terms.a[at, :]),
            to_numpy(terms.b[at, :]),
            adversary=simplex_of(terms.k, float(self.eta[at]), prior),
            eps=float(self.eps[at]),
            marginals=Marginals(tau_a, tau_b),
        )
        return {"problem": problem}

    def _owed(self, at: int) -> dict[str, Any]:
        """What a member's marginals are worth, where they need not be kept."""
        terms = self.engine.terms
        if not terms.soft:
            return {}
        prices = (terms.tau_a, terms.tau_b)
        tau = tuple(np.inf if price is None else float(price[at, 0]) for price in prices)
        totals = tuple(float(to_numpy(side[at, :]).sum()) for side in (terms.a, terms.b))
        return {"tau": tau, "totals": totals}


NUMBERS = ("eta", "eps", "mean_cost")
PROVEN = ("value", "lower", "upper", "alpha", "phi")


@dataclass(frozen=True, eq=False, repr=False)
class SavedBatch(BatchResult):
    """A batch from a file: its plans are arrays, and it needs no costs to make them."""

    dense: np.ndarray | None = None
    plain: np.ndarray | None = None
    owed: tuple[dict[str, Any], ...] = ()

    def plans(self) -> np.ndarray:
        """Return all plans as one fresh array of shape (B, n, m)."""
        assert self.dense is not None
        return self.dense.copy()

    def _plan(self, at: int) -> Plan:
        """One of them."""
        assert self.dense is not None
        return Plan(self.dense[at])

    def _without_eps(self, at: int) -> dict[str, Any]:
        """It was computed when the batch was saved."""
        assert self.plain is not None
        return {"plain": tuple(self.plain[at].tolist())}

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
        "plain": np.array([one.unregularised for one in batch]),
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
        dense=arrays["plans"],
        plain=arrays["plain"],
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
