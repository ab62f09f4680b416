"""Pictures of a result. Needs matplotlib, from the extra ``frot[plot]``, when called."""

from __future__ import annotations

from frot.show.alpha import plot_alpha
from frot.show.convergence import plot_convergence
from frot.show.plan import plot_plan
from frot.show.result import plot_result

__all__ = ["plot_alpha", "plot_convergence", "plot_plan", "plot_result"]
