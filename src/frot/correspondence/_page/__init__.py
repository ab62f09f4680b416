"""A match as one web page to click on, which needs nothing but itself."""

from __future__ import annotations

from frot.correspondence._page._write import write_match_page

__all__ = ["write_match_page"]
