r"""Two clouds of points with each other, and each with itself, by fused kernels: for losses.

A debiased loss is three problems on two clouds. In units of log 2, with scaled points z (see
`_fused`) and potentials without the points' norms, :math:`s_j = u\, g_j - |z_j|^2 / 2`, an update
is

.. math:: s_i \leftarrow -\log_2 \sum_j b_j\, 2^{z_i \cdot z_j + s_j} ,

for x from y, for y from x, and for a cloud with itself half the way. All of them are tiles of one
launch, potentials are one vector: x and y of the clouds with each other, then x and y of those with
themselves. Nothing of size n m is written.

**When to stop** is the rule of `Aim`: the mass e in wrong columns and the regret r of the weights
make a gradient that is off by :math:`4 e s / F + 4 \sqrt r`, measured. What is proven is that the
plan :math:`\Pi` of potentials and weights whose dual value is D differs from the best one by

.. math:: \varepsilon\, \mathrm{KL}(\Pi^* | \Pi) + \eta\, \mathrm{KL}(\alpha | \alpha^*) = D^* - D .
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from frot._base.arrays import blocks, has_triton
from frot._base.stopping import check_deadline
from frot.problem.adversary import Simplex
from frot.solvers.entropic._fused import MOST_FEATURES, ROWS, WIDTH
from frot.solvers.entropic.ascent import GRADIENT_FACTOR
from frot.solvers.entropic.engine import Momentum
from frot.solvers.entropic.entropic_problem import SINGLE_RANGE

# Problems, and which of them the potentials of x, y, x with itself and y with itself are of.
PROBLEMS = (0, 0, 1, 2)
# Sweeps between two steps on the weights, at most.
SWEEPS = 500
# From so many pairs of points on sweeps begin with one product instead of three.
LEAD_FROM = 1 << 24
# Points of a sample that leads the way.
SAMPLE = 2_048


def cloud_kernels(x: Tensor) -> ModuleType | None:
    """Return the kernels for points like these, None where there are none."""
    if x.device.type != "cuda" or x.shape[-1] > MOST_FEATURES or not has_triton():
        return None
    from frot.solvers.entropic import _fused_triton

    return _fused_triton


@dataclass(frozen=True, eq=False)
class Options:
    """What is asked for: both regularisations in units of cost, groups, and the gradient's error.

    `table` is (L, d) on the host, one where a feature is in a group, and `member` the same where
    the points are; `log_prior` is (L,), on the host. There are `max_steps` on the weights at most.
    """

    eta: float
    eps: float
    table: np.ndarray
    member: Tensor
    tol: float
    log_prior: np.ndarray | None = None
    debias: bool = True
    max_steps: int = 60

    def like(self, other: Options) -> bool:
        """Whether the same is asked for."""
        first, second = ((each.eta, each.eps, each.tol, each.debias) for each in (self, other))
        same = first == second and np.array_equal(self.table, other.table)
        mine, its = ([] if each.log_prior is None else each.log_prior for each in (self, other))
        return same and np.array_equal(mine, its)

    @property
    def suits(self) -> bool:
        """Whether single precision gets as close; without eta weights need more of it."""
        within = 1.0 / SINGLE_RANGE < self.eps < SINGLE_RANGE
        return self.tol >= 1e-4 and within and (self.eta > 0.0 or len(self.table) == 1)


@dataclass(frozen=True, eq=False)
class CloudSolution:
    """What was found, of two clouds with each other and, debiased, of each with itself.

    Attributes
    ----------
    clouds : Clouds
    alpha : array of shape (P, L)
    potentials : tensor of shape (T,)
        Of all problems, in units of cost.
    values : array of shape (P,)
        Dual values.
    error, regret : arrays of shape (P,)
        Mass in wrong columns times s / F, and the weights' regret over F.
    sweeps, steps : int
    momentum : float
        The q of the sweeps between the clouds (see `momentum`), zero if they were few.
    """

    clouds: Clouds
    alpha: np.ndarray
    potentials: Tensor
    values: np.ndarray
    error: np.ndarray
    regret: np.ndarray
    sweeps: int
    steps: int
    momentum: float

    @property
    def g(self) -> Tensor:
        """The potential of y with x, (m,)."""
        n, m = self.clouds.sizes
        return self.potentials[n : n + m]


class Clouds:
    """Points, centred, and what does not change with potentials and weights.

    Parameters
    ----------
    kernels : module
        `_fused_triton` or its twin.
    x, y, a, b : tensors of shape (n, d), (m, d), (n,) and (m,)
    options : Options
    centre : tensor of shape (d,), optional
        What is taken off the points: the mean of y, which may well stay where it is.
    before : Clouds, optional
        Other clouds, to see how far points have moved.

    Attributes
    ----------
    level : array of shape (P,)
        Mean costs.
    near, same : bool
        Whether points have moved by little, a tenth of the mean cost in squares, and whether those
        of y are the same with the same weights.
    """

    def __init__(
        self,
        kernels: ModuleType,
        x: Tensor,
        y: Tensor,
        a: Tensor,
        b: Tensor,
        options: Options,
        centre: Tensor | None = None,
        before: Clouds | None = None,
    ) -> None:
        self.kernels, self.options = kernels, options
        (n, d), m = x.shape, len(y)
        self.sizes = (n, m)
        self.centre = b.to(y.dtype) @ y if centre is None else centre
        points = torch.zeros(n + m, -(-d // WIDTH) * WIDTH, dtype=torch.float32, device=x.device)
        points[:n, :d] = x - self.centre
        points[n:, :d] = y - self.centre
        self.points, self.features = points, d
        weights = torch.cat([a, b]).double()
        self.weights = weights.repeat(2) if options.debias else weights
        self.logs = torch.log2(self.weights)
        self.squares = torch.empty(n + m, len(options.member), dtype=torch.float64, device=x.device)
        for part in blocks(n + m, 1, ROWS):
            self.squares[part] = points[part, :d].double() ** 2 @ options.member.T
        self.problems = 3 if options.debias else 1
        self.wrong = self._wrong(weights)
        self._look(before)

    @property
    def ends(self) -> tuple[int, ...]:
        """Where the potentials of every segment begin, and where all end."""
        n, m = self.sizes
        result = (0, n, n + m, 2 * n + m, 2 * n + 2 * m)
        return result if self.options.debias else result[:3]

    @property
    def shared(self) -> bool:
        """Whether all problems have the same scaled points: there is one group."""
        return len(self.options.table) == 1

    @property
    def even(self) -> bool:
        """Whether both clouds are multiples of what kernels load together."""
        return all(size % self.kernels.EVEN == 0 for size in self.sizes)

    def _wrong(self, weights: Tensor) -> Tensor:
        """Return what points count where they are wrong, (T,): more where they are far away.

        Mass that is misplaced there moves gradients by as much as it is far.
        """
        n, far = self.sizes[0], weights * self.squares.sum(dim=1)
        sides = (slice(0, n), slice(n, len(far)))
        shares = [far[side] / far[side].sum().clamp(min=1.0 / SINGLE_RANGE) for side in sides]
        result = 0.5 * (weights + torch.cat(shares))
        return result.repeat(2) if self.options.debias else result

    def _look(self, before: Clouds | None) -> None:
        """Read off what decides on the host, in one go."""
        (n, _), d, count = self.sizes, self.features, len(self.points)
        weights, table = self.weights[:count], self.options.table
        light, sides = weights.float(), (slice(0, n), slice(n, count))
        stats = [light[side] @ self.points[side] for side in sides]
        stats += [weights[side] @ self.squares[side] for side in sides]
        stats += [weights.min()[None], self.squares.max()[None]]
        known = before is not None and self._like(before)
        if before is not None and known:
            gaps = self.points - before.points
            gaps[:, :d] += (self.centre - before.centre).float()
            other = (self.weights[n:count] - before.weights[n:count]).abs()
            stats += [(gaps[n:].abs().max() + other.max())[None]]
            stats += [light @ gaps.mul_(gaps)]
        result = torch.cat(stats).double().cpu().numpy()
        width = self.points.shape[1]
        mean_x, mean_y = result[:d], result[width : width + d]
        index = 2 * width + len(table)
        square_x, square_y = result[2 * width : index], result[index : index + len(table)]
        index += len(table)
        self.lightest, self.largest = result[index], result[index + 1]
        sums = np.stack([square_x + square_y, 2.0 * square_x, 2.0 * square_y])
        crossed = np.stack([mean_x * mean_y, mean_x**2, mean_y**2])
        level = (sums - 2.0 * crossed @ table.T).mean(axis=1).clip(0.0)
        self.level = level[: self.problems]
        self.near = self.same = False
        if known:
            self.near = bool(
                result[index + 3 : index + 3 + d] @ table.mean(axis=0) <= 0.1 * level[0]
            )
            self.same = self.near and result[index + 2] == 0.0

    def _like(self, other: Clouds) -> bool:
        """Whether potentials and weights of other clouds have the shapes of these."""
        mine, its = self.options, other.options
        alike = self.sizes == other.sizes and self.features == other.features
        return alike and mine.debias == its.debias and len(mine.table) == len(its.table)

    def tiles(self, segments: tuple[int, ...]) -> tuple[Tensor, np.ndarray]:
        """Return the tiles of some segments, and the problem of each."""
        shared, device = self.shared, str(self.points.device)
        return _tiles(*self.sizes, self.kernels.ROWS, segments, shared, device)

    def take(self, count: int) -> Clouds:
        """Some of the points, every k-th, with their weights."""
        n, _ = self.sizes
        sides = []
        for side in (slice(0, n), slice(n, sum(self.sizes))):
            points, weights = self.points[side, : self.features], self.weights[side]
            step = max(1, len(points) // count)
            some = weights[::step]
            sides.append((points[::step], some / some.sum()))
        (x, a), (y, b) = sides
        return Clouds(self.kernels, x, y, a, b, self.options, torch.zeros_like(x[0]))


@lru_cache(maxsize=64)
def _tiles(
    n: int, m: int, rows: int, segments: tuple[int, ...], shared: bool, device: str
) -> tuple[Tensor, np.ndarray]:
    count = n + m
    sides = {0: (0, n), 1: (n, count), 2: (count, count + n), 3: (count + n, 2 * count)}
    parts, problems = [], []
    for index in segments:
        first, end = sides[index]
        starts = np.arange(first, end, rows)
        columns = sides[1 - index] if index < 2 else sides[index]
        base = 0 if index < 2 else count
        rest = np.tile([*columns, base if shared else 0, base], (len(starts), 1))
        parts.append(np.column_stack([starts, np.minimum(starts + rows, end), rest]))
        problems.append(np.full(len(starts), PROBLEMS[index]))
    table = torch.as_tensor(np.concatenate(parts), dtype=torch.int32, device=device)
    return table, np.concatenate(problems)


class CloudSearch:
    """Potentials and weights of the problems of clouds, on their way to the best."""

    def __init__(self, clouds: Clouds, alpha: np.ndarray, eps: float | None = None) -> None:
        self.clouds, self.alpha = clouds, alpha
        self.eps = clouds.options.eps if eps is None else eps
        self.sweeps = self.steps = 0
        # Sums and products of the plans, and of which segments they are those of the state.
        self.plans: tuple[Tensor, Tensor] | None = None
        self.known: set[int] = set()
        self.momentum = Momentum()
        self._scale()
        self.state = -self.norms

    @property
    def unit(self) -> float:
        """What costs are multiplied by."""
        return math.log2(math.e) / self.eps

    def _scale(self) -> None:
        """Scale the points by the weights, and their norms."""
        clouds, unit = self.clouds, self.unit
        n, m = clouds.sizes
        member, device = clouds.options.member, clouds.points.device
        if clouds.shared:
            root = (2.0 * unit) ** 0.5 * member[0].float()
            self.z = clouds.points * torch.nn.functional.pad(
                root, (0, clouds.points.shape[1] - clouds.features)
            )
            norms = unit * clouds.squares[:, 0]
            self.norms = norms if clouds.problems == 1 else norms.repeat(2)
            return
        alpha = torch.as_tensor(self.alpha, dtype=torch.float64, device=device)
        roots = torch.zeros(len(alpha), clouds.points.shape[1], device=device)
        roots[:, : clouds.features] = torch.sqrt(2.0 * unit * (alpha @ member))
        norms = unit * (clouds.squares @ alpha.T)
        if clouds.problems == 1:
            self.z, self.norms = clouds.points * roots[0], norms[:, 0]
            return
        self.norms = torch.cat([norms[:, 0], norms[:n, 1], norms[n:, 2]])
        self.z = torch.empty(2 * (n + m), roots.shape[1], device=device)
        ends = clouds.ends
        torch.mul(clouds.points, roots[0], out=self.z[: ends[2]])
        torch.mul(clouds.points[:n], roots[1], out=self.z[ends[2] : ends[3]])
        torch.mul(clouds.points[n:], roots[2], out=self.z[ends[3] :])

    def go_to(self, alpha: np.ndarray, eps: float | None = None) -> None:
        """Take other weights, or another eps, with the same potentials in units of cost."""
        potential, unit = self.state + self.norms, self.unit
        self.alpha = alpha
        self.eps = self.eps if eps is None else eps
        self._scale()
        self.state = potential * (self.unit / unit) - self.norms

    def linear(self) -> np.ndarray:
        """What potentials earn, (P,): with columns or rows exact that is the plan's dual value."""
        ends = self.clouds.ends
        earned = self.clouds.weights * (self.state + self.norms)
        both = [earned[: ends[2]].sum()]
        if self.clouds.problems > 1:
            # Both sides are the same: what was before the last update, and after it.
            both += [2.0 * earned[ends[2] : ends[3]].sum(), 2.0 * earned[ends[3] :].sum()]
        return torch.stack(both).cpu().numpy() / self.unit

    def values(self) -> np.ndarray:
        """Dual values, (P,)."""
        options = self.clouds.options
        adversary = Simplex(options.eta, options.log_prior)
        return self.linear() + np.array([adversary.reward(alpha) for alpha in self.alpha])

    def sweep(self, share: float, limit: int, some: set[int] | None = None) -> np.ndarray:
        """Sweep until the mass in wrong columns times s / F is no more than `share`, (P,).

        Infinite where that was not reached, or which is none of `some` problems.
        """
        clouds = self.clouds
        n, m = clouds.sizes
        kernels = clouds.kernels
        cross = slice(n, n + m)
        lead, even = n * m >= LEAD_FROM, clouds.even
        now, ahead, after = self.state, torch.empty_like(self.state), torch.empty_like(self.state)
        left = set(range(clouds.problems) if some is None else some)
        momentum = self.momentum = Momentum(q=self.momentum.q)
        result, previous = np.full(clouds.problems, np.inf), now[cross]
        # Where problems are that are done, or were not asked for.
        final = None if len(left) == clouds.problems else self.state.clone()
        self.known -= {index for index in range(4) if PROBLEMS[index] in left}
        for count in range(limit):
            check_deadline()
            self.sweeps += 1
            own = tuple(index + 1 for index in (1, 2) if index in left)
            whole = 0 in left
            rows, cols = ((0, *own), (1, *own)) if whole else (own, own)
            kernels.updates(
                self.z, now, now, clouds.logs, clouds.wrong, clouds.tiles(rows)[0], ahead,
                precise=not lead, even=even,
            )  # fmt: skip
            tiles, problems = clouds.tiles(cols)
            off = kernels.updates(
                self.z, ahead, now, clouds.logs, clouds.wrong, tiles, after,
                precise=not lead, even=even,
            )  # fmt: skip
            if whole:
                after[:n] = ahead[:n]
            errors = np.ones(clouds.problems)
            if share > 0.0:
                masses = off.cpu().numpy().astype(float)
                errors = np.bincount(problems, weights=masses, minlength=clouds.problems)
            if not np.isfinite(errors).all():
                break
            if lead and max(errors[list(left)]) <= max(2e-2, share):
                lead = False
            elif not lead and any(errors[index] <= share for index in left):
                # Values are no more than mean costs, so that others need not be looked at.
                self.state = self._joined(final, after, left)
                size = np.abs(self.values()) / np.maximum(clouds.level, self.eps)
                done = {index for index in left if errors[index] <= share * size[index]}
                for index in done:
                    result[index] = errors[index] / max(size[index], 1e-300)
                left -= done
                if not left:
                    return result
                if done:
                    final = self.state.clone()
            if whole and 0 in left:
                momentum.update(float(errors[0]), count)
                old = now[cross].clone()
                after[cross] = momentum.ahead(old, after[cross] - old, previous)
                previous = old
            now, after = after, now
        # What is left is where it got to.
        self.state = self._joined(final, now, left)
        return result

    def _joined(self, final: Tensor | None, now: Tensor, left: set[int]) -> Tensor:
        """Return potentials of problems that are done and of those that are not."""
        if final is None:
            return now
        ends, result = self.clouds.ends, final.clone()
        for index in left:
            mine = slice(0, ends[2]) if index == 0 else slice(ends[index + 1], ends[index + 2])
            result[mine] = now[mine]
        return result

    def transport(self, segments: set[int]) -> tuple[Tensor, Tensor]:
        """Return sums of the plans' rows over their weights, (T,), and where mass goes, (T, d).

        Of segments that are not known they are formed.
        """
        clouds, room = self.clouds, self.plans
        missing = tuple(sorted(segments - self.known))
        if room is not None and not missing:
            return room
        values = clouds.points[:, : clouds.features].T.contiguous()
        if room is None:
            shape, device = (len(self.state), clouds.features), values.device
            room = torch.empty(shape[0], device=device), torch.empty(shape, device=device)
            self.plans = room
        tiles, _ = clouds.tiles(missing)
        self.known |= segments
        clouds.kernels.transport(
            self.z, values, self.state, clouds.logs, tiles, *room, even=clouds.even
        )
        return room

    def group_costs(self, some: set[int]) -> np.ndarray:
        r"""Return the groups' costs of the plans of some problems, (P, L), zero of the others.

        Columns of the clouds with each other are exact, rows weigh :math:`a_i r_i`:
        :math:`\sum_i a_i (r_i x_i^2 - 2 x_i\, t_i) + \sum_j b_j y_j^2`.
        """
        clouds, member = self.clouds, self.clouds.options.member
        (n, _), ends, d = clouds.sizes, clouds.ends, clouds.features
        sums, moved = self.transport(self.segments(some))
        costs = np.zeros((clouds.problems, len(member)))
        result = []
        for index in sorted(some):
            begin, end = (0, n) if index == 0 else (ends[index + 1], ends[index + 2])
            first = n if index == 2 else 0
            cross = torch.zeros(d, dtype=torch.float64, device=member.device)
            for part in blocks(end - begin, 1, ROWS):
                mine = slice(begin + part.start, begin + part.stop)
                points = clouds.points[first + part.start : first + part.stop, :d]
                weights = clouds.weights[mine]
                cross += ((points * moved[mine]).double() * weights[:, None]).sum(dim=0)
            weighed = clouds.weights[begin:end] * sums[begin:end]
            squares = weighed @ clouds.squares[first : first + end - begin]
            if index == 0:
                squares = squares + clouds.weights[n : ends[2]] @ clouds.squares[n:]
            else:
                squares = 2.0 * squares
            result.append(squares - 2.0 * member @ cross)
        costs[sorted(some)] = torch.stack(result).cpu().numpy()
        return costs

    @staticmethod
    def segments(some: set[int]) -> set[int]:
        """Rows that group costs of problems are taken from."""
        return {index + 1 if index else 0 for index in some}


