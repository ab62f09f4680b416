"""`Coupling`: what two days of cells have to do with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.annotated import obs_column
from frot._base.errors import InputError, brief, require
from frot._base.names import quote_some
from frot._base.tables import make_table
from frot.cells._blocks import Block
from frot.cells._input import Side
from frot.problem.result import Result

__all__ = ["Coupling", "GroupSummary", "between_types", "shares_of"]

# What `transition_matrix` can divide by.
SHARES = ("source", "target", "none")
# Of an equal share of the mass: cells with less are counted in the summary where mass may go.
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
        Of its genes' variance that these keep.
    z : float
        How well its best witness among the other groups is predicted, in standard deviations;
        NaN without a gate.
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
        What the cells are from; columns of its ``obs`` are read when they are asked for.
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
    settings: Any

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
        """The mass that was coupled: one, unless tau let some go."""
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

        :math:`\sum_j \pi_{ij} y_j / \sum_j \pi_{ij}`; NaN for a cell of which nothing was kept.

        Parameters
        ----------
        basis : str or array of shape (m, k), optional
            Coordinates y of the target cells: a key of ``adata.obsm``, such as "X_umap"; by default
            those of the groups that passed.
        """
        if basis is None:
            points = self._coordinates()
        elif isinstance(basis, str):
            if basis not in self.data.obsm:
                known = quote_some([str(one) for one in self.data.obsm]) or "none"
                raise InputError(f"basis: adata.obsm has no {brief(basis)}; it has {known}")
            points = np.asarray(self.data.obsm[basis], dtype=float)[self.target.rows]
        else:
            points = np.asarray(basis, dtype=float)
            if points.ndim != 2 or len(points) != len(self.target):
                raise InputError(
                    f"basis: has shape {points.shape}; give a row for each of the "
                    f"{len(self.target)} target cells"
                )
        return _rows_over(self.result.plan @ points, self.marginals[0])

    def transfer_labels(self, column: str, *, to: str = "source") -> Any:
        r"""Return labels of one day for the cells of the other, with probabilities, as a DataFrame.

        The probability of a label is the share of a cell's mass that is coupled to cells of it.

        Parameters
        ----------
        column : str
            Column of ``adata.obs`` with the labels.
        to : {"source", "target"}
            Whose cells get labels: "source" tells fates, from the target's labels; "target"
            origins, from the source's.

        Returns
        -------
        DataFrame
            Indexed by cell: ``label``, ``probability`` of it, and a column for each label; of one
            that is called "label" or "probability" itself, with "of " before it.
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

        Shares are NaN and the label is None where nothing of a cell was kept.
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

        A group's share is :math:`\alpha_l \varphi_l / \sum_k \alpha_k \varphi_k` of what coupled
        cells differ in. Displacements :math:`y_j - x_i` of coupled cells go back to genes by the
        loadings, and a gene's share of its group is that of the group's cost; shares sum to one.

        Parameters
        ----------
        top : int, optional
            Genes to list of each group, the largest shares first; None lists all.

        Returns
        -------
        DataFrame
            ``group``, ``weight``, ``group_share``, ``gene``, ``gene_share``, ``change``: the mean
            of what coupled cells gain in the gene, in the units of the table.
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
        """Of each block, the mean of displacements of coupled cells and their second moment."""
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
          cell's row sums to one, cells without a target stay; as CellRank takes it by
          ``PrecomputedKernel("frot", adata=adata)``. Entries that together are less than a
          thousandth of a row are left out.
        - ``uns[key_added]``: settings, weights, table of groups, interval and potentials, of which
          `from_adata` makes the same coupling, proven anew.
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
            # The whole mass may be kept and most cells get nothing of it.
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
