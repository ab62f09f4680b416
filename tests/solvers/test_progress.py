import re

import pytest

import frot
from frot.datasets import toy
from frot.solvers import progress
from frot.solvers.progress import counting_bar


def test_where_there_is_no_terminal_a_count_is_written_in_lines(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.0)
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
    frot.solve(*toy(30), progress=True, tol=1e-8)
    first = capsys.readouterr().err.splitlines()
    assert first
    assert all(re.match(r"solving: gap \S+ \(to 1e-08\), 0:00:", line) for line in first)
