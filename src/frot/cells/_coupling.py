"""`couple` and `Coupling`: cells of two days by feature-robust transport, pathways as groups.

Groups without information are left out by the gate of `_coherence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from frot._base.annotated import obs_column
from frot._base.errors import DataWarning, InputError, brief, require, warn_caller
from frot._base.names import quote_some
from frot._base.stopping import deadline, finish
from frot._base.tables import make_table
from frot._base.validate import check_count, check_flag, check_number
from frot.api.solve import solve
from frot.cells._blocks import Block, join, make_blocks
from frot.cells._coherence import Coherence, denoise
from frot.cells._input import Days, Side, as_cells, read_days
from frot.costs import MEMORY_BUDGET
from frot.groups.groups import Groups
from frot.problem.result import Result
from frot.problem.terms import Relative, check_amount, check_tau
from frot.solvers import Callback
from frot.solvers.choose import Solver

# What `transition_matrix` may divide by.
SHARES = ("source", "target", "none")
# The part of an equal share of the mass below which the summary counts cells, with tau.
LITTLE = 0.1


@dataclass(frozen=True)
class GroupSummary:
    """What is known of a group: how it was reduced, whether it passed the gate, its weight.

    Parameters
    ----------
    name : str
    genes : int
        Genes found in the data.
    components : int
        Coordinates that it was reduced to.
    share : float
        The share of its genes' variance that these keep.
    z : float
        How well it predicts its best witness among the other groups, in standard deviations; NaN
        without a gate.
    passed : bool
    """

    name: str
    genes: int
    components: int
    share: float
    z: float
    passed: bool


@dataclass(frozen=True, eq=False, repr=False)
class Coupling:
    r"""A certified coupling of the cells of two days; see `couple`.

    Attributes
    ----------
    result : frot.Result
        Of the groups that passed: ``status``, ``lower <= truth <= upper``, ``plan``, ``phi``.
    key : str
        The column with the days.
    source, target : Side
        ``day``, and ``rows`` and ``names`` of its n or m cells.
    about : tuple of GroupSummary, length L
        What is known of each group.
    blocks : tuple of Block
        Coordinates of the groups that passed.
    data : AnnData or Cells
        Where the cells are from; columns of its ``obs`` are read when they are needed.
    settings : CouplingSettings
        The arguments of `couple`.

    Examples
    --------
    >>> import frot.cells
    >>> rng = np.random.default_rng(0)
    >>> kind = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 6)) + 3.0 * kind[:, None]
    >>> obs = {"day": np.repeat([1, 2], 30), "kind": np.array(["b", "t"])[kind]}
    >>> groups = {"one": [0, 1, 2], "two": [3, 4, 5]}
    >>> found = frot.cells.couple((X, obs), "day", 1, 2, groups=groups)
    >>> found.transition_matrix("kind").round(2)
    kind    b    t
    kind
    b     1.0  0.0
    t     0.0  1.0
    """

    result: Result
    key: str
    source: Side
    target: Side
    about: tuple[GroupSummary, ...]
    blocks: tuple[Block, ...]
    data: Any
    settings: CouplingSettings

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all groups, length L."""
        return tuple(one.name for one in self.about)

    @cached_property
    def alpha(self) -> np.ndarray:
        """Weights of all groups, shape (L,): zero for one that did not pass the gate."""
        weight = dict(zip(self.result.names, self.result.alpha, strict=True))
        return np.array([float(weight.get(name, 0.0)) for name in self.names])

    @property
    def groups(self) -> Any:
        """What is known of each group, as a table, the heaviest first."""
        z = np.nan_to_num([one.z for one in self.about])
        order = np.lexsort((-z, -self.alpha)).tolist()
        columns = {
            field.name: np.array([getattr(self.about[at], field.name) for at in order])
            for field in fields(GroupSummary)
        }
        columns = {"group": columns.pop("name"), **columns}
        phi = dict(zip(self.result.names, self.result.phi, strict=True))
        columns["weight"] = self.alpha[order]
        columns["cost"] = np.array([float(phi.get(self.names[at], np.nan)) for at in order])
        return make_table(columns)

    @property
    def mass(self) -> float:
        """The mass that was coupled: one, unless tau allows for less."""
        return self.result.mass

    @cached_property
    def marginals(self) -> tuple[np.ndarray, np.ndarray]:
        """What the plan keeps of each cell, shapes (n,) and (m,)."""
        return self.result.marginals

    def push(self, cells: Any = None, column: str | None = None) -> np.ndarray:
        r"""Return where descendants of some source cells are: shares of the target cells, (m,).

        :math:`\Pi^\top w / \sum \Pi^\top w` with w the cells' weights.

        Parameters
        ----------
        cells : mask, names, category or weights, optional
            A mask or weights of the n source cells; names of cells; or, with `column`, one or more
            of its categories. All of them by default.
        column : str, optional
            The column of ``adata.obs`` that has the category.
        """
        return shares_of(self.result.plan.T @ self.weights(self.source, cells, column))

    def pull(self, cells: Any = None, column: str | None = None) -> np.ndarray:
        r"""Return where ancestors of some target cells are: shares of the source cells, (n,).

        As `push`, with :math:`\Pi w / \sum \Pi w`.
        """
        return shares_of(self.result.plan @ self.weights(self.target, cells, column))

    def transition_matrix(
        self, column: str, target_column: str | None = None, *, share: str = "source"
    ) -> Any:
        """Return the mass between the categories of both days, as a DataFrame.

        Parameters
        ----------
        column : str
            Column of ``adata.obs`` with the categories: of the source cells, in rows.
        target_column : str, optional
            Another one for the target cells, in columns.
        share : {"source", "target", "none"}
            Whether rows sum to one (where a type goes to), columns do (where it comes from), or
            all is mass as it is.
        """
        return between_types([self], column, target_column, share)

    def barycentric_map(self, basis: Any = None) -> np.ndarray:
        r"""Return where each source cell is expected on the target's day, shape (n, k).

        :math:`\sum_j \pi_{ij} y_j / \sum_j \pi_{ij}`; NaN for a cell without coupled mass.

        Parameters
        ----------
        basis : str or array of shape (m, k), optional
            Coordinates y of the target cells: a key of ``adata.obsm``, such as "X_umap"; by default
            those of the groups that passed.
        """
        if basis is None:
            points = self._coordinates()
        elif isinstance(basis, str):
            points = self.embedding(basis)[self.target.rows]
        else:
            points = np.asarray(basis, dtype=float)
            if points.ndim != 2 or len(points) != len(self.target):
                raise InputError(
                    f"basis: has shape {points.shape}; give a row for each of the "
                    f"{len(self.target)} target cells"
                )
        return _rows_over(self.result.plan @ points, self.marginals[0])

    def embedding(self, basis: str) -> np.ndarray:
        """Return coordinates of all cells, shape (N, k): those at a key of ``adata.obsm``."""
        if basis not in self.data.obsm:
            known = quote_some([str(one) for one in self.data.obsm]) or "none"
            raise InputError(f"basis: adata.obsm has no {brief(basis)}; it has {known}")
        return np.asarray(self.data.obsm[basis], dtype=float)

    def transfer_labels(self, column: str, *, to: str = "source") -> Any:
        r"""Return labels of one day for the cells of the other, with probabilities, as a DataFrame.

        The probability of a label is the share of a cell's mass that is coupled to cells of it.

        Parameters
        ----------
        column : str
            Column of ``adata.obs`` with the labels.
        to : {"source", "target"}
            Which cells get labels: "source" gets fates, from the target's labels; "target" gets
            origins, from the source's.

        Returns
        -------
        DataFrame
            Indexed by cell: ``label``, its ``probability``, and a column for each label. The column
            of a label that is itself called "label" or "probability" begins with "of ".
        """
        pandas = require("pandas", "anndata")
        labels, likely, given = self.label_shares(column, to)
        columns = [f"of {one}" if one in ("label", "probability") else one for one in labels]
        taker = self.source if to == "source" else self.target
        frame = pandas.DataFrame(likely, index=taker.names, columns=columns)
        # The largest of a row is that of the label given, and NaN where there is none.
        frame.insert(0, "probability", likely.max(axis=1))
        frame.insert(0, "label", given)
        return frame

    def label_shares(
        self, column: str, to: str = "source"
    ) -> tuple[list[Any], np.ndarray, np.ndarray]:
        """Return k labels, their shares of each cell's mass, (n, k), and the largest one's label.

        Shares are NaN and the label is None for a cell without coupled mass.
        """
        if to not in ("source", "target"):
            raise InputError(f"to: {brief(to)} is not known; give 'source' or 'target'")
        labels, codes = self.categories(self.target if to == "source" else self.source, column)
        plan = self.result.plan if to == "source" else self.result.plan.T
        likely = plan @ _indicator(codes, len(labels))
        likely = _rows_over(likely, likely.sum(axis=1))
        known = np.isfinite(likely[:, 0])
        best = np.where(known[:, None], likely, 0.0).argmax(axis=1)
        given = np.array(labels, dtype=object)[best]
        given[~known] = None
        return labels, likely, given

    def drivers(self, top: int | None = 10) -> Any:
        r"""Return the groups that decide and the genes that change in them, as a table.

        A group's share of the cost is :math:`\alpha_l \varphi_l / \sum_k \alpha_k \varphi_k`. The
        loadings turn displacements :math:`y_j - x_i` of coupled cells into those of genes; a gene's
        share is its part of the group's cost, and the shares of a group sum to one.

        Parameters
        ----------
        top : int, optional
            Genes to list of each group, the largest shares first; None lists all.

        Returns
        -------
        DataFrame
            ``group``, ``weight``, ``group_share``, ``gene``, ``gene_share``, ``change``: the mean
            change of the gene between coupled cells, in the units of the table.
        """
        weight = dict(zip(self.result.names, self.result.alpha, strict=True))
        parts = self._displacements()
        costs = np.array([float(np.trace(second)) for _, second in parts])
        alpha = np.array([float(weight[block.name]) for block in self.blocks])
        total = float(alpha @ costs)
        columns: dict[str, list[Any]] = {name: [] for name in DRIVERS}
        for at in np.argsort(-alpha * costs, kind="stable"):
            block, (mean, second) = self.blocks[at], parts[at]
            loadings = np.eye(block.size) if block.loadings is None else block.loadings
            shares = np.einsum("gk,kl,gl->g", loadings, second, loadings) / max(costs[at], 1e-300)
            mean = mean if block.filter is None else np.linalg.solve(block.filter, mean)
            change = loadings @ mean * np.sqrt(block.unit) * block.spread
            for gene in np.argsort(-shares, kind="stable")[:top]:
                row = (
                    block.name, alpha[at], alpha[at] * costs[at] / max(total, 1e-300),
                    block.genes[gene], shares[gene], change[gene],
                )  # fmt: skip
                for name, value in zip(DRIVERS, row, strict=True):
                    columns[name].append(value)
        return make_table({name: np.array(values) for name, values in columns.items()})

    def _displacements(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the mean and the second moment of coupled cells' displacements, for each block."""
        rows, cols = self.marginals
        mass = max(float(rows.sum()), 1e-300)
        # One pass over the plan for all blocks.
        there = self.result.plan @ self._coordinates()
        found, start = [], 0
        for block in self.blocks:
            X, Y = block.source, block.target
            cross = X.T @ there[:, start : start + block.size]
            second = (X.T * rows) @ X + (Y.T * cols) @ Y - cross - cross.T
            found.append(((cols @ Y - rows @ X) / mass, second))
            start += block.size
        return found

    def _coordinates(self) -> np.ndarray:
        """Coordinates of the target cells in the groups that passed, one after the other."""
        return np.hstack([block.target for block in self.blocks])

    def to_adata(
        self, adata: Any = None, *, labels: str | None = None, key_added: str = "frot"
    ) -> None:
        """Write the coupling into an AnnData, where scanpy and CellRank users look.

        - ``obsp[key_added]``: transition probabilities of all cells, (N, N) and sparse: each source
          cell's row sums to one, cells without a target stay where they are. CellRank reads
          it by ``PrecomputedKernel("frot", adata=adata)``. The smallest entries, together less than
          a thousandth of a row, are left out.
        - ``uns[key_added]``: settings, weights, table of groups, interval and potentials, from
          which `from_adata` makes the same coupling and proves its interval again.
        - with `labels`, ``obsm[f"{key_added}_{labels}"]``: probabilities of the source cells'
          fates, and the likeliest in the column of ``obs`` of the same name.

        Parameters
        ----------
        adata : AnnData, optional
            Of the same cells; that of `couple` by default.
        labels : str, optional
            Column of ``adata.obs`` with labels of the target cells.
        key_added : str
        """
        from frot.cells._adata import write

        write([self], self.data if adata is None else adata, labels, key_added)

    @classmethod
    def from_adata(cls, adata: Any, key_added: str = "frot") -> Coupling:
        """Read what `to_adata` wrote; the interval is proven anew from the potentials."""
        from frot.cells._adata import read

        found = read(adata, key_added)
        if len(found) != 1:
            raise InputError(
                f"key_added: adata.uns[{key_added!r}] has {len(found)} couplings; read them by "
                "frot.cells.Trajectory.from_adata"
            )
        return found[0]

    def categories(self, side: Side, column: str) -> tuple[list[Any], np.ndarray]:
        """Return the categories that a side's cells have, and each cell's as a number, or -1."""
        values = obs_column(self.data, column, "column")[side.rows].tolist()
        ordered = getattr(getattr(self.data.obs[column], "cat", None), "categories", None)
        known = [one for one in values if one is not None and one == one]
        present = set(known)
        if not present:
            raise InputError(f"column: no cell of {side.day} has a {column!r}")
        if ordered is None:
            listed = sorted(present, key=lambda one: (str(type(one)), one))
        else:
            listed = [one for one in ordered.tolist() if one in present]
        place = {one: at for at, one in enumerate(listed)}
        return listed, np.array([place.get(one, -1) for one in values])

    def summary(self, top: int = 10) -> str:
        """Return the answer as text: days, groups that passed, and the certified result."""
        lines = [
            f"Cells of {self.key} {self.source.day} ({len(self.source)}) to {self.target.day} "
            f"({len(self.target)}); {self._taken()}",
            *self.result.summary(top).splitlines()[1:],
        ]
        for side, name in ((self.source, "source"), (self.target, "target")):
            place = int(side is self.target)
            if self.result.tau[place] == np.inf:
                continue
            # All mass may be kept and still most cells get none of it.
            left = int((self.marginals[place] < LITTLE / len(side)).sum())
            lines.append(
                f"  {name}    {left} of {len(side)} cells have less than {LITTLE:.0%} of an equal "
                "share of the mass"
            )
        return "\n".join(lines)

    def _taken(self) -> str:
        """Say how many groups were taken: those that passed the gate, or all where none did."""
        tested = [one for one in self.about if one.components]
        passed = sum(one.passed for one in self.about)
        text = f"{passed} of {len(tested)} groups taken"
        if all(np.isnan(one.z) for one in tested):
            text = f"{passed} groups taken without a gate" if passed > 1 else "one group, no gate"
        if silent := len(self.about) - len(tested):
            text += f", {silent} without a gene that varies here"
        return text

    def __repr__(self) -> str:
        return (
            f"Coupling({self.key} {self.source.day} to {self.target.day}, {len(self.source)} to "
            f"{len(self.target)} cells, {len(self.blocks)} of {len(self.about)} groups, "
            f"status={self.result.status!r}, gap={self.result.gap:.1e})"
        )

    def weights(self, side: Side, cells: Any, column: str | None) -> np.ndarray:
        """Return the weights of a side's cells that a user chose."""
        if cells is None:
            return np.ones(len(side))
        if column is not None:
            listed, codes = self.categories(side, column)
            wanted = [cells] if isinstance(cells, str) or np.ndim(cells) == 0 else list(cells)
            if absent := [str(one) for one in wanted if one not in listed]:
                raise InputError(
                    f"cells: none of {side.day} is {quote_some(absent)} in {column}; there are "
                    f"{quote_some([str(one) for one in listed])}"
                )
            return np.isin(codes, [listed.index(one) for one in wanted]).astype(float)
        given = np.asarray([cells] if isinstance(cells, str) else cells)
        if given.dtype.kind in "UOT":
            return self._named(side, [str(one) for one in given])
        if given.shape != (len(side),):
            raise InputError(
                f"cells: has shape {given.shape}; give a mask or weights of the {len(side)} cells "
                f"of {side.day}, names, or a category with column=..."
            )
        weights = given.astype(float)
        if not np.isfinite(weights).all() or (weights < 0.0).any() or not weights.any():
            raise InputError("cells: weights must be finite, >= 0 and not all zero")
        return weights

    def _named(self, side: Side, wanted: list[str]) -> np.ndarray:
        place = {name: at for at, name in enumerate(side.names)}
        if absent := [name for name in wanted if name not in place]:
            raise InputError(
                f"cells: {quote_some(absent)} is not a cell of {side.day}; for a category pass "
                "column=..., too"
            )
        weights = np.zeros(len(side))
        weights[[place[name] for name in wanted]] = 1.0
        return weights


def between_types(
    couplings: Sequence[Coupling], column: str, target_column: str | None, share: str
) -> Any:
    """Return the mass between categories of the first and the last day of couplings in a row."""
    if share not in SHARES:
        raise InputError(f"share: {brief(share)} is not known; give {quote_some(SHARES)}")
    pandas = require("pandas", "anndata")
    first, last = couplings[0], couplings[-1]
    target_column = column if target_column is None else target_column
    rows, here = first.categories(first.source, column)
    columns, there = last.categories(last.target, target_column)
    # Cells without a category are in no row and no column.
    mass = _indicator(there, len(columns))
    for coupling in reversed(couplings):
        # Cells of a day in between weigh the same where they are reached.
        mass = coupling.result.plan @ mass * (1 if coupling is first else len(coupling.source))
    mass = _indicator(here, len(rows)).T @ mass
    if share != "none":
        total = mass.sum(axis=1 if share == "source" else 0, keepdims=True)
        mass = np.divide(mass, total, out=np.zeros_like(mass), where=total > 0.0)
    return pandas.DataFrame(
        mass,
        index=pandas.Index(rows, name=column),
        columns=pandas.Index(columns, name=target_column),
    )


DRIVERS = ("group", "weight", "group_share", "gene", "gene_share", "change")


def _indicator(codes: np.ndarray, count: int) -> np.ndarray:
    """Return a row for each cell with a one at its category, (n, count)."""
    return (codes[:, None] == np.arange(count)).astype(float)


def _rows_over(values: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Divide rows by totals; NaN where there is nothing."""
    out = np.full(values.shape, np.nan)
    return np.divide(values, totals[:, None], out=out, where=totals[:, None] > 0.0)


def shares_of(mass: np.ndarray) -> np.ndarray:
    total = float(mass.sum())
    return mass / total if total > 0.0 else mass


def couple(
    adata: Any,
    key: str = "day",
    source: Any = None,
    target: Any = None,
    *,
    groups: Any,
    growth: str | None = None,
    tau: Any = None,
    eps: float | Relative = 0.02,
    eta: float | Relative = 0.05,
    layer: str | None = None,
    components: int = 10,
    scale: bool = True,
    gate: float | None = 0.01,
    denoise: bool = True,
    solver: str | Solver = "auto",
    tol: float | None = None,
    max_iter: int | None = None,
    memory_budget: float = MEMORY_BUDGET,
    device: Any = None,
    time_limit: float | None = None,
    start: Coupling | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Coupling:
    r"""Couple the cells of two days by feature-robust optimal transport, pathways as groups.

    .. math::
        \min_\Pi \max_\alpha \sum_l \alpha_l \langle \Pi, C_l \rangle
        - \eta \sum_l \alpha_l \log \alpha_l + \varepsilon\, \mathrm{KL}(\Pi | a b^\top)
        + \tau_a \mathrm{KL}(\Pi 1 | a) + \tau_b \mathrm{KL}(\Pi^\top 1 | b)

    :math:`C_l` are squared distances in the principal components of group l, divided by their
    mean :math:`a^\top C_l b`: coupling at random costs one in every group and for every alpha,
    which is the unit of eps, eta and tau. Groups that are not coherent with any other are left out
    (`gate`), and half of the distance within the others is measured in directions that other groups
    confirm (`denoise`). Information that several groups share counts once in the maximum.

    Parameters
    ----------
    adata : AnnData, `Cells`, or a pair (X, obs)
        Cells in rows, normalised and log-transformed. Sparse tables stay sparse.
    key : str
        Column of ``adata.obs`` with the days.
    source, target : optional
        The earlier and the later day. Both may be left out where there are two.
    groups : str, mapping, Groups or list
        Sets of genes: a ``.gmt`` file, a mapping from name to genes, or what else `Groups.parse`
        reads; or keys of ``adata.obsm``, whose coordinates are taken as they are.
    growth : str, optional
        Column of ``adata.obs`` with the number of descendants that a source cell is expected to
        have on the target's day; the source cells are weighted in proportion.
    tau : float, `relative` or a pair of these, optional
        Price of mass that is not kept, for source and target, as in `frot.solve`, since cells are
        born and die. ``(inf, 1.0)`` keeps the source's weights.
    eps, eta : float or `relative`
        Entropy of the plan and of alpha. ``eps=0`` is exact transport.
    layer : str, optional
        Take values from this layer.
    components : int
        Principal components of each group, at most.
    scale : bool
        Whether genes are scaled to unit variance first.
    gate : float, optional
        A group is taken if another one is its witness: predictions of the other's coordinates that
        are learnt on one day hold on the other. `gate` is the probability that any group of noise
        passes; None takes all groups as they are.
    denoise : bool
        Whether half of a group's distance is measured in directions that its witnesses confirm:
        directions that predict no other group are noise, or this group's alone, and count less.
        Keys of ``adata.obsm`` are left as they are.
    solver, tol, max_iter, memory_budget, time_limit, callback, progress :
        As in `frot.solve`.
    device : str, optional
        Where PyTorch is to solve it, such as "cuda"; with eps > 0.
    start : Coupling, optional
        Where to begin: a coupling of the same cells and groups, with other settings.

    Returns
    -------
    Coupling

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it and the fix.
    Interrupted
        On Ctrl-C, with the best certified coupling until then as its ``result``.

    Warns
    -----
    DataWarning
        If no group is coherent with another: all are taken.

    Examples
    --------
    >>> import frot.cells
    >>> rng = np.random.default_rng(0)
    >>> fate = rng.normal(size=(80, 2))
    >>> X = np.hstack([fate, fate, rng.normal(size=(80, 4))]) + 0.2 * rng.normal(size=(80, 8))
    >>> groups = {"one": [0, 1], "two": [2, 3], "noise": [4, 5], "more": [6, 7]}
    >>> found = frot.cells.couple((X, {"day": np.repeat([3, 4], 40)}), groups=groups)
    >>> found.alpha.round(2), found.result.status
    (array([0.52, 0.48, 0.  , 0.  ]), Status.CONVERGED)
    """
    settings = CouplingSettings(
        groups, growth, tau, eps, eta, layer, components, scale, gate, denoise,
        solver, tol, max_iter, memory_budget, device,
    )  # fmt: skip
    data = as_cells(adata)
    first, second = _two_days(read_days(data, key), source, target)
    if not isinstance(start, Coupling | None):
        raise InputError(f"start: {brief(start)} is not a Coupling; pass one of the same cells")
    began = None if start is None else start.result
    run = {"time_limit": time_limit, "callback": callback, "progress": progress}
    return settings.couple(data, key, first, second, start=began, **run)


@dataclass(frozen=True, eq=False)
class CouplingSettings:
    """How cells are coupled: the arguments of `couple`, checked, for one pair of days or many."""

    groups: Any
    growth: str | None = None
    tau: Any = None
    eps: float | Relative = 0.02
    eta: float | Relative = 0.05
    layer: str | None = None
    components: int = 10
    scale: bool = True
    gate: float | None = 0.01
    denoise: bool = True
    solver: str | Solver = "auto"
    tol: float | None = None
    max_iter: int | None = None
    memory_budget: float = MEMORY_BUDGET
    device: Any = None

    def __post_init__(self) -> None:
        check_tau(self.tau, "kl")
        check_amount(self.eps, "eps")
        check_amount(self.eta, "eta")
        check_count(self.components, "components")
        check_flag(self.scale, "scale")
        check_flag(self.denoise, "denoise")
        if self.gate is not None and not 0.0 < check_number(self.gate, "gate") < 1.0:
            raise InputError(
                "gate: is a probability between 0 and 1, such as 0.01; None takes all groups"
            )
        if self.device is not None:
            require("torch", "torch")

    def couple(self, data: Any, key: str, first: Side, second: Side, **run: Any) -> Coupling:
        """Couple the cells of two days."""
        weights = (self.weights(data, first), np.full(len(second), 1.0 / len(second)))
        with deadline(run.pop("time_limit", None)):
            blocks, flat = self.blocks(data, first, second, weights)
            about, coherence = _apply_gate(blocks, self.gate)
            taken = [block for block, one in zip(blocks, about, strict=True) if one.passed]
            # Blocks of many cells are large, and the memory is needed now.
            del blocks
            X, Y, passed = join(self.denoised(taken, weights, coherence))
            del taken
            about += [GroupSummary(name, 0, 0, np.nan, np.nan, False) for name in flat]
            coupling = partial(make_coupling, key, first, second, tuple(about), passed, data, self)
            return finish(lambda: self.solve(X, Y, passed, weights, **run), coupling)

    def weights(self, data: Any, side: Side) -> np.ndarray:
        """Return the weights of the source cells, in proportion to their growth."""
        if self.growth is None:
            return np.full(len(side), 1.0 / len(side))
        column = obs_column(data, self.growth, "growth")[side.rows]
        try:
            rates = column.astype(float)
        except (TypeError, ValueError):
            raise InputError(
                f"growth: column {self.growth!r} has entries that are not numbers"
            ) from None
        bad = np.flatnonzero(~((rates > 0.0) & np.isfinite(rates)))
        if len(bad):
            raise InputError(
                f"growth: must be > 0 and finite, but {self.growth!r} is {rates[bad[0]]:.6g} for "
                f"cell {brief(str(side.names[bad[0]]))}; leave cells without descendants out"
            )
        return rates / rates.sum()

    def blocks(
        self, data: Any, first: Side, second: Side, weights: tuple[np.ndarray, np.ndarray]
    ) -> tuple[list[Block], tuple[str, ...]]:
        """Return a block for each group, and the names of groups without values that vary."""
        rows = (first.rows, second.rows)
        how = (self.layer, int(self.components), self.scale)
        return make_blocks(data, rows, weights, self.groups, *how)

    def denoised(
        self,
        blocks: list[Block],
        weights: tuple[np.ndarray, np.ndarray],
        coherence: Coherence | None = None,
    ) -> list[Block]:
        """Return the blocks that passed the gate as they are coupled.

        Their `coherence` is computed if it is not given. Latent blocks are left as they are.
        """
        latent = any(block.loadings is None for block in blocks)
        if self.gate is None or not self.denoise or latent or len(blocks) < 2:
            return blocks
        return denoise(blocks, coherence or Coherence.of(blocks), weights, self.gate)

    def solve(
        self,
        X: Any,
        Y: Any,
        blocks: tuple[Block, ...],
        weights: tuple[np.ndarray, np.ndarray],
        **run: Any,
    ) -> Result:
        """Solve transport between the coordinates of two days, whose parts are the blocks."""
        a, b = weights
        if self.device is not None:
            import torch

            X, Y, a, b = (torch.as_tensor(one, device=self.device) for one in (X, Y, a, b))
        names = [block.name for block in blocks]
        start: Any = run.pop("start", None)
        if isinstance(start, Result) and start.names != tuple(names):
            raise InputError("start: is a coupling of other groups; leave start out")
        return solve(
            X, Y, Groups.from_sizes([block.size for block in blocks], names=names), a=a, b=b,
            eta=self.eta, eps=self.eps, tau=self.tau, solver=self.solver, tol=self.tol,
            max_iter=self.max_iter, memory_budget=self.memory_budget, start=start, **run,
        )  # fmt: skip


def make_coupling(
    key: str,
    first: Side,
    second: Side,
    about: tuple[GroupSummary, ...],
    blocks: tuple[Block, ...],
    data: Any,
    settings: CouplingSettings,
    result: Result,
) -> Coupling:
    """Return the coupling of a result, on the host; the blocks have its points."""
    return Coupling(
        replace(result.numpy(), points=None), key, first, second, about, blocks, data, settings
    )


def _two_days(days: Days, source: Any, target: Any) -> tuple[Side, Side]:
    if source is None and target is None:
        if len(days.order) != 2:
            raise InputError(
                f"source, target: {days.key} has {len(days.order)} days; say which two of "
                f"{quote_some([str(day) for day in days.order], 20)}, or couple all by "
                "frot.cells.trajectory"
            )
        source, target = days.order
    if source is None or target is None:
        listed = quote_some([str(day) for day in days.order], 20)
        raise InputError(f"source, target: give both; {days.key} has {listed}")
    first, second = days.side(source, "source"), days.side(target, "target")
    if first.day == second.day:
        raise InputError(f"source, target: both are {first.day}; give two days")
    return first, second


def _apply_gate(
    blocks: list[Block], level: float | None
) -> tuple[list[GroupSummary], Coherence | None]:
    """Return a summary of each group, and the coherence of those that passed the gate.

    Where none passes, all are taken, with a warning.
    """
    z = np.full(len(blocks), np.nan)
    passed = np.ones(len(blocks), dtype=bool)
    coherence = None
    if level is not None and len(blocks) > 1:
        coherence = Coherence.of(blocks)
        z, passed = coherence.z.max(axis=1), coherence.passed(level)
        if not passed.any():
            warn_caller(
                f"gate: no group is coherent with another (z is {z.max():.2g} at most); all "
                f"{len(blocks)} are taken, and noise among them counts",
                category=DataWarning,
            )
            passed[:] = True
        coherence = coherence.among(passed)
    about = [
        GroupSummary(block.name, len(block.genes), block.size, block.share, float(one), bool(yes))
        for block, one, yes in zip(blocks, z, passed, strict=True)
    ]
    return about, coherence
