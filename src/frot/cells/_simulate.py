"""Simulated differentiation: cells of several days whose fates are known, and nuisance pathways."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.errors import InputError, require
from frot._base.validate import check_choice, check_count, check_flag, check_number, check_seed
from frot.cells._input import Cells
from frot.groups.groups import Groups

# Progress along the tree on the first and on the last day, and where branches leave it.
FIRST, LAST = (0.3, 0.65), (0.75, 1.0)
FORKS = (0.1, 0.2)
# Standard deviations: of cells about the tree, of genes about their programme, of a nuisance.
WOBBLE, GENE_NOISE, NUISANCE = 0.18, 0.25, 1.5
TREE_FATES = ("A", "B", "C", "D")
# Counts: how far programmes move a rate (log), molecules a gene, NB size, library spread (log).
LOG_FOLD, DEPTH, NB_SIZE, LIBRARY_SPREAD = 0.8, 2.0, 2.0, 0.3


@dataclass(frozen=True, eq=False)
class Simulation:
    """Cells of several days with known fates.

    Attributes
    ----------
    X : array of shape (N, d)
        Expression: standardised, or with counts ``log1p`` of counts per median library.
    day : array of shape (N,)
        0, 1, ...
    fate : array of shape (N,)
        The branch a cell is on. Descendants have the fate of their ancestor.
    growth : array of shape (N,)
        Expected number of descendants one day later; less than 1 where cells die.
    names : tuple of str, length d
        Of the genes.
    groups : Groups
        The pathways.
    signal : tuple of str
        The pathways that follow differentiation; the others are nuisance.
    counts : array of shape (N, d), or None
        What `X` was made from.
    """

    X: np.ndarray
    day: np.ndarray
    fate: np.ndarray
    growth: np.ndarray
    names: tuple[str, ...]
    groups: Groups
    signal: tuple[str, ...]
    counts: np.ndarray | None = None

    def pair(self, source: int = 0, target: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return the expression of the cells of two days, shapes (n, d) and (m, d)."""
        return self.X[self.day == source], self.X[self.day == target]

    def kept_fate(self, plan: Any, source: int = 0, target: int = 1) -> float:
        """Return the share of a plan's mass that goes to cells of the right fate.

        Parameters
        ----------
        plan : array of shape (n, m)
        source, target : int
            The two days.

        Examples
        --------
        >>> cells = simulate(20, seed=1)
        >>> perfect = cells.fate[:20, None] == cells.fate[20:]
        >>> cells.kept_fate(perfect / perfect.sum())
        1.0
        """
        same = self.fate[self.day == source][:, None] == self.fate[self.day == target]
        plan = np.asarray(plan)
        return float((plan * same).sum() / plan.sum())

    @cached_property
    def obs(self) -> dict[str, np.ndarray]:
        """What is known of each cell: ``day``, ``fate`` and ``growth``."""
        return {"day": self.day, "fate": self.fate, "growth": self.growth}

    @cached_property
    def cells(self) -> Cells:
        """The cells as `couple` takes them."""
        layers = {} if self.counts is None else {"counts": self.counts}
        return Cells(self.X, self.obs, self.names, layers=layers)

    def to_adata(self) -> Any:
        """Return the cells as an AnnData; needs anndata."""
        require("anndata", "anndata")
        import anndata  # pyright: ignore[reportMissingImports]
        import pandas

        cells = self.cells
        obs = pandas.DataFrame(self.obs, index=pandas.Index(cells.obs_names))
        var = pandas.DataFrame(index=pandas.Index(self.names))
        return anndata.AnnData(self.X, obs=obs, var=var, layers=dict(cells.layers))


