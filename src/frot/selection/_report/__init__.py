"""A fitted selector as one web page that needs nothing but itself."""

from __future__ import annotations

from frot.selection._report._write import write_selection_report

__all__ = ["write_selection_report"]
