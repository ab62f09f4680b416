"""Pictures of a result: the weights of groups, how the bounds closed in, and all in one figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from frot._base.validate import check_choice
from frot.show.plan import draw_plan, plot_plan
from frot.show.style import BLUE, FAINT, GREEN, GREY, INK, ORANGE, new_figure, plain, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    from frot.problem.result import Result


__all__ = [
    "alpha_height",
    "draw_alpha",
    "draw_convergence",
    "plot_alpha",
    "plot_convergence",
    "plot_result",
]

TOP = 30


def plot_alpha(result: Result, top: int = TOP) -> Figure:
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
    figure = new_figure(8.0, alpha_height(result, top))
    draw_alpha(figure, result, top)
    return figure


def alpha_height(result: Result, top: int = TOP) -> float:
    """Inches that the bars need so that no two names touch."""
    return 1.3 + 0.24 * max(3, min(top, len(result.alpha)))


def draw_alpha(figure: FigureBase, result: Result, top: int = TOP) -> None:
    """Draw the bars into a figure or a part of one."""
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
    figure = new_figure(8.0, 3.4)
    draw_convergence(figure, result, over)
    return figure


def draw_convergence(
    figure: FigureBase, result: Result, over: Literal["iteration", "time"] = "iteration"
) -> None:
    """Draw the bounds into a figure or a part of one."""
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
        gaps.set_ylim(*(10.0 ** np.array([_decade(drawn.min()), _decade(drawn.max()) + 1])))
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


def _widen(axes: Axes, where: list[float], values: list[float]) -> None:
    """Give a run of one step, or bounds that met at once, axes that can be read."""
    if len(set(where)) == 1:
        axes.set_xlim(0.0, 2.0 * where[0] or 1.0)
    if values and max(values) - min(values) <= 1e-9 * max(map(abs, values)):
        middle = values[0]
        axes.set_ylim(middle - 0.01 * (abs(middle) or 1.0), middle + 0.01 * (abs(middle) or 1.0))


def _decade(gap: float) -> int:
    return int(np.floor(np.log10(gap)))


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
    top = max(4.6, alpha_height(result))
    figure: Any = new_figure(13.0, top + 3.4)
    upper, lower = figure.subfigures(2, 1, height_ratios=[top, 3.4])
    left, right = upper.subfigures(1, 2, width_ratios=[1.0, 1.15])
    draw_plan(left, result, **options)
    draw_alpha(right, result)
    draw_convergence(lower, result)
    return figure
