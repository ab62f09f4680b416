"""Gene sets: which statistic finds a set of which few genes respond, and which finds noise.

    python benchmarks/selection.py --only pathways [--quick] [--seed 0]

Noise is real: the leukemia set with its gene symbols, less the mean of each class, under random
labels. Genes of one Hallmark set are shifted in the smaller class. gseapy's prerank runs beside
where it is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from typing import Any

from _common import table  # isort: skip  (sets the number of threads)

import numpy as np

from _runner import standard_error
from frot.datasets import available, hallmark_path, load_expression, load_hallmark
from frot.groups.groups import Groups
from frot.selection import FROTSelector, pathway_test

DATA = "leukemia_gsea"
TARGET = "HALLMARK_P53_PATHWAY"
# Genes that respond, by how many standard deviations, and whether half of them go down.
PLANTED = {
    "6 genes, .8 to 1.3": (6, 0.8, 1.3, False),
    "10 genes, .8 to 1.2": (10, 0.8, 1.2, False),
    "40 genes, .4 to .6": (40, 0.4, 0.6, False),
    "20 genes both ways, .6 to .9": (20, 0.6, 0.9, True),
}
SCORES = ("moderated", "alpha")
PEERS = ("mean |t|", "mean t^2", "mean t^2, permutation z", "|mean t|, permutation z", "max-mean")
PERMUTATIONS = 200


def noise() -> tuple[np.ndarray, Groups, list[str]]:
    """Return samples without their class means, in standard deviations; sets; symbols."""
    data = load_expression(DATA)
    X = np.log2(np.maximum(data.X, 20.0)) if data.X.max() > 100.0 else data.X.copy()
    for label in np.unique(data.y):
        X[data.y == label] -= X[data.y == label].mean(axis=0)
    kept = X.std(axis=0) > 0.1
    names = [str(name) for name, keep in zip(data.feature_names, kept, strict=True) if keep]
    X = X[:, kept] / X[:, kept].std(axis=0)
    return X, load_hallmark(names), names


def planted(
    X: np.ndarray, groups: Groups, how: tuple[int, float, float, bool] | None, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return samples with random labels, a third of them of the class that responds."""
    y = (rng.permutation(len(X)) < len(X) // 3).astype(int)
    X = X.copy()
    if how is not None:
        count, low, high, both = how
        genes = rng.choice(groups.indices[groups.names.index(TARGET)], count, replace=False)
        effect = rng.uniform(low, high, count) * (rng.choice([-1, 1], count) if both else 1)
        X[np.ix_(y == 1, genes)] += effect
    return X, y


def peers(X: np.ndarray, y: np.ndarray, groups: Groups, rng: Any) -> dict[str, np.ndarray]:
    """Return what others rank by, in the order of `PEERS`."""
    labels = np.stack([y, *(rng.permutation(y) for _ in range(PERMUTATIONS))]).astype(float)
    one, n = y.sum(), len(y)
    inverse = 1.0 / one + 1.0 / (n - one)
    difference = labels @ (X - X.mean(axis=0)) * inverse
    within = (n * X.var(axis=0) - difference**2 / inverse) / (n - 2)
    t = difference / np.sqrt(within * inverse)
    members = groups.membership()

    def mean(values: np.ndarray) -> np.ndarray:
        return (members @ values.T).T / groups.sizes

    def z(values: np.ndarray) -> np.ndarray:
        return (values[0] - values[1:].mean(axis=0)) / values[1:].std(axis=0)

    def standard(values: np.ndarray) -> np.ndarray:
        moments = values.mean(axis=1)[:, None], values.std(axis=1)[:, None]
        return (mean(values) - moments[0]) / moments[1]

    sides = standard(np.maximum(t, 0.0)), standard(np.maximum(-t, 0.0))
    found = (
        mean(np.abs(t))[0], mean(t**2)[0], z(mean(t**2)), z(np.abs(mean(t))),
        z(np.maximum(*sides)),
    )  # fmt: skip
    return dict(zip(PEERS, found, strict=True))


def ranks(X: np.ndarray, y: np.ndarray, groups: Groups, rng: Any) -> dict[str, np.ndarray]:
    """Return positions of sets, best first, by every score."""
    found = {
        f'score="{score}"': np.argsort(
            FROTSelector(5, groups=groups, score=score).fit(X, y).ranking_
        )
        for score in SCORES
    }
    return found | {name: np.argsort(-value) for name, value in peers(X, y, groups, rng).items()}


def pathways(quick: bool, seed: int) -> bool:
    """Print how often each score is right, and beside gseapy; whether ours is size-neutral."""
    if DATA not in available() or importlib.util.find_spec("sklearn") is None:
        return True
    X, groups, names = noise()
    repeats = 3 if quick else 30
    target = groups.names.index(TARGET)
    large = groups.sizes >= np.quantile(groups.sizes, 0.75)
    columns: dict[str, dict[str, float]] = {}
    for title, how in {**PLANTED, "noise: large in top 5": None}.items():
        rng = np.random.default_rng(seed)
        orders = [ranks(*planted(X, groups, how, rng), groups, rng) for _ in range(repeats)]
        columns[title] = {
            name: float(
                np.mean([large[o[name][:5]].mean() if how is None else o[name][0] == target
                         for o in orders])
            )
            for name in orders[0]
        }  # fmt: skip
    first = next(iter(columns.values()))
    rows = [[name, *(f"{column[name]:.2f}" for column in columns.values())] for name in first]
    print(
        f"\n{TARGET} first, share of {repeats}; largest quarter is {large.mean():.2f} of the sets"
    )
    table(["ranked by", *columns], rows)
    level(X, groups, 3 if quick else 60, seed)
    if importlib.util.find_spec("gseapy") is not None:
        beside_gseapy(X, groups, names, 2 if quick else 10, seed)
    share = columns["noise: large in top 5"]['score="moderated"']
    holds = quick or abs(share - large.mean()) <= 0.1
    print(
        f"goal {'met' if holds else 'MISSED'}: large sets are no more in the top five than others"
    )
    return holds


def level(X: np.ndarray, groups: Groups, repeats: int, seed: int) -> None:
    """Print how many sets of noise have p <= .05."""
    rng = np.random.default_rng(seed)
    shares: dict[str, list[float]] = {"competitive": [], "self-contained": []}
    for repeat in range(repeats):
        table_, y = planted(X, groups, None, rng)
        test = pathway_test(table_, y, groups, n_permutations=199, random_state=repeat)
        for name, p in zip(shares, (test.p_competitive, test.p_self_contained), strict=True):
            shares[name].append(float((p <= 0.05).mean()))
    for name, found in shares.items():
        error = standard_error(found)
        print(f"random labels, {repeats} times: p <= .05 for {np.mean(found):.3f} ± {error:.3f} "
              f"of sets ({name})")  # fmt: skip


def beside_gseapy(X: np.ndarray, groups: Groups, names: list[str], repeats: int, seed: int) -> None:
    """Print seconds, common top sets on the real labels, and sets found under random ones."""
    import pandas as pd

    gseapy = importlib.import_module("gseapy")

    data = load_expression(DATA)
    raw = np.log2(np.maximum(data.X, 20.0)) if data.X.max() > 100.0 else data.X
    column = {str(name): place for place, name in enumerate(data.feature_names)}
    raw = raw[:, [column[name] for name in names]]

    def prerank(X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
        first = y == np.unique(y)[0]
        a, b = X[first], X[~first]
        error = np.sqrt(a.var(axis=0, ddof=1) / len(a) + b.var(axis=0, ddof=1) / len(b))
        t = (a.mean(axis=0) - b.mean(axis=0)) / np.maximum(error, 1e-12)
        begin = time.process_time()
        found = gseapy.prerank(
            rnk=pd.DataFrame({"gene": names, "t": t}), gene_sets=str(hallmark_path()),
            permutation_num=1000, min_size=5, max_size=500, threads=1, seed=seed,
            no_plot=True, outdir=None, verbose=False,
        ).res2d  # fmt: skip
        return found, time.process_time() - begin

    theirs, slow = prerank(raw, data.y)
    begin = time.process_time()
    ours = pathway_test(raw, data.y, groups, random_state=seed)
    quick = time.process_time() - begin
    top = {groups.names[place] for place in ours.order[:10]}
    strong = theirs.reindex(theirs["NES"].astype(float).abs().sort_values(ascending=False).index)
    print(
        f"\nprerank {slow:.1f} s, pathway_test {quick:.1f} s, 1,000 permutations each; "
        f"{len(top & set(strong['Term'][:10]))} of the first ten sets in common; q <= .05: "
        f"prerank {int((theirs['FDR q-val'].astype(float) <= 0.05).sum())}, competitive "
        f"{int((ours.q_competitive <= 0.05).sum())}, self-contained "
        f"{int((ours.q_self_contained <= 0.05).sum())} of {len(groups)}"
    )
    rng = np.random.default_rng(seed)
    shares = []
    for _ in range(repeats):
        table_, y = planted(X, groups, None, rng)
        test = pathway_test(table_, y, groups, random_state=seed)
        theirs = prerank(table_, y)[0]
        shares.append(
            [
                (theirs["NOM p-val"].astype(float) <= 0.05).mean(),
                (theirs["FDR q-val"].astype(float) <= 0.05).any(),
                (test.p_competitive <= 0.05).mean(),
                (test.q_competitive <= 0.05).any(),
            ]
        )
    a, b, c, d = np.mean(shares, axis=0)
    print(
        f"random labels, {repeats} times: prerank p <= .05 for {a:.2f} of sets, some q <= .05 in "
        f"{b:.2f} of tables; competitive {c:.2f} and {d:.2f}"
    )
