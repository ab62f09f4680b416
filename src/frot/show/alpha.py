"""The weights of the groups, and what the plan costs in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frot.show.style import BLUE, INK, ORANGE, new_figure, plain, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    from frot.problem.result import Result

__all__ = ["alpha_height", "draw_alpha", "plot_alpha"]

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
