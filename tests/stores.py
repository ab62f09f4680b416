"""Look into the store of a run that may be going on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from frot import InputError
from frot._base.store import Store


def finished(path: Path) -> dict[int, Any]:
    """What a checkpoint holds; nothing while it is not there, or not yet what it will be."""
    try:
        with Store(path, "numbered tasks") as kept:
            return kept.finished()
    except InputError:
        return {}
