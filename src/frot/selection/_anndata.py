"""AnnData: marker genes in the layout of scanpy's ``rank_genes_groups``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot._base.names import did_you_mean, quote_some
from frot._base.validate import check_count
from frot.api.tasks import check_run
from frot.selection._annotated import natural, obs_column, values_of
from frot.selection._comparison import Comparison
from frot.selection._design import contrast_of, warn_of_single_classes
from frot.selection._inputs import Prepared, prepare
from frot.selection._null import benjamini_hochberg
from frot.selection._permutation import permute_labels
from frot.selection._selector import FROTSelector, compare_all


def rank_genes(
    adata: Any,
    groupby: str,
    *,
    group: Any = None,
    reference: str = "rest",
    selector: FROTSelector | None = None,
    layer: str | None = None,
    use_raw: bool | None = None,
    n_genes: int | None = None,
    n_permutations: int = 0,
    block: str | None = None,
    key_added: str = "rank_genes_groups",
    progress: bool = False,
    random_state: int | None = 0,
) -> None:
    """Rank genes by how well they separate groups of cells, in the layout that scanpy reads.

    Each group is compared with the reference; `adata.uns[key_added]` then has the layout of
    ``scanpy.tl.rank_genes_groups``, so that ``scanpy.get.rank_genes_groups_df`` and scanpy's
    plots read it. As there, genes are in the order of their signed scores: the first ones are
    higher in the group, and the last ones lower. ``logfoldchanges`` are computed as scanpy does,
    from means of log1p values, unless the selector says what else the values are.

    ``pvals`` are those of the moderated t, and ``pvals_adj`` by Benjamini and Hochberg; with
    permutations, both are from these. Cells of one donor are no independent samples: with a donor
    in one group only the cells of a donor are to be averaged first.

    Parameters
    ----------
    adata : AnnData
        Cells in rows. Sparse tables stay sparse.
    groupby : str
        Column of ``adata.obs`` with the groups.
    group : str or list of str, optional
        Which groups to rank genes for; all of them by default, in the order of the categories
        or, where the column has none, 2 before 10.
    reference : str
        The group to compare with, or "rest".
    selector : FROTSelector, optional
        Whose `score`, `missing` and `values` to use; its groups must be "each".
    layer : str, optional
        Take values from this layer.
    use_raw : bool, optional
        Take values from ``adata.raw``: by default where there is one and no `layer` is given, as
        scanpy does.
    n_genes : int, optional
        How many genes to list; all by default.
    n_permutations : int
        Permutations for ``pvals`` and ``pvals_adj``, instead of the distribution of t.
    block : str, optional
        Column of ``adata.obs``, such as a batch or donor, that everything is adjusted for.
    key_added : str
        Where in ``adata.uns``.
    progress, random_state :
        As in `permutation_test`.

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
    >>> found = adata.uns["rank_genes_groups"]
    >>> found["names"]["t"][0], bool(found["scores"]["t"][0] > 0.0)
    ('CD8A', True)
    """
    labels, present = _labels(adata, groupby)
    wanted = _wanted(group, reference, present, groupby)
    table, names, use_raw = values_of(adata, layer, use_raw)
    count = check_count(n_permutations, "n_permutations", least=0)
    seed = check_run(None, progress, None, random_state)
    prepared = _prepared(selector, table, labels, adata, block)
    position = {label: index for index, label in enumerate(prepared.classes.tolist())}
    sizes = np.bincount(prepared.codes)
    other = None if reference == "rest" else position[reference]
    few = [label for label in wanted if sizes[position[label]] < 2]
    few += [reference] if other is not None and sizes[other] < 2 else []
    if few or len(present) < 2:
        raise InputError(
            f"groupby: {quote_some(few or present)} has fewer than two cells on a side, which have "
            "no spread; leave such groups out by group=[...]"
        )
    contrasts = tuple(
        contrast_of(prepared.codes, prepared.classes, prepared.block, position[label], other)
        for label in wanted
    )
    if block is not None:
        warn_of_single_classes(list(contrasts))
    base = (adata.uns.get("log1p") or {}).get("base")
    comparisons = compare_all(replace(prepared, contrasts=contrasts), base)
    listed = len(names) if n_genes is None else min(check_count(n_genes, "n_genes"), len(names))
    columns = []
    for comparison in comparisons:
        p, q = comparison.effects.p, benjamini_hochberg(comparison.effects.p)
        if count:
            alone = replace(prepared, contrasts=(comparison.contrast,))
            test = permute_labels(alone, count, seed, progress)
            p, q = test.p, test.q
        columns.append(_columns(comparison, p, q, prepared.score, names, listed))
    params = {
        "groupby": groupby,
        "reference": reference,
        "method": "frot",
        "use_raw": use_raw,
        "layer": layer,
        "corr_method": "benjamini-hochberg",
    }
    adata.uns[key_added] = {"params": params} | {
        name: np.rec.fromarrays(
            [each[name] for each in columns],
            dtype=[(label, each[name].dtype) for label, each in zip(wanted, columns, strict=True)],
        )
        for name in columns[0]
    }


def _prepared(
    selector: FROTSelector | None, table: Any, labels: np.ndarray, adata: Any, block: str | None
) -> Prepared:
    """Check the table; make no plan that is not needed, and take cells' values for log1p."""
    settings = {} if selector is None else selector.get_params()
    if settings.get("groups", "each") != "each":
        raise InputError("selector: has groups of genes; rank_genes ranks single genes")
    if settings.get("values", "auto") == "auto":
        settings["values"] = "log1p"
    if settings.get("score") != "alpha":
        settings["plan"] = False
    blocks = None if block is None else obs_column(adata, block, "block")
    settings["reference"] = None
    return prepare(FROTSelector(**settings), table, labels, blocks, needs_two=False)


