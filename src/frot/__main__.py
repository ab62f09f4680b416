"""``python -m frot``, the same as the command ``frot``."""

from __future__ import annotations

from frot.cli import main

if __name__ == "__main__":
    main()
