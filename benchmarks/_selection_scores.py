"""Which score finds the features that differ: simulated bulk and cells, real sets, and at scale."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import time
import warnings
from typing import Any

from _common import peak_memory, table  # isort: skip  (sets the number of threads)

import numpy as np
from scipy import sparse

from _baselines import accuracies, linear
from _runner import standard_error
from frot._base.errors import ConvergenceWarning
from frot.datasets import available, load_expression
from frot.selection import FROTSelector
from frot.selection._label_statistics import LabelStatistics

TRUE = 100
# Samples, share of the first class, features, repeats.
BULK = [(n, share, 2000, 40) for n in (20, 50, 100, 300) for share in (0.5, 0.25)]
CELLS = [
    (n, share, d, repeats)
    for n, d, repeats in ((200, 2000, 20), (2000, 2000, 12), (20_000, 1000, 6), (100_000, 500, 4))
    for share in (0.5, 0.05)
]
OWN = ("moderated", "alpha")
# Of colon, leukemia and prostate there are two versions each: all of them are for choosing.
CHOSEN_ON = ("colon", "alon", "leukemia", "golub", "leukemia_gsea", "prostate_ge", "singh")
KS = (10, 50)


def bulk(n: int, share: float, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return samples, labels and which features differ: 80 by a shift, 20 in shape alone.

    Features share twenty factors and differ in spread; a third of them vary twice as much in the
    second class. Shifts are smaller the more samples there are.
    """
    rng = np.random.default_rng([1, n, int(100 * share), seed])
    y = np.arange(n) >= round(share * n)
    factors = rng.normal(size=(n, 20)) @ (rng.normal(size=(20, d)) * (rng.random((20, d)) < 0.1))
    noise = rng.normal(size=(n, d)) * np.where(y[:, None] & (rng.random(d) < 0.33), 2.0, 1.0)
    X = factors + noise
    truth = rng.permutation(d)[:TRUE]
    moved, reshaped = truth[:80], truth[80:]
    smaller = min(share, 1.0 - share) * n
    size = rng.uniform(1.5, 5.0, 80) / np.sqrt(smaller) * rng.choice([-1.0, 1.0], 80)
    X[np.ix_(y, moved)] += size * X.std(axis=0)[moved]
    X[np.ix_(y, reshaped)] *= 3.0
    return X * rng.lognormal(0.0, 1.0, d), y, truth


