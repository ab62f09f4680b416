"""AnnData: marker genes in the layout of scanpy's ``rank_genes_groups``."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy import sparse

from frot._base.errors import InputError
from frot._base.names import quote_some
from frot.selection._selector import FROTSelector

__all__ = ["rank_genes"]


def rank_genes(
    adata: Any,
    groupby: str,
    *,
    group: Any = None,
    reference: str = "rest",
    selector: FROTSelector | None = None,
    layer: str | None = None,
    use_raw: bool = False,
    n_genes: int | None = None,
    n_permutations: int = 0,
    block: str | None = None,
    key_added: str = "rank_genes_groups",
    n_jobs: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | None = 0,
) -> None:
    """Rank genes by how they tell groups of cells apart, and write it where scanpy looks.

    Each group is held against the reference; `adata.uns[key_added]` then has the layout of
    ``scanpy.tl.rank_genes_groups``, so that ``scanpy.get.rank_genes_groups_df`` and scanpy's
    plots read it. Scores are those of the selector, never negative: whether a gene is up or down
    is in ``logfoldchanges``, computed as scanpy does, from means of log1p values.

    Parameters
    ----------
    adata : AnnData
        Cells in rows. Sparse tables stay sparse.
    groupby : str
        Column of ``adata.obs`` with the groups.
    group : str or list of str, optional
        Which groups to rank genes for; all of them by default.
    reference : str
        The group to compare with, or "rest".
    selector : FROTSelector, optional
        Whose parameters to use; its groups must be "each".
    layer : str, optional
        Take values from this layer.
    use_raw : bool
        Take values from ``adata.raw``.
    n_genes : int, optional
        How many genes to list; all by default.
    n_permutations : int
        Permutations for ``pvals`` and ``pvals_adj``, which are NaN without.
    block : str, optional
        Column of ``adata.obs``, such as a batch or donor, to permute within.
    key_added : str
        Where in ``adata.uns``.
    n_jobs, progress, checkpoint, random_state :
        As in `permutation_test`; each group has a checkpoint file with its name added.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import pandas
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(1.0, size=(30, 3)).astype(float)
    >>> X[:15, 2] += 4.0
    >>> adata = SimpleNamespace(  # for what an AnnData has
    ...     X=np.log1p(X), var_names=["INS", "GCG", "CD8A"], uns={}, layers={}, raw=None,
    ...     obs=pandas.DataFrame({"kind": ["t"] * 15 + ["b"] * 15}),
    ... )
    >>> rank_genes(adata, "kind", group="t", reference="b")
    >>> adata.uns["rank_genes_groups"]["names"]["t"][0]
    'CD8A'
    """
    labels = _column(adata, groupby, "groupby").astype(str)
    present = np.unique(labels)
    wanted = _wanted(group, reference, present, groupby)
    table, names = _values(adata, layer, use_raw)
    blocks = None if block is None else _column(adata, block, "block")
    settings = {} if selector is None else selector.get_params()
    if settings.get("groups", "each") != "each":
        raise InputError("selector: has groups of genes; rank_genes ranks single genes")
    count = len(names) if n_genes is None else min(int(n_genes), len(names))
    base = (adata.uns.get("log1p") or {}).get("base")
    columns: dict[str, list[np.ndarray]] = {
        name: [] for name in ("names", "scores", "pvals", "pvals_adj", "logfoldchanges")
    }
    for one in wanted:
        inside = labels == one
        kept = np.ones(len(labels), bool) if reference == "rest" else inside | (labels == reference)
        rows = np.flatnonzero(kept)
        # The reference sorts first, so that rows of the plan are cells of the reference.
        y = inside[rows].astype(int)
        fitted = FROTSelector(**settings).fit(table[rows], y)
        if n_permutations:
            fitted.permutation_test(
                table[rows],
                y,
                n_permutations=n_permutations,
                block=None if blocks is None else blocks[rows],
                n_jobs=n_jobs,
                progress=progress,
                checkpoint=None if checkpoint is None else f"{os.fspath(checkpoint)}.{one}",
                random_state=random_state,
            )
        order = np.argsort(fitted.ranking_)[:count]
        p, q = fitted.p_values
        columns["names"].append(names[order])
        columns["scores"].append(fitted.scores_[order].astype(np.float32))
        columns["pvals"].append(p[order])
        columns["pvals_adj"].append(q[order])
        change = _log_fold_change(table[rows[y == 1]], table[rows[y == 0]], base)
        columns["logfoldchanges"].append(change[order].astype(np.float32))
    adata.uns[key_added] = {
        "params": {
            "groupby": groupby,
            "reference": reference,
            "method": "frot",
            "use_raw": use_raw,
            "layer": layer,
            "corr_method": "pooled permutations",
        },
        **{
            name: np.rec.fromarrays(
                arrays,
                dtype=[(one, array.dtype) for one, array in zip(wanted, arrays, strict=True)],
            )
            for name, arrays in columns.items()
        },
    }


def _column(adata: Any, name: str, argument: str) -> np.ndarray:
    if name not in adata.obs:
        known = quote_some(list(map(str, adata.obs.columns)))
        raise InputError(f"{argument}: adata.obs has no column {name!r}; it has {known or 'none'}")
    return np.asarray(adata.obs[name])


def _wanted(group: Any, reference: str, present: np.ndarray, groupby: str) -> list[str]:
    wanted = [group] if isinstance(group, str) else group
    wanted = list(present) if wanted is None else [str(one) for one in wanted]
    asked = wanted if reference == "rest" else [*wanted, reference]
    absent = [one for one in asked if one not in present]
    if absent:
        raise InputError(
            f"group, reference: {groupby} has no {quote_some(absent)}; it has "
            f"{quote_some(list(present))}"
        )
    # A group is not held against itself.
    return [one for one in wanted if one != reference]


def _values(adata: Any, layer: str | None, use_raw: bool) -> tuple[Any, np.ndarray]:
    if use_raw:
        if layer is not None:
            raise InputError("layer, use_raw: give one of them")
        if adata.raw is None:
            raise InputError("use_raw: adata.raw is not set; leave use_raw out")
        source, names = adata.raw.X, adata.raw.var_names
    elif layer is None:
        source, names = adata.X, adata.var_names
    elif layer in adata.layers:
        source, names = adata.layers[layer], adata.var_names
    else:
        known = quote_some(list(adata.layers)) or "none"
        raise InputError(f"layer: adata has no layer {layer!r}; it has {known}")
    table = sparse.csr_array(source) if sparse.issparse(source) else np.asarray(source)
    return table, np.asarray(names, dtype=object)


def _log_fold_change(inside: Any, outside: Any, base: float | None) -> np.ndarray:
    """Return log2 of the ratio of means, taken back from logarithms, as scanpy does."""
    factor = 1.0 if base is None else float(np.log(base))
    means = [np.asarray(side.mean(axis=0), dtype=float).ravel() for side in (inside, outside)]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        one, two = (np.expm1(factor * mean) + 1e-9 for mean in means)
        return np.log2(one / two)