def _columns(
    comparison: Comparison, p: np.ndarray, q: np.ndarray, score: str, names: np.ndarray, count: int
) -> dict[str, np.ndarray]:
    """Return the genes of one group in scanpy's columns, the highest signed scores first."""
    signed = np.copysign(comparison.alpha, comparison.t) if score == "alpha" else comparison.t
    order = np.lexsort((-comparison.t, -signed))[:count]
    return {
        "names": names[order],
        "scores": signed[order].astype(np.float32),
        "pvals": p[order],
        "pvals_adj": q[order],
        "logfoldchanges": comparison.log2_fold_change[order].astype(np.float32),
    }


def _labels(adata: Any, groupby: str) -> tuple[np.ndarray, list[str]]:
    """Return each cell's group, and the groups that have cells, in order."""
    column = obs_column(adata, groupby, "groupby")
    missing = np.asarray(adata.obs[groupby].isna())
    if missing.any():
        raise InputError(
            f"groupby: {missing.sum():,} cells have no {groupby!r}; leave them out: "
            f"adata[adata.obs[{groupby!r}].notna()]"
        )
    labels = column.astype(str)
    present = np.unique(labels).tolist()
    # A categorical column has its own order.
    categories = getattr(getattr(adata.obs[groupby], "cat", None), "categories", None)
    if categories is not None:
        return labels, [label for label in map(str, categories) if label in set(present)]
    return labels, sorted(present, key=natural)


def _wanted(group: Any, reference: str, present: list[str], groupby: str) -> list[str]:
    wanted = [group] if isinstance(group, str) else group
    wanted = list(present) if wanted is None else [str(label) for label in wanted]
    asked = wanted if reference == "rest" else [*wanted, reference]
    absent = [label for label in asked if label not in present]
    if absent:
        raise InputError(
            f"group, reference: {groupby} has no {quote_some(absent)}; it has "
            f"{quote_some(list(present))}{did_you_mean(absent[0], present)}"
        )
    # A group is not held against itself.
    return [label for label in wanted if label != reference]
