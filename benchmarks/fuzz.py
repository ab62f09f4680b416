"""Throw random problems and random mistakes at frot, and check everything it answers.

    python benchmarks/fuzz.py --n 2000 --seed 0
    python benchmarks/fuzz.py --seed 0 --only 137        # one case again, with its traceback

A well-formed problem must be answered, and the answer must hold up: a proven interval that holds
the optimum, a feasible plan, feasible potentials. A mistake must raise `frot.InputError`. Anything
else is a failure, printed with the command that makes it again.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import frot
from _fuzz_cases import Case, random_case
from _fuzz_checks import complaints
from _fuzz_malformed import malformed_case

# This share of the calls is wrong on purpose.
MALFORMED = 0.2
# A small problem that takes longer than this is worth a look.
SLOW = 10.0


class Outcome(NamedTuple):
    """How a case went: a word for the table, and what to say about it."""

    kind: str
    detail: str = ""

    @property
    def failed(self) -> bool:
        """Whether the library did something it must not do."""
        return self.kind.startswith("FAILURE")


def make_case(seed: int, index: int) -> Case:
    """Return the case that a seed and a number stand for."""
    rng = np.random.default_rng([seed, index])
    return malformed_case(rng) if rng.random() < MALFORMED else random_case(rng)


def try_case(case: Case) -> Outcome:
    """Run a case and judge what comes back."""
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("default", frot.ConvergenceWarning)
            with warnings.catch_warnings(record=True) as warned:
                answer = case.run()
    except frot.InputError as error:
        if case.complaint:
            return Outcome("typed error")
        return Outcome("FAILURE: refused", f"InputError: {error}")
    except Exception as error:
        return Outcome("FAILURE: raised", f"{type(error).__name__}: {error}")
    if case.complaint:
        return Outcome("FAILURE: accepted", f"{case.complaint} gave {answer!r}")
    if case.call == "distance" and warned:
        return Outcome("certified, wide", str(warned[0].message))
    try:
        found = complaints(case, answer)
    except AssertionError as error:
        return Outcome("no reference", str(error))
    if found:
        return Outcome("FAILURE: wrong", "; ".join(found))
    seconds = time.perf_counter() - begin
    if seconds > SLOW:
        return Outcome("FAILURE: slow", f"took {seconds:.1f} s")
    if isinstance(answer, float) or answer.status.ok:
        return Outcome("certified, converged")
    limited = {"max_iter", "time_limit", "callback", "tol"} & set(case.options)
    if "Frank" in answer.solver or limited:
        return Outcome("certified, limited")
    return Outcome("certified, wide", f"{answer.status}, gap {answer.gap:.2e}, {answer.solver}")


def run(seed: int, count: int, seconds: float | None, console: Console) -> Counter[str]:
    """Try `count` cases, or as many as `seconds` allow, and print every failure."""
    columns = (TextColumn("fuzzing"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    tally: Counter[str] = Counter()
    begin = time.perf_counter()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=count)
        for index in range(count):
            case = make_case(seed, index)
            outcome = try_case(case)
            tally[outcome.kind] += 1
            if outcome.detail:
                console.print(f"{outcome.kind} --seed {seed} --only {index}", style="bold")
                console.print(f"  {case.complaint or case.describe()}", markup=False)
                console.print(f"  {outcome.detail}", markup=False)
            bar.advance(task)
            if seconds is not None and time.perf_counter() - begin > seconds:
                break
    return tally


def show(tally: Counter[str], seed: int, seconds: float, console: Console) -> None:
    """Print how often each outcome was seen."""
    table = Table(title=f"{tally.total()} calls in {seconds:.0f} s, seed {seed}")
    table.add_column("outcome")
    table.add_column("calls", justify="right")
    for kind, times in sorted(tally.items()):
        table.add_row(kind, str(times))
    console.print(table)
    certified = sum(times for kind, times in tally.items() if kind.startswith("certified"))
    failures = sum(times for kind, times in tally.items() if kind.startswith("FAILURE"))
    console.print(
        f"certified answers {certified}, typed errors {tally['typed error']}, failures {failures}"
    )


def repeat(seed: int, index: int, console: Console) -> int:
    """Run one case alone, with everything there is to see."""
    case = make_case(seed, index)
    console.print(case.complaint or case.describe(), markup=False)
    try:
        console.print(case.run(), markup=False)
    except Exception:
        traceback.print_exc()
    outcome = try_case(case)
    console.print(f"{outcome.kind} {outcome.detail}", markup=False)
    return int(outcome.failed)


def main(arguments: list[str] | None = None) -> int:
    """Read the options, fuzz, and return 1 if anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=2000, help="calls to make (2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the cases (0)")
    parser.add_argument("--seconds", type=float, help="stop after this long")
    parser.add_argument("--only", type=int, help="run only the case of this number")
    options = parser.parse_args(arguments)
    console = Console(width=140, soft_wrap=True)
    if options.only is not None:
        return repeat(options.seed, options.only, console)
    begin = time.perf_counter()
    tally = run(options.seed, options.n, options.seconds, console)
    show(tally, options.seed, time.perf_counter() - begin, console)
    return int(any(kind.startswith("FAILURE") for kind in tally))


if __name__ == "__main__":
    sys.exit(main())
