r"""Pathways as blocks of coordinates: the principal components of each, in comparable units.

Genes of a set are centred and, where asked, scaled to unit variance over the cells of both days.
Their leading principal components :math:`z = V^\top (x - \bar x)` make a block, which is divided by
the root of its mean cost,

.. math:: m_l = \sum_{ij} a_i b_j \| z_i^{(l)} - z_j^{(l)} \|^2,

so that a plan that couples at random costs one in every group, whatever its number of genes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from frot._base.annotated import values_of
from frot._base.errors import InputError, brief
from frot._base.names import quote_some
from frot.groups.groups import Groups

# Components of less than this share of a group's variance are rounding.
ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class Block:
    """One group of p genes of both days in its own k coordinates."""

    name: str
    # Coordinates, (n, k) and (m, k), divided by the root of their mean cost.
    source: np.ndarray
    target: np.ndarray
    # The genes found, or the coordinates of a latent block.
    genes: tuple[str, ...]
    # Orthonormal columns, (p, k): how genes make coordinates. None for a latent block.
    loadings: np.ndarray | None
    # The share of the genes' variance that the coordinates keep.
    share: float
    # The mean cost that the costs were divided by.
    unit: float
    # What genes were divided by.
    spread: np.ndarray
    # What coordinates were multiplied by to denoise them, (k, k): symmetric and invertible.
    filter: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.source.shape[1]


def join(blocks: Sequence[Block]) -> tuple[np.ndarray, np.ndarray, tuple[Block, ...]]:
    """Return all coordinates side by side, (n, D) and (m, D), and the blocks as parts of them.

    So large sets of cells are in memory only once.
    """
    X, Y = (np.hstack([getattr(one, side) for one in blocks]) for side in ("source", "target"))
    ends = np.cumsum([one.size for one in blocks])
    parts = [slice(end - one.size, end) for one, end in zip(blocks, ends, strict=True)]
    return (
        X,
        Y,
        tuple(
            replace(one, source=X[:, part], target=Y[:, part])
            for one, part in zip(blocks, parts, strict=True)
        ),
    )


def latent_keys(data: Any, groups: Any) -> list[str] | None:
    """Return the keys of ``obsm`` that groups are, or None where they are sets of genes.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> adata = SimpleNamespace(obsm={"X_pca": 0, "X_umap": 0})
    >>> latent_keys(adata, "X_pca"), latent_keys(adata, "hallmark.gmt")
    (['X_pca'], None)
    """
    listed = [groups] if isinstance(groups, str) else groups
    if isinstance(listed, Mapping | Groups) or not isinstance(listed, Sequence):
        return None
    found = [one for one in listed if isinstance(one, str) and one in data.obsm]
    if not found:
        return None
    if absent := [str(one) for one in listed if one not in found]:
        known = quote_some([str(one) for one in data.obsm])
        raise InputError(f"groups: adata.obsm has no {quote_some(absent)}; it has {known}")
    return found


def make_blocks(
    data: Any,
    rows: tuple[np.ndarray, np.ndarray],
    weights: tuple[np.ndarray, np.ndarray],
    groups: Any,
    layer: str | None,
    components: int,
    scale: bool,
) -> tuple[list[Block], tuple[str, ...]]:
    """Return a block for each group whose values vary, and the names of the other groups."""
    keys, n = latent_keys(data, groups), len(rows[0])
    made: list[Block | str] = []
    if keys is not None:
        made += [_scaled(key, _latent(data, key, rows), n, weights) for key in keys]
    else:
        table, names = values_of(data, layer)
        parsed = parse_genes(groups, [str(name) for name in names])
        # Columns are taken one group after the other: sparse tables are converted once.
        part = table[np.concatenate(rows)]
        part = sparse.csc_array(part) if sparse.issparse(part) else part
        _refuse_nan(part, names)
        for name, members in parsed:
            taken = part[:, members]
            values = np.asarray(taken.toarray() if sparse.issparse(taken) else taken, dtype=float)
            genes = tuple(map(str, names[members]))
            made.append(_components(name, values, genes, n, weights, components, scale))
        # Sets of a file that have no gene here.
        made += parsed.dropped
    blocks = [block for block in made if isinstance(block, Block)]
    if not blocks:
        raise InputError(
            "groups: no group has values that vary between cells; check the table and the groups"
        )
    return blocks, tuple(block for block in made if isinstance(block, str))


def _latent(data: Any, key: str, rows: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    values = np.asarray(data.obsm[key])
    both = np.concatenate(rows)
    if values.ndim != 2 or len(values) <= both.max():
        raise InputError(f"groups: adata.obsm[{key!r}] has shape {values.shape}; give (cells, k)")
    values = values[both].astype(float)
    if not np.isfinite(values).all():
        raise InputError(f"groups: adata.obsm[{key!r}] has values that are not finite")
    return values


def parse_genes(groups: Any, names: list[str]) -> Groups:
    """Return groups of genes, each with at least one gene of the data."""
    if isinstance(groups, Mapping):
        known = set(names)
        found = {
            name: [gene for gene in genes if not isinstance(gene, str) or gene in known]
            if isinstance(genes, Sequence | set | frozenset) and not isinstance(genes, str)
            else genes
            for name, genes in groups.items()
        }
        # Sizes of what can be counted; a slice or a mask is for `Groups` to read.
        empty = [
            str(name) for name, genes in found.items() if isinstance(genes, list) and not genes
        ]
        if empty:
            raise InputError(
                f"groups: {quote_some(empty)} has no gene that adata has; leave it out, or name "
                "genes as adata.var_names does"
            )
        groups = found
    if groups is None:
        raise InputError(
            "groups: needs sets of genes: a .gmt file, a mapping of names to genes, or keys of "
            "adata.obsm"
        )
    return Groups.parse(groups, len(names), names)


def _refuse_nan(table: Any, names: np.ndarray) -> None:
    values = table.data if sparse.issparse(table) else table
    if values.dtype.kind not in "fiub":
        raise InputError(f"adata: values are of type {values.dtype}; give numbers")
    # A sum is one pass without a copy; it is not finite if an entry is not, or by overflow.
    if values.dtype.kind != "f" or np.isfinite(values.sum(dtype=float)):
        return
    if np.isfinite(values).all():
        return
    if sparse.issparse(table):
        bad = table.indptr.searchsorted(np.flatnonzero(~np.isfinite(values))[0], "right") - 1
    else:
        bad = np.flatnonzero(~np.isfinite(values).all(axis=0))[0]
    raise InputError(
        f"adata: gene {brief(str(names[bad]))} has a value that is not finite; fill it in, or "
        "leave the gene or the cell out"
    )


def _components(
    name: str,
    values: np.ndarray,
    genes: tuple[str, ...],
    n: int,
    weights: tuple[np.ndarray, np.ndarray],
    components: int,
    scale: bool,
) -> Block | str:
    """Return the leading principal components of a group, or its name where nothing varies."""
    values -= values.mean(axis=0)
    spread = np.sqrt(np.einsum("ij,ij->j", values, values) / len(values))
    varies = spread > ROUNDING * max(float(spread.max()), 1e-300)
    if not spread.max() > 0.0:
        return name
    spread = np.where(varies, spread, 1.0) if scale else np.ones(len(spread))
    values /= spread
    # The smaller of the two Gram matrices has the same spectrum.
    wide = values.shape[1] > values.shape[0]
    gram = values @ values.T if wide else values.T @ values
    powers, vectors = np.linalg.eigh(gram)
    powers, vectors = powers[::-1], vectors[:, ::-1]
    keep = np.flatnonzero(powers > ROUNDING * powers[0])[:components]
    vectors = vectors[:, keep]
    loadings = values.T @ vectors / np.sqrt(powers[keep]) if wide else vectors
    share = float(powers[keep].sum() / powers[powers > 0.0].sum())
    return _scaled(name, values @ loadings, n, weights, genes, loadings, share, spread)


def _scaled(
    name: str,
    values: np.ndarray,
    n: int,
    weights: tuple[np.ndarray, np.ndarray],
    genes: tuple[str, ...] | None = None,
    loadings: np.ndarray | None = None,
    share: float = 1.0,
    spread: np.ndarray | None = None,
) -> Block | str:
    """Divide coordinates by the root of their mean cost."""
    first, second = values[:n], values[n:]
    unit = mean_cost(first, second, weights)
    if unit <= 0.0:
        return name
    k = values.shape[1]
    return Block(
        name,
        first / np.sqrt(unit),
        second / np.sqrt(unit),
        tuple(f"{name}_{at}" for at in range(k)) if genes is None else genes,
        loadings,
        share,
        unit,
        np.ones(k) if spread is None else spread,
    )


def mean_cost(
    first: np.ndarray, second: np.ndarray, weights: tuple[np.ndarray, np.ndarray]
) -> float:
    """Return what coupling at random costs: the mean squared distance over all pairs of cells.

    Examples
    --------
    >>> mean_cost(np.array([[0.0], [2.0]]), np.array([[1.0]]), (np.array([0.5, 0.5]), np.ones(1)))
    1.0
    """
    a, b = (part / part.sum() for part in weights)
    centre, other = a @ first, b @ second
    return float(
        a @ np.square(first - centre).sum(axis=1)
        + b @ np.square(second - other).sum(axis=1)
        + np.square(centre - other).sum()
    )
