"""`couple`: the cells of two days, by feature-robust transport with pathways as groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot._base.annotated import obs_column
from frot._base.errors import DataWarning, InputError, warn_caller
from frot._base.stopping import deadline, finish
from frot._base.validate import check_count, check_flag, check_number
from frot.api.solve import solve
from frot.cells._blocks import Block, make_blocks
from frot.cells._coupling import Coupling, Kept
from frot.cells._gate import coherence
from frot.cells._input import Days, Side, as_cells, read_days
from frot.costs import MEMORY_BUDGET
from frot.groups.groups import Groups
from frot.problem.amounts import Relative
from frot.problem.result import Result
from frot.solvers import Callback
from frot.solvers.choose import Solver

__all__ = ["couple"]


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
    gate: float | None = 3.0,
    solver: str | Solver = "auto",
    tol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    memory_budget: float = MEMORY_BUDGET,
) -> Coupling:
    r"""Couple the cells of two days by feature-robust optimal transport, pathways as groups.

    .. math::
        \min_\Pi \max_\alpha \sum_l \alpha_l \langle \Pi, C_l \rangle
        - \eta\, \mathrm{KL}(\alpha | \tfrac{1}{L}) + \varepsilon\, \mathrm{KL}(\Pi | a b^\top)
        + \tau_a \mathrm{KL}(\Pi 1 | a) + \tau_b \mathrm{KL}(\Pi^\top 1 | b)

    :math:`C_l` are squared distances in the principal components of group l, divided by their
    mean :math:`a^\top C_l b`: coupling at random costs one in every group and for every alpha,
    which is the unit of eps, eta and tau. Groups that are not coherent with any other are left out
    (`gate`); among the others the adversary counts what several groups tell alike once.

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
        have on the target's day; the source cells weigh in proportion.
    tau : float, `relative` or a pair of these, optional
        Price of mass that is not kept, for source and target, as in `frot.solve`: cells are born
        and die. ``(inf, 1.0)`` keeps the source's weights.
    eps, eta : float or `relative`
        Entropy of the plan and of alpha. ``eps=0`` is exact transport.
    layer : str, optional
        Take values from this layer.
    components : int
        Principal components of each group, at most.
    scale : bool
        Whether genes are scaled to unit variance first.
    gate : float, optional
        How coherent a group has to be with another one, in standard deviations; None takes all.
    solver, tol, max_iter, time_limit, callback, progress, memory_budget :
        As in `frot.solve`.

    Returns
    -------
    Coupling

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it and the fix.
    Interrupted
        On Ctrl-C, with the best certified coupling until then as its ``result``.

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
    data = as_cells(adata)
    days = read_days(data, key)
    first, second = _two_days(days, source, target)
    a, b = _weights(data, growth, first), np.full(len(second), 1.0 / len(second))
    components = check_count(components, "components")
    check_flag(scale, "scale")
    least = None if gate is None else check_number(gate, "gate")
    with deadline(time_limit):
        blocks, flat = make_blocks(
            data, (first.rows, second.rows), (a, b), groups, layer, components, scale
        )
        about = _judged(blocks, least)
        passed = tuple(block for block, one in zip(blocks, about, strict=True) if one.passed)
        sizes = Groups.from_sizes([block.size for block in passed], names=[b.name for b in passed])

        def coupling(result: Result) -> Coupling:
            left = tuple(Kept(name, 0, 0, np.nan, np.nan, False) for name in flat)
            return Coupling(result, key, first, second, (*about, *left), passed, data)

        return finish(
            lambda: solve(
                np.hstack([block.source for block in passed]),
                np.hstack([block.target for block in passed]),
                sizes,
                a=a,
                b=b,
                eta=eta,
                eps=eps,
                tau=tau,
                solver=solver,
                tol=tol,
                max_iter=max_iter,
                callback=callback,
                progress=progress,
                memory_budget=memory_budget,
            ),
            coupling,
        )


def _two_days(days: Days, source: Any, target: Any) -> tuple[Side, Side]:
    if source is None and target is None:
        if len(days.order) != 2:
            raise InputError(
                f"source, target: {days.key} has {len(days.order)} days; say which two, or couple "
                "all by frot.cells.trajectory"
            )
        source, target = days.order
    if source is None or target is None:
        raise InputError("source, target: give both")
    first, second = days.side(source, "source"), days.side(target, "target")
    if first.day == second.day:
        raise InputError(f"source, target: both are {first.day}; give two days")
    return first, second


def _weights(data: Any, growth: str | None, side: Side) -> np.ndarray:
    """Return the weights of the source cells, in proportion to their growth."""
    if growth is None:
        return np.full(len(side), 1.0 / len(side))
    rates = obs_column(data, growth, "growth")[side.rows]
    try:
        rates = rates.astype(float)
    except (TypeError, ValueError):
        raise InputError(f"growth: column {growth!r} has entries that are no numbers") from None
    bad = np.flatnonzero(~(rates > 0.0) | ~np.isfinite(rates))
    if len(bad):
        raise InputError(
            f"growth: must be > 0 and finite, but {growth!r} is {rates[bad[0]]:.6g} for cell "
            f"{side.names[bad[0]]!r}; a cell that dies has a small number of descendants, or none "
            "is coupled: leave it out"
        )
    return rates / rates.sum()


def _judged(blocks: list[Block], least: float | None) -> list[Kept]:
    """Return what is told of each group; all pass where none can, and a warning says so."""
    z = np.full(len(blocks), np.nan)
    passed = np.ones(len(blocks), dtype=bool)
    if least is not None and len(blocks) > 1:
        z = coherence(blocks).max(axis=1)
        passed = z > least
        if not passed.any():
            warn_caller(
                f"gate: no group is coherent with another (z is {z.max():.2g} at most); all "
                f"{len(blocks)} are taken, and noise among them counts",
                category=DataWarning,
            )
            passed[:] = True
    return [
        Kept(block.name, len(block.genes), block.size, block.share, float(one), bool(yes))
        for block, one, yes in zip(blocks, z, passed, strict=True)
    ]
