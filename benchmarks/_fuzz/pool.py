"""Cases spread over processes that are watched: one that hangs is ended, and named.

A case is judged in two steps: what the call did by itself, and then whether its answer is right. A
call that is never heard of hangs, and that is a failure; a referee who takes too long to compute
the answer again says nothing about the call, which is then undecided.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from .judge import Verdict
from .judge_result import Complaint

__all__ = ["Outcome", "run_cases"]

# Seconds after which a call is given up, and a referee. A busy machine needs more than the work.
GIVE_UP = 90.0
REFEREE = 180.0
# And a process that does not begin; what it says when it has loaded everything.
BEGIN, READY = 300.0, "ready"


class Outcome(NamedTuple):
    """The verdict on a case: its number, its kind, its function, and how to make it again."""

    number: int
    kind: str
    door: str
    verdict: Verdict
    code: str

    def without(self, ignored: frozenset[str]) -> Outcome:
        """Leave out complaints that are known."""
        left = tuple(c for c in self.verdict.complaints if c.what not in ignored)
        if len(left) == len(self.verdict.complaints):
            return self
        outcome = self.verdict.outcome if left else "ignored"
        return self._replace(verdict=replace(self.verdict, outcome=outcome, complaints=left))

    def to_json(self) -> str:
        """The outcome on one line."""
        complaints = [complaint._asdict() for complaint in self.verdict.complaints]
        parts = {"number": self.number, "kind": self.kind, "door": self.door}
        return json.dumps({**parts, "complaints": complaints, "code": self.code})


# Yields what can be said after the call alone, and then the verdict.
Judge = Callable[[int], Iterator[Outcome]]


def run_cases(
    make_judge: Callable[[], Judge],
    name: Callable[[int], str],
    numbers: Iterable[int],
    jobs: int,
    give_up: float = GIVE_UP,
    referee: float = REFEREE,
) -> Iterator[Outcome]:
    """Yield the outcomes of cases as they come.

    `make_judge` is called once in each process; `name` tells the kind of a case that was never
    heard of again.
    """
    context = multiprocessing.get_context("spawn")
    left = iter(numbers)
    workers = [_Worker.start(context, make_judge) for _ in range(jobs)]
    try:
        for worker in workers:
            worker.give(left)
        while any(worker.number is not None for worker in workers):
            busy = {worker.pipe: worker for worker in workers if worker.number is not None}
            for pipe in wait(list(busy), timeout=1.0):
                worker = busy[pipe]  # type: ignore[index]
                try:
                    if (said := worker.pipe.recv()) is not None:
                        worker.heard(said)
                        continue
                    # That was all: what was said last holds.
                    assert worker.so_far is not None
                    yield worker.so_far
                    worker.give(left)
                except EOFError:
                    yield _lost(worker, name, "crashed", f"exit code {worker.process.exitcode}")
                    workers[workers.index(worker)] = _Worker.restart(
                        worker, context, make_judge, left
                    )
            for worker in list(workers):
                if worker.number is not None and worker.is_late(give_up, referee):
                    hangs = _lost(worker, name, "hangs", f"no answer after {give_up:.0f} s")
                    yield worker.so_far or hangs
                    workers[workers.index(worker)] = _Worker.restart(
                        worker, context, make_judge, left
                    )
    finally:
        for worker in workers:
            worker.end()


def _lost(worker: _Worker, name: Callable[[int], str], what: str, detail: str) -> Outcome:
    assert worker.number is not None
    verdict = Verdict("FAILURE", (Complaint(what, detail),), GIVE_UP)
    return Outcome(worker.number, name(worker.number), "", verdict, "")


@dataclass(eq=False)
class _Worker:
    """A process, the pipe to it, the case it is at, and what it has said of that one so far."""

    process: Any
    pipe: Connection
    number: int | None = None
    since: float = 0.0
    ready: bool = False
    so_far: Outcome | None = None

    @classmethod
    def start(cls, context: Any, make_judge: Callable[[], Judge]) -> _Worker:
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(there, make_judge), daemon=True)
        process.start()
        there.close()
        return cls(process, here)

    @classmethod
    def restart(
        cls, old: _Worker, context: Any, make_judge: Callable[[], Judge], left: Iterator[int]
    ) -> _Worker:
        old.end()
        new = cls.start(context, make_judge)
        new.give(left)
        return new

    def give(self, left: Iterator[int]) -> None:
        """Hand out the next case, if there is one."""
        self.number = next(left, None)
        self.since, self.so_far = time.monotonic(), None
        if self.number is not None:
            self.pipe.send(self.number)

    def heard(self, said: Outcome | str) -> None:
        """Note that the process can begin, or that the call has ended and the referee begun."""
        self.since, self.ready = time.monotonic(), True
        self.so_far = said if isinstance(said, Outcome) else None

    def is_late(self, give_up: float, referee: float) -> bool:
        """Whether to give up the call, or the referee; a process may take its time to begin."""
        limit = referee if self.so_far is not None else give_up if self.ready else BEGIN
        return time.monotonic() > self.since + limit

    def end(self) -> None:
        """End the process."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(pipe: Connection, make_judge: Callable[[], Judge]) -> None:
    """Judge cases until nobody asks any more."""
    judge = make_judge()
    pipe.send(READY)
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            return
        try:
            for said in judge(number):
                pipe.send(said)
        except Exception:
            # The referee's own mistakes are mistakes, too; never to be taken for a pass.
            detail = traceback.format_exc(limit=-4).replace(os.sep, "/")
            verdict = Verdict("FAILURE", (Complaint("referee", detail),))
            pipe.send(Outcome(number, "referee", "", verdict, ""))
        pipe.send(None)
