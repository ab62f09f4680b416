"""`couple`: the cells of two days, by feature-robust transport with pathways as groups.

Groups that tell nothing are left out by the gate of `_coherence`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from frot._base.annotated import obs_column
from frot._base.errors import DataWarning, InputError, brief, require, warn_caller
from frot._base.names import quote_some
from frot._base.stopping import deadline, finish
from frot._base.validate import check_count, check_flag, check_number
from frot.api.solve import solve
from frot.cells._blocks import Block, join, make_blocks
from frot.cells._coherence import Coherence, denoise
from frot.cells._coupling import Coupling, GroupSummary
from frot.cells._input import Days, Side, as_cells, read_days
from frot.costs import MEMORY_BUDGET
from frot.groups.groups import Groups
from frot.problem.amounts import Relative
from frot.problem.marginals import check_tau
from frot.problem.result import Result
from frot.problem.terms import check_amount
from frot.solvers import Callback
from frot.solvers.choose import Solver

__all__ = ["CouplingSettings", "couple", "make_coupling"]


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
    (`gate`), and half of the distances within the others is by what other groups confirm
    (`denoise`); the adversary counts once what several groups tell alike.

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
        A group is taken if another one is its witness: predictions of the other's coordinates,
        learnt on one day, hold on the other. This is the chance that any group of noise passes;
        None takes all groups, as they are.
    denoise : bool
        Whether half of a group's distances is by what its witnesses confirm: directions of its
        coordinates that predict no other group are noise, or known to it alone, and count less.
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
        If no group is coherent with another, so that all are taken.

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
            raise InputError("gate: is a chance between 0 and 1, such as 0.01; None takes all")
        if self.device is not None:
            require("torch", "torch")

    def couple(self, data: Any, key: str, first: Side, second: Side, **run: Any) -> Coupling:
        """Couple the cells of two days."""
        weights = (self.weights(data, first), np.full(len(second), 1.0 / len(second)))
        with deadline(run.pop("time_limit", None)):
            blocks, flat = self.blocks(data, first, second, weights)
            about, coherence = _judged(blocks, self.gate)
            taken = [block for block, one in zip(blocks, about, strict=True) if one.passed]
            # Many cells take memory, which is needed now.
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
                f"growth: column {self.growth!r} has entries that are no numbers"
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
        """Return a block for each group, and the names of groups that tell nothing."""
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

        Their `coherence` is worked out where it is not known. Latent blocks are left as they are.
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
        """Solve transport between the coordinates of two days, of which the blocks are parts."""
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


def _judged(
    blocks: list[Block], level: float | None
) -> tuple[list[GroupSummary], Coherence | None]:
    """Return what is told of each group, and the coherence of those that passed.

    All pass where none can, and a warning says so.
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
