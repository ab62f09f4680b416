"""`BatchResult`: what `solve_batch` returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from frot._base.arrays import Array, Home, read_only, to_numpy
from frot._base.contract import gap_floor, relative_gap
from frot._base.errors import require
from frot.groups.groups import Groups
from frot.plans.lazy import LazyPlan
from frot.plans.plan import Plan
from frot.problem.adversary import simplex_of
from frot.problem.problem import Marginals, Problem
from frot.problem.result import Progress, Result, Status, package_version
from frot.solvers.entropic.certificate import Certificate
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.kernel import Gibbs


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
    >>> batch = frot.solve_batch(X, Y, eta=0.1, eps=0.1)
    >>> len(batch), batch.value.shape, batch[0].status
    (3, (3,), Status.CONVERGED)
    >>> batch
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
    metric: str = ""
    adversary: str = ""
    tol: float | None = None
    version: str = field(default_factory=package_version)

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
            **{f"alpha_{name}": alpha[:, index] for index, name in enumerate(self.groups.names)},
        }
        return require("pandas", "tables").DataFrame(columns)

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
    def alpha(self) -> Array:
        """Weights of the groups, (B, L)."""
        return self._out(self.proof.alpha)

    @property
    def phi(self) -> Array:
        """Group costs of the plans, (B, L)."""
        return self._out(self.proof.phi)

    @property
    def gap(self) -> np.ndarray:
        """Relative gaps, (B,)."""
        gaps = np.empty(len(self))
        for index, (lower, upper) in enumerate(zip(self.lower, self.upper, strict=True)):
            scales = float(self.eta[index]), float(self.eps[index])
            if self.engine.problem.unbalanced:
                scales = (*scales, *self._prices(index))
            floor = gap_floor(float(self.mean_cost[index]), *scales) * min(self._totals(index))
            gaps[index] = relative_gap(float(lower), float(upper), floor)
        return read_only(gaps)

    def plans(self) -> Any:
        """Return all plans as one fresh array of shape (B, n, m), in double precision."""
        gibbs, proof = self._gibbs, self.proof
        plans = proof.weight[:, None, None] * gibbs.dense()
        plans += proof.left[:, :, None] * proof.right[:, None, :]
        return plans

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows of the plans, each of shape (B, r, m), in double precision."""
        proof = self.proof
        weight, left, right = proof.weight[:, None, None], proof.left, proof.right
        for part, block in self._gibbs.batches(self.engine.parts):
            yield part, weight * block + left[:, part, None] * right[:, None, :]

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        """Return ``plans @ V``, (B, n, k), and ``plans^T @ U``, (B, m, k), without the plans.

        U, (B, n, k), or V, (B, m, k), may be None; its product is then None.
        """
        xp, proof = self.engine.problem.home.xp, self.proof
        turn, parts = xp.matrix_transpose, []
        ahead: Any = None
        back: Any = None
        for part, block in self._gibbs.batches(self.engine.parts):
            if V is not None:
                parts.append(block @ V)
            if U is not None:
                product = turn(block) @ U[:, part, :]
                back = product if back is None else back + product
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
        return Gibbs(self.engine.costs, self.engine.problem, proof.alpha, proof.g, proof.thin)

    def _plan(self, index: int) -> Plan:
        """The plan of one member."""
        row, proof, problem = slice(index, index + 1), self.proof, self.engine.problem
        alone = problem.home.indices([index])
        gibbs = Gibbs(
            self.engine.costs.members(alone),
            problem.members(alone),
            proof.alpha[row, :],
            proof.g[row, :],
            proof.thin[row, :],
            crowd=len(self),
        )
        rank = (proof.left[index, :], proof.right[index, :])
        return LazyPlan([(float(proof.weight[index]), gibbs)], [rank])

    def _out(self, array: Array) -> Array:
        if self.home is None:
            return read_only(array)
        return self.home.xp.astype(array, self.home.dtype, copy=True)

    def __len__(self) -> int:
        return len(self.status)

    def __iter__(self) -> Iterator[Result]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        proof = self.proof
        owed: dict[str, Any] = {}
        if self.engine.problem.unbalanced:
            owed = {"tau": self._prices(index), "totals": self._totals(index)}
        lower, upper = float(self.lower[index]), float(self.upper[index])
        now = Progress(self.iterations[index], self.time, lower, upper, float(self.gap[index]))
        return Result(
            value=float(self.value[index]),
            lower=lower,
            upper=upper,
            status=self.status[index],
            alpha=proof.alpha[index, :],
            phi=proof.phi[index, :],
            plan=self._plan(index),
            potentials=(self.duals[0][index, :], self.duals[1][index, :]),
            mean_cost=float(self.mean_cost[index]),
            names=self.groups.names,
            solver=self.solver,
            iterations=self.iterations[index],
            time=self.time,
            history=(now,),
            eta=float(self.eta[index]),
            eps=float(self.eps[index]),
            groups=self.groups,
            metric=self.metric,
            adversary=self.adversary,
            tol=self.tol,
            version=self.version,
            problem=self._problem(index),
            **owed,
        ).at(self.home)

    def _problem(self, index: int) -> Problem:
        """The problem of one member, from which its interval without eps is computed if asked."""
        problem = self.engine.problem
        prior = None if problem.log_prior is None else to_numpy(problem.log_prior)[0]
        return Problem(
            self.engine.costs.member(index),
            to_numpy(problem.a[index, :]),
            to_numpy(problem.b[index, :]),
            adversary=simplex_of(problem.k, float(self.eta[index]), prior),
            eps=float(self.eps[index]),
            marginals=Marginals(*self._prices(index)),
        )

    def _prices(self, index: int) -> tuple[float, float]:
        """What one member pays for mass of either side, infinite where all is kept."""
        problem = self.engine.problem
        tau_a, tau_b = (
            np.inf if price is None else float(price[index, 0])
            for price in (problem.tau_a, problem.tau_b)
        )
        return tau_a, tau_b

    def _totals(self, index: int) -> tuple[float, float]:
        """What the weights of one member's sides sum to."""
        problem = self.engine.problem
        a, b = to_numpy(problem.a[index, :]), to_numpy(problem.b[index, :])
        return float(a.sum()), float(b.sum())
