"""Processes that are watched: what hangs, dies or is the referee's own mistake has a name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from benchmarks._fuzz.judge import Verdict
from benchmarks._fuzz.pool import Judge, Outcome, run_cases


def judge_number(number: int) -> Iterator[Outcome]:
    """A judge that hangs, dies, is wrong or takes his time where the number says so."""
    if number == 1:
        time.sleep(600.0)
    if number == 3:
        os._exit(9)
    yield Outcome(number, "plain", "solve", Verdict("undecided"), "")
    if number == 4:
        raise KeyError("a mistake of the referee")
    if number == 5:
        time.sleep(600.0)
    yield Outcome(number, "plain", "solve", Verdict("converged"), "")


def make_judge() -> Judge:
    return judge_number


def name(number: int) -> str:
    return f"kind {number}"


def test_every_case_has_an_outcome():
    begin = time.monotonic()
    outcomes = run_cases(make_judge, name, range(7), 2, give_up=2.0, referee=2.0)
    found = {one.number: one for one in outcomes}
    assert set(found) == set(range(7))
    words = {at: [c.what for c in one.verdict.complaints] for at, one in found.items()}
    assert words == {0: [], 1: ["hangs"], 2: [], 3: ["crashed"], 4: ["referee"], 5: [], 6: []}
    assert found[1].kind == "kind 1"
    # The call was answered; that the referee never was is none of its faults.
    assert found[5].verdict.outcome == "undecided"
    assert found[6].verdict.outcome == "converged"
    assert time.monotonic() - begin < 250.0


def test_a_run_that_is_left_leaves_no_process():
    outcomes = run_cases(make_judge, name, [0, 2, 1], 1, give_up=60.0)
    assert next(outcomes).number == 0
    outcomes.close()  # type: ignore[attr-defined]
