"""Throw the problems that people have at frot, and check everything it answers.

    python benchmarks/fuzz.py --n 20000 --seed 0 --jobs 2
    python benchmarks/fuzz.py --seed 0 --only 137            # one case again, with its traceback
    python benchmarks/fuzz.py --n 500 --kind "light points"  # one kind of problem
    python benchmarks/fuzz.py --ignore plan --log found.json # without complaints that are known

A call inside the contract (`docs/contract.md`) must be answered, and the answer must hold up: an
interval that holds the optimum, which is computed again in rational numbers or to 60 digits; a plan
whose marginals are right to the last places of every weight; potentials that prove the lower bound;
a status that says whether the gap is within the tolerance, and a `frot.ConvergenceWarning` if it is
not. How many are not is counted by kind, and is no failure. A call outside must raise
`frot.InputError` with its sentence. Nothing may warn of anything else, print, hang, or change what
it was passed. Everything else is a failure, printed with the command that makes it again, and ends
in exit code 1. An answer that could not be computed again in time is undecided.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import IO

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from _fuzz.attempt import make_attempt
from _fuzz.case import Case
from _fuzz.doors import KINDS, draw_case
from _fuzz.judge import judge, judge_manners
from _fuzz.outside import outside_case
from _fuzz.pool import Judge, Outcome, run_cases
from _fuzz.report import Tally, show_failure

# This share of the calls is just outside the contract.
OUTSIDE = 0.06


def kind_of(seed: int, number: int) -> str:
    """Return the kind of a case: all kinds in turn, and some calls from outside in between."""
    if np.random.default_rng([seed, number, 1]).random() < OUTSIDE:
        return "outside"
    return KINDS[number % len(KINDS)]


def make_case(seed: int, number: int) -> Case:
    """Return the case that a seed and a number stand for."""
    kind, rng = kind_of(seed, number), np.random.default_rng([seed, number])
    return outside_case(rng) if kind == "outside" else draw_case(rng, kind)


def judge_steps(seed: int, number: int) -> Iterator[Outcome]:
    """Make the call of a case; yield what can be said without a referee, and then the verdict."""
    case = make_case(seed, number)
    attempt = make_attempt(case)
    for look in (judge_manners, judge):
        verdict = look(case, attempt)
        code = case.code() if verdict.failed else ""
        yield Outcome(number, case.kind, case.door, verdict, code)


def judge_case(seed: int, number: int) -> Outcome:
    """Make the call of a case, and judge it, however long that takes."""
    *_, outcome = judge_steps(seed, number)
    return outcome


def make_judge(seed: int) -> Judge:
    """Return what judges cases, after the libraries that are imported late were imported."""
    drawn = (draw_case(np.random.default_rng([0, number]), "plain points") for number in range(60))
    for case in {case.door: case for case in drawn}.values():
        make_attempt(case)
    return partial(judge_steps, seed)


def first_cases(seed: int, amount: int, kinds: list[str]) -> list[int]:
    """Return the numbers of the first cases, of some kinds only if these are given."""
    every = (number for number in count() if not kinds or kind_of(seed, number) in kinds)
    return list(islice(every, amount))


def run(
    seed: int,
    numbers: list[int],
    jobs: int,
    console: Console,
    *,
    seconds: float | None = None,
    ignored: frozenset[str] = frozenset(),
    log: IO[str] | None = None,
) -> Tally:
    """Judge cases, as many as `seconds` allow, and print every failure that is not ignored."""
    columns = (TextColumn("fuzzing"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    tally, begin = Tally(), time.perf_counter()
    outcomes = run_cases(partial(make_judge, seed), partial(kind_of, seed), numbers, jobs)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(numbers))
        for outcome in outcomes:
            outcome = outcome.without(ignored)
            tally.add(outcome)
            if log is not None and outcome.verdict.failed:
                print(outcome.to_json(), file=log, flush=True)
            if outcome.verdict.failed:
                show_failure(console, outcome, seed)
            bar.advance(task)
            if seconds is not None and time.perf_counter() - begin > seconds:
                break
    outcomes.close()  # type: ignore[attr-defined]
    return tally


def repeat(seed: int, number: int, console: Console) -> int:
    """Judge one case in this process, with everything there is to see."""
    case = make_case(seed, number)
    console.print(f"{case.kind} {case.sentence}", style="bold", markup=False)
    console.print(case.code(), markup=False)
    attempt = make_attempt(case)
    if attempt.error is not None:
        traceback.print_exception(attempt.error)
    else:
        console.print(attempt.answer, markup=False)
    verdict = judge(case, attempt)
    console.print(f"{verdict.outcome} in {verdict.seconds:.3f} s", style="bold")
    for complaint in verdict.complaints:
        console.print(f"  {complaint.what}: {complaint.detail}", markup=False)
    return int(verdict.failed)


def main(arguments: list[str] | None = None) -> int:
    """Read the options, fuzz, and return 1 if anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=2000, help="calls to make (2000)")
    parser.add_argument("--skip", type=int, default=0, help="so many of these, from the first (0)")
    parser.add_argument("--seed", type=int, default=0, help="of the cases (0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--seconds", type=float, help="stop after this long")
    parser.add_argument("--only", type=int, help="run only the case of this number")
    parser.add_argument("--log", type=Path, help="write failures to this file, as lines of JSON")
    known = "leave out this complaint, by its word in the table; may be given again"
    parser.add_argument("--ignore", action="append", default=[], metavar="WORD", help=known)
    kinds = ("outside", *KINDS)
    only = f"only this kind; may be given again: {', '.join(kinds)}"
    parser.add_argument("--kind", action="append", default=[], help=only)
    options = parser.parse_args(arguments)
    console = Console(width=200 if not sys.stdout.isatty() else None, soft_wrap=True)
    if unknown := set(options.kind) - set(kinds):
        parser.error(f"no kind {', '.join(map(repr, sorted(unknown)))}")
    if options.only is not None:
        return repeat(options.seed, options.only, console)
    begin = time.perf_counter()
    numbers = first_cases(options.seed, options.n, options.kind)[options.skip :]
    with open(options.log or os.devnull, "w", encoding="utf-8") as log:
        tally = run(
            options.seed, numbers, options.jobs, console,
            seconds=options.seconds, ignored=frozenset(options.ignore), log=log,
        )  # fmt: skip
    tally.show(console, f"seed {options.seed}, {time.perf_counter() - begin:.0f} s")
    return int(tally.failures > 0)


if __name__ == "__main__":
    sys.exit(main())
