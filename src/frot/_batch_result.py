"""What `solve_batch` returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._arrays import Home, read_only, to_numpy
from frot._bounds import relative_gap
from frot._entropic._certificate import Certificate
from frot._entropic._dense import DenseEngine
from frot._entropic._scaling import log_columns
from frot._groups import Groups
from frot._lazy_plan import Gibbs, LazyPlan
from frot._result import Progress, Result
from frot._status import Status

__all__ = ["BatchResult"]


@dataclass(frozen=True, eq=False)
class BatchResult(Sequence[Result]):
    """Results of a batch: all numbers as arrays, and each member as a `Result`.

    Attributes
    ----------
    value, lower, upper : NumPy arrays of shape (B,)
        Read-only, as all of NumPy's arrays here.
    alpha, phi : arrays of shape (B, L)
        Of the points' library; other libraries' are copies.
    status : tuple of Status, one a member

    Examples
    --------
    >>> import numpy as np, frot
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(3, 5, 2)), rng.normal(size=(3, 6, 2))
    >>> found = frot.solve_batch(X, Y, eta=0.1, eps=0.1)
    >>> len(found), found.value.shape, found[0].status
    (3, (3,), Status.CONVERGED)
    """

    status: tuple[Status, ...]
    proof: Certificate
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

    @property
    def value(self) -> np.ndarray:
        """Objectives of the plans, (B,)."""
        return read_only(to_numpy(self.proof.value))

    @property
    def lower(self) -> np.ndarray:
        """Proven lower bounds, (B,)."""
        return read_only(np.minimum(to_numpy(self.proof.lower), self.upper))

    @property
    def upper(self) -> np.ndarray:
        """Proven upper bounds, (B,)."""
        return read_only(to_numpy(self.proof.upper))

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
        pairs = zip(self.lower, self.upper, strict=True)
        return read_only(np.array([relative_gap(float(low), float(high)) for low, high in pairs]))

    def plans(self) -> Any:
        """Return all plans as one fresh array of shape (B, n, m), in double precision."""
        gibbs, proof = self._gibbs, self.proof
        return gibbs.dense() + proof.left[:, :, None] * proof.right[:, None, :]

    @property
    def _gibbs(self) -> Gibbs:
        proof = self.proof
        return Gibbs(self.engine.geometry, self.engine.terms, proof.alpha, proof.f, proof.g)

    def settled(self) -> tuple[Any, Any]:
        r"""Return the potentials, (B, n) and (B, m), with g updated for f once more.

        Columns without weight count for no error, so that sweeps may stop before their g is right.
        """
        proof, terms = self.proof, self.engine.terms
        scores, xp = self.engine.geometry.mix(proof.alpha), terms.home.xp
        g = log_columns(xp, scores, terms.a, terms.eps, proof.f)
        return xp.asarray(proof.f, copy=True), g

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
        row, proof, terms = slice(at, at + 1), self.proof, self.engine.terms
        geometry: Any = self.engine.geometry
        alone = replace(geometry, X=geometry.X[row, ...], Y=geometry.Y[row, ...])
        gibbs = Gibbs(
            alone,
            terms.members(terms.home.indices([at])),
            proof.alpha[row, :],
            proof.f[row, :],
            proof.g[row, :],
        )
        lower, upper = float(self.lower[at]), float(self.upper[at])
        now = Progress(self.iterations[at], self.time, lower, upper, relative_gap(lower, upper))
        return Result(
            value=float(self.value[at]),
            lower=lower,
            upper=upper,
            status=self.status[at],
            alpha=proof.alpha[at, :],
            phi=proof.phi[at, :],
            plan=LazyPlan(
                [(float(proof.weight[at]), gibbs)],
                [(proof.left[at, :], proof.right[at, :])],
                proof.phi[at, :],
            ),
            potentials=(proof.f[at, :], proof.dual_g[at, :]),
            mean_cost=float(self.mean_cost[at]),
            names=self.groups.names,
            solver=self.solver,
            iterations=self.iterations[at],
            time=self.time,
            history=(now,),
            eta=float(self.eta[at]),
            eps=float(self.eps[at]),
            groups=self.groups,
            plain=(float(proof.plain_lower[at]), float(proof.plain_upper[at])),
        ).at(self.home)
