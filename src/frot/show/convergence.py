"""How the two bounds closed in on the optimum, and what the paper promises of Frank-Wolfe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from frot._base.validate import check_choice
from frot.show.style import BLUE, FAINT, GREEN, GREY, ORANGE, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    from frot.problem.result import Result

__all__ = ["draw_convergence", "plot_convergence"]

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