class Secants:
    r"""Steps on the weights of one problem, in logarithms: Anderson's, on mirror steps.

    A mirror step goes a share of the way to the best answer to the plan's costs,
    :math:`\log \alpha' = \log q + \phi / \eta` but for a constant, whose distance is zero at the
    optimum. From steps and distances that were seen comes a combination that should have none.
    """

    # Steps that are looked back at, shares of the way, and by how much a combination may move.
    DEPTH, FIRST, FURTHEST = 6, 0.3, 2.0

    def __init__(self) -> None:
        self.share = self.FIRST
        self._at: list[np.ndarray] = []
        self._off: list[np.ndarray] = []
        self._least = np.inf

    def ahead(self, z: np.ndarray, off: np.ndarray, alpha: np.ndarray, regret: float) -> np.ndarray:
        """Return the next logarithms of weights."""
        if regret > 2.0 * self._least:
            # A combination that went too far says little.
            self.share = max(0.3 * self.share, 1e-3)
            self._at, self._off = self._at[-1:], self._off[-1:]
        self._least = min(self._least, regret)
        self._at, self._off = [*self._at, z][-self.DEPTH :], [*self._off, off][-self.DEPTH :]
        step = self.share * off
        if len(self._at) > 1:
            root = np.sqrt(np.maximum(alpha, 1e-6))
            moves = np.stack([z - other for other in self._at[:-1]], axis=1)
            falls = np.stack([off - other for other in self._off[:-1]], axis=1)
            mix = np.linalg.lstsq(root[:, None] * falls, root * off, rcond=1e-6)[0]
            step = step - (moves + self.share * falls) @ mix
        most = float(np.abs(step).max())
        return z + step * min(1.0, self.FURTHEST / max(most, 1e-300))


