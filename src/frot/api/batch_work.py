"""The ascents of a batch: which members are solved, and with what proof."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot._base.contract import gap_floor, relative_gap
from frot._base.stopping import DeadlineError, deadline, no_deadline, seconds_left
from frot.costs.geometry import stand_ins
from frot.plans.combine import expand_plan
from frot.problem.bounds import Lower, Upper, is_rounding, refuse_contradiction
from frot.problem.result import Status
from frot.solvers.entropic.arcs import EntropicArcs, arcs_suit, plan_upper
from frot.solvers.entropic.entropic import without_eps
from frot.solvers.sinkhorn.ascent import Aim, Ascent
from frot.solvers.sinkhorn.certificate import Certificate, certify, certify_product, certify_rows
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.engine import take
from frot.solvers.sinkhorn.run import host_problem, proof_seconds
from frot.solvers.sinkhorn.terms import BatchTerms

# Members that may be done are proven, and dropped, once they are this share of the work.
DROP_AT = 0.2
# With an eps below this share of their scale members are solved alone from the start.
SMALL_EPS = 1e-3
# Times that a member's interior point is looked at before it is given up, and looks after its own
# plan is proven for that of its potentials to follow: with next to no eps it never does.
LOOKS, SPARE_LOOKS = 60, 3
# What a certificate says of a lower bound.
LOWER_PARTS = ("lower", "plain_lower", "slack", "alpha", "f", "g", "plain_f", "plain_g")


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
            self.name = f"FRWDLoss(tol={gradient}, max_iter={max_iter})"
        self.status: dict[int, Status] = {}
        self.iterations: dict[int, int] = {}
        # Of every member the best proof, and the row of it.
        self._proofs: dict[int, tuple[Certificate, int]] = {}
        # Plans that no potentials make, (n, m) on the host.
        self.plans: dict[int, np.ndarray] = {}
        self._floors = np.empty(0)

    def run(
        self, whole: DenseEngine, members: np.ndarray, start: tuple[np.ndarray, np.ndarray] | None
    ) -> None:
        """Solve some members of the batch, dropping those that are done on the way.

        What single precision leaves undone is taken up again in double, and what is left then is
        solved alone: on arcs, where an eps may be as small as it likes.

        `start` are weights (B, L) and potentials (B, m) of all members of the batch to begin with.
        """
        precise = whole.double()
        self._floors = _gap_floors(precise.terms)
        small, done = to_numpy(precise.terms.eps < SMALL_EPS * precise.terms.scale)[members, 0], 0
        # Arcs are for problems that keep their marginals.
        small = small & (not precise.terms.soft)
        try:
            left = members[~small]
            for engine in dict.fromkeys((whole, precise)):
                if len(left):
                    left, done = self._together(engine, left, done, start)
            if precise.terms.soft:
                self._stop(left, Status.STALLED, done)
                left = left[:0]
            for member in (*left, *members[small]):
                self._alone(precise, int(member), done)
        except DeadlineError:
            self._stop(members, Status.TIME_LIMIT, 0)
        bare = np.array([at for at in members if at not in self._proofs], dtype=int)
        if len(bare):
            proof = certify_product(precise.members(precise.terms.home.indices(bare)))
            self._proofs.update({int(at): (proof, row) for row, at in enumerate(bare)})

    def _gap(self, member: int, lower: float, upper: float) -> float:
        return relative_gap(lower, upper, float(self._floors[member]))

    def _together(
        self, whole: DenseEngine, members: np.ndarray, done: int, start: tuple | None
    ) -> tuple[np.ndarray, int]:
        """Climb; return who is left, and the steps made."""
        home, groups = whole.terms.home, whole.geometry.shape[1]
        alpha, g = np.full((len(members), groups), 1.0 / groups), None
        if start is not None:
            alpha, g = (home.bring(part[members]) for part in start)
        if len(members) < whole.geometry.shape[0]:
            whole = whole.members(home.indices(members))
        ascent = Ascent(whole, home.bring(alpha), g, tol=self.aim.sweeps)
        return self._climb(ascent, members, done)

    def _climb(self, ascent: Ascent, members: np.ndarray, done: int) -> tuple[np.ndarray, int]:
        """Climb until all are done, or nothing rises; return who is left, and the steps made."""
        climb, aim = iter(ascent), self.aim
        while True:
            terms = ascent.engine.terms
            n, m = terms.a.shape[1], terms.b.shape[1]
            reserve = proof_seconds(terms.home, len(members) * n * m)
            try:
                with deadline(seconds_left() - reserve):
                    at = next(climb, None)
            except DeadlineError:
                if ascent.at is not None and reserve > 0.0:
                    with no_deadline():
                        self._prove(ascent, members, np.ones(len(members), dtype=bool), done)
                self._stop(members, Status.TIME_LIMIT, done)
                raise
            if at is None:
                left = ~self._prove(ascent, members, np.ones(len(members), dtype=bool), done)
                return members[left], done
            done += 1
            near, ended = to_numpy(aim.near(terms, at)), done >= self.max_iter
            if not (ended or near.sum() > DROP_AT * len(near)):
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
                ascent.keep(terms.home.indices(np.flatnonzero(left)))

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
        engine, at, rows = ascent.engine, ascent.at, np.flatnonzero(asked)
        assert isinstance(engine, DenseEngine)
        if len(rows) < len(members):
            index = engine.terms.home.indices(rows)
            engine, at = engine.members(index), take(engine.terms.home.xp, index, at)
        within = np.zeros(len(members), dtype=bool)
        enough = np.full(len(members), self.tol)
        if near is not None:
            enough[near] = self.aim.proven
        proof = certify(engine, at.alpha, at.g)
        within[rows] = self._judge(proof, members[rows], done, enough[rows], not ascent.single)
        return within

    def _judge(
        self,
        proof: Certificate,
        members: np.ndarray,
        done: int,
        enough: np.ndarray | None = None,
        last: bool = True,
    ) -> np.ndarray:
        """Keep the proofs of members; return which of them need no better one.

        What rounding did may be what single precision made of potentials: only the `last` engine's
        proofs are as good as they get.
        """
        enough = np.full(len(members), self.tol) if enough is None else enough
        lower, upper, doubt = (
            to_numpy(part)
            for part in (proof.lower, proof.upper, proof.upper - proof.value + proof.slack)
        )
        for row, member in enumerate(members.tolist()):
            if member in self._proofs:
                known, at = self._proofs[member]
                if float(known.upper[at] - known.lower[at]) < upper[row] - lower[row]:
                    continue
            self._proofs[member] = (proof, row)
            # Its plan is that of its potentials, whatever went before.
            self.plans.pop(member, None)
            if self._gap(member, float(lower[row]), float(upper[row])) <= enough[row]:
                self.status[member], self.iterations[member] = Status.CONVERGED, done
            elif last and is_rounding(upper[row] - lower[row], doubt[row]):
                self.status[member], self.iterations[member] = Status.STALLED, done
        return np.array([member in self.status for member in members.tolist()])

    def _alone(self, precise: DenseEngine, member: int, done: int) -> None:
        """Solve one member on arcs, if there is room for them."""
        engine = precise.members(precise.terms.home.indices([member]))
        host, rows, cols = host_problem(engine.geometry, engine.terms)
        if arcs_suit(host):
            state = EntropicArcs.begin(host, self.tol)
            home, f = engine.terms.home, np.full((1, engine.geometry.shape[2]), -np.inf)
            spare, best = SPARE_LOOKS, None
            for _ in range(LOOKS):
                while state.step() and done < self.max_iter:
                    done += 1
                f[0, rows] = state.potential()
                proof = certify_rows(engine, home.bring(state.weights()[None]), home.bring(f))
                if self._judge(proof, np.array([member]), done)[0]:
                    return
                plan, lower = plan_upper(host, state.plan()), float(proof.lower[0])
                best = proof if best is None or lower > float(best.lower[0]) else best
                spare -= self._gap(member, lower, plan.bound) <= self.tol
                gap = self._gap(member, lower, min(float(proof.upper[0]), plan.bound))
                if spare <= 0 or done >= self.max_iter or not state.aim(gap):
                    bound = {name: getattr(best, name) for name in LOWER_PARTS}
                    self._explicit(member, plan, bound, (rows, cols), done)
                    break
            if member in self.status:
                return
            done = self._from_without_eps(engine, member, (host, rows, cols), done)
            if member in self.status:
                return
        late = Status.MAX_ITER if done >= self.max_iter else Status.STALLED
        self._stop(np.array([member]), late, done)

    def _from_without_eps(self, engine: DenseEngine, member: int, parts: tuple, done: int) -> int:
        """Take what the problem without eps proves, and climb from there; return the steps made."""
        (host, rows, cols), lower = parts, None
        for offer in without_eps(host, self.tol):
            if member in self.status or done >= self.max_iter:
                return done
            done += 1
            lower = offer.lower or lower
            if offer.upper is not None and lower is not None:
                bring, shape = engine.terms.home.bring, engine.geometry.shape[2:]
                bound = _lower_parts(lower, (rows, cols), shape)
                bound = {name: bring(np.asarray(part)) for name, part in bound.items()}
                self._explicit(member, offer.upper, bound, (rows, cols), done)
        if member in self.status or lower is None:
            return done
        home, g = engine.terms.home, np.zeros((1, engine.geometry.shape[3]))
        g[0, cols] = lower.g
        places = stand_ins(engine.terms.b)
        g = g if places is None else g[:, places[0]]
        ascent = Ascent(engine, home.bring(lower.alpha[None]), home.bring(g), tol=self.aim.sweeps)
        return self._climb(ascent, np.array([member]), done)[1]

    def _explicit(
        self, member: int, plan: Upper, lower: dict[str, Any], kept: tuple[Any, Any], done: int
    ) -> None:
        """Take a plan that no potentials make, and a lower bound with it, if that is narrower.

        `lower` are the parts of a certificate that a bound consists of, each a batch of one.
        """
        proof, row = self._proofs[member]
        home = Home.of(proof.value)
        alone = {
            field.name: home.xp.take(getattr(proof, field.name), home.indices([row]), axis=0)
            for field in fields(Certificate)
        }
        width, explicit = float((alone["upper"] - alone["lower"])[0]), self.plans.get(member)
        if float(lower["lower"][0]) > float(alone["lower"][0]):
            alone |= lower
        least = float(alone["lower"][0])
        if explicit is None or plan.bound < float(alone["upper"][0]):
            shape = alone["f"].shape[1], alone["g"].shape[1]
            explicit = np.asarray(expand_plan(plan.plan, *kept, shape))
            numbers = {
                "value": [plan.value],
                "upper": [plan.bound],
                "plain_upper": [plan.plain],
                "phi": plan.phi[None],
            }
            alone |= {name: home.bring(np.asarray(number)) for name, number in numbers.items()}
        alone["value"] = home.xp.clip(alone["value"], least, None)
        if float(alone["upper"][0]) - least < width:
            self._judge(Certificate(**alone), np.array([member]), done)
            self.plans[member] = explicit

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
        found = Certificate(**parts)
        # What was proven without a step may be narrow enough.
        ends = (to_numpy(found.lower).tolist(), to_numpy(found.upper).tolist())
        for member, (lower, upper) in enumerate(zip(*ends, strict=True)):
            refuse_contradiction(lower, upper, f"member {member}")
            stopped = self.status[member] in (Status.INTERRUPTED, Status.STOPPED)
            if not stopped and self._gap(member, lower, upper) <= self.tol:
                self.status[member] = Status.CONVERGED
        return found


def _gap_floors(terms: BatchTerms) -> np.ndarray:
    """What the members' gaps are relative to at least, (B,); prices of mass are no scale here."""
    mass = np.minimum(to_numpy(terms.a).sum(axis=1), to_numpy(terms.b).sum(axis=1))
    means = to_numpy(terms.sizes).mean(axis=1).tolist()
    etas, epss = (to_numpy(amount)[:, 0].tolist() for amount in (terms.eta, terms.eps))
    return mass * np.array(list(map(gap_floor, means, etas, epss)))


def _lower_parts(lower: Lower, kept: tuple[Any, Any], shape: tuple[int, int]) -> dict[str, Any]:
    """Return what a certificate says of a lower bound of some points, which holds without eps."""
    f, g = np.zeros((1, shape[0])), np.zeros((1, shape[1]))
    f[0, kept[0]], g[0, kept[1]] = lower.f, lower.g
    return {
        "lower": [lower.bound],
        "plain_lower": [lower.bound],
        "slack": [lower.slack],
        "alpha": lower.alpha[None],
        "f": f,
        "g": g,
        "plain_f": f,
        "plain_g": g,
    }
