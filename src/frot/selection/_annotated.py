"""Columns, values and names of an AnnData, or of anything that has its attributes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse

from frot._base.contract import refuse_masked
from frot._base.errors import InputError, brief
from frot._base.names import did_you_mean, quote_some


def natural(text: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts numbers in text by what they are worth.

    Examples
    --------
    >>> sorted(["10", "2", "T1", "T02"], key=natural)
    ['2', '10', 'T1', 'T02']
    """
    parts = re.findall(r"\d+|\D+", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def in_memory(source: Any) -> Any:
    """Read a sparse table of a file that is open ("backed"), which is no sparse array yet."""
    return source.to_memory() if hasattr(source, "to_memory") else source


def obs_column(adata: Any, name: str, argument: str) -> np.ndarray:
    """Return a column of ``adata.obs``, or say which there are.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> obs_column(SimpleNamespace(obs={"day": [3, 4]}), "day", "key")
    array([3, 4])
    """
    if not isinstance(name, str):
        raise InputError(f"{argument}: {brief(name)} is not the name of a column of adata.obs")
    if name not in adata.obs:
        known = quote_some([str(column) for column in adata.obs])
        raise InputError(
            f"{argument}: adata.obs has no column {brief(name)}; it has {known or 'none'}"
            f"{did_you_mean(name, list(adata.obs))}"
        )
    return np.asarray(adata.obs[name])


def values_of(
    adata: Any, layer: str | None, use_raw: bool | None = None
) -> tuple[Any, np.ndarray, bool]:
    """Return a table of cells in rows, sparse where it is, its genes, and whether it is the raw."""
    raw = getattr(adata, "raw", None)
    if use_raw is None:
        use_raw = raw is not None and layer is None
    if use_raw:
        if layer is not None:
            raise InputError("layer, use_raw: give one of them")
        if raw is None:
            raise InputError("use_raw: adata.raw is not set; leave use_raw out")
        source, names = raw.X, raw.var_names
    elif layer is None:
        source, names = adata.X, adata.var_names
    elif layer in adata.layers:
        source, names = adata.layers[layer], adata.var_names
    else:
        known = quote_some(list(adata.layers)) or "none"
        hint = did_you_mean(layer, list(adata.layers))
        raise InputError(f"layer: adata has no layer {layer!r}; it has {known}{hint}")
    if source is None:
        known = quote_some(list(adata.layers)) or "none"
        raise InputError(f"adata: has no X; give a layer, of which there are {known}")
    refuse_masked(source, "adata.X" if layer is None else f"adata.layers[{layer!r}]")
    source = in_memory(source)
    table = sparse.csr_array(source) if sparse.issparse(source) else np.asarray(source)
    return table, np.asarray(names, dtype=object), bool(use_raw)
