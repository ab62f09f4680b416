"""Exact transport by POT's compiled network simplex, without the rest of POT.

POT: Flamary et al. 2021; its simplex is that of Bonneel et al. 2011.

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

from frot._base.errors import InputError, SolverError
from frot._base.stopping import DeadlineError, seconds_left
from frot._base.validate import check_count
from frot.plans.plan import Plan
from frot.solvers.oracles._protocol import Transport

# What POT calls the module, and the name of ours to load it under.
POTS_NAME = "ot.lp.emd_wrap"
OUR_PACKAGE = "frot.solvers.oracles._pot_package"


@dataclass(frozen=True)
class NetworkSimplex:
    r"""Solve :math:`\min_{\Pi \in U(a, b)} \langle \Pi, M \rangle` exactly.

    POT stops after 100,000 pivots with no more than a warning, which n = 2000 needs already;
    here the limit grows with the problem and a failure is an error. Where the time is limited, what
    there is at its end is returned, not converged.

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
        reduced, f, g = _reduce(M)
        unit = float(reduced.max()) or 1.0
        if not np.isfinite(unit):
            raise InputError(
                "M: has infinite costs or NaN; an arc that must not be used gets a cost larger "
                "than all others, such as ten times the largest"
            )
        # POT compares costs to an absolute tolerance: it is given numbers in [0, 1].
        reduced /= unit
        flow = network_simplex(reduced, a, b, int(min(limit, hurry)))
        if not flow.solved and not hurry < limit:
            raise SolverError(
                f"POT's network simplex failed (code {flow.code}); the limit was {limit} pivots, "
                "see NetworkSimplex(max_iter=...)"
            )
        where = flow.plan.ravel().nonzero()[0]
        rows = where // m
        plan = Plan.from_arcs(rows, where - m * rows, flow.plan.ravel()[where], (n, m))
        more_f, more_g = flow.f, flow.g
        # Points without weight are outside POT's tree: their potentials are c-transforms.
        rows_left, cols_left = a == 0.0, b == 0.0
        if rows_left.any() or cols_left.any():
            more_g[cols_left] = (reduced - more_f[:, None])[~rows_left][:, cols_left].min(axis=0)
            more_f[rows_left] = (reduced[rows_left] - more_g).min(axis=1)
        return Transport(plan, f + more_f * unit, g + more_g * unit, flow.solved)


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


def _pivots_in_time(n: int, m: int) -> float:
    """How many pivots there is time for.

    Raises
    ------
    DeadlineError
        If there is not even the time to set the problem up.
    """
    # Seconds that POT takes an arc to set a problem up, and a pivot over the root of the arcs.
    left = seconds_left() - 1e-7 * n * m
    if left <= 0.0:
        raise DeadlineError
    return left / (8e-9 * sqrt(n * m))


class SimplexFlow(NamedTuple):
    """A plan (n, m), potentials (n,) and (m,), and whether it is optimal; if not, POT's code."""

    plan: np.ndarray
    f: np.ndarray
    g: np.ndarray
    code: int

    @property
    def solved(self) -> bool:
        """Whether the plan is optimal."""
        return self.code == 1


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
    files = [
        path
        for place in places or ()
        for suffix in EXTENSION_SUFFIXES
        if (path := Path(place, "lp", f"emd_wrap{suffix}")).is_file()
    ]
    if not files:
        return None
    for name in (OUR_PACKAGE, f"{OUR_PACKAGE}.lp", f"{OUR_PACKAGE}.utils"):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = []
    # The one thing the module imports from POT, for functions that frot does not call.
    sys.modules[f"{OUR_PACKAGE}.utils"].dist = _pots_dist  # type: ignore[attr-defined]
    name = f"{OUR_PACKAGE}.lp.emd_wrap"
    loader = ExtensionFileLoader(name, str(files[0]))
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
