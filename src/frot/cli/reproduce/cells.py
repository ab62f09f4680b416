"""Cells: which couplings find the descendants of simulated cells, and the types of real ones."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError, collect_warnings
from frot.api.solve import solve
from frot.cells import Cells, couple, simulate
from frot.cli.reproduce.experiment import (
    Check,
    Experiment,
    ExperimentTable,
    Reproduction,
    Verdict,
    finish_draws,
    standard_error,
    verdicts_of,
    with_error,
    work_fingerprint,
)
from frot.groups.groups import Groups
from frot.problem.terms import relative
from frot.show.style import BLUE, GREEN, GREY, ORANGE, legend_below, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS, CELLS = 20, 250
EPS, ETA = relative(0.02), relative(0.05)
COMPONENTS = 30
# Mass that the target may not keep costs as much as coupling at random.
TAU = (np.inf, 1.0)
BINS = 10


@dataclass(frozen=True)
class Setting:
    """Cells to draw, as `frot.cells.simulate` takes them; or real ones, split at random.

    Examples
    --------
    >>> Setting("tree", noise=0.9, shared=True).name
    'tree, shared, 90 %'
    """

    generator: str
    noise: float = 0.5
    shared: bool = False
    counts: bool = False
    growth: float = 1.0

    @property
    def name(self) -> str:
        """In words."""
        kind = [self.generator, *(["counts"] if self.counts else [])]
        kind += ["shared"] if self.shared else []
        kind += [f"growth {self.growth:g}"] if self.growth > 1.0 else []
        return f"{', '.join(kind)}, {self.noise:.0%}".replace("%", " %")

    def draw(self, seed: int) -> Drawn:
        """Draw cells of two days."""
        if self.generator == "pbmc":
            return _split_pbmc(self, seed)
        made = simulate(CELLS, **asdict(self), seed=seed)
        return Drawn(made.X, made.day, made.fate, made.growth, made.groups)


SETTINGS = (
    *(Setting("tree", noise) for noise in (0.0, 0.5, 0.75, 0.9)),
    *(Setting("tree", noise, shared=True) for noise in (0.5, 0.75, 0.9)),
    *(Setting("network", noise) for noise in (0.0, 0.5, 0.75, 0.9)),
    *(Setting("network", noise, shared=True) for noise in (0.5, 0.75)),
    *(Setting("network", noise, counts=True) for noise in (0.0, 0.5, 0.75)),
    *(Setting("tree", noise, growth=4.0) for noise in (0.5, 0.75)),
    *(Setting("pbmc", noise) for noise in (0.0, 0.5, 0.75)),
    *(Setting("pbmc", noise, shared=True) for noise in (0.5, 0.75)),
)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Cells of days 0 and 1 with what they are, and their pathways."""

    X: np.ndarray
    day: np.ndarray
    fate: np.ndarray
    growth: np.ndarray
    groups: Groups
    # A gene of several pathways has a column in each, of the same name.
    genes: tuple[str, ...] | None = None

    def standardised(self) -> tuple[np.ndarray, np.ndarray]:
        """Genes of unit variance, of both days."""
        spread = self.X.std(axis=0)
        X = (self.X - self.X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        return X[self.day == 0], X[self.day == 1]

    def components(self) -> tuple[np.ndarray, np.ndarray]:
        """Principal components of all genes, as moscot and WOT take them."""
        X, Y = self.standardised()
        both = np.vstack([X, Y])
        _, _, right = np.linalg.svd(both - both.mean(axis=0), full_matrices=False)
        return X @ right[:COMPONENTS].T, Y @ right[:COMPONENTS].T

    @property
    def cells(self) -> Cells:
        """As `couple` takes them."""
        obs = {"day": self.day, "fate": self.fate, "growth": self.growth}
        return Cells(self.X, obs, self.genes)

    @property
    def born(self) -> np.ndarray:
        """Weights of the source cells, in proportion to their growth."""
        growth = self.growth[self.day == 0]
        return growth / growth.sum()


def _split_pbmc(setting: Setting, seed: int) -> Drawn:
    """Split real cells into two days; in nuisance pathways cells of a day trade places.

    Cell types are the truth. Shared nuisance pathways all trade places alike.
    """
    X, kinds, groups, names = _pbmc()
    rng = np.random.default_rng((seed, 7))
    order = rng.permutation(len(X))
    half = len(X) // 2
    X, kinds, day = X[order], kinds[order], np.repeat([0, 1], [half, len(X) - half])
    order = rng.permutation(len(groups))
    blocks = []
    trade = {d: rng.permutation(np.flatnonzero(day == d)) for d in (0, 1)}
    noisy = set(order[: round(setting.noise * len(groups))].tolist())
    for place, genes in enumerate(groups.indices):
        block = X[:, genes].copy()
        if place in noisy:
            for d in (0, 1):
                at = np.flatnonzero(day == d)
                block[at] = block[trade[d] if setting.shared else rng.permutation(at)]
        blocks.append(block)
    sizes = Groups.from_sizes([block.shape[1] for block in blocks], names=groups.names)
    genes = tuple(names[gene] for members in groups.indices for gene in members)
    return Drawn(np.hstack(blocks), day, kinds, np.ones(len(X)), sizes, genes)


@cache
def _pbmc() -> tuple[np.ndarray, np.ndarray, Groups, list[str]]:
    """Return scanpy's bundled 700 blood cells, their types, Hallmark gene sets, and the genes."""
    import warnings

    import scanpy  # pyright: ignore[reportMissingImports]

    from frot.datasets import hallmark_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = scanpy.datasets.pbmc68k_reduced()
    groups = Groups.from_gmt(hallmark_path(), list(adata.var_names)).limited(5, 500)
    X = np.asarray(adata.X, dtype=float)
    kinds = np.asarray(adata.obs["bulk_labels"]).astype(str)
    return X, kinds, groups, [str(name) for name in adata.var_names]


def has_pbmc() -> bool:
    """Whether the real cells and their gene sets are there."""
    from frot.datasets import hallmark_path

    if importlib.util.find_spec("scanpy") is None:
        return False
    try:
        hallmark_path()
    except InputError:
        return False
    return True


Plan = Callable[[Drawn, dict[str, Any]], Any]


def _ot(drawn: Drawn, done: dict[str, Any], components: bool, **options: Any) -> Any:
    X, Y = drawn.components() if components else drawn.standardised()
    return solve(X, Y, "all", eps=EPS, **options).plan


def _paper(drawn: Drawn, done: dict[str, Any]) -> Any:
    return solve(*drawn.standardised(), drawn.groups, eta=ETA, eps=EPS).plan


def _prior(drawn: Drawn, done: dict[str, Any]) -> Any:
    """Weigh pathways by their coherence to the fourth power, as it is measured by the gate."""
    about = {one.name: max(one.z, 0.1) ** 4 for one in done["couple"].about}
    weights = np.array([about[name] for name in drawn.groups.names])
    prior, eta = weights / weights.sum(), relative(0.2)
    X, Y = drawn.standardised()
    return solve(X, Y, drawn.groups, prior=prior, eta=eta, eps=EPS, normalise="mean").plan


def _couple(drawn: Drawn, done: dict[str, Any], key: str = "couple", **options: Any) -> Any:
    done[key] = couple(drawn.cells, groups=drawn.groups, **options)
    return done[key].result.plan


METHODS: dict[str, Plan] = {
    "OT, all genes": partial(_ot, components=False),
    "OT, 30 components": partial(_ot, components=True),
    "OT, 30 components, tau": partial(_ot, components=True, tau=(np.inf, relative(1.0))),
    "FROT, paper": _paper,
    "couple": _couple,
    "couple, tau": partial(_couple, key="tau", tau=TAU),
    "FROT, prior": _prior,
}
# Where cells are born and die, with growth rates known.
GROWN: dict[str, Plan] = {
    "couple, growth": partial(_couple, key="grown", growth="growth"),
    "couple, growth, tau": partial(_couple, key="both", growth="growth", tau=TAU),
}
DEFAULT, USUAL = "couple", "OT, 30 components"
MEASURES = ("mass", "transitions", "labels", "calibration")


def scores(plan: Any, first: np.ndarray, second: np.ndarray) -> list[float]:
    """Return mass on the right fate, accuracies of types and of cells, and calibration error.

    The mass on the right fate; the mean over types of the share of a type's mass that stays in
    it; the share of source cells whose most likely fate is right; and how far from the truth the
    probabilities of fates are: the mean over ten bins of the difference between probability and
    share of right ones, weighted by their cells (expected calibration error).

    Examples
    --------
    >>> scores(np.eye(2) / 2, np.array(["a", "b"]), np.array(["a", "b"]))
    [1.0, 1.0, 1.0, 0.0]
    """
    kinds = np.unique(np.concatenate([first, second]))
    there = np.asarray(plan @ (second[:, None] == kinds).astype(float))
    own = (first[:, None] == kinds).astype(float)
    by_type = own.T @ there
    present = by_type.sum(axis=1) > 0.0
    by_type = by_type[present] / by_type[present].sum(axis=1, keepdims=True)
    likely = there / np.maximum(there.sum(axis=1, keepdims=True), 1e-300)
    best = likely.argmax(axis=1)
    right, sure = kinds[best] == first, likely.max(axis=1)
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    wrong = sum(
        abs(float(right[bins == one].sum() - sure[bins == one].sum())) for one in np.unique(bins)
    )
    return [
        float((there * own).sum() / there.sum()),
        float(np.diag(by_type[:, present]).mean()),
        float(right.mean()),
        wrong / len(first),
    ]


def measure(setting: Setting, index: int, seed: int = 0) -> dict[str, list[float]]:
    """Couple a draw, which seed and index give, by every method; see `scores`.

    Examples
    --------
    >>> found = measure(Setting("tree", 0.0), 0)
    >>> found["couple"][0] > 0.8
    True
    """
    drawn = setting.draw(1000 * seed + index)
    first, second = (drawn.fate[drawn.day == d] for d in (0, 1))
    found, done = {}, {}
    with collect_warnings():
        # That a gate found nothing is measured, too.
        for name, plan in (METHODS | (GROWN if setting.growth > 1.0 else {})).items():
            found[name] = scores(plan(drawn, done), first, second)
    return found


def cells(
    n: int = SEEDS,
    seed: int = 0,
    *,
    settings: Sequence[Setting] | None = None,
    workers: int = 1,
    folder: Path | None = None,
    progress: bool = False,
) -> Reproduction:
    """Couple simulated and real cells of known fate by every method, in n draws a setting."""
    chosen = [one for one in settings or SETTINGS if one.generator != "pbmc" or has_pbmc()]
    work = work_fingerprint(cells=CELLS, seed=seed)
    bar = {"what": "draws", "progress": progress}
    do = partial(measure, seed=seed)
    found = finish_draws(folder, work, chosen, n, do, workers=workers, **bar)
    notes = [
        f"{n} draws of {CELLS} cells a day in each setting; ± is a standard error. The "
        "percentage is the share of pathways that are nuisance.",
        "eps is 2 % of the mean cost throughout. tau = (inf, 1 of the mean cost): the target's "
        "marginal need not be kept.",
        "transitions: the mean over types of the share that stays in the type. labels: source "
        "cells whose most likely fate is right. calibration: expected calibration error of the "
        "probabilities of fates.",
    ]
    if len(chosen) < len(settings or SETTINGS):
        notes.append("The real cells need scanpy and the Hallmark gene sets, and were left out.")
    return Reproduction(
        "cells",
        {"seeds": n, "seed": seed, "measures": list(MEASURES), "settings": found},
        _verdicts(found),
        partial(_draw, found),
        tuple(notes),
        (_masses(found), _differences(found), _others(found)),
    )


Found = dict[str, list[dict[str, list[float]]]]


def _column(found: Found, setting: str, method: str, place: int = 0) -> np.ndarray | None:
    runs = found[setting]
    return np.array([run[method][place] for run in runs]) if method in runs[0] else None


def _percent(values: np.ndarray | None, signed: bool = False) -> str:
    if values is None:
        return ""
    shares = 100 * values
    return with_error(shares.mean(), standard_error(shares), "+.1f" if signed else ".1f")


ALL = (*METHODS, *GROWN)


def _masses(found: Found) -> ExperimentTable:
    rows = [[name, *(_percent(_column(found, name, m)) for m in ALL)] for name in found]
    return ExperimentTable("Mass on the right fate, in percent", ("setting", *ALL), rows)


def _differences(found: Found) -> ExperimentTable:
    others = [method for method in ALL if method != DEFAULT]
    rows = []
    for name in found:
        own = _column(found, name, DEFAULT)
        assert own is not None
        gains = ((_column(found, name, method)) for method in others)
        rows.append([name, *("" if x is None else _percent(own - x, True) for x in gains)])
    note = "Points of mass by which `couple` is ahead of each, paired by draw."
    return ExperimentTable("Paired differences", ("setting", *others), rows, note)


def _others(found: Found) -> ExperimentTable:
    shown = ("OT, all genes", USUAL, "FROT, paper", DEFAULT, "couple, tau")
    header = ["setting", *(f"{what}: {m}" for what in MEASURES[1:] for m in shown)]
    rows = [
        [name, *(_percent(_column(found, name, m, at)) for at in (1, 2, 3) for m in shown)]
        for name in found
    ]
    return ExperimentTable("Types, labels and their calibration, in percent", tuple(header), rows)


def _verdicts(found: Found) -> tuple[Verdict, ...]:
    def mean(setting: str, method: str) -> float:
        values = _column(found, setting, method)
        assert values is not None
        return 100 * float(values.mean())

    ahead = [
        Check(f"{name}: {mean(name, DEFAULT):.1f} against {mean(name, USUAL):.1f}",
              mean(name, DEFAULT) >= mean(name, USUAL) - 1.0)
        for name in found
    ]  # fmt: skip
    rivals = ("OT, all genes", USUAL, "FROT, paper", "FROT, prior")
    near = []
    for name in found:
        best = max(rivals, key=lambda rival: mean(name, rival))
        text = f"{name}: {mean(name, DEFAULT):.1f} against {mean(name, best):.1f} ({best})"
        near.append(Check(text, mean(name, DEFAULT) >= mean(name, best) - 2.0))
    born = [
        Check(f"{name}: {mean(name, DEFAULT):.1f} with all mass kept, {mean(name, m):.1f} {m}",
              mean(name, m) > mean(name, DEFAULT))
        for name in found
        if "growth" in name
        for m in ("couple, tau", "couple, growth", "couple, growth, tau")
    ]  # fmt: skip
    return verdicts_of(
        "The",
        ("usual", "couple loses to OT on 30 components nowhere (1 point)", ahead),
        ("best", "couple is within 2 points of the best other method", near),
        ("unbalanced", "where cells are born and die, tau and growth rates help", born),
    )


COLOURS = {
    "OT, all genes": GREY,
    USUAL: ORANGE,
    "FROT, paper": GREEN,
    "FROT, prior": "#CC79A7",
    DEFAULT: BLUE,
    "couple, tau": "#56B4E9",
}


def _draw(found: Found) -> Figure:
    figure: Any = new_figure(9.0, 1.2 + 0.42 * len(found))
    axes = tidy(figure.add_subplot())
    rows = np.arange(len(found))[::-1]
    for step, (method, colour) in enumerate(COLOURS.items()):
        columns = [_column(found, name, method) for name in found]
        values = [100 * one for one in columns if one is not None]
        axes.errorbar(
            [one.mean() for one in values],
            rows + 0.3 - 0.12 * step,
            xerr=[one.std() / np.sqrt(max(len(one) - 1, 1)) for one in values],
            fmt="o",
            ms=4,
            color=colour,
            label=method,
        )
    for row in rows[:-1]:
        axes.axhline(row - 0.5, color="#EEEEEE", lw=0.8, zorder=0)
    axes.set_yticks(rows, list(found))
    axes.set_xlabel("mass on the right fate, in percent")
    legend_below(figure, axes, columns=3, size=9)
    return figure


EXPERIMENT = Experiment(
    "cells",
    "couplings of cells find true descendants where nuisance pathways drown them for others",
    cells,
    pieces="draws",
    papers=False,
)