def simulate(
    n_cells: int = 250,
    *,
    generator: str = "tree",
    noise: float = 0.5,
    shared: bool = False,
    counts: bool = False,
    dropout: float = 0.3,
    growth: float = 1.0,
    n_days: int = 2,
    n_groups: int = 20,
    group_size: int = 10,
    seed: int = 0,
) -> Simulation:
    r"""Simulate cells that differentiate into four fates, and pathways of which some are nuisance.

    A cell has a state :math:`z` that its fate and its progress decide. Genes of a signal pathway
    are :math:`W_l^\top z` plus noise; genes of a nuisance pathway :math:`V_l^\top u`, where the
    two-dimensional :math:`u` is drawn anew for each cell of each day, and :math:`W_l, V_l` are
    Gaussian and the same on all days. Cells of different days are different cells, as measuring
    destroys them: what is known is the fate.

    Parameters
    ----------
    n_cells : int
        Cells a day.
    generator : {"tree", "network"}
        ``"tree"``: a trunk that forks and forks again. ``"network"``: the eleven regulators of
        myeloid differentiation of Krumsiek et al. (2011), their Boolean rules made continuous,
        with noise.
    noise : float
        Share of the pathways that are nuisance, from 0 to below 1.
    shared : bool
        All nuisance pathways follow one u, as genes of the cell cycle do, instead of their own.
    counts : bool
        Draw negative binomial counts with the expression as log rate, with dropout and libraries
        of unequal size.
    dropout : float
        Share of the counts that are set to 0.
    growth : float
        >= 1. The fates grow by rates from 1 / growth to growth a day; with 1 nothing is born or
        dies.
    n_days : int
    n_groups, group_size : int
        Pathways, and genes in each.
    seed : int

    Returns
    -------
    Simulation

    References
    ----------
    J. Krumsiek, C. Marr, T. Schroeder, F. J. Theis (2011). Hierarchical differentiation of myeloid
    progenitors is encoded in the transcription factor network. PLoS ONE 6(8): e22649.

    Examples
    --------
    >>> cells = simulate(100, noise=0.75)
    >>> cells.X.shape, len(cells.signal), cells.groups
    ((200, 200), 5, Groups(20 groups of 200 features: 'signal0' (10), ...))
    """
    n, days = check_count(n_cells, "n_cells"), check_count(n_days, "n_days", least=2)
    check_choice(generator, "generator", ("tree", "network"))
    noise = check_number(noise, "noise")
    dropout = check_number(dropout, "dropout")
    for name, share in (("noise", noise), ("dropout", dropout)):
        if share >= 1:
            raise InputError(f"{name}: is {share:g}; use a share from 0 to below 1")
    shared, counts = check_flag(shared, "shared"), check_flag(counts, "counts")
    growth = check_number(growth, "growth", least=1.0)
    n_groups = check_count(n_groups, "n_groups")
    group_size = check_count(group_size, "group_size")
    rng = np.random.default_rng(check_seed(seed, "seed"))

    rates = growth ** np.linspace(-1.0, 1.0, 4)
    day = np.repeat(np.arange(days), n)
    # Fates that grow have larger shares from day to day.
    shares = [rates**d / (rates**d).sum() for d in range(days)]
    fate = np.concatenate([rng.choice(4, size=n, p=share) for share in shares])
    ends = np.linspace(FIRST, LAST, days)[day]
    progress = rng.uniform(ends[:, 0], ends[:, 1])
    if generator == "tree":
        states, fates = _tree(fate, progress, rng), TREE_FATES
    else:
        states, fates = commit(fate, progress, rng)

    n_signal = max(1, round(n_groups * (1 - noise)))
    nuisance = rng.standard_normal((n * days, 2))
    blocks, names = [], []
    for group in range(n_groups):
        if group < n_signal:
            latent, strength = states, 1.0
            names.append(f"signal{group}")
        else:
            if not shared:
                nuisance = rng.standard_normal((n * days, 2))
            latent, strength = nuisance, NUISANCE
            names.append(f"nuisance{group - n_signal}")
        loadings = rng.standard_normal((latent.shape[1], group_size))
        noise_of_genes = GENE_NOISE * rng.standard_normal((n * days, group_size))
        blocks.append(strength * latent @ loadings + noise_of_genes)
    X = np.hstack(blocks)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    raw = _counts(X, dropout, rng) if counts else None
    if raw is not None:
        library = raw.sum(axis=1, keepdims=True)
        X = np.log1p(raw / np.maximum(library, 1) * np.median(library))
    groups = Groups.from_sizes([group_size] * n_groups, names=names)
    return Simulation(
        X=X,
        day=day,
        fate=np.array(fates)[fate],
        growth=rates[fate],
        names=tuple(f"{name}_{g}" for name in names for g in range(group_size)),
        groups=groups,
        signal=tuple(names[:n_signal]),
        counts=raw,
    )


