"""Exact transport by POT's compiled network simplex, without the rest of POT.

``import ot`` loads PyTorch, JAX and TensorFlow wherever they are installed, which takes seconds
that nobody who calls `frot.solve` has asked for. The compiled module needs none of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from math import sqrt
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import SolverError
from frot._base.stopping import DeadlineError, seconds_left
from frot._base.validate import check_count
from frot.plans.feasible import UNIT, apparent_error, round_plan
from frot.plans.plan import Plan
from frot.solvers.oracles._protocol import Transport

# What POT calls the module, and the name of ours to load it under.
POTS_NAME = "ot.lp.emd_wrap"
OUR_PACKAGE = "frot.solvers.oracles._pot_package"
SOLVED = 1

# Seconds that POT takes an arc to set a problem up, and a pivot over the root of the arcs: roughly,
# for those who have a time limit.
SETUP_SECONDS = 1e-7
PIVOT_SECONDS = 8e-9
# Costs this many times what every plan pays are cut off first, and cuts are so many digits apart.
WIDE_RANGE = 1e7
CAP_DIGITS = 4.0
# Points are light below this share of a uniform weight; units in the last place that marginals may
# be off by.
LIGHT, UNITS = 0.25, 16.0
# A point of less than this share of another's weight must not hold its potential down.
LIGHTER = 1e-3
# What it pays to take off less for.
MUCH_LESS = 1e-3
# How much lower costs are cut each time they are seen closer.
CLOSER = 1e-6


# Costs that are left, what was taken off rows and columns, and what plans pay for that in size.
_Reduced = tuple[np.ndarray, np.ndarray, np.ndarray, float]


@dataclass(frozen=True)
class NetworkSimplex:
    r"""Solve :math:`\min_{\Pi \in U(a, b)} \langle \Pi, M \rangle` exactly.

    POT stops after 100,000 pivots with no more than a warning, which n = 2000 needs already;
    here the limit grows with the problem and a failure is an error. Where the time is limited, what
    there is at its end is returned, not converged. Infinite costs are forbidden arcs.

    Parameters
    ----------
    max_iter : int, optional
        Pivots at most; the default is 500 (n + m) and never less than a million.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> NetworkSimplex()(np.array([[1.0, 0.0], [0.0, 1.0]]), half, half).plan.argmax()
    array([1, 0])
    """

    max_iter: int | None = None

    def __post_init__(self) -> None:
        if self.max_iter is not None:
            object.__setattr__(self, "max_iter", check_count(self.max_iter, "max_iter"))

    def __call__(
        self,
        M: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        start: np.ndarray | None = None,
    ) -> Transport:
        """Return a vertex plan (at most n + m - 1 arcs) and optimal potentials."""
        n, m = M.shape
        limit = self.max_iter or max(1_000_000, 500 * (n + m))
        hurry = _pivots_in_time(n, m)
        light = min(a.min(), b.min()) < LIGHT / max(n, m)
        reduced, f, g = _reduce(M)
        paid = float(a @ np.abs(f) + b @ np.abs(g))
        if light and f.min() < 0.0:
            reduced, f, g, paid = _reduce_by_weight(M, a, b, (reduced, f, g, paid))
        top = float(reduced.max())
        forbidden = top == np.inf
        *cuts, cap = _caps(reduced, top, paid)
        pivots = int(min(limit, hurry))
        for cut in cuts:
            flow = _cut_flow(reduced, cut, a, b, pivots)
            if not flow.solved or not ((reduced > cut) & (flow.plan > 0.0)).any():
                cap = cut
                break
        else:
            flow = _cut_flow(reduced, cap, a, b, pivots)
        if not flow.solved and not hurry < limit:
            raise SolverError(
                f"POT's network simplex failed (code {flow.code}); the limit was {limit} pivots, "
                "see NetworkSimplex(max_iter=...)"
            )
        f, g = f + flow.f * cap, g + flow.g * cap
        while flow.solved and cuts and cap > cuts[0]:
            # POT saw costs to some share of the cap: what is left of them, seen closer.
            last, cap = cap, max(cap * CLOSER, cuts[0])
            finer = _finer(reduced, flow, last, cap, (a, b), pivots)
            if finer is None:
                break
            flow, reduced, more_f, more_g = finer
            f, g = f + more_f, g + more_g
        used = flow.plan > 0.0
        if forbidden:
            # Rounding may leave next to nothing on these.
            used &= np.inf > M
        where = used.ravel().nonzero()[0]
        rows = where // m
        plan = Plan.from_arcs(rows, where - m * rows, flow.plan.ravel()[where], (n, m))
        if light:
            plan = _relative_to_weights(plan, M, a, b)
        return Transport(plan, f, g, flow.solved)


def _reduce(M: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Take the least cost off every row and column: it is paid by every plan.

    What is left is small where a point is far from all others, so that its digits do not drown
    those of the rest.
    """
    f = M.min(axis=1)
    reduced = M - f[:, None]
    g = reduced.min(axis=0)
    reduced -= g
    return reduced, f, g