def solve_clouds(
    clouds: Clouds, start: CloudSolution | None = None
) -> tuple[CloudSolution, CloudSearch] | None:
    """Solve all problems; None where single precision or sweeps do not get there.

    Parameters
    ----------
    clouds : Clouds
    start : CloudSolution, optional
        What was found for the clouds `before` these, to start from where points have moved little.
    """
    options = clouds.options
    if not options.suits or not _carries(clouds):
        return None
    if start is None or not clouds.near:
        count = len(options.table)
        search = _first(clouds, np.full((clouds.problems, count), 1.0 / count))
        return _climb(search, None)
    same = clouds.same and clouds.problems == 3 and options.like(start.clouds.options)
    # A weight of zero would never rise again.
    alpha = (1.0 - 1e-6) * start.alpha + 1e-6 / start.alpha.shape[1]
    if same:
        alpha[2] = start.alpha[2]
    search = CloudSearch(clouds, alpha)
    search.state = start.potentials * search.unit - search.norms
    search.momentum = Momentum(q=start.momentum)
    return _climb(search, start if same else None)


def _carries(clouds: Clouds) -> bool:
    """Whether scores are right to what is asked for, and all numbers in single precision's range.

    A score that is off by a share of a log changes the plan by as much; errors count on average.
    Of three products it is off by 2^-20 of its norms: four times what was measured.
    """
    options, level = clouds.options, float(clouds.level.max())
    within = clouds.lightest > 0.0 and clouds.largest < SINGLE_RANGE
    return within and 2.0 * 2.0**-20 * level / options.eps <= options.tol / GRADIENT_FACTOR


