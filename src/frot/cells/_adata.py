"""Couplings stored in an AnnData, and as arrays and numbers for checkpoints.

In an AnnData transitions are in ``obsp``, all else in ``uns``, fates in ``obsm``. Of a plan
with entropy only the potentials are stored: n + m numbers, from which one pass of the solver makes
the same plan and proves its interval again. Plans without entropy are stored as arcs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from scipy import sparse

from frot._base.errors import InputError, brief, require
from frot._base.names import quote_some
from frot.cells._blocks import join
from frot.cells._coupling import Coupling, CouplingSettings, GroupSummary, make_coupling
from frot.cells._input import Side, as_cells, read_days
from frot.plans.plan import Plan
from frot.problem.result import Result, Status

# The smallest entries of a row, together less than this share of its mass, are left out.
LEAST = 1e-3
# Entries of a plan that are formed at a time.
AT_ONCE = 4_000_000
COLUMNS = ("name", "genes", "components", "share", "z", "passed")


def write(couplings: Sequence[Coupling], adata: Any, labels: str | None, key_added: str) -> None:
    """Write couplings of one column of days into an AnnData."""
    cells = couplings[0].data
    total = len(read_days(cells, couplings[0].key).codes)
    if not hasattr(adata, "obsp") or len(read_days(adata, couplings[0].key).codes) != total:
        raise InputError(f"adata: {brief(adata)} is not an AnnData of the {total} cells coupled")
    fates = None if labels is None else [one.label_shares(labels) for one in couplings]
    # A matrix, not an array, as in scanpy and CellRank, in all versions.
    adata.obsp[key_added] = sparse.csr_matrix(transitions(couplings, total))
    adata.uns[key_added] = {
        "params": _params(couplings[0]),
        "couplings": {str(at): _noted(one) for at, one in enumerate(couplings)},
    }
    if fates is not None:
        pandas = require("pandas", "anndata")
        known = list(dict.fromkeys(name for listed, _, _ in fates for name in listed))
        likely, likeliest = np.full((total, len(known)), np.nan), np.full(total, None, dtype=object)
        for one, (listed, shares, given) in zip(couplings, fates, strict=True):
            # A label that a later day does not have is the fate of no cell.
            spread = np.zeros((len(shares), len(known)))
            spread[:, [known.index(name) for name in listed]] = shares
            likely[one.source.rows], likeliest[one.source.rows] = spread, given
        names = [str(name) for name in known]
        index = getattr(adata.obs, "index", None)
        name = f"{key_added}_{labels}"
        adata.obsm[name] = pandas.DataFrame(likely, index=index, columns=names)
        likely_names = [None if one is None else str(one) for one in likeliest]
        adata.obs[name] = pandas.Categorical(likely_names, categories=names)


def transitions(couplings: Sequence[Coupling], total: int) -> sparse.csr_array:
    """Return transition probabilities between all cells, shape (N, N); those without one stay.

    Examples
    --------
    >>> from frot.cells import couple
    >>> cells = (np.array([[0.0], [9.0], [0.1], [9.1]]), {"day": [1, 1, 2, 2]})
    >>> found = couple(cells, groups={"all": [0]}, eps=0.0)
    >>> transitions([found], 4).toarray()
    array([[0., 0., 1., 0.],
           [0., 0., 0., 1.],
           [0., 0., 1., 0.],
           [0., 0., 0., 1.]])
    """
    rows, cols, shares = [], [], []
    for coupling in couplings:
        for i, j, share in _shares(coupling):
            rows.append(coupling.source.rows[i])
            cols.append(coupling.target.rows[j])
            shares.append(share)
    moved = np.unique(np.concatenate(rows))
    stay = np.setdiff1d(np.arange(total), moved)
    parts = (
        np.concatenate([*shares, np.ones(len(stay))]),
        (np.concatenate([*rows, stay]), np.concatenate([*cols, stay])),
    )
    return sparse.csr_array(sparse.coo_array(parts, shape=(total, total)))


def _shares(coupling: Coupling) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield entries of the plan as shares of their rows, in blocks of rows."""
    plan = coupling.result.plan
    n, m = plan.shape
    if plan.is_sparse:
        i, j, mass = plan.arcs()
        yield i, j, mass / np.bincount(i, mass, n)[i]
        return
    step = max(1, AT_ONCE // m)
    for start in range(0, n, step):
        block = np.asarray(plan[start : start + step])
        total = block.sum(axis=1, keepdims=True)
        kept = block * (block * m > LEAST * total)
        i, j = np.nonzero(kept)
        yield start + i, j, kept[i, j] / kept.sum(axis=1)[i]


def _params(coupling: Coupling) -> dict[str, Any]:
    settings = coupling.settings
    # Not all files can hold None: arguments that were not given are left out.
    facts = {"key": coupling.key, "growth": settings.growth, "layer": settings.layer}
    facts |= {"components": int(settings.components), "scale": bool(settings.scale)}
    # Without a gate nothing is denoised, whatever was asked for.
    facts |= {"gate": settings.gate, "denoise": bool(settings.denoise and settings.gate)}
    return {name: value for name, value in facts.items() if value is not None}


def _noted(coupling: Coupling) -> dict[str, Any]:
    """Return a coupling as strings, numbers and arrays, as .h5ad files hold them."""
    facts, arrays = pack(coupling)
    about = {name: [one[name] for one in facts["about"]] for name in COLUMNS}
    genes = [block.genes for block in coupling.blocks]
    return {
        **{name: value for name, value in facts.items() if name != "about"},
        **{name: np.asarray(array) for name, array in arrays.items()},
        "tau": np.array(facts["tau"]),
        "totals": np.array(facts["totals"]),
        "source": str(coupling.source.day),
        "target": str(coupling.target.day),
        "groups": {name: np.array(values) for name, values in about.items()},
        "weights": coupling.alpha,
        "latent": bool(coupling.blocks[0].loadings is None),
        "members": np.array([gene for group in genes for gene in group], dtype=str),
        "sizes": np.array([len(group) for group in genes]),
    }


def read(adata: Any, key_added: str) -> list[Coupling]:
    """Return the couplings that were written."""
    data = as_cells(adata)
    if key_added not in data.uns or "couplings" not in data.uns[key_added]:
        known = quote_some([str(name) for name in data.uns]) or "nothing"
        raise InputError(f"key_added: adata.uns has no couplings at {key_added!r}; it has {known}")
    kept = data.uns[key_added]
    params = {name: _plain(value) for name, value in kept["params"].items()}
    key = params.pop("key")
    # Older files, of couplings that were not denoised, have no such entry.
    params.setdefault("denoise", False)
    days = read_days(data, key)
    found = []
    for at in range(len(kept["couplings"])):
        noted = kept["couplings"][str(at)]
        about = {name: np.asarray(noted["groups"][name]).tolist() for name in COLUMNS}
        rows = [dict(zip(about, row, strict=True)) for row in zip(*about.values(), strict=True)]
        facts = {name: _plain(value) for name, value in noted.items() if np.ndim(value) == 0}
        facts |= {"about": rows, "tau": noted["tau"].tolist(), "totals": noted["totals"].tolist()}
        arrays = {name: np.asarray(noted[name]) for name in ARRAYS if name in noted}
        first, second = days.side(facts["source"], "source"), days.side(facts["target"], "target")
        settings = CouplingSettings(_members(facts["latent"], rows, noted), **params)
        found.append(unpack(facts, arrays, data, key, first, second, settings))
    return found


ARRAYS = ("alpha", "phi", "f", "g", "rows", "cols", "mass")


def _members(latent: bool, about: list[dict[str, Any]], noted: Any) -> Any:
    """Return the groups that passed: keys of obsm, or genes by name."""
    names = [one["name"] for one in about if one["passed"]]
    if latent:
        return names
    ends = np.cumsum(noted["sizes"])
    genes = np.split(np.asarray(noted["members"]).astype(str), ends[:-1])
    return {name: members.tolist() for name, members in zip(names, genes, strict=True)}


def _plain(value: Any) -> Any:
    """Return a number or text as Python's own: files give NumPy's."""
    return value.item() if isinstance(value, np.generic) else value


NUMBERS = ("value", "lower", "upper", "mean_cost", "eta", "eps", "iterations", "time")
# How much wider an interval may be when it is proven again.
SLACK = 1.5


def pack(coupling: Coupling) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a coupling as JSON values and arrays."""
    result = coupling.result
    facts = {name: getattr(result, name) for name in NUMBERS}
    facts |= {"tau": list(result.tau), "totals": list(result.totals), "solver": result.solver}
    facts |= {"status": result.status.name, "about": [asdict(one) for one in coupling.about]}
    f, g = result.potentials
    arrays = {"alpha": result.alpha, "phi": result.phi, "f": f, "g": g}
    if result.plan.is_sparse:
        arrays |= dict(zip(("rows", "cols", "mass"), result.plan.arcs(), strict=True))
    return facts, arrays


def unpack(
    facts: dict[str, Any],
    arrays: dict[str, np.ndarray],
    data: Any,
    key: str,
    first: Side,
    second: Side,
    settings: CouplingSettings,
) -> Coupling:
    """Return the coupling that was packed."""
    about = tuple(GroupSummary(**one) for one in facts["about"])
    weights = (settings.weights(data, first), np.full(len(second), 1.0 / len(second)))
    found = {block.name: block for block in settings.blocks(data, first, second, weights)[0]}
    passed = [found[one.name] for one in about if one.passed]
    X, Y, blocks = join(settings.denoised(passed, weights))
    shape = (len(first), len(second))
    rows, cols, mass = (arrays.get(name, np.empty(0)) for name in ("rows", "cols", "mass"))
    result = Result(
        **{name: facts[name] for name in NUMBERS},
        status=Status[facts["status"]],
        alpha=arrays["alpha"],
        phi=arrays["phi"],
        plan=Plan.from_arcs(rows, cols, mass, shape),
        potentials=(arrays["f"], arrays["g"]),
        names=tuple(block.name for block in blocks),
        solver=facts["solver"],
        tau=(facts["tau"][0], facts["tau"][1]),
        totals=(facts["totals"][0], facts["totals"][1]),
    )
    if "mass" not in arrays:
        again = replace(
            settings, eta=result.eta, eps=result.eps, tau=result.tau, tol=SLACK * result.gap
        )
        proven = again.solve(X, Y, blocks, weights, start=result)
        result = replace(
            proven, status=result.status, iterations=result.iterations, time=result.time
        )
    return make_coupling(key, first, second, about, blocks, data, settings, result)
