r"""Plans kept as what makes them: potentials and weights, multiplied in blocks.

.. math::
    \Pi = \sum_t w_t \, \mathrm{diag}(a)\, e^{(f_t \oplus g_t - M_{\alpha_t}) / \varepsilon}\,
    \mathrm{diag}(b) + \sum_s u_s v_s^\top
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from frot._arrays import Home, is_foreign, namespace, to_numpy
from frot._entropic._blocks import row_blocks
from frot._entropic._forming import form_rows
from frot._entropic._geometry import Geometry
from frot._entropic._scores import Scores, scores_at
from frot._entropic._terms import Terms
from frot._errors import InputError
from frot._plan import Arcs, Plan
from frot._plan_at import entrywise

__all__ = ["Gibbs", "LazyPlan"]

# Plans of up to this many entries are kept once they have been formed.
KEEP_UP_TO = 4_000_000


@dataclass(frozen=True, eq=False)
class Gibbs:
    """One entropic plan: rows made exact from g, columns times `thin`.

    Everything in double precision, with a batch axis of one.
    """

    geometry: Geometry
    terms: Terms
    alpha: Any
    g: Any
    thin: Any

    @cached_property
    def _scores(self) -> Scores:
        return scores_at(self.geometry, self.terms, self.alpha)

    def batches(self, parts: Sequence[slice]) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows of all members, each of shape (B, r, m)."""
        for part, kernel, total, _ in form_rows(self._scores, self.terms, self.g, parts):
            kernel *= (self.terms.a[:, part] / total)[:, :, None]
            kernel *= self.thin[:, None, :]
            yield part, kernel

    def blocks(self, parts: Sequence[slice]) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows, each of shape (r, m)."""
        for part, kernel in self.batches(parts):
            yield part, kernel[0, :, :]

    def dense(self) -> Any:
        """Return the plans of a whole batch, (B, n, m)."""
        blocks = [kernel for _, kernel in self.batches(row_blocks(self.geometry))]
        return blocks[0] if len(blocks) == 1 else self.terms.home.xp.concat(blocks, axis=1)


class LazyPlan(Plan):
    """A plan whose entries are computed when they are used, a block of rows at a time.

    Products (``plan @ V``, ``plan.T @ U``), ``rows(i)``, ``argmax()``, ``sum(axis)`` take no more
    memory than a block; ``dense()`` forms the whole. Arrays that go in and come out are of the
    library and on the device that the points were on.

    Parameters
    ----------
    terms : sequence of (weight, Gibbs)
    ranks : sequence of (array of shape (n,), array of shape (m,))
        Products u v^T to be added: what the rounding to the marginals put in.
    phi : array of shape (L,), optional
        The plan's group costs, where they are known.
    out : Home, optional
        Where arrays that come out go, and their precision: to where they are computed, in double
        precision, if left out.

    Examples
    --------
    >>> import frot
    >>> X, Y = [[0.0, 0.0], [1.0, 1.0]], [[1.0, 3.0], [0.0, 2.0]]
    >>> plan = frot.solve(X, Y, eta=0.1, eps=0.1).plan
    >>> plan.sum(axis=1).round(12), (plan @ np.ones(2)).round(12)
    (array([0.5, 0.5]), array([0.5, 0.5]))
    """

    __slots__ = ("__dict__", "out", "phi", "ranks", "terms")
    proven_marginals = 16.0 * float(np.finfo(float).eps)

    def __init__(
        self,
        terms: Sequence[tuple[float, Gibbs]],
        ranks: Sequence[tuple[Any, Any]] = (),
        phi: Any = None,
        out: Home | None = None,
    ) -> None:
        self.terms, self.ranks, self.phi, self.out = tuple(terms), tuple(ranks), phi, out
        _, _, n, m = self.terms[0][1].geometry.shape
        self._dense, self._arcs, self._csr, self._merged = None, None, None, True
        self._shape = (n, m)

    @property
    def home(self) -> Home:
        """Where the entries are computed."""
        return self.terms[0][1].geometry.home

    def at(self, home: Home) -> LazyPlan:
        """The same plan for a user whose arrays live elsewhere or are of another precision."""
        return LazyPlan(self.terms, self.ranks, self.phi, home)

    def _give(self, found: Any, dtype: Any = None) -> Any:
        """Hand an array out to where the user's are."""
        out = self.out
        if out is None:
            return found if dtype is None else self.home.xp.astype(found, dtype)
        return out.bring(found, dtype)

    @property
    def is_sparse(self) -> bool:
        """It is not: every entry is positive."""
        return False

    @property
    def count(self) -> int:
        """Number of entries that sums run over."""
        return self._shape[0] * self._shape[1] * len(self.terms)

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return self._shape[0] * self._shape[1]

    def _parts(self, rows: slice | None = None) -> list[slice]:
        parts = row_blocks(self.terms[0][1].geometry)
        return parts if rows is None else [rows]

    def blocks(self, parts: Sequence[slice] | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows as arrays of shape (r, m)."""
        if self._kept is not None:
            for part in parts or self._parts():
                yield part, self._kept[part, :]
            return
        for part in parts or self._parts():
            total = None
            for weight, gibbs in self.terms:
                for _, block in gibbs.blocks([part]):
                    if weight != 1.0:
                        block *= weight
                    total = block if total is None else total + block
            for left, right in self.ranks:
                total = total + left[part][:, None] * right[None, :]
            yield part, total

    @cached_property
    def _formed(self) -> Any:
        return self.home.xp.concat([block for _, block in self._fresh()], axis=0)

    def _fresh(self) -> Iterator[tuple[slice, Any]]:
        """Blocks computed anew, even where the whole is kept."""
        return LazyPlan(self.terms, self.ranks).blocks()

    @property
    def _kept(self) -> Any:
        return self.__dict__.get("_formed")

    def native(self) -> Any:
        """Return the whole plan as an array of shape (n, m) of the points' library."""
        if self._shape[0] * self._shape[1] <= KEEP_UP_TO:
            return self._formed
        return self.home.xp.concat([block for _, block in self._fresh()], axis=0)

    def dense(self) -> Any:
        """Return the plan as an array of shape (n, m): NumPy's, or that of the points' library."""
        return self._give(self.native())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(to_numpy(self.native()), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not kwargs:
            # NumPy asks here what ``array @ plan`` is, and a product needs no dense plan.
            left, right = inputs
            return left @ right if isinstance(left, Plan) else right.__rmatmul__(left)
        return entrywise(self.out or self.home, ufunc, method, inputs, kwargs)

    def arcs(self) -> Arcs:
        """Return (rows, cols, mass) of all entries with mass."""
        return Plan(np.asarray(self)).arcs()

    def _other(self, other: Any) -> tuple[Any, Any]:
        """Bring a factor here; return it and what to convert the product back to."""
        home, user = self.home, self.out or self.home
        if not is_foreign(other):
            return home.bring(np.asarray(other, dtype=float), home.xp.float64), None
        its = Home.of(other)
        if (its.library, its.device) != (user.library, user.device):
            raise InputError(
                f"plan: is of {user.library} on {user.device}, and its factor of {its.library} on "
                f"{its.device}; convert the factor"
            )
        floating = user.xp.isdtype(other.dtype, "real floating")
        if its.library != home.library:
            other = home.bring(to_numpy(other), home.xp.float64)
        return home.xp.astype(other, home.xp.float64), its.dtype if floating else None

    def __matmul__(self, other: Any) -> Any:
        xp = self.home.xp
        other, dtype = self._other(np.asarray(other) if isinstance(other, Plan) else other)
        return self._give(xp.concat([block @ other for _, block in self.blocks()], axis=0), dtype)

    def __rmatmul__(self, other: Any) -> Any:
        return _transpose_product(self, other)

    @property
    def T(self) -> Any:  # noqa: N802 - NumPy's name
        """The transposed plan: ``plan.T @ U`` is computed in blocks too."""
        return TransposedPlan(self)

    def rows(self, index: Any) -> Any:
        """Return the given row or rows, computed alone."""
        n = self._shape[0]
        index = to_numpy(index) if is_foreign(index) else index
        many = np.arange(n)[index]
        picked = [
            block
            for at in np.atleast_1d(many).tolist()
            for _, block in self.blocks([slice(at, at + 1)])
        ]
        if not picked:
            picked = [block[:0, :] for _, block in self.blocks([slice(0, 1)])]
        found = self._give(self.home.xp.concat(picked, axis=0))
        return found[0, :] if np.ndim(many) == 0 else found

    def sum(self, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        """Total mass, or the marginals."""
        if dtype is not None or out is not None:
            raise TypeError("a plan's sum takes no dtype and no out; use np.asarray(plan)")
        xp = self.home.xp
        if _is_rows(axis):
            rows = [xp.sum(block, axis=1) for _, block in self.blocks()]
            return self._give(xp.concat(rows, axis=0))
        total = None
        for _, block in self.blocks():
            part = xp.sum(block, axis=0)
            total = part if total is None else total + part
        return float(xp.sum(total)) if axis is None else self._give(total)

    def argmax(self, axis: int | None = 1, out: Any = None) -> Any:
        """Where most of each row's (``axis=1``) or column's mass goes; None: the largest entry."""
        if out is not None:
            raise TypeError("a plan's argmax takes no out; use np.asarray(plan)")
        xp = self.home.xp
        if axis is None:
            tops = [
                (float(xp.max(block)), -part.start * self._shape[1] - int(xp.argmax(block)))
                for part, block in self.blocks()
            ]
            return -max(tops)[1]
        if _is_rows(axis):
            rows = [xp.argmax(block, axis=1) for _, block in self.blocks()]
            return self._indices(xp.concat(rows, axis=0))
        best, where = None, None
        for part, block in self.blocks():
            top, at = xp.max(block, axis=0), xp.argmax(block, axis=0) + part.start
            if best is None:
                best, where = top, at
            else:
                where = xp.where(top > best, at, where)
                best = xp.maximum(best, top)
        return self._indices(where)

    def _indices(self, found: Any) -> Any:
        out = self.out
        if out is None or out.library == self.home.library:
            return found
        return out.indices(to_numpy(found))

    def __getitem__(self, key: Any) -> Any:
        return self._give(self.home.bring(np.asarray(self)[key], self.home.xp.float64))

    def __repr__(self) -> str:
        n, m = self.shape
        kind = "lazy" if len(self.terms) == 1 else f"{len(self.terms)} lazy plans"
        return f"LazyPlan({n} x {m}, {kind})"

    @classmethod
    def combine(cls, plans: Sequence[Plan], weights: Any) -> Plan:
        """Return the weighted sum: lazy where all plans are, each kept as it is."""
        used = [(plan, float(w)) for plan, w in zip(plans, weights, strict=True) if w != 0.0]
        if not used or not all(isinstance(plan, LazyPlan) for plan, _ in used):
            return Plan.combine(plans, weights)
        terms, ranks, phi = [], [], 0.0
        for plan, w in used:
            assert isinstance(plan, LazyPlan)
            terms += [(w * weight, gibbs) for weight, gibbs in plan.terms]
            ranks += [(w * left, right) for left, right in plan.ranks]
            phi = None if plan.phi is None or phi is None else phi + w * plan.phi
        return cls(terms, ranks, phi)


def _is_rows(axis: int | None) -> bool:
    """Whether a sum or maximum is over each row; other axes than NumPy's two do not exist."""
    if axis not in (None, 0, 1, -1, -2):
        raise ValueError(f"axis {axis!r} of a plan, which has the axes 0 and 1")
    return axis in (1, -1)


def _transpose_product(plan: LazyPlan, other: Any) -> Any:
    """Return other @ plan."""
    other, dtype = plan._other(other)
    total = None
    for part, block in plan.blocks():
        product = other[..., part] @ block
        total = product if total is None else total + product
    return plan._give(total, dtype)


def _transposed(array: Any) -> Any:
    if array.ndim < 2:
        return array
    return namespace(array).matrix_transpose(array)


class TransposedPlan:
    """``plan.T`` of a lazy plan, for products."""

    def __init__(self, plan: LazyPlan) -> None:
        self._plan = plan

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        n, m = self._plan.shape
        return (m, n)

    @property
    def T(self) -> LazyPlan:  # noqa: N802 - NumPy's name
        """The plan itself."""
        return self._plan

    def __matmul__(self, other: Any) -> Any:
        plan = self._plan
        xp = plan.home.xp
        other, dtype = plan._other(other)
        total = None
        for part, block in plan.blocks():
            product = xp.matrix_transpose(block) @ other[part, ...]
            total = product if total is None else total + product
        return plan._give(total, dtype)

    def __rmatmul__(self, other: Any) -> Any:
        found = self._plan @ _transposed(other)
        return _transposed(found)

    # Without this NumPy would take ``array @ plan.T`` apart entry by entry.
    __array_ufunc__ = None

    def dense(self) -> Any:
        """Return the transposed plan as an array of shape (m, n)."""
        return _transposed(self._plan.dense())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(np.asarray(self._plan).T, dtype=dtype)
