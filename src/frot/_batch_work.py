"""The ascents of a batch: who is done, with what proof."""

from __future__ import annotations

import time
from dataclasses import fields

import numpy as np

from frot._arrays import Home, to_numpy
from frot._bounds import relative_gap
from frot._entropic._ascent import Ascent
from frot._entropic._certificate import Certificate, certify
from frot._entropic._dense import DenseEngine
from frot._entropic._engine import distances, take
from frot._status import Status

__all__ = ["BatchWork"]

# Members that may be done are proven, and dropped, once they are this share of the work.
DROP_AT = 0.2
# Intervals of so few times what rounding may have done cannot be narrowed any more.
WITHIN_DOUBT = 4.0


class BatchWork:
    """The members' ascents: who is done, with what proof."""

    def __init__(self, tol: float, max_iter: int, time_limit: float | None, begin: float) -> None:
        self.tol, self.max_iter, self.begin = tol, max_iter, begin
        self.until = np.inf if time_limit is None else begin + time_limit
        self.status: dict[int, Status] = {}
        self.iterations: dict[int, int] = {}
        # Of every member the latest proof, and the row of it.
        self._proofs: dict[int, tuple[Certificate, int]] = {}

    def run(self, whole: DenseEngine, members: np.ndarray) -> None:
        """Solve some members of the batch, dropping those that are done on the way.

        What single precision leaves undone is taken up again in double; and since a hard member
        may hurry the others to Newton steps too early, what is left then is solved alone.
        """
        precise = whole.double()
        left, done = self._together(whole, members, 0)
        if len(left) and precise is not whole:
            left, done = self._together(precise, left, done)
        for member in left:
            last, steps = np.array([member]), done
            if len(members) > 1:
                last, steps = self._together(precise, last, done)
            self._stop(last, Status.STALLED, steps)

    def _together(
        self, whole: DenseEngine, members: np.ndarray, done: int
    ) -> tuple[np.ndarray, int]:
        """Climb from nothing; return who is left, and the steps made."""
        home, groups = whole.terms.home, whole.geometry.shape[1]
        if len(members) < whole.geometry.shape[0]:
            whole = whole.members(home.indices(members))
        alpha = home.bring(np.full((len(members), groups), 1.0 / groups))
        return self._climb(Ascent(whole, alpha, tol=self.tol), members, done)

    def _climb(self, ascent: Ascent, members: np.ndarray, done: int) -> tuple[np.ndarray, int]:
        """Climb until all are done, or nothing rises; return who is left, and the steps made."""
        home = ascent.engine.terms.home
        for at in ascent:
            done += 1
            near = to_numpy(distances(ascent.engine.terms, at) <= self.tol)
            ended = done >= self.max_iter or time.perf_counter() > self.until
            if not (ended or near.sum() > DROP_AT * len(near)):
                continue
            left = ~self._prove(ascent, members, near | ended, done)
            if ended:
                late = Status.MAX_ITER if done >= self.max_iter else Status.TIME_LIMIT
                self._stop(members[left], late, done)
                return members[:0], done
            if not left.all():
                members = members[left]
                if not len(members):
                    return members, done
                ascent.keep(home.indices(np.flatnonzero(left)))
        left = ~self._prove(ascent, members, np.ones(len(members), dtype=bool), done)
        return members[left], done

    def _prove(
        self, ascent: Ascent, members: np.ndarray, asked: np.ndarray, done: int
    ) -> np.ndarray:
        """Certify some members; return which are done."""
        engine, at, rows = ascent.engine, ascent.at, np.flatnonzero(asked)
        assert isinstance(engine, DenseEngine)
        if len(rows) < len(members):
            index = engine.terms.home.indices(rows)
            engine, at = engine.members(index), take(engine.terms.home.xp, index, at)
        proof = certify(engine, at.alpha, at.g)
        lower, upper, doubt = (
            to_numpy(part)
            for part in (proof.lower, proof.upper, proof.upper - proof.value + proof.slack)
        )
        within = np.zeros(len(members), dtype=bool)
        for at_row, row in enumerate(rows):
            member = int(members[row])
            self._proofs[member] = (proof, at_row)
            if relative_gap(float(lower[at_row]), float(upper[at_row])) <= self.tol:
                self.status[member], self.iterations[member] = Status.CONVERGED, done
            elif upper[at_row] - lower[at_row] <= WITHIN_DOUBT * doubt[at_row]:
                self.status[member], self.iterations[member] = Status.PRECISION, done
            within[row] = member in self.status
        return within

    def _stop(self, members: np.ndarray, status: Status, done: int) -> None:
        for member in members:
            self.status[int(member)], self.iterations[int(member)] = status, done

    def assembled(self, count: int) -> Certificate:
        """Put the members' proofs together again."""
        proofs = list({id(proof): proof for proof, _ in self._proofs.values()}.values())
        home = Home.of(proofs[0].value)
        starts = np.cumsum([0] + [proof.value.shape[0] for proof in proofs])
        first = {id(proof): int(start) for proof, start in zip(proofs, starts, strict=False)}
        latest = (self._proofs[member] for member in range(count))
        index = home.indices([first[id(proof)] + row for proof, row in latest])
        parts = {}
        for field in fields(Certificate):
            every = [getattr(proof, field.name) for proof in proofs]
            joined = every[0] if len(every) == 1 else home.xp.concat(every, axis=0)
            parts[field.name] = home.xp.take(joined, index, axis=0)
        return Certificate(**parts)