def _reduce_by_weight(M: np.ndarray, a: np.ndarray, b: np.ndarray, plain: _Reduced) -> _Reduced:
    """Take off rows and columns what others leave them, but light ones, if that is less in all.

    The least cost of a heavy row may be that of a light column, far below zero: taken off, it would
    leave nothing of the digits of the others. Entries may stay below zero here.
    """
    f, g = np.zeros(len(a)), np.zeros(len(b))
    for _ in range(2):
        f = _held(M - g, b >= LIGHTER * a[:, None], axis=1)
        g = _held(M - f[:, None], a[:, None] >= LIGHTER * b, axis=0)
    paid = float(a @ np.abs(f) + b @ np.abs(g))
    return (M - f[:, None] - g, f, g, paid) if paid < MUCH_LESS * plain[3] else plain


def _held(left: np.ndarray, by: np.ndarray, axis: int) -> np.ndarray:
    """Return the least entries that count, or of all where none does."""
    least = np.where(by, left, np.inf).min(axis=axis)
    return np.where(np.isfinite(least), least, left.min(axis=axis))


def _relative_to_weights(plan: Plan, M: np.ndarray, a: np.ndarray, b: np.ndarray) -> Plan:
    """Make the marginals of light points right, too: POT's are to units of the whole mass."""
    if apparent_error(plan, a, b) <= UNITS * UNIT:
        return plan
    return plan if np.isinf(M).any() else round_plan(plan, a, b)


def _caps(reduced: np.ndarray, top: float, paid: float) -> list[float]:
    """Costs to cut off at, one after another until the plan uses none that was cut.

    POT compares costs to an absolute tolerance: it is given numbers in [0, 1]. A few that stand for
    forbidden arcs, or the distance of pairs that are nowhere near, would leave nothing of the
    others. Cut costs only lower the optimum, so that a plan that uses none of them is optimal.
    """
    most = top
    if top == np.inf:
        top = float(reduced.max(where=reduced < np.inf, initial=0.0))
        # Dearer than any way around that uses allowed arcs.
        most = (min(reduced.shape) + 1.0) * top
    if not top > 0.0:
        return [1.0]
    if not 0.0 < paid < top / WIDE_RANGE:
        return [most]
    # By their logarithms: the two may be further apart than a quotient can say.
    low = np.log10(paid)
    steps = int((np.log10(most) - low) / CAP_DIGITS)
    return [10.0 ** (low + CAP_DIGITS * step) for step in range(1, steps + 1)] + [most]


def _cut_flow(
    reduced: np.ndarray, cap: float, a: np.ndarray, b: np.ndarray, pivots: int
) -> SimplexFlow:
    """Transport at costs cut at `cap`, in units of it."""
    scaled = np.minimum(reduced, cap)
    scaled /= cap
    return network_simplex(scaled, a, b, pivots)


