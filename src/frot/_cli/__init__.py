"""The command line: ``frot demo``, ``solve``, ``select``, ``reproduce`` and ``doctor``."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line; `frot` and ``python -m frot`` both come here."""
    from frot._cli._app import app

    app(prog_name="frot")
