"""Bars in a notebook: HTML in place, without ipywidgets and without Rich's warning about them."""

import re
import sys
from types import ModuleType, SimpleNamespace

import pytest

import frot
from frot.solvers import progress
from frot.solvers.progress import counting_bar


@pytest.fixture
def shown(monkeypatch) -> list[str]:
    """Stand in for IPython, and return what it was given to show."""
    pages: list[str] = []

    def display(page: str, display_id: bool) -> SimpleNamespace:
        assert display_id
        pages.append(page)
        return SimpleNamespace(update=pages.append)

    module = ModuleType("IPython.display")
    vars(module).update(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    return pages


def test_a_count_moves_and_goes(shown, capfd):
    with counting_bar("a < b", 4, 8.0, enabled=True, before=(1, 2.0)) as show:
        show(1, 2.0)
        show(2, 4.0)
    seen = [re.search(r'value="([\d.]+)".*> (\d/\d)', page) for page in shown[:-1]]
    assert [one and one.groups() for one in seen] == [
        ("0.2500", "1/4"),
        ("0.5000", "2/4"),
        ("1.0000", "4/4"),
    ]
    assert "a &lt; b" in shown[0]
    assert shown[-1] == ""
    assert capfd.readouterr() == ("", "")


def test_a_solve_shows_its_gap_and_clears_it_when_it_fails(shown):
    X, Y, groups = frot.toy(20)
    frot.solve(X, Y, groups, eta=1.0, progress=True)
    assert "solving" in shown[0]
    assert "gap" in shown[-2]
    with pytest.raises(RuntimeError, match="stop"), counting_bar("", 1, 1.0, enabled=True):
        raise RuntimeError("stop")
    assert shown[-1] == ""
