"""Every picture and every page: one style, one way to write HTML.

Results go in; matplotlib figures and self-contained HTML files, light and dark,
come out. `style` is the look of all pictures, `page` the writer of all pages (templates, page.css,
table.js), which the applications use for their own. matplotlib and Jinja2, from the extra
``frot[plot]``, are imported when something is drawn, not before.
"""

from __future__ import annotations

from frot.show.plan import plot_plan
from frot.show.result import plot_alpha, plot_convergence, plot_result, write_report

__all__ = ["plot_alpha", "plot_convergence", "plot_plan", "plot_result", "write_report"]
