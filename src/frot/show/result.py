"""One door to all pictures of a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from frot._base.validate import check_choice
from frot.show.alpha import alpha_height, draw_alpha, plot_alpha
from frot.show.convergence import draw_convergence, plot_convergence
from frot.show.plan import draw_plan, plot_plan
from frot.show.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frot.problem.result import Result

__all__ = ["plot_result"]

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
