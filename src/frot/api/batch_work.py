"""The ascents of a batch: which members are solved, and with what proof."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot._base.contract import gap_floor, relative_gap
from frot._base.stopping import DeadlineError
from frot.problem.bounds import is_rounding, refuse_contradiction
from frot.problem.result import Status
from frot.solvers.entropic.ascent import Aim, Ascent
from frot.solvers.entropic.certificate import Certificate, certify, certify_start
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.point import take


class BatchWork:
    """The members' ascents: who is done, with what proof.

    Parameters
    ----------
    tol : float
        The gap to prove.
    gradient : float, optional
        Members whose gradients are as close need not prove a smaller gap: see `Aim`.
    """

    def __init__(
        self,
        tol: float,
        max_iter: int,
        time_limit: float | None,
        begin: float,
        gradient: float | None = None,
    ) -> None:
        self.tol, self.max_iter, self.time_limit, self.begin = tol, max_iter, time_limit, begin
        self.aim = Aim(tol, gradient)
        self.name = f"solve_batch(tol={tol}, max_iter={max_iter})"
        if gradient is not None:
            self.name = f"FRWDLoss(gradient_tol={gradient}, max_iter={max_iter})"
        self.status: dict[int, Status] = {}
        self.iterations: dict[int, int] = {}
        # Of every member the best proof, and the row of it.
        self._proofs: dict[int, tuple[Certificate, int]] = {}
        self._floors = np.empty(0)

    def run(
        self, whole: DenseEngine, members: np.ndarray, start: tuple[np.ndarray, np.ndarray] | None
    ) -> None:
        """Solve some members of the batch, dropping those that are done on the way.

        What single precision leaves undone goes on in double from where it was proven to be.

        `start` are weights (B, L) and potentials (B, m) of all members of the batch to begin with.
        """
        precise, groups = whole.double(), whole.costs.shape[1]
        self._floors = _gap_floors(precise.problem)
        alpha, g = np.full((len(members), groups), 1.0 / groups), None
        if start is not None:
            alpha, g = (part[members] for part in start)
        try:
            left, done = self._climb(self._ascent(whole, members, alpha, g), members, 0)
            if len(left) and precise is not whole:
                alpha, g = self._reached(left)
                left, done = self._climb(self._ascent(precise, left, alpha, g), left, done)
            self._stop(left, Status.STALLED, done)
        except DeadlineError:
            self._stop(members, Status.TIME_LIMIT, 0)
        bare = np.array([member for member in members if member not in self._proofs], dtype=int)
        if len(bare):
            proof = certify_start(precise.members(precise.problem.home.indices(bare)))
            self._proofs.update({int(member): (proof, row) for row, member in enumerate(bare)})

    def _gap(self, member: int, lower: float, upper: float) -> float:
        return relative_gap(lower, upper, float(self._floors[member]))

    def _ascent(
        self, whole: DenseEngine, members: np.ndarray, alpha: np.ndarray, g: np.ndarray | None
    ) -> Ascent:
        """Begin with weights and potentials of some members, (K, L) and (K, m)."""
        home = whole.problem.home
        if len(members) < whole.costs.shape[0]:
            whole = whole.members(home.indices(members))
        first = None if g is None else home.bring(g)
        return Ascent(whole, home.bring(alpha), first, tol=self.aim.sweeps)

    def _reached(self, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and potentials of the best proofs of members, (K, L) and (K, m)."""
        best = [self._proofs[member] for member in members.tolist()]
        alpha, g = (
            np.stack([to_numpy(getattr(proof, name)[row, :]) for proof, row in best])
            for name in ("alpha", "g")
        )
        return alpha, g

    def _climb(self, ascent: Ascent, members: np.ndarray, done: int) -> tuple[np.ndarray, int]:
        """Climb until all are done, or nothing rises; return who is left, and the steps made."""
        aim = self.aim
        while True:
            everyone = np.ones(len(members), dtype=bool)
            try:
                rising = ascent.advance()
            except DeadlineError:
                if ascent.point is not None:
                    self._prove(ascent, members, everyone, done)
                self._stop(members, Status.TIME_LIMIT, done)
                raise
            if not rising:
                left = ~self._prove(ascent, members, everyone, done)
                return members[left], done
            done += 1
            near, ended = (
                to_numpy(aim.near(ascent.engine.problem, ascent.point)),
                done >= self.max_iter,
            )
            # Members that may be done are proven, and dropped, once they are a fifth of the work.
            if not (ended or near.sum() > 0.2 * len(near)):
                continue
            left = ~self._prove(ascent, members, near | ended, done, near)
            if (near & left).any():
                aim = aim.tighter()
                ascent.tighten(aim.sweeps)
            if ended:
                self._stop(members[left], Status.MAX_ITER, done)
                return members[:0], done
            if not left.all():
                members = members[left]
                if not len(members):
                    return members, done
                ascent.keep(ascent.engine.problem.home.indices(np.flatnonzero(left)))

    def _prove(
        self,
        ascent: Ascent,
        members: np.ndarray,
        asked: np.ndarray,
        done: int,
        near: np.ndarray | None = None,
    ) -> np.ndarray:
        """Certify some members; return which are done.

        Those that are `near` what was aimed at need no smaller gap than that.
        """
        engine, point, rows = ascent.engine, ascent.point, np.flatnonzero(asked)
        assert isinstance(engine, DenseEngine)
        if len(rows) < len(members):
            index = engine.problem.home.indices(rows)
            engine, point = engine.members(index), take(engine.problem.home.xp, index, point)
        within = np.zeros(len(members), dtype=bool)
        enough = np.full(len(members), self.tol)
        if near is not None:
            enough[near] = self.aim.proven
        proof = certify(engine, point.alpha, point.g)
        within[rows] = self._judge(proof, members[rows], done, enough[rows], not ascent.single)
        return within

    def _judge(
        self,
        proof: Certificate,
        members: np.ndarray,
        done: int,
        enough: np.ndarray,
        last: bool,
    ) -> np.ndarray:
        """Keep the proofs of members; return which of them need no better one.

        What rounding did may be what single precision made of potentials: only the `last` engine's
        proofs are as good as they get.
        """
        lower, upper, doubt = (
            to_numpy(part)
            for part in (proof.lower, proof.upper, proof.upper - proof.value + proof.slack)
        )
        for row, member in enumerate(members.tolist()):
            if member in self._proofs:
                known, old = self._proofs[member]
                if float(known.upper[old] - known.lower[old]) < upper[row] - lower[row]:
                    continue
            self._proofs[member] = (proof, row)
            if self._gap(member, float(lower[row]), float(upper[row])) <= enough[row]:
                self.status[member], self.iterations[member] = Status.CONVERGED, done
            elif last and is_rounding(upper[row] - lower[row], doubt[row]):
                self.status[member], self.iterations[member] = Status.STALLED, done
        return np.array([member in self.status for member in members.tolist()])

    def _stop(self, members: np.ndarray, status: Status, done: int) -> None:
        for member in members.tolist():
            self.status.setdefault(member, status)
            self.iterations.setdefault(member, done)

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
        whole = Certificate(**parts)
        # The bounds of the start may be within the tolerance already.
        ends = (to_numpy(whole.lower).tolist(), to_numpy(whole.upper).tolist())
        for member, (lower, upper) in enumerate(zip(*ends, strict=True)):
            refuse_contradiction(lower, upper, f"member {member}")
            stopped = self.status[member] in (Status.INTERRUPTED, Status.STOPPED)
            if not stopped and self._gap(member, lower, upper) <= self.tol:
                self.status[member] = Status.CONVERGED
        return whole


def _gap_floors(problem: EntropicProblem) -> np.ndarray:
    """What the members' gaps are relative to at least, (B,); prices of mass are no scale here."""
    mass = np.minimum(to_numpy(problem.a).sum(axis=1), to_numpy(problem.b).sum(axis=1))
    means = to_numpy(problem.sizes).mean(axis=1).tolist()
    etas, epss = (to_numpy(amount)[:, 0].tolist() for amount in (problem.eta, problem.eps))
    return mass * np.array(list(map(gap_floor, means, etas, epss)))