def cells(n: int, share: float, d: int, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return normalised log1p counts, negative binomial, sparse; and which features differ."""
    rng = np.random.default_rng([2, n, int(100 * share), seed])
    y = rng.permutation(np.arange(n) >= round(share * n))
    mean = rng.lognormal(-1.2, 1.2, d)
    truth = rng.permutation(d)[:TRUE]
    smaller = min(share, 1.0 - share) * n
    change = np.ones(d)
    signs = rng.choice([-1.0, 1.0], TRUE)
    change[truth] = np.exp2(signs * np.minimum(rng.uniform(3.0, 12.0, TRUE) / smaller**0.5, 2.0))
    size = rng.lognormal(0.0, 0.4, n)
    parts = []
    for rows in np.array_split(np.arange(n), max(1, n // 5000)):
        expected = size[rows, None] * mean * np.where(y[rows, None], change, 1.0)
        counts = rng.poisson(expected * rng.gamma(2.0, 0.5, size=expected.shape)).astype(np.float32)
        total = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        parts.append(sparse.csr_array(np.log1p(counts / total * np.float32(5.0 * d))))
    return sparse.csr_array(sparse.vstack(parts)), y, truth


def welch(X: Any, y: np.ndarray) -> np.ndarray:
    """Return |t| of Welch's test, as the normal deviate that is as rare."""
    block = np.zeros(len(y), dtype=int)
    return np.abs(LabelStatistics.of(X, y, block).deviates(y[None])[:, 0])


def scored(X: Any, y: np.ndarray) -> dict[str, np.ndarray]:
    """Score the features by all that is compared; alpha by a plan, whatever the size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = FROTSelector(TRUE, plan=True).fit(X, y)
    return {"moderated": found.scores_, "alpha": found.alpha_, "t": welch(X, y)} | peers(X, y)


def peers(X: Any, y: np.ndarray) -> dict[str, np.ndarray]:
    """Score by scanpy's tests where it is installed."""
    if importlib.util.find_spec("scanpy") is None:
        return {}
    scanpy = importlib.import_module("scanpy")
    scores = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = scanpy.AnnData(sparse.csr_matrix(X) if sparse.issparse(X) else X)
        adata.obs["kind"] = np.where(y, "b", "a")
        adata.obs["kind"] = adata.obs["kind"].astype("category")
        for method in ("t-test", "wilcoxon"):
            scanpy.tl.rank_genes_groups(adata, "kind", groups=["a"], method=method)
            listed = adata.uns["rank_genes_groups"]
            values = np.zeros(X.shape[1])
            values[np.asarray(listed["names"]["a"]).astype(int)] = listed["scores"]["a"]
            scores[f"scanpy {method}"] = np.abs(np.nan_to_num(values))
    return scores


def markers(quick: bool, seed: int) -> bool:
    """Print the precision among the first 100; whether the default is never below the t-test."""
    good = True
    for name, make, cases in (("bulk samples", bulk, BULK), ("cells", cells, CELLS)):
        rows, header = [], []
        for n, share, d, repeats in cases[:1] if quick else cases:
            hits: dict[str, list[float]] = {}
            for repeat in range(2 if quick else repeats):
                X, y, truth = make(n, share, d, seed + repeat)
                for method, scores in scored(X, y).items():
                    best = np.argsort(-scores, kind="stable")[:TRUE]
                    hits.setdefault(method, []).append(len(np.intersect1d(best, truth)) / TRUE)
            means = {method: float(np.mean(each)) for method, each in hits.items()}
            peer = hits.get("scanpy t-test", hits["t"])
            apart = np.subtract(hits["moderated"], peer)
            good &= bool(apart.mean() >= -2.0 * apart.std(ddof=1) / len(apart) ** 0.5 - 1e-12)
            header = [name, "classes", "features", "repeats", *means]
            rows.append(
                [f"{n:,}", f"{share:.0%} / {1 - share:.0%}", f"{d:,}", str(len(apart))]
                + [f"{mean:.3f}" for mean in means.values()]
            )
            print(f"{name} {n} done", flush=True)
        print(f"\nPrecision among the first {TRUE}, as many as differ")
        table(header, rows)
    goal = "the default is never significantly below scanpy's t-test"
    print(f"goal {'met' if good else 'MISSED'}: {goal}")
    return good


def _by(score: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rank by a score of `FROTSelector`; larger is better."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plan = "auto" if score == "alpha" else False
        return -FROTSelector(KS[-1], score=score, plan=plan).fit(X, y).ranking_


def scores(quick: bool, seed: int) -> bool:
    """Print accuracies by score on sets for choosing, and then, once, on the others."""
    # Linear correlation ranks two classes as f_classif does.
    rankings = [*(functools.partial(_by, name) for name in OWN), linear]
    splits = 3 if quick else 50
    good = True
    names = [name for name in available() if not quick or name == "colon"]
    for title, chosen in (("sets for choosing", True), ("sets kept apart", False)):
        rows = []
        for name in (name for name in names if (name in CHOSEN_ON) == chosen):
            data = load_expression(name)
            each = [
                accuracies(data.X, data.y, seed, index, rankings=rankings, ks=KS)
                for index in range(splits)
            ]
            found = np.stack(each)
            apart = (found[:, 0] - found[:, -1]).mean(axis=1)
            error = standard_error(apart)
            good &= bool(apart.mean() >= -error)
            of_k = found.mean(axis=0)
            cells = [f"{one:.3f} / {two:.3f}" for one, two in of_k]
            rows.append([name, *cells, f"{apart.mean():+.4f} ± {error:.4f}"])
            print(f"{name} done", flush=True)
        if rows:
            print(f"\nAccuracy at K = 10 / 50, {splits} splits: {title}")
            table([title, *OWN, "f_classif", "moderated − f_classif"], rows)
    return good


GROUPS = 10


def many_cells(n: int = 100_000, d: int = 2000) -> Any:
    """Return cells in an AnnData, or in what has its parts: a tenth filled, ten groups."""
    from types import SimpleNamespace

    import pandas as pd

    rng = np.random.default_rng(0)
    filled = d // 10
    patterns = np.stack([np.sort(rng.choice(d, filled, replace=False)) for _ in range(1000)])
    columns = patterns[rng.integers(1000, size=n)].ravel().astype(np.int32)
    values = np.log1p(1.0 + rng.poisson(1.5, n * filled)).astype(np.float32)
    groups = rng.integers(GROUPS, size=n)
    values[columns // 20 == np.repeat(groups, filled)] += 0.7
    X = sparse.csr_matrix((values, columns, np.arange(0, n * filled + 1, filled)), (n, d))
    obs = pd.DataFrame({"kind": pd.Categorical(groups.astype(str))}, index=np.arange(n).astype(str))
    if importlib.util.find_spec("anndata") is not None:
        return importlib.import_module("anndata").AnnData(X, obs=obs)
    names = np.arange(d).astype(str)
    return SimpleNamespace(X=X, obs=obs, var_names=names, uns={}, layers={}, raw=None)


def _rank(adata: Any) -> None:
    from frot.selection import rank_genes

    rank_genes(adata, "kind")


def _fit(adata: Any, **options: Any) -> None:
    FROTSelector(50, **options).fit(adata.X, np.asarray(adata.obs["kind"]) == "0")


def _scanpy(adata: Any, method: str) -> None:
    scanpy = importlib.import_module("scanpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scanpy.tl.rank_genes_groups(adata, "kind", method=method)


SECONDS, MEGABYTES = 3.0, 600.0


def scale(quick: bool, seed: int) -> bool:
    """Print seconds and memory of a ranking of many cells; whether `rank_genes` meets the goal."""
    n = 5_000 if quick else 100_000
    work = {
        "rank_genes, ten groups": _rank,
        "FROTSelector, two classes": _fit,
        "FROTSelector(plan=True)": functools.partial(_fit, plan=True),
    }
    if importlib.util.find_spec("scanpy") is not None:
        for method in ("t-test", "wilcoxon"):
            work[f"scanpy {method}, ten groups"] = functools.partial(_scanpy, method=method)
    adata, rows, good = many_cells(n), [], True
    for name, do in work.items():
        begin, wall = time.process_time(), time.perf_counter()
        do(adata)
        spent, waited = time.process_time() - begin, time.perf_counter() - wall
        peak = peak_memory(many_cells, do, n) / 1e6
        rows.append([name, f"{spent:.1f}", f"{waited:.1f}", f"{peak:.0f}"])
        if name.startswith("rank_genes"):
            good &= spent <= SECONDS and peak <= MEGABYTES
    print(f"\n{n:,} cells of 2,000 genes, a tenth filled")
    table(["ranking", "processor s", "s", "MB beyond the data"], rows)
    print(f"goal {'met' if good else 'MISSED'}: {SECONDS:.0f} s and {MEGABYTES:.0f} MB")
    return good
