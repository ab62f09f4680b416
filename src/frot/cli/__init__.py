"""The command line: one file per command.

In come words, out come answers on stdout, remarks on stderr, files and an exit code. `app` puts
the commands together; `command` is what they share. Nothing of frot imports this room.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line; `frot` and ``python -m frot`` both come here."""
    from frot.cli.app import app

    app(prog_name="frot")
