"""POT's compiled network simplex, without the rest of POT.

``import ot`` loads PyTorch, JAX and TensorFlow wherever they are installed, which takes seconds
that nobody who calls `frot.solve` has asked for. The compiled module needs none of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Flow", "network_simplex"]

# What POT calls the module, and the name of ours to load it under.
POTS_NAME = "ot.lp.emd_wrap"
OUR_PACKAGE = "frot.solvers.oracles._pot_package"
SOLVED = 1


class Flow(NamedTuple):
    """A plan (n, m), potentials (n,) and (m,), and whether it is optimal; if not, POT's code."""

    plan: np.ndarray
    f: np.ndarray
    g: np.ndarray
    code: int

    @property
    def solved(self) -> bool:
        """Whether the plan is optimal."""
        return self.code == SOLVED


def network_simplex(M: np.ndarray, a: np.ndarray, b: np.ndarray, most_pivots: int) -> Flow:
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
    return Flow(plan, f, g, int(code))


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
