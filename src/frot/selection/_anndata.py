"""AnnData: marker genes in the layout of scanpy's ``rank_genes_groups``."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot._base.names import quote_some
from frot._base.stopping import Interrupted
from frot.selection._annotated import natural, obs_column, values_of
from frot.selection._comparison import OF_PLAN, Comparison, Contrast
from frot.selection._inputs import prepare
from frot.selection._permutation import PermutationTest, permutation_test
from frot.selection._selector import FROTSelector, compare_all


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
    """Rank genes by how well they separate groups of cells, in the layout that scanpy reads.

    Each group is compared with the reference; `adata.uns[key_added]` then has the layout of
    ``scanpy.tl.rank_genes_groups``, so that ``scanpy.get.rank_genes_groups_df`` and scanpy's
    plots read it. As there, genes are in the order of their signed scores: the first ones are
    higher in the group, and the last ones lower. ``logfoldchanges`` are computed as scanpy does,
    from means of log1p values, unless the selector says what else the values are.

    The table is read once for all groups, and no plan is made unless the selector's score is read
    off one.

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
        Whose parameters to use; its groups must be "each". By default genes are ranked by
        a moderated t; ``FROTSelector(score="t")`` ranks as scanpy's t-test does.
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

    Raises
    ------
    frot.Interrupted
        On Ctrl-C among the permutations: the scores of all groups, and p-values of those that
        were done, are in `adata`.

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
    table, names = values_of(adata, layer, use_raw)
    blocks = None if block is None else obs_column(adata, block, "block")
    model = _model(selector)
    prepared = prepare(model, table, labels)
    rows = {one: np.flatnonzero(labels == one) for one in present}
    contrasts = [
        Contrast(one, None, (rows[one], np.flatnonzero(labels != one)))
        if reference == "rest"
        else Contrast(one, reference, (rows[one], rows[reference]))
        for one in wanted
    ]
    few = [one.name for one in contrasts if min(map(len, one.rows)) < 2]
    if few:
        raise InputError(
            f"groupby: {quote_some(few)} has a side of fewer than two cells, which has no spread; "
            "leave such groups out by group=[...]"
        )
    comparisons, stop = compare_all(
        prepared, contrasts, base=(adata.uns.get("log1p") or {}).get("base")
    )
    tests: list[Any] = [None] * len(wanted)
    try:
        for place, contrast in enumerate(contrasts if n_permutations else []):
            both = np.concatenate(contrast.rows)
            tests[place] = permutation_test(
                prepared.table[both],
                np.repeat([1, 0], [len(side) for side in contrast.rows]),
                selector=model,
                n_permutations=n_permutations,
                block=None if blocks is None else blocks[both],
                n_jobs=n_jobs,
                progress=progress,
                checkpoint=None
                if checkpoint is None
                else f"{os.fspath(checkpoint)}.{wanted[place]}",
                random_state=random_state,
            )
    except KeyboardInterrupt as interrupt:
        stop = interrupt
    count = len(names) if n_genes is None else min(int(n_genes), len(names))
    params = {
        "groupby": groupby,
        "reference": reference,
        "method": "frot",
        "use_raw": use_raw,
        "layer": layer,
        "corr_method": "benjamini-hochberg",
    }
    columns = [
        _columns(one, test, prepared.score, names, count)
        for one, test in zip(comparisons, tests, strict=True)
    ]
    adata.uns[key_added] = {"params": params} | {
        name: np.rec.fromarrays(
            [each[name] for each in columns],
            dtype=[(one, each[name].dtype) for one, each in zip(wanted, columns, strict=True)],
        )
        for name in columns[0]
    }
    if stop is not None:
        raise Interrupted(adata) from stop


def _columns(
    found: Comparison, test: PermutationTest | None, score: str, names: np.ndarray, count: int
) -> dict[str, np.ndarray]:
    """Return the genes of one group in scanpy's columns, the highest signed scores first."""
    signed = np.copysign(found.scores(score), np.nan_to_num(found.t))
    order = np.lexsort((-found.t, -signed))[:count]
    unknown = np.full(len(order), np.nan)
    return {
        "names": names[order],
        "scores": signed[order].astype(np.float32),
        "pvals": unknown if test is None else test.p[order],
        "pvals_adj": unknown if test is None else test.q[order],
        "logfoldchanges": found.log2_fold_change[order].astype(np.float32),
    }


def _model(selector: FROTSelector | None) -> FROTSelector:
    """Return a selector that makes no plan it does not need, and knows what cells' values are."""
    settings = {} if selector is None else selector.get_params()
    if settings.get("groups", "each") != "each":
        raise InputError("selector: has groups of genes; rank_genes ranks single genes")
    if settings.get("values", "auto") == "auto":
        settings["values"] = "log1p"
    if settings.get("score") not in OF_PLAN:
        settings["plan"] = False
    return FROTSelector(**settings)


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
        return labels, [one for one in map(str, categories) if one in set(present)]
    return labels, sorted(present, key=natural)


def _wanted(group: Any, reference: str, present: list[str], groupby: str) -> list[str]:
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
