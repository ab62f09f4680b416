r"""Interior point for the problem restricted to some arcs and groups, for any eta >= 0.

The predictor-corrector method (Mehrotra 1992).

With x the mass on the arcs, A x = (a, b) their marginals and C their costs in each group, the
optimality conditions of  min_x G_eta(C x)  relaxed by a barrier mu are

.. math::
    A x = (a, b), \quad z = C^\top \alpha - A^\top y, \quad 1^\top \alpha = 1, \quad
    s = t - C x + \eta \log(\alpha / q), \quad x \circ z = \alpha \circ s = \mu .

For eta = 0 this is the paper's linear program; for eta > 0 the slack s vanishes and alpha is the
softmax of the costs. Where no group may weigh more than a cap c, the room r = c - alpha has a
price v,

.. math:: s = t + v - C x + \eta \log(\alpha / q), \qquad v \circ (c - \alpha) = \mu ,

which is one more term on the diagonal. Where rows need not be kept but pay tau for their divergence
from a, f and what they weigh, r, move together as alpha and s do:

.. math:: f + \tau \log(r / a) = 0, \qquad r = A_a x ,

which adds r / tau to the diagonal of the rows; and columns alike.

A Newton step eliminates everything but the potentials of the columns and alpha. What is left is
formed without a subtraction: the columns' block is a graph Laplacian, whose diagonal is the sum of
its (positive) off-diagonal weights, and costs enter centred row by row.
That keeps digits where the textbook normal equations lose them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dpotrs  # type: ignore[attr-defined]


@dataclass(eq=False)
class Interior:
    """The iterate and its restricted problem, in units where costs and masses are about one.

    Attributes
    ----------
    a, b : arrays of shape (n,) and (m,)
        Marginals.
    rows, cols : arrays of shape (K,)
        The arcs, sorted by row then column; every row and column has at least one.
    costs : array of shape (G, K)
        Costs of the arcs in each group.
    eta, log_prior :
        The adversary's entropy; `log_prior` has shape (G,).
    cap : float
        The largest weight a group may have. All of `alpha` are below it, or all at it: then they
        stay where they are.
    x, z : arrays of shape (K,)
        Mass and reduced cost of the arcs, both > 0.
    alpha, s : arrays of shape (G,)
        Weights and slacks of the groups, both > 0.
    f, g : arrays of shape (n,) and (m,)
        Potentials; that of the heaviest column stays where it is.
    t : float
        The level: max of the costs at the optimum for eta = 0.
    tau : pair of floats
        What rows and columns pay for the divergence of what they keep; infinite where they keep
        all: then a column's potential stays where it is.
    """

    a: np.ndarray
    b: np.ndarray
    rows: np.ndarray
    cols: np.ndarray
    costs: np.ndarray
    eta: float
    log_prior: np.ndarray
    x: np.ndarray
    z: np.ndarray
    alpha: np.ndarray
    s: np.ndarray
    f: np.ndarray
    g: np.ndarray
    t: float
    cap: float = 1.0
    tau: tuple[float, float] = (np.inf, np.inf)
    # Dense products win over sparse ones up to about so many columns.
    dense_up_to: ClassVar[int] = 320

    def __post_init__(self) -> None:
        self.index()
        # The Newton matrix, allocated once.
        self._room = np.empty((0, 0))
        self._short_steps = 0
        count = len(self.alpha)
        # Weights have no room where the cap times their number is one, but for its rounding.
        self.fixed = self.cap * count <= 1.0 + count * 1e-12
        self.capped = self.cap < 1.0 and not self.fixed
        # Room up to the cap, and its price: nothing where there is no cap.
        self.r, self.v = np.zeros(0), np.zeros(0)
        if self.fixed:
            self.s = np.zeros(count)
        elif self.capped:
            self.r = self.cap - self.alpha
            self.v = float(self.alpha @ self.s) / count / self.r
            self.s = self.s + self.v

    def index(self) -> None:
        """Rebuild what depends on the arcs alone; call after changing them."""
        count = len(self.rows)
        self._starts = np.searchsorted(self.rows, np.arange(len(self.a)))
        self._bounds = np.append(self._starts, count)
        # One column's potential is held fixed. A light column would hold the others badly.
        held = np.empty(0, np.intp) if self.unbalanced else np.argmax(self.b, keepdims=True)
        self._others = np.delete(np.arange(len(self.b)), held)
        pattern = (np.ones(count), self.cols, np.arange(count + 1))
        self._by_col = sparse.csr_array(pattern, shape=(count, len(self.b))).T.tocsr()

    @property
    def unbalanced(self) -> bool:
        """Whether some side need not be kept."""
        return min(self.tau) < np.inf

    def _owed(self, side: int) -> tuple[np.ndarray, np.ndarray | float]:
        """Return what rows (0) or columns (1) lack, and by how much less for a rise of f by one."""
        weights, potential = ((self.a, self.f), (self.b, self.g))[side]
        masses, tau = (self.row_sums, self.col_sums)[side](self.x), self.tau[side]
        if tau == np.inf:
            return weights - masses, 0.0
        return -masses * (potential / tau + _log_kept(masses, weights)), masses / tau

    def size(self) -> float:
        """The size of the objective: the level, and what is paid for mass that is not kept."""
        size = abs(self.t)
        for tau, sums, weights in (
            (self.tau[0], self.row_sums, self.a),
            (self.tau[1], self.col_sums, self.b),
        ):
            if tau < np.inf:
                masses = sums(self.x)
                each = masses * _log_kept(masses, weights) - masses + weights
                size += tau * float(each.sum())
        return size

    @property
    def mu(self) -> float:
        """Mean complementarity."""
        return self.complementarity / self._places

    @property
    def _places(self) -> int:
        """How many complementarities there are."""
        return len(self.x) + (0 if self.fixed else len(self.s) + len(self.r))

    @property
    def complementarity(self) -> float:
        """Total complementarity: the duality gap of the restricted problem once feasible."""
        return float(self.x @ self.z + self.alpha @ self.s + self.r @ self.v)

    def row_sums(self, per_arc: np.ndarray) -> np.ndarray:
        """Sum the last axis over the arcs of each row."""
        return np.add.reduceat(per_arc, self._starts, axis=-1)

    def col_sums(self, per_arc: np.ndarray) -> np.ndarray:
        """Sum the last axis over the arcs of each column."""
        return (self._by_col @ per_arc.T).T

    def infeasibility(self) -> float:
        """Return the mass that is in the wrong place, as a share of all mass."""
        off = np.abs(self._owed(0)[0]).sum() + np.abs(self._owed(1)[0]).sum()
        return float(off / self.a.sum())

    def step(self) -> bool:
        """Take one predictor-corrector step; False if the linear algebra gave out.

        Steps that stay short mean a point too close to the boundary: it is moved inside again,
        further each time.
        """
        # Near the limit of precision values become infinite or NaN, which is checked for.
        with np.errstate(all="ignore"):
            moved = self._step()
        short = moved and max(self.lengths) < 0.1
        self._short_steps = self._short_steps + 1 if short else 0
        if self._short_steps >= 3:
            self.recentre(10.0 * self.mu)
            self._short_steps = 0
        return moved

    def add_arcs(
        self,
        rows: np.ndarray,
        cols: np.ndarray,
        costs: np.ndarray,
        x: np.ndarray,
        z: np.ndarray,
    ) -> None:
        """Let arcs in where they belong in the order of rows and columns."""
        rows, cols = np.concatenate([self.rows, rows]), np.concatenate([self.cols, cols])
        order = np.lexsort((cols, rows))
        self.rows, self.cols = rows[order], cols[order]
        self.costs = np.concatenate([self.costs, costs], axis=1)[:, order]
        self.x, self.z = np.concatenate([self.x, x])[order], np.concatenate([self.z, z])[order]
        self.index()

    def _step(self) -> bool:
        if not self._factor():
            return False
        residuals = self._residuals()
        mu = self.mu
        if not mu > 0.0:
            return False
        affine = self._direction(
            residuals, -self.x * self.z, -self.alpha * self.s, -self.r * self.v
        )
        primal, dual = self._lengths(affine, 1.0)
        ahead = (self.x + primal * affine[0]) @ (self.z + dual * affine[1])
        ahead += (self.alpha + dual * affine[2]) @ (self.s + primal * affine[3])
        ahead += (self.r + dual * affine[7]) @ (self.v + primal * affine[8])
        sigma = max((ahead / self._places / mu) ** 3, 1e-6)
        sigma = min(1.0, sigma)
        move = self._direction(
            residuals,
            sigma * mu - self.x * self.z - affine[0] * affine[1],
            sigma * mu - self.alpha * self.s - affine[2] * affine[3],
            sigma * mu - self.r * self.v - affine[7] * affine[8],
        )
        if not all(np.isfinite(part).all() for part in move):
            return False
        primal, dual = self._lengths(move, max(0.9, 1.0 - mu) if mu < 1e-3 else 0.9)
        dx, dz, dalpha, ds, df, dg, dt, dr, dv = move
        self.x, self.s, self.t = self.x + primal * dx, self.s + primal * ds, self.t + primal * dt
        self.z, self.alpha = self.z + dual * dz, self.alpha + dual * dalpha
        self.r, self.v = self.r + dual * dr, self.v + primal * dv
        self.f, self.g = self.f + dual * df, self.g + dual * dg
        if self.fixed:
            self.t = float(self.alpha @ (self.costs @ self.x))
        self.lengths = (primal, dual)
        return max(primal, dual) > 1e-9

    def recentre(self, barrier: float) -> None:
        """Move away from the boundary, to where no complementarity is far below `barrier`.

        Of each pair the smaller one gives way: the other is what the solution is made of.
        """
        used = self.x > self.z
        # What has become zero gives no more than all there is.
        with np.errstate(divide="ignore", over="ignore"):
            raised = np.minimum(0.5 * barrier / self.z, 1.0)
            self.x = np.where(used, self.x, np.maximum(self.x, raised))
            self.z = np.where(used, np.maximum(self.z, 0.1 * barrier / self.x), self.z)
            if self.fixed:
                return
            used = self.alpha > self.s
            raised = np.minimum(0.1 * barrier / self.s, self.cap)
            if self.capped:
                # What there is room for.
                raised = np.minimum(raised, self.alpha + 0.5 * self.r)
                self.v = np.maximum(self.v, 0.1 * barrier / self.r)
            self.alpha = np.where(used, self.alpha, np.maximum(self.alpha, raised))
            self.s = np.where(used, np.maximum(self.s, 0.1 * barrier / self.alpha), self.s)
            if self.capped:
                self.r = self.cap - self.alpha

    def _residuals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
        reduced = self.alpha @ self.costs - self.f[self.rows] - self.g[self.cols] - self.z
        level = self.t - self.costs @ self.x - self.s
        if self.capped:
            level += self.v
        if self.eta > 0.0:
            level += self.eta * (np.log(self.alpha) - self.log_prior)
        if self.fixed:
            level = np.zeros(len(self.alpha))
        return (
            self._owed(0)[0],
            self._owed(1)[0],
            reduced,
            level,
            1.0 - self.alpha.sum(),
        )

    def _lengths(self, move: tuple, share: float) -> tuple[float, float]:
        """Longest primal and dual steps that keep a share of every positive variable."""
        dx, dz, dalpha, ds = move[:4]
        primal = min(step_length(self.x, dx, share), step_length(self.s, ds, share))
        dual = min(step_length(self.z, dz, share), step_length(self.alpha, dalpha, share))
        if self.capped:
            primal = min(primal, step_length(self.v, move[8], share))
            dual = min(dual, step_length(self.r, move[7], share))
        if self.eta > 0.0 or self.unbalanced:
            # s depends on alpha through its logarithm, f on rows: they cannot move apart.
            primal = dual = min(primal, dual)
        return primal, dual

    def _factor(self) -> bool:
        """Form and factor the matrix of (columns but one, groups)."""
        others = self._others
        free = len(others)
        flow = self.x / self.z
        row_flow = self.row_sums(flow)
        centres = self.row_sums(self.costs * flow) / row_flow
        centred = self.costs - np.take(centres, self.rows, axis=1)
        give = (self._owed(0)[1], self._owed(1)[1]) if self.unbalanced else (0.0, 0.0)
        # Share of a row's diagonal that is its own (tau): zero if its marginal is kept.
        loose = give[0] / (row_flow + give[0])
        firm_flow, row_flow = row_flow, row_flow + give[0]
        weighted = centred * flow
        joined = self._column_coupling(flow / np.sqrt(row_flow)[self.rows])
        coupling = _ColumnLaplacian.of(joined, others, len(self.b))
        cross = -self.col_sums(weighted)[:, others]
        groups = weighted @ centred.T
        np.einsum("ii->i", groups)[:] += self._stiffness()
        degree = coupling.degree
        if self.unbalanced:
            # Formed without a subtraction: the rows' own share is added to the diagonal.
            degree = degree + give[1] + self.col_sums(flow * np.take(loose, self.rows))
            passed = flow * np.take(centres * loose, self.rows, axis=1)
            cross -= self.col_sums(passed)
            groups += (centres * (loose * firm_flow)) @ centres.T
            centres = centres * (1.0 - loose)
        # Scaling alpha and the potentials together moves no reduced cost of an arc in use, so the
        # matrix is all but singular there. The sum of alpha is known: weighing it in is free.
        self._sum_weight = float(groups.diagonal().min())
        groups += self._sum_weight
        # A column whose only arc is its row's only arc is decoupled: its potential is held.
        alone = degree == 0.0
        degree = np.where(alone, self.col_sums(flow)[others], degree)
        diagonal = np.concatenate([degree, groups.diagonal()])
        if not (diagonal > 0.0).all() or not np.isfinite(diagonal).all():
            return False
        scale = 1.0 / np.sqrt(diagonal)
        size = free + len(self.alpha)
        if self._room.shape != (size, size):
            self._room = np.empty((size, size))
        matrix = self._room
        for regularisation in (1e-15, 1e-13, 1e-11):
            coupling.write(matrix[:free, :free], scale[:free])
            np.multiply(cross, scale[free:, None] * scale[:free], out=matrix[free:, :free])
            np.multiply(groups, scale[free:, None] * scale[free:], out=matrix[free:, free:])
            np.einsum("ii->i", matrix)[:] = 1.0 + regularisation
            # LAPACK reads the transpose of our rows, so what it calls upper is our lower half, and
            # all that has to be there. It works in place: matrices of new memory each step would
            # take as long as some of its work.
            factor, info = dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
            if info == 0:
                break
        else:
            return False
        self._factored, self._give = (factor, scale, flow, row_flow, centres), give
        ones = np.zeros(size)
        ones[free:] = 1.0
        self._ones = (ones, self._back(ones))
        return True

    def _stiffness(self) -> np.ndarray:
        """How much more a group has to cost for its weight to rise by one, (G,)."""
        if self.fixed:
            # Next to nothing moves them.
            return np.full(len(self.alpha), 1e30)
        stiffness = (self.eta + self.s) / self.alpha
        return stiffness + self.v / self.r if self.capped else stiffness

    def _column_coupling(self, scaled: np.ndarray) -> np.ndarray | sparse.csr_array:
        """Return P^T P of the scaled arcs, shape (m, m), by whichever product is faster."""
        n, m = len(self.a), len(self.b)
        if m <= self.dense_up_to:
            dense = np.zeros((n, m))
            dense[self.rows, self.cols] = scaled
            return dense.T @ dense
        spread = sparse.csr_array((scaled, self.cols, self._bounds), shape=(n, m))
        return spread.T @ spread

    def _back(self, right: np.ndarray) -> np.ndarray:
        factor, scale = self._factored[:2]
        solution, _ = dpotrs(factor, right * scale, lower=0)
        return solution * scale

    def _direction(
        self, residuals: tuple, xz: np.ndarray, alphas: np.ndarray, rooms: np.ndarray
    ) -> tuple:
        """Solve the Newton system for the given complementarity targets, with refinement."""
        off_rows, off_cols, off_reduced, off_level, off_alpha = residuals
        flow = self._factored[2]
        fixed = xz / self.z - flow * off_reduced
        level = alphas / self.alpha - off_level
        if self.capped:
            level = level - rooms / self.r
        df, dg, dalpha, dt = self._reduced_solve(
            off_rows - self.row_sums(fixed),
            off_cols - self.col_sums(fixed),
            level + self.costs @ fixed,
            off_alpha,
        )
        for _ in range(2):
            cost_move = dalpha @ self.costs - df[self.rows] - dg[self.cols]
            dx = fixed - flow * cost_move
            miss_rows = off_rows - self.row_sums(dx) - self._give[0] * df
            miss_cols = off_cols - self.col_sums(dx) - self._give[1] * dg
            before = np.abs(off_rows).sum() + np.abs(off_cols).sum()
            miss = np.abs(miss_rows).sum() + np.abs(miss_cols).sum()
            if miss <= 1e-3 * before + 1e-15 * self.a.sum():
                break
            ease = self._stiffness()
            more = self._reduced_solve(
                miss_rows,
                miss_cols,
                level - dt + self.costs @ dx - ease * dalpha,
                off_alpha - dalpha.sum(),
            )
            df, dg, dalpha, dt = df + more[0], dg + more[1], dalpha + more[2], dt + more[3]
        cost_move = dalpha @ self.costs - df[self.rows] - dg[self.cols]
        dz = off_reduced + cost_move
        dx = fixed - flow * cost_move
        if self.fixed:
            dalpha = np.zeros(len(dalpha))
        ds = (alphas - self.s * dalpha) / self.alpha
        if not self.capped:
            return dx, dz, dalpha, ds, df, dg, dt, self.r, self.v
        return dx, dz, dalpha, ds, df, dg, dt, -dalpha, (rooms + self.v * dalpha) / self.r

    def _reduced_solve(
        self, right_rows: np.ndarray, right_cols: np.ndarray, right_groups: np.ndarray, total: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        free = len(self._others)
        _, _, flow, row_flow, centres = self._factored
        share = right_rows / row_flow
        right = np.concatenate(
            [
                (right_cols - self.col_sums(flow * share[self.rows]))[self._others],
                right_groups + centres @ right_rows + self._sum_weight * total,
            ]
        )
        ones, back_ones = self._ones
        solution = self._back(right)
        dt = float(ones @ solution - total) / float(ones @ back_ones)
        solution -= dt * back_ones
        dg = np.zeros(len(self.b))
        dg[self._others] = solution[:free]
        dalpha = solution[free:]
        df = share - self.row_sums(flow * dg[self.cols]) / row_flow + dalpha @ centres
        return df, dg, dalpha, dt


class _ColumnLaplacian(NamedTuple):
    """How columns are joined by rows, but for themselves: among those that are free, (k, k).

    Entries are positive and symmetric; `rows` and `cols` are where they are if they are few, and
    `degree` is what a column has with all others, free or not.
    """

    entries: np.ndarray
    degree: np.ndarray
    rows: np.ndarray | None = None
    cols: np.ndarray | None = None

    @classmethod
    def of(
        cls, product: np.ndarray | sparse.csr_array, free: np.ndarray, count: int
    ) -> _ColumnLaplacian:
        """Take the free ones of so many columns of a product."""
        if isinstance(product, np.ndarray):
            np.fill_diagonal(product, 0.0)
            return cls(product[np.ix_(free, free)], product.sum(axis=1)[free])
        few = product.tocoo()
        degree = np.bincount(few.row, few.data * (few.row != few.col), count)
        place = np.full(count, -1)
        place[free] = np.arange(len(free))
        rows, cols = place[few.row], place[few.col]
        # The lower half is enough.
        on = (rows > cols) & (cols >= 0)
        return cls(few.data[on], degree[free], rows[on], cols[on])

    def write(self, out: np.ndarray, scale: np.ndarray) -> None:
        """Write the negative entries into a matrix, its lower half at least, times both scales."""
        if self.rows is None or self.cols is None:
            np.multiply(self.entries, -scale[:, None], out=out)
            out *= scale
            return
        out[:] = 0.0
        out[self.rows, self.cols] = -self.entries * scale[self.rows] * scale[self.cols]


def _log_kept(masses: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Logarithms of what is kept; a point may keep less than the smallest number."""
    return np.log(np.maximum(masses / weights, np.finfo(float).tiny))


def inside_cap(alpha: np.ndarray, cap: float) -> np.ndarray:
    """Draw weights to the uniform ones until all have room up to the cap.

    Examples
    --------
    >>> inside_cap(np.array([0.9, 0.1, 0.0]), 0.5).round(4)
    array([0.4833, 0.2716, 0.2451])
    """
    count = len(alpha)
    mean, top = 1.0 / count, float(alpha.max())
    most = mean + 0.9 * max(cap - mean, 0.0)
    if top <= most:
        return alpha
    return mean + (most - mean) / (top - mean) * (alpha - mean)


def step_length(value: np.ndarray, move: np.ndarray, share: float) -> float:
    """Return the longest step up to 1 that uses no more than a share of any positive value.

    Examples
    --------
    >>> step_length(np.array([1.0, 1.0]), np.array([-2.0, 5.0]), share=0.9)
    0.45
    """
    down = move < 0.0
    if not down.any():
        return 1.0
    return min(1.0, share * float((-value[down] / move[down]).min()))
