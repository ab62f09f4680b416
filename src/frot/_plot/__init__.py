"""Pictures of a result. Needs matplotlib, from the extra ``frot[plot]``, when called."""

from __future__ import annotations

from frot._plot._alpha import plot_alpha
from frot._plot._convergence import plot_convergence
from frot._plot._plan import plot_plan
from frot._plot._result import plot_result

__all__ = ["plot_alpha", "plot_convergence", "plot_plan", "plot_result"]
