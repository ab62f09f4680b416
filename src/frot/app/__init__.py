"""The app: transport, genes and photographs in a browser, on this machine alone.

In come tables, photographs and clicks, out come pictures, tables, files and the Python that does
the same. `transport`, `genes` and `photographs` are the tabs without a browser, plain functions
that need no Gradio; `server` lays them out and listens. Nothing is kept between two visitors.

Needs Gradio: ``pip install "frot[app]"``.
"""

from __future__ import annotations

from frot.app.server import serve

__all__ = ["serve"]
