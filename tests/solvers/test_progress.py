"""Bars in a notebook are HTML in place, without ipywidgets; in a file they are lines."""

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


def test_where_there_is_no_terminal_a_count_is_written_in_lines(capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINE_PAUSE", 0.0)
    with counting_bar("pairs", 5, 10.0, enabled=True, before=(1, 2.0)) as show:
        for _ in range(4):
            show(1, 2.0)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"pairs: {k}/5" for k in range(1, 6)]
    assert re.fullmatch(r"pairs: 2/5, \d:\d\d:\d\d left, \d:\d\d:\d\d", lines[1])
    assert "left" not in lines[0] + lines[-1]


def test_lines_keep_their_distance_and_the_last_is_written(capsys):
    def stopped():
        with counting_bar("pairs", 99, 99, enabled=True) as show:
            for _ in range(50):
                show(1, 1.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["pairs: 0/99", "pairs: 50/99"]


def test_a_solver_says_its_gap_in_lines(capsys):
    frot.solve(*frot.toy(30), progress=True, tol=1e-8)
    first = capsys.readouterr().err.splitlines()
    assert first
    assert all(re.match(r"solving: gap \S+ \(to 1e-08\), 0:00:", line) for line in first)
