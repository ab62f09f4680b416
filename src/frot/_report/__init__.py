"""A result as one web page that needs nothing but itself."""

from __future__ import annotations

from frot._report._comparison import write_comparison_report
from frot._report._write import write_report

__all__ = ["write_comparison_report", "write_report"]