def _first(clouds: Clouds, alpha: np.ndarray) -> CloudSearch:
    """Potentials and weights to start from: of a sample, or from a larger eps."""
    options = clouds.options
    if min(clouds.sizes) >= 3 * SAMPLE:
        result = solve_clouds(clouds.take(SAMPLE))
        if result is not None:
            return _extended(clouds, result[1])
    level = float(clouds.level[0])
    # By quarters, two sweeps at each.
    eps = max(options.eps, 0.25 * level)
    search = CloudSearch(clouds, alpha, eps)
    while eps > options.eps:
        search.sweep(0.0, 2)
        eps = max(options.eps, 0.25 * eps)
        search.go_to(alpha, eps)
    return search


def _extended(clouds: Clouds, sample: CloudSearch) -> CloudSearch:
    """Give all points the potentials that those of a sample leave them."""
    search = CloudSearch(clouds, sample.alpha)
    bias = (sample.state + sample.clouds.logs).float()
    ends, others = clouds.ends, sample.clouds.ends
    for index in range(1, len(ends) - 1):
        # y from x, and clouds with themselves from themselves.
        other = 0 if index == 1 else index
        mine, theirs = slice(ends[index], ends[index + 1]), slice(others[other], others[other + 1])
        shift = (0, 0) if index == 1 or not clouds.shared else (ends[2], others[2])
        rows, cols = search.z[_back(mine, shift[0])], sample.z[_back(theirs, shift[1])]
        sums = clouds.kernels.log_sums(rows, cols, bias[theirs], precise=True)
        search.state[mine] = -sums
    return search


