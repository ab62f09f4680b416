"""`trajectory`: couplings of all consecutive days, chained."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from frot._base.annotated import obs_column, values_of
from frot._base.errors import InputError, brief
from frot._base.fingerprint import fingerprint
from frot._base.names import quote_some
from frot._base.stopping import Interrupted
from frot._base.store import Store, open_checkpoint
from frot._base.tables import make_table
from frot._base.validate import check_flag, check_number
from frot.cells._adata import pack, unpack
from frot.cells._blocks import latent_keys, parse_genes
from frot.cells._coupling import Coupling, CouplingSettings, between_types, shares_of
from frot.cells._input import Days, Side, as_cells, read_days
from frot.solvers.progress import counting_bar


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """Couplings of consecutive days; see `trajectory`.

    Attributes
    ----------
    couplings : tuple of Coupling
        In order; the target day of each is the source day of the next.

    Examples
    --------
    >>> import frot.cells
    >>> cells = frot.cells.simulate(60, n_days=3, noise=0.0, n_groups=4)
    >>> obs = {"day": cells.day, "fate": cells.fate}
    >>> found = frot.cells.trajectory((cells.X, obs), groups=cells.groups)
    >>> found.days, found.push("A", 0, 2, column="fate").shape
    ((0, 1, 2), (60,))
    """

    couplings: tuple[Coupling, ...]

    @property
    def days(self) -> tuple[Any, ...]:
        """All days, in order."""
        return (*(one.source.day for one in self.couplings), self.couplings[-1].target.day)

    def __len__(self) -> int:
        return len(self.couplings)

    def __iter__(self) -> Iterator[Coupling]:
        return iter(self.couplings)

    def __getitem__(self, place: int) -> Coupling:
        return self.couplings[place]

    @property
    def weights(self) -> Any:
        """Weights of the groups over time, as a table: a row each, a column for each interval."""
        names = list(dict.fromkeys(name for one in self.couplings for name in one.names))
        columns: dict[str, Any] = {"group": np.array(names)}
        for one in self.couplings:
            weight = dict(zip(one.names, one.alpha, strict=True))
            at = f"{one.source.day} to {one.target.day}"
            columns[at] = np.array([weight.get(name, 0.0) for name in names])
        return make_table(columns)

    def push(
        self, cells: Any = None, source: Any = None, target: Any = None, column: str | None = None
    ) -> np.ndarray:
        """Return where descendants are on a later day: shares of its cells.

        Parameters
        ----------
        cells, column :
            As in `Coupling.push`, of the cells of the source's day.
        source, target : optional
            The two days; the first and the last by default.
        """
        chain = self._chain(source, target)
        weights = chain[0].weights(chain[0].source, cells, column)
        for coupling in chain:
            weights = shares_of(coupling.result.plan.T @ weights)
        return weights

    def pull(
        self, cells: Any = None, source: Any = None, target: Any = None, column: str | None = None
    ) -> np.ndarray:
        """Return where ancestors of cells of the target's day are: shares of the source's cells."""
        chain = self._chain(source, target)
        weights = chain[-1].weights(chain[-1].target, cells, column)
        for coupling in reversed(chain):
            weights = shares_of(coupling.result.plan @ weights)
        return weights

    def transition_matrix(
        self,
        column: str,
        source: Any = None,
        target: Any = None,
        *,
        target_column: str | None = None,
        share: str = "source",
    ) -> Any:
        """Return the mass between the categories of two days, as `Coupling.transition_matrix`."""
        return between_types(self._chain(source, target), column, target_column, share)

    def to_adata(
        self, adata: Any = None, *, labels: str | None = None, key_added: str = "frot"
    ) -> None:
        """Write all couplings into an AnnData, as `Coupling.to_adata` does with one."""
        from frot.cells._adata import write

        write(self.couplings, self[0].data if adata is None else adata, labels, key_added)

    @classmethod
    def from_adata(cls, adata: Any, key_added: str = "frot") -> Trajectory:
        """Read what `to_adata` wrote; intervals are proven anew from the potentials."""
        from frot.cells._adata import read

        return cls(tuple(read(adata, key_added)))

    def summary(self, top: int = 3) -> str:
        """Return the answers as text, one after the other."""
        return "\n".join(one.summary(top) for one in self.couplings)

    def __repr__(self) -> str:
        days = " to ".join(str(day) for day in self.days)
        return f"Trajectory({self[0].key} {days}, {len(self)} couplings)"

    def _chain(self, source: Any, target: Any) -> tuple[Coupling, ...]:
        """Return the couplings from one day to a later one."""
        written = [str(day) for day in self.days]
        ends = []
        for name, day, default in (("source", source, 0), ("target", target, len(self))):
            if day is not None and str(day) not in written:
                raise InputError(
                    f"{name}: there is no {brief(day)}; days are {quote_some(written)}"
                )
            ends.append(default if day is None else written.index(str(day)))
        if ends[0] >= ends[1]:
            raise InputError(f"source, target: {brief(source)} is not before {brief(target)}")
        return self.couplings[ends[0] : ends[1]]


def trajectory(
    adata: Any,
    key: str = "day",
    *,
    groups: Any,
    days: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    **options: Any,
) -> Trajectory:
    """Couple the cells of all consecutive days, so that they can be followed through several.

    Parameters
    ----------
    adata, key, groups :
        As in `couple`. Principal components and the gate are those of each pair of days.
    days : sequence, optional
        Which days, in order; all of them by default.
    checkpoint : path, optional
        A file that keeps couplings as they are found; a run that was killed resumes from it.
    time_limit : float, optional
        Seconds for all; each coupling gets an even share of what is left.
    progress : bool
        Show a progress bar.
    **options :
        As in `couple`: growth, tau, eps, eta, layer, components, scale, gate, denoise, solver,
        tol, max_iter, memory_budget, device.

    Returns
    -------
    Trajectory

    Raises
    ------
    Interrupted
        On Ctrl-C; its ``result`` is the trajectory as far as it got, whose last coupling is the
        best certified one until then.

    Examples
    --------
    >>> import frot.cells
    >>> cells = frot.cells.simulate(60, n_days=3, noise=0.0, n_groups=4)
    >>> obs = {"day": cells.day, "fate": cells.fate}
    >>> found = frot.cells.trajectory((cells.X, obs), groups=cells.groups)
    >>> found.weights.shape
    (4, 3)
    """
    known = [one.name for one in fields(CouplingSettings)][1:]
    if unknown := [name for name in options if name not in known]:
        raise InputError(f"{unknown[0]}: is not an option of couplings; use {', '.join(known)}")
    data = as_cells(adata)
    settings = CouplingSettings(groups, **options)
    if latent_keys(data, groups) is None:
        # Files are read once.
        names = [str(name) for name in values_of(data, settings.layer)[1]]
        settings = replace(settings, groups=parse_genes(groups, names))
    check_flag(progress, "progress")
    if time_limit is not None:
        time_limit = check_number(time_limit, "time_limit")
    sides = _sides(read_days(data, key), days)
    for side in sides[:-1]:
        # Growth rates that cannot be used are refused before the first coupling.
        settings.weights(data, side)
    pairs = list(pairwise(sides))
    efforts = [float(len(first)) * len(second) for first, second in pairs]
    found: list[Coupling] = []
    with ExitStack() as stack:
        store = None
        if checkpoint is not None:
            work = _fingerprint(data, key, sides, settings)
            store = stack.enter_context(open_checkpoint(checkpoint, work))
        kept = {} if store is None else store.finished()
        before = [effort for at, effort in enumerate(efforts) if at in kept]
        bar = counting_bar(
            "couplings", len(pairs), sum(efforts), enabled=progress,
            before=(len(before), sum(before)),
        )  # fmt: skip
        show = stack.enter_context(bar)
        until = None if time_limit is None else perf_counter() + time_limit
        for at, (first, second) in enumerate(pairs):
            if at in kept:
                facts = dict(kept[at])
                arrays = {name: kept[f"{at}/{name}"] for name in facts.pop("arrays")}
                found.append(unpack(facts, arrays, data, key, first, second, settings))
                continue
            seconds = None
            if until is not None:
                # A share of the time that is left, in proportion to the effort.
                left = max(0.0, until - perf_counter())
                seconds = left * efforts[at] / sum(efforts[at:])
            try:
                coupling = settings.couple(data, key, first, second, time_limit=seconds)
            except Interrupted as stop:
                raise Interrupted(Trajectory((*found, stop.result))) from stop.__cause__
            except KeyboardInterrupt as stop:
                if not found:
                    raise
                raise Interrupted(Trajectory(tuple(found))) from stop
            found.append(coupling)
            if store is not None and coupling.result.status.ok:
                _keep(store, at, coupling)
            show(1, efforts[at])
    return Trajectory(tuple(found))


def _sides(days: Days, wanted: Any) -> list[Side]:
    sides = [days.side(day, "days") for day in (days.order if wanted is None else wanted)]
    if len(sides) < 2:
        raise InputError("days: give at least two")
    if len({side.day for side in sides}) < len(sides):
        raise InputError("days: a day is given twice; give each day once")
    return sides


def _keep(store: Store, at: int, coupling: Coupling) -> None:
    """Store a coupling; the entry that marks it as complete comes last."""
    facts, arrays = pack(coupling)
    for name, array in arrays.items():
        store.add(f"{at}/{name}", np.asarray(array))
    store.add(at, {**facts, "arrays": list(arrays)})


def _fingerprint(data: Any, key: str, sides: list[Side], settings: CouplingSettings) -> str:
    """Return a hash of everything that the couplings depend on."""
    keys = latent_keys(data, settings.groups)
    if keys is None:
        table, names = values_of(data, settings.layer)
        values = [table.data, table.indices, table.indptr] if sparse.issparse(table) else [table]
        values.append(names.astype(str))
    else:
        values = [np.asarray(data.obsm[one]) for one in keys]
    growth = None if settings.growth is None else obs_column(data, settings.growth, "growth")
    options = {
        one.name: getattr(settings, one.name)
        for one in fields(settings)
        if one.name not in ("memory_budget", "device")
    }
    rows = [side.rows for side in sides]
    return fingerprint(values=values, key=key, rows=rows, rates=growth, **options)
