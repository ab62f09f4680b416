"""A result as one web page that needs nothing but itself."""

from __future__ import annotations

from frot._report._write import write_report

__all__ = ["write_report"]