def _back(part: slice, by: int) -> slice:
    return slice(part.start - by, part.stop - by)


def _climb(
    search: CloudSearch, start: CloudSolution | None, most_steps: int = 60
) -> tuple[CloudSolution, CloudSearch] | None:
    """Sweep and step on the weights until both are as close as the gradient asks for.

    Where `start` is given, it has what is known of y with itself.
    """
    clouds, options = search.clouds, search.clouds.options
    share, most = options.tol / GRADIENT_FACTOR, (options.tol / GRADIENT_FACTOR) ** 2
    left, (error, regret) = set(range(clouds.problems)), np.full((2, clouds.problems), np.inf)
    if start is not None:
        left.discard(2)
        error[2], regret[2] = start.error[2], start.regret[2]
    if clouds.shared:
        result = search.sweep(share, SWEEPS, left)
        error[list(left)], regret[:] = result[list(left)], 0.0
        return (_found(search, error, regret), search) if np.isfinite(error).all() else None
    log_prior = 0.0 if options.log_prior is None else options.log_prior
    # Before the first step on the weights, sweeps are rough.
    ways, near = [Secants() for _ in range(clouds.problems)], max(share, 2e-2)
    for _ in range(min(most_steps, options.max_steps)):
        result = search.sweep(near, SWEEPS, left)
        search.steps += 1
        if search.sweeps > 2 * SWEEPS or not np.isfinite(result[list(left)]).all():
            return None
        values = np.maximum(np.abs(search.values()), 1e-300)
        phi, logs, ahead = search.group_costs(left), np.log(search.alpha), search.alpha.copy()
        best = phi / options.eta + log_prior
        best = best - np.logaddexp.reduce(best, axis=1, keepdims=True)
        for index in sorted(left):
            error[index] = result[index]
            off = best[index] - logs[index]
            regret[index] = (
                max(0.0, -options.eta * float(search.alpha[index] @ off)) / values[index]
            )
            if regret[index] > most:
                z = ways[index].ahead(logs[index], off, search.alpha[index], float(regret[index]))
                ahead[index] = np.exp(z - np.logaddexp.reduce(z))
            elif error[index] <= share:
                left.discard(index)
        if not left:
            return _found(search, error, regret), search
        near = max(0.5 * share, min(near, 0.3 * float(np.sqrt(max(regret[list(left)])))))
        search.go_to(ahead)
    return None


def _found(search: CloudSearch, error: np.ndarray, regret: np.ndarray) -> CloudSolution:
    return CloudSolution(
        search.clouds, search.alpha, (search.state + search.norms) / search.unit, search.values(),
        error, regret, search.sweeps, search.steps, search.momentum.q,
    )  # fmt: skip