def _tree(fate: np.ndarray, progress: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return states on a trunk that forks into two branches, each of which forks again, (N, 4)."""
    side, turn = np.where(fate < 2, -1.0, 1.0), np.where(fate % 2, 1.0, -1.0)
    first, second = (np.maximum(progress - fork, 0.0) for fork in FORKS)
    states = np.stack(
        [progress, side * first, turn * second * (side < 0), turn * second * (side > 0)], axis=1
    )
    return states + WOBBLE * rng.standard_normal(states.shape)


def _counts(X: np.ndarray, dropout: float, rng: np.random.Generator) -> np.ndarray:
    """Draw negative binomial counts whose log rates follow `X`, and set a share of them to 0."""
    base = rng.normal(np.log(DEPTH), 1.0, size=X.shape[1])
    library = rng.normal(0.0, LIBRARY_SPREAD, size=(len(X), 1))
    rate = np.exp(LOG_FOLD * X + base + library)
    raw = rng.poisson(rng.gamma(NB_SIZE, rate / NB_SIZE))
    return np.where(rng.random(X.shape) < dropout, 0, raw).astype(float)


# A network of eleven regulators that commits cells to one of four myeloid fates.
REGULATORS = (
    "GATA2", "GATA1", "FOG1", "EKLF", "FLI1", "SCL", "CEBPA", "PU1", "CJUN", "EGRNAB", "GFI1",
)  # fmt: skip
FATES = ("erythrocyte", "megakaryocyte", "monocyte", "granulocyte")
# For each fate, the regulator that distinguishes it from its sister.
MARKERS = ("EKLF", "FLI1", "EGRNAB", "GFI1")
# Progenitors have these at random levels: the antagonists of the decisions, none of them won yet.
PRIMED = ("GATA2", "CEBPA", "PU1", "CJUN", "EGRNAB")
STEP, STEPS, NOISE = 0.1, 100, 0.1
# The step at which progress is 1; the fate is read off at the last one.
MATURE = 80
# Exponent and midpoint of the Hill function that turns a level into a degree of truth.
HILL, HALF = 4, 0.5


def rules(levels: np.ndarray) -> np.ndarray:
    """Return the targets of the Boolean rules of Krumsiek et al. (2011, table 1), one a regulator.

    Degrees of truth of `levels`, of shape (N, 11) in the order of `REGULATORS`, are combined with
    product and probabilistic sum, which are the Boolean operations at 0 and 1.

    Examples
    --------
    An erythrocyte stays what it is:

    >>> on = [name in {"GATA1", "FOG1", "EKLF", "SCL"} for name in REGULATORS]
    >>> levels = np.array([on], dtype=float)
    >>> bool((rules(levels) == levels).all())
    True
    """
    powers = np.clip(levels, 0.0, 1.0) ** HILL
    truth = powers / (powers + HALF**HILL) * (1 + HALF**HILL)
    gata2, gata1, fog1, eklf, fli1, scl, cebpa, pu1, cjun, egrnab, gfi1 = truth.T

    def either(*inputs: np.ndarray) -> np.ndarray:
        return 1 - np.prod([1 - value for value in inputs], axis=0)

    return np.stack(
        [
            gata2 * (1 - gata1 * fog1) * (1 - pu1),
            either(gata1, gata2, fli1) * (1 - pu1),
            gata1,
            gata1 * (1 - fli1),
            gata1 * (1 - eklf),
            gata1 * (1 - pu1),
            cebpa * (1 - gata1 * fog1 * scl),
            either(cebpa, pu1) * (1 - gata1) * (1 - gata2),
            pu1 * (1 - gfi1),
            pu1 * cjun * (1 - gfi1),
            cebpa * (1 - egrnab),
        ],
        axis=1,
    )


def commit(
    fate: np.ndarray, progress: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, tuple[str, ...]]:
    r"""Return states of cells on the way to their fates, shape (N, 11), and the fates' names.

    Progenitors follow :math:`dx = (B(x) - x)\,dt + \sigma\,dW` within [0, 1], with B of `rules`.
    Each cell is one path, which ends at its `fate`, a position in `FATES`, stopped at its
    `progress`, from 0, a progenitor, to 1, mature.
    """
    states = np.zeros((len(fate), len(REGULATORS)))
    waiting = np.arange(len(fate))
    markers = [REGULATORS.index(name) for name in MARKERS]
    while len(waiting):
        # A fifth or more of the paths end at each fate, and some at none.
        paths = _paths(4 * len(fate), rng)
        ends = paths[-1][:, markers]
        reached = np.where(ends.max(axis=1) > 0.5, ends.argmax(axis=1), -1)
        left = []
        for kind in range(len(FATES)):
            cells, found = waiting[fate[waiting] == kind], np.flatnonzero(reached == kind)
            served, left_over = cells[: len(found)], cells[len(found) :]
            steps = np.rint(progress[served] * MATURE).astype(int)
            states[served] = paths[steps, found[: len(served)]]
            left.append(left_over)
        waiting = np.concatenate(left)
    return states, FATES


def _paths(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return levels from the progenitor on, shape (STEPS + 1, count, 11)."""
    levels = np.zeros((STEPS + 1, count, len(REGULATORS)))
    for name in PRIMED:
        levels[0, :, REGULATORS.index(name)] = rng.random(count)
    for step in range(STEPS):
        now = levels[step]
        kick = NOISE * np.sqrt(STEP) * rng.standard_normal(now.shape)
        levels[step + 1] = np.clip(now + STEP * (rules(now) - now) + kick, 0.0, 1.0)
    return levels
