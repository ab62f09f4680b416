"""The ascents of a batch: who is done, with what proof."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any

import numpy as np

from frot._arrays import Home, to_numpy
from frot._bounds import relative_gap
from frot._entropic._ascent import ascend
from frot._entropic._certificate import Certificate, certify
from frot._entropic._dense import DenseEngine
from frot._status import Status

__all__ = ["BatchWork"]

# Members that are done are dropped from the work once they are this share of it.
DROP_AT = 0.5


class BatchWork:
    """The members' ascents: who is done, with what proof."""

    def __init__(self, tol: float, max_iter: int, time_limit: float | None, begin: float) -> None:
        self.tol, self.max_iter = tol, max_iter
        self.until = np.inf if time_limit is None else begin + time_limit
        self.status: dict[int, Status] = {}
        self.iterations: dict[int, int] = {}
        self._proofs: dict[int, tuple[Certificate, int]] = {}

    def run(self, whole: DenseEngine, members: np.ndarray) -> None:
        """Solve some members of the batch, dropping those that are done on the way."""
        home = whole.terms.home
        groups = whole.geometry.shape[1]
        alpha, g, done = home.bring(np.full((len(members), groups), 1.0 / groups)), None, 0
        while len(members):
            engine = whole
            if len(members) < whole.geometry.shape[0]:
                engine = whole.members(home.indices(members))
            left, at, done = self._climb(engine, members, alpha, g, done)
            keep = home.indices(np.flatnonzero(left))
            members = members[left]
            if len(members):
                alpha = home.xp.take(at.alpha, keep, axis=0)
                g = home.xp.take(at.g, keep, axis=0)

    def _climb(
        self, engine: DenseEngine, members: np.ndarray, alpha: Any, g: Any, done: int
    ) -> tuple[np.ndarray, Any, int]:
        """Climb until enough members are done; return who is left, where, and the steps made."""
        xp = engine.terms.home.xp
        left = np.ones(len(members), dtype=bool)
        at: Any = None
        for at in ascend(engine, alpha, g, self.tol):
            done += 1
            gap = (at.primal - at.dual) / xp.maximum(xp.abs(at.primal), xp.abs(at.dual))
            ended = done >= self.max_iter or time.perf_counter() > self.until
            near = to_numpy(gap <= self.tol) & left
            if near.sum() > DROP_AT * left.sum() or (near == left).all() or ended:
                left &= ~self._prove(engine, members, at, near | ended, done)
                if ended:
                    late = Status.MAX_ITER if done >= self.max_iter else Status.TIME_LIMIT
                    self._stop(members[left], late, done)
                    return np.zeros_like(left), at, done
                if left.sum() <= DROP_AT * len(left):
                    return left, at, done
        self._prove(engine, members, at, left, done)
        self._stop(members[left], Status.STALLED, done)
        return np.zeros_like(left), at, done

    def _prove(
        self, engine: DenseEngine, members: np.ndarray, at: Any, asked: np.ndarray, done: int
    ) -> np.ndarray:
        """Certify a point; return which members are within the tolerance."""
        proof = certify(engine, at)
        lower, upper = to_numpy(proof.lower), to_numpy(proof.upper)
        within = np.zeros(len(members), dtype=bool)
        for row in np.flatnonzero(asked):
            member = int(members[row])
            self._proofs[member] = (proof, int(row))
            if relative_gap(float(lower[row]), float(upper[row])) <= self.tol:
                within[row] = True
                self.status[member], self.iterations[member] = Status.CONVERGED, done
        return within

    def _stop(self, members: np.ndarray, status: Status, done: int) -> None:
        for member in members:
            if self.status.get(int(member)) is not Status.CONVERGED:
                self.status[int(member)], self.iterations[int(member)] = status, done

    def assembled(self, count: int) -> Certificate:
        """Put the members' proofs together again."""
        first, _ = self._proofs[0]
        if all(self._proofs[at] == (first, at) for at in range(count)):
            return first
        xp = Home.of(first.value).xp
        parts = {
            field.name: xp.stack(
                [getattr(proof, field.name)[row, ...] for proof, row in self._ordered(count)]
            )
            for field in fields(Certificate)
        }
        return Certificate(**parts)

    def _ordered(self, count: int) -> list[tuple[Certificate, int]]:
        return [self._proofs[at] for at in range(count)]
