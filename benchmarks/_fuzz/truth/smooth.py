r"""The optimum with entropies, between two numbers that weak duality proves.

Above: the objective of a plan whose marginals are right, exactly. Below: for any weights alpha, the
value of plain transport at the mixed cost (eps = 0), or the dual value of potentials of which f is
the best answer to g (eps > 0),

.. math::
    \langle f, a \rangle + \langle g, b \rangle - \eta \sum_l \alpha_l \log (\alpha_l / q_l),
    \qquad f_i = -\varepsilon \log \sum_j b_j e^{(g_j - [M_\alpha]_{ij}) / \varepsilon} .

Sums are rational; logarithms and exponentials have 60 digits, and what they may be off by goes to
either side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from .linear import inner, lacks, mixed_cost, plan_costs, transport
from .numbers import DIGITS, STEP, exact, to_long, to_mp
from .path import Point, Smooth, follow
from .program import ZERO, Program

__all__ = ["Entropies", "objective", "smooth_bounds"]

# Bounds this close, relatively, are close enough to judge what double precision does.
CLOSE = Fraction(1, 10**17)
# Steps along the path without a narrower gap, near its end, after which long doubles have given
# what they have.
PATIENCE, NEAR = 6, 1e-6
# Of the first mu; what is left then is zero.
LEAST = 1e-45
# Gaps down to this are not due to the rounding of long doubles.
SOUND = 1e-9
# Steps in mpmath's numbers at most, of which each about squares the gap; bounds every so many.
LAST_STEPS, LOOK_EVERY = 20, 4

Bounds = tuple[Fraction, Fraction]
Plan = dict[tuple[int, int], Fraction]


@dataclass(frozen=True)
class Entropies:
    """Eta and eps, and q of every group: one in the paper, a prior where there is one."""

    eta: Fraction
    eps: Fraction
    q: tuple[Fraction, ...]


def smooth_bounds(program: Program, terms: Entropies) -> Bounds:
    """Return two numbers between which the optimum lies.

    All weights of the program must be positive, and there must be a plan.

    Examples
    --------
    >>> program = Program.of_stack([[[0.0, 1.0], [1.0, 0.0]]])
    >>> low, high = smooth_bounds(program, Entropies(ZERO, Fraction(1), (Fraction(1),)))
    >>> float(low) == float(high), round(float(high), 6)
    (True, 0.379885)
    """
    with np.errstate(all="ignore"):
        best, at = _rough(_on_arcs(program, terms, to_long, np.log))
    found = _bounds(program, terms, best)
    if _close(found, program, terms):
        return found
    with mpmath.workdps(DIGITS):
        log = np.frompyfunc(mpmath.log, 1, 1)
        precise = _on_arcs(program, terms, to_mp, log)
        at = at.map(lambda part: np.array([to_mp(exact(x)) for x in part], dtype=object))
        for step, now in enumerate(follow(precise, at, LAST_STEPS)):
            if step % LOOK_EVERY == LOOK_EVERY - 1:
                low, high = _bounds(program, terms, now)
                found = max(low, found[0]), min(high, found[1])
                if _close(found, program, terms):
                    break
    return found


def _close(bounds: Bounds, program: Program, terms: Entropies) -> bool:
    """Whether bounds are close, relatively, or next to zero where that is what they are about."""
    low, high = bounds
    unit = program.largest + terms.eta + terms.eps
    return high - low <= max(CLOSE * max(abs(low), abs(high)), CLOSE**2 * unit)


def _on_arcs(
    program: Program,
    terms: Entropies,
    number: Callable[[Fraction], Any],
    log: Callable[[Any], Any],
) -> Smooth:
    """The problem in some kind of number."""

    def array(values: Iterable[Fraction]) -> Any:
        entries = [number(value) for value in values]
        return np.array(entries, dtype=np.longdouble if number is to_long else object)

    arcs = list(program.arcs())
    rows, cols = (np.array(ends) for ends in zip(*arcs, strict=True))
    return Smooth(
        np.array([array(group[i][j] for i, j in arcs) for group in program.costs]),
        rows,
        cols,
        array(program.a),
        array(program.b),
        number(terms.eta),
        number(terms.eps),
        log(array(terms.q)),
        log,
    )


def _rough(problem: Smooth) -> tuple[Point, Point]:
    """Follow the path in long doubles; return the point with the narrowest gap, and one to go on.

    The latter is well before rounding takes over.
    """
    best, found, sound, idle = np.inf, None, None, 0
    first = None
    for at in follow(problem):
        first = at.mu if first is None else first
        if not np.isfinite(at.mu) or at.mu < LEAST * first:
            break
        off = np.abs(problem.marginals(at.x) / problem.need - 1).max()
        width = float(abs(problem.gap(at)) + off)
        width = width if np.isfinite(width) else np.inf
        if width < best or found is None:
            best, found, idle = width, at, 0
            if width > SOUND or sound is None:
                sound = at
        idle += best < NEAR
        if best < CLOSE or idle > PATIENCE:
            break
    if found is None or sound is None:
        raise AssertionError("the path was lost at its first step")
    return found, sound


def _bounds(program: Program, terms: Entropies, at: Point) -> Bounds:
    """What a point of the path proves."""
    arcs, n = list(program.arcs()), len(program.a)
    alpha = _on_simplex([exact(weight) for weight in at.alpha])
    rough = {arc: exact(moved) for arc, moved in zip(arcs, at.x, strict=True)}
    plan = _repaired(program, rough)
    with mpmath.workdps(DIGITS):
        _, high = objective(program, terms, plan)
        if terms.eps:
            low = _dual_value(program, terms, alpha, [exact(g) for g in at.y[n:]])
        else:
            low = transport(program.mixed([alpha])).value
        low += _reward(terms, alpha)
    return low, high


def _on_simplex(alpha: list[Fraction]) -> list[Fraction]:
    """Make weights sum to one exactly, at the cost of the largest."""
    alpha = [max(weight, ZERO) for weight in alpha]
    top = alpha.index(max(alpha))
    alpha[top] = ZERO
    alpha[top] = 1 - sum(alpha, ZERO)
    return alpha


def _repaired(program: Program, plan: Plan) -> Plan:
    """Make the marginals right, exactly, by what the heaviest arcs that span all points carry."""
    nodes = len(program.a) + len(program.b)
    component = list(range(nodes))

    def find(node: int) -> int:
        while component[node] != node:
            node = component[node]
        return node

    tree: list[list[tuple[int, tuple[int, int]]]] = [[] for _ in range(nodes)]
    for arc in sorted(plan, key=lambda arc: -plan[arc]):
        row, col = arc[0], len(program.a) + arc[1]
        if find(row) != find(col):
            component[find(row)] = find(col)
            tree[row].append((col, arc))
            tree[col].append((row, arc))
    left = lacks(program, plan)
    order: list[tuple[int, int, tuple[int, int]]] = []
    seen: set[int] = set()
    for root in range(nodes):
        todo = [] if root in seen else [root]
        seen.add(root)
        while todo:
            node = todo.pop()
            for other, arc in tree[node]:
                if other not in seen:
                    seen.add(other)
                    order.append((other, node, arc))
                    todo.append(other)
    plan = dict(plan)
    for node, above, arc in reversed(order):
        plan[arc] += left[node]
        left[above] -= left[node]
        left[node] = ZERO
    if any(left) or min(plan.values()) < 0:
        # So light an arc that rounding outweighs it: the exact linear optimum is a plan, too.
        plan = transport(program).mass
    return plan


def objective(program: Program, terms: Entropies, plan: Plan) -> Bounds:
    """Return two numbers between which the objective of a feasible plan lies."""
    phi = plan_costs(program, plan)
    worst = max(phi)
    total, size = worst, abs(worst)
    if terms.eta:
        scores = [to_mp((cost - worst) / terms.eta) for cost in phi]
        parts = [to_mp(q) * mpmath.exp(x) for q, x in zip(terms.q, scores, strict=True)]
        entropy = terms.eta * exact(mpmath.log(mpmath.fsum(parts)))
        total, size = total + entropy, size + abs(entropy) + terms.eta
    if terms.eps:
        logs = [
            moved * exact(mpmath.log(to_mp(moved / (program.a[i] * program.b[j]))))
            for (i, j), moved in plan.items()
            if moved
        ]
        total += terms.eps * sum(logs, ZERO)
        size += terms.eps * (1 + sum(map(abs, logs), ZERO))
    return total - STEP * size, total + STEP * size


def _reward(terms: Entropies, alpha: Sequence[Fraction]) -> Fraction:
    """The entropy of the weights times eta, and no more."""
    if not terms.eta:
        return ZERO
    logs = [
        weight * exact(mpmath.log(to_mp(weight / q)))
        for weight, q in zip(alpha, terms.q, strict=True)
        if weight
    ]
    return -terms.eta * (sum(logs, ZERO) + STEP * (1 + sum(map(abs, logs), ZERO)))


def _dual_value(
    program: Program, terms: Entropies, alpha: Sequence[Fraction], g: Sequence[Fraction]
) -> Fraction:
    """The dual value of the best answers to potentials, and no more."""
    costs = mixed_cost(program, alpha)
    eps = to_mp(terms.eps)
    log_a, log_b = ([mpmath.log(to_mp(w)) for w in side] for side in (program.a, program.b))
    shift = {arc: to_mp(-cost / terms.eps) for arc, cost in costs.items()}

    def answer(side: int, given: Sequence[Fraction]) -> list[Fraction]:
        """Best potentials of the rows (0) or columns (1), given those of the others."""
        size = len(program.a) if side == 0 else len(program.b)
        logs = log_b if side == 0 else log_a
        known = [to_mp(x / terms.eps) + log for x, log in zip(given, logs, strict=True)]
        sums: list[list[Any]] = [[] for _ in range(size)]
        for arc, score in shift.items():
            sums[arc[side]].append(known[arc[1 - side]] + score)
        found = []
        for scores in sums:
            top = max(scores)
            total = mpmath.fsum(mpmath.exp(score - top) for score in scores)
            found.append(exact(-eps * (top + mpmath.log(total))))
        return found

    # Potentials of points that weigh nothing may be far off at first.
    g = answer(1, answer(0, g))
    f = answer(0, g)
    size = max(map(abs, costs.values())) + max(map(abs, (*f, *g)))
    # Each f is right to what its scores are, and the logarithms of the weights.
    size += terms.eps * (1 + sum(abs(exact(log)) for log in log_b))
    return inner(f, program.a) + inner(g, program.b) - STEP * size
