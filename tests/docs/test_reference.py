"""Every public name has a page of the reference, and every page a name."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

API = Path(__file__).resolve().parents[2] / "docs" / "api"
MODULES = {
    "frot": "frot",
    "costs": "frot.costs",
    "selection": "frot.selection",
    "correspondence": "frot.correspondence",
    "torch": "frot.torch",
    "datasets": "frot.datasets",
}


@pytest.mark.parametrize("page", MODULES)
def test_every_public_name_is_listed(page):
    module = importlib.import_module(MODULES[page])
    text = (API / f"{page}.md").read_text(encoding="utf-8")
    listed = re.findall(rf"^   {re.escape(MODULES[page])}\.(\w+)$", text, re.M)
    # Modules have a page of their own kind.
    assert set(listed) == set(module.__all__) - MODULES.keys()
    assert len(listed) == len(set(listed))