def _finer(
    before: np.ndarray,
    flow: SimplexFlow,
    last: float,
    cap: float,
    weights: tuple[np.ndarray, np.ndarray],
    pivots: int,
) -> tuple[SimplexFlow, np.ndarray, np.ndarray, np.ndarray] | None:
    """Transport at the reduced costs of a flow's potentials; None if it needs more than `cap`.

    Returns the flow, these costs uncut, and what its potentials add.
    """
    left = before - (flow.f * last)[:, None] - flow.g * last
    reduced, f, g = _reduce(left)
    finer = _cut_flow(reduced, cap, *weights, pivots)
    if not finer.solved or ((reduced > cap) & (finer.plan > 0.0)).any():
        return None
    return finer, reduced, f + finer.f * cap, g + finer.g * cap


def _pivots_in_time(n: int, m: int) -> float:
    """How many pivots there is time for.

    Raises
    ------
    DeadlineError
        If there is not even the time to set the problem up.
    """
    left = seconds_left() - SETUP_SECONDS * n * m
    if left <= 0.0:
        raise DeadlineError
    return left / (PIVOT_SECONDS * sqrt(n * m))


class SimplexFlow(NamedTuple):
    """A plan (n, m), potentials (n,) and (m,), and whether it is optimal; if not, POT's code."""

    plan: np.ndarray
    f: np.ndarray
    g: np.ndarray
    code: int

    @property
    def solved(self) -> bool:
        """Whether the plan is optimal."""
        return self.code == SOLVED


def network_simplex(M: np.ndarray, a: np.ndarray, b: np.ndarray, most_pivots: int) -> SimplexFlow:
    r"""Solve :math:`\min_{\Pi \in U(a, b)} \langle \Pi, M \rangle` with at most so many pivots.

    Points without weight get a potential of zero, which need not be feasible.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> network_simplex(np.array([[0.0, 1.0], [1.0, 0.0]]), half, half, 1000).plan
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    M = np.ascontiguousarray(M, dtype=float)
    # POT rescales b in place of the caller's, so that sums agree to the last bit.
    plan, _, f, g, code = _compiled().emd_c(
        np.ascontiguousarray(a), np.array(b, dtype=float), M, most_pivots, 1
    )
    return SimplexFlow(plan, f, g, int(code))


@cache
def _compiled() -> Any:
    """Return POT's compiled module, loaded alone where POT is not loaded already."""
    if POTS_NAME in sys.modules:
        return sys.modules[POTS_NAME]
    return _load_alone() or importlib.import_module(POTS_NAME)


def _load_alone() -> ModuleType | None:
    """Load the compiled file under a name of ours; None where it is not where it used to be."""
    package = importlib.util.find_spec("ot")
    places = package.submodule_search_locations if package else None
    found = [
        path
        for place in places or ()
        for suffix in EXTENSION_SUFFIXES
        if (path := Path(place, "lp", f"emd_wrap{suffix}")).is_file()
    ]
    if not found:
        return None
    for name in (OUR_PACKAGE, f"{OUR_PACKAGE}.lp", f"{OUR_PACKAGE}.utils"):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = []
    # The one thing the module imports from POT, for functions that frot does not call.
    sys.modules[f"{OUR_PACKAGE}.utils"].dist = _pots_dist  # type: ignore[attr-defined]
    name = f"{OUR_PACKAGE}.lp.emd_wrap"
    loader = ExtensionFileLoader(name, str(found[0]))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError:
        # Another version of POT may import more of itself.
        return None
    finally:
        # Compiled modules enter themselves under the name they were built with. Left there,
        # ``import ot`` would find it and not set it up.
        sys.modules.pop(POTS_NAME, None)
    return module


def _pots_dist(*args: Any, **options: Any) -> Any:
    """``ot.utils.dist``, should the user's POT come to share our module."""
    return importlib.import_module("ot.utils").dist(*args, **options)
