"""Pictures of a result, its weights and how its bounds closed in, and its report page."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from frot._base.errors import InputError, brief
from frot._base.validate import check_choice, check_feature_names
from frot.groups.groups import Groups
from frot.plans.plan import plan_kind
from frot.problem.result import Result
from frot.show.page import (
    Cell,
    Column,
    PageTable,
    check_page,
    number,
    picture,
    plural,
    render,
    save_page,
)
from frot.show.plan import draw_plan, plot_plan
from frot.show.style import BLUE, FAINT, GREEN, GREY, INK, ORANGE, new_figure, plain, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_alpha(result: Result, top: int = 30) -> Figure:
    r"""Draw :math:`\alpha_l` and :math:`\phi_l` of the heaviest groups as bars side by side.

    Parameters
    ----------
    result : Result
    top : int
        Groups at most.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import frot
    >>> res = frot.solve([[0.0, 0.0]], [[1.0, 2.0]], groups={"left": [0], "right": [1]})
    >>> [text.get_text() for text in plot_alpha(res).axes[0].get_yticklabels()]
    ['right', 'left']
    """
    return _draw_alpha(new_figure(8.0, _alpha_height(result, top)), result, top)


def _alpha_height(result: Result, top: int = 30) -> float:
    """Inches that the bars need so that no two names touch."""
    return 1.3 + 0.24 * max(3, min(top, len(result.alpha)))


def _draw_alpha(figure: Any, result: Result, top: int = 30) -> Any:
    shown = result.ranking()[: max(1, top)]
    left, right = figure.subplots(1, 2, sharey=True)
    place = np.arange(len(shown))
    _bars(left, result.alpha[shown], BLUE, "{:.4f}")
    _bars(right, result.phi[shown], ORANGE, "{:.4g}")
    left.set_yticks(place, [plain(shorten(result.names[group])) for group in shown])
    left.set_ylim(len(shown) - 0.4, -0.6)
    left.set_xlabel("weight α")
    right.set_xlabel("cost of the plan φ")
    more = len(result.alpha) - len(shown)
    title = f"Heaviest {len(shown)} of {len(result.alpha)} groups" if more else "Groups"
    left.set_title(title, loc="left", fontsize=11)
    for axes in (left, right):
        tidy(axes)
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)
    right.tick_params(labelleft=False)
    return figure


def _bars(axes: Axes, values: np.ndarray, colour: str, form: str) -> None:
    # Two bars as thick as thirty are apart would look like a flag.
    thickness = min(0.7, 0.15 * len(values))
    bars = axes.barh(np.arange(len(values)), values, color=colour, height=thickness)
    axes.bar_label(bars, [form.format(value) for value in values], padding=3, size=8, color=INK)
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    span = high - low or 1.0
    # Room for the numbers at the ends of the bars.
    axes.set_xlim(low - (0.35 * span if low < 0.0 else 0.0), high + 0.35 * span)


# Gaps below the precision of a double are drawn here, since a log axis has no zero.
FLOOR = 1e-16


def plot_convergence(result: Result, over: Literal["iteration", "time"] = "iteration") -> Figure:
    """Draw the lower and the upper bound, and the gap between them on a log axis.

    Where the result has a rate (`FrankWolfe` with the paper's steps or a line search), the error
    that the paper's proposition 3 allows is drawn beside the gap, over the size of the optimum.

    Parameters
    ----------
    result : Result
    over : {"iteration", "time"}
        What runs along the horizontal axis.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import frot
    >>> res = frot.solve([[0.0, 0.0]], [[1.0, 2.0]], groups="each")
    >>> [axes.get_ylabel() for axes in plot_convergence(res).axes]
    ['objective', 'relative gap']
    """
    return _draw_convergence(new_figure(8.0, 3.4), result, over)


def _draw_convergence(figure: Any, result: Result, over: str = "iteration") -> Any:
    check_choice(over, "over", ("iteration", "time"))
    bounds, gaps = figure.subplots(1, 2)
    history = result.history
    where = [now.iteration if over == "iteration" else now.elapsed for now in history]
    marker = {"marker": "o", "markersize": 3.5} if len(history) < 40 else {}
    lower, upper = [now.lower for now in history], [now.upper for now in history]
    bounds.fill_between(where, lower, upper, color=BLUE, alpha=0.12, linewidth=0)
    bounds.plot(where, upper, color=ORANGE, label="upper bound", **marker)
    bounds.plot(where, lower, color=BLUE, label="lower bound", **marker)
    drawn = np.maximum([now.gap for now in history], FLOOR)
    gaps.plot(where, drawn, color=GREEN, label="relative gap", **marker)
    gaps.set_yscale("log")
    size = max(abs(result.lower), abs(result.upper))
    if result.rate is not None and size > 0.0:
        allowed = result.rate(np.array([now.iteration for now in history])) / size
        dashed = {"color": GREY, "linestyle": (0, (4, 3)), "linewidth": 1.2}
        gaps.plot(where, allowed, label="error allowed by proposition 3", **dashed)
        drawn = np.append(drawn, np.maximum(allowed, FLOOR))
        # Between the two, which are orders of magnitude apart.
        gaps.legend(frameon=False, fontsize=9, loc="center right")
    if len(drawn):
        # Whole decades, so that a gap that hardly moves is not blown up to a mountain range.
        least, most = np.floor(np.log10([drawn.min(), drawn.max()]))
        gaps.set_ylim(10.0**least, 10.0 ** (most + 1.0))
        gaps.yaxis.set_minor_formatter(lambda *_: "")
    _widen(bounds, where, lower + upper)
    _widen(gaps, where, [])
    bounds.set_ylabel("objective")
    gaps.set_ylabel("relative gap")
    bounds.set_title("Certified interval", loc="left", fontsize=11)
    gaps.set_title(f"Gap at the end: {result.gap:.1e}", loc="left", fontsize=11)
    for axes in (bounds, gaps):
        tidy(axes)
        axes.set_xlabel("iteration" if over == "iteration" else "seconds")
        axes.grid(True, color=FAINT, linewidth=0.6)
        axes.set_axisbelow(True)
        if over == "iteration":
            axes.locator_params(axis="x", integer=True)
    bounds.legend(frameon=False, fontsize=9)
    return figure


def _widen(axes: Axes, where: list[float], values: list[float]) -> None:
    """Give a run of one step, or bounds that met at once, axes that can be read."""
    if len(set(where)) == 1:
        axes.set_xlim(0.0, 2.0 * where[0] or 1.0)
    if values and max(values) - min(values) <= 1e-9 * max(map(abs, values)):
        middle = values[0]
        axes.set_ylim(middle - 0.01 * (abs(middle) or 1.0), middle + 0.01 * (abs(middle) or 1.0))


KINDS: dict[str, Callable[..., Any]] = {
    "plan": plot_plan,
    "alpha": plot_alpha,
    "convergence": plot_convergence,
}


def plot_result(result: Result, kind: str | None = None, **options: Any) -> Figure:
    """Draw the plan, the groups and the convergence in one figure, or one of them.

    Parameters
    ----------
    result : Result
    kind : {"plan", "alpha", "convergence"}, optional
        None draws all three.
    **options
        Of `plot_plan`, `plot_alpha` or `plot_convergence`; of `plot_plan` if all are drawn.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import frot
    >>> res = frot.solve([[0.0, 0.0]], [[1.0, 2.0]], groups="each")
    >>> len(plot_result(res).axes)
    5
    >>> plot_result(res, "pie")
    Traceback (most recent call last):
    ...
    frot.InputError: kind: 'pie' is none of 'plan', 'alpha', 'convergence'
    """
    if kind is not None:
        return KINDS[check_choice(kind, "kind", tuple(KINDS))](result, **options)
    top = max(4.6, _alpha_height(result))
    figure: Any = new_figure(13.0, top + 3.4)
    upper, lower = figure.subfigures(2, 1, height_ratios=[top, 3.4])
    left, right = upper.subfigures(1, 2, width_ratios=[1.0, 1.15])
    draw_plan(left, result, **options)
    _draw_alpha(right, result)
    _draw_convergence(lower, result)
    return figure


def write_report(
    result: Result,
    path: str | os.PathLike[str],
    title: str = "Feature-robust optimal transport",
    *,
    command: str = "",
    groups: Groups | None = None,
    feature_names: Sequence[str] | None = None,
) -> Path:
    """Write a result as one web page: numbers, pictures, groups and how to get them again.

    The page holds its pictures and style itself and asks nothing of the network. It replaces an
    existing file only once it is complete. Needs the extra ``frot[plot]``.

    Parameters
    ----------
    result : Result
    path : path
        The .html file to write.
    title : str
    command : str
        A command line that gives the result, shown as it is.
    groups : Groups, optional
        Which features are in which group, where the result does not know.
    feature_names : sequence of str, length d, optional
        For the axes of the plan's picture.

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> import frot, tempfile
    >>> result = frot.solve([[0.0, 0.0]], [[1.0, 2.0]])
    >>> page = write_report(result, Path(tempfile.mkdtemp()) / "page.html", "One point")
    >>> "<h1>One point</h1>" in page.read_text(encoding="utf-8")
    True
    """
    if not isinstance(result, Result):
        raise InputError(f"result: {brief(result)} is not a Result; pass what frot.solve returned")
    if groups is not None and not isinstance(groups, Groups):
        raise InputError("groups: are no Groups; pass frot.Groups.parse(...)")
    if groups is not None and len(groups) != len(result.names):
        raise InputError(f"groups: are {len(groups)}, but the result has {len(result.names)}")
    features = None if result.points is None else result.points[0].shape[1]
    if feature_names is not None and features is not None:
        feature_names = check_feature_names(feature_names, features)
    path = check_page(path, title=title, command=command)
    result = result.numpy()
    if groups is None:
        groups = result.groups
    n, m = result.plan.shape
    count = len(result.alpha)
    page = render(
        "result.html",
        title=title,
        subtitle=f"{n:,} to {m:,} points in {plural(count, 'group')} of features",
        command=command,
        result=result,
        facts=[
            ("Points", f"{n:,} to {m:,}"),
            (
                "Groups",
                f"{count:,}, of which {result.perplexity:.3g} in effect (exp of the entropy)",
            ),
            ("Plan", f"{plan_kind(result.plan)}, mass {result.plan.sum():.6g}"),
            *_kept_mass(result),
            ("Problem", result.describe_problem()),
            ("Solver", result.describe_run()),
        ],
        pictures=[
            picture(
                lambda: plot_plan(result, groups=groups, feature_names=feature_names),
                "The transport plan",
            ),
            picture(lambda: plot_alpha(result), "Weights and costs of the heaviest groups"),
            picture(lambda: plot_convergence(result), "Bounds and gap over the iterations"),
        ],
        groups=_group_table(result, groups),
    )
    return save_page(path, page)


def _kept_mass(result: Result) -> list[tuple[str, str]]:
    """Return the fact of how much of both sides' mass moves, where that is not all of it."""
    if result.keeps_all:
        return []
    shares = [
        f"{result.mass / total:.1%} of {name}"
        for name, total in zip(("a", "b"), result.totals, strict=True)
    ]
    how = f"τ {' and '.join(f'{price:.4g}' for price in result.tau)}, {result.penalty}"
    if result.fixed_mass is not None:
        how = f"mass {result.fixed_mass:.6g}"
    return [("Mass kept", f"{', '.join(shares)} ({how})")]


def _group_table(result: Result, groups: Groups | None, most: int = 1_000) -> PageTable:
    """The groups by weight, with their sizes where these are known."""
    columns = [Column("Rank", first="ascending"), Column("Group", "text"), Column("α"), Column("φ")]
    if groups is not None:
        columns.insert(2, Column("Features"))
    rows = []
    for rank, group in enumerate(result.ranking()[:most].tolist(), start=1):
        row = [number(rank, ".0f"), Cell(result.names[group])]
        if groups is not None:
            row.append(number(groups.sizes[group], ".0f"))
        rows.append([*row, number(result.alpha[group], ".6f"), number(result.phi[group], ".6g")])
    return PageTable(columns, rows, "Groups", "groups", search="group names")
