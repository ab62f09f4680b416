"""`frot.two_sample_test` beside its peers: time, and with --power level and power.

    python benchmarks/two_sample.py [--power [--sets 400] [--alternatives 200] [--permutations 99]]

One thread, processor time, everything in one process. The peers are written here in NumPy, on the
same permutations' number and with features scaled as the test scales groups: the energy test
(Székely and Rizzo 2013), MMD with a Gaussian kernel of the median distance (Gretton et al. 2012),
and the best single group: the energy test of each group alone, adjusted for the largest over groups
as `p_groups` is. SciPy has the energy distance for one feature only.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from _common import fastest, table  # isort: skip  (sets the number of threads)

import numpy as np
from scipy.spatial.distance import cdist, pdist

import frot

LEVEL = 0.05


class Peers(NamedTuple):
    """p-values of the peers: of all features, and the least over groups, adjusted."""

    energy: float
    mmd: float
    best_group: float


def scaled(Z: np.ndarray, groups: list[slice]) -> np.ndarray:
    """Divide each group by the root of its mean squared distance."""
    units = np.ones(Z.shape[1])
    for group in groups:
        units[group] = np.sqrt(2.0 * Z[:, group].var(axis=0).sum())
    return Z / units


def labellings(n: int, m: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return signed weights 1/n and -1/m, (N, 1 + B), first as the samples are."""
    weights = np.repeat([1.0 / n, -1.0 / m], [n, m])
    return np.stack([weights, *(rng.permutation(weights) for _ in range(count))], axis=1)


def differences(kernel: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return w^T K w of all labellings, (1 + B,)."""
    return np.einsum("ib,ib->b", weights, kernel @ weights)


def p_value(statistics: np.ndarray) -> float:
    """Return the share of labellings at the first one's statistic or beyond."""
    return float((statistics >= statistics[0] - 1e-12 * abs(statistics[0])).mean())


def energy_test(Z: np.ndarray, weights: np.ndarray) -> float:
    """The energy test of pooled points."""
    return p_value(-differences(cdist(Z, Z), weights))


def mmd_test(Z: np.ndarray, weights: np.ndarray) -> float:
    """MMD with the median heuristic."""
    squares = cdist(Z, Z, "sqeuclidean")
    return p_value(differences(np.exp(-squares / np.median(pdist(Z, "sqeuclidean"))), weights))


def best_group_test(Z: np.ndarray, groups: list[slice], weights: np.ndarray) -> float:
    """The energy tests of single groups, adjusted by the maximum."""
    alone = np.stack([-differences(cdist(Z[:, g], Z[:, g]), weights) for g in groups])
    z = (alone - alone.mean(axis=1, keepdims=True)) / alone.std(axis=1, keepdims=True)
    return p_value(z.max(axis=0))


def peers(X: np.ndarray, Y: np.ndarray, sizes: list[int], count: int, seed: int) -> Peers:
    """Run all peers."""
    groups = [slice(*ends) for ends in pairwise(np.cumsum([0, *sizes]))]
    Z = scaled(np.concatenate([X, Y]), groups)
    weights = labellings(len(X), len(Y), count, np.random.default_rng(seed))
    return Peers(energy_test(Z, weights), mmd_test(Z, weights), best_group_test(Z, groups, weights))


def times() -> None:
    """Print processor seconds of 999 permutations."""
    rows = []
    for n, m, count, features in (
        (100, 100, 10, 3), (100, 100, 10, 20), (30, 30, 50, 1), (100, 100, 50, 1), (300, 300, 10, 3)
    ):  # fmt: skip
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(n, count * features)), rng.normal(size=(m, count * features))
        sizes = [features] * count
        frot.two_sample_test(X, Y, sizes, permutations=19)
        ours, _ = fastest(lambda X=X, Y=Y, sizes=sizes: frot.two_sample_test(X, Y, sizes), 2)
        groups = [slice(*ends) for ends in pairwise(np.cumsum([0, *sizes]))]
        Z = scaled(np.concatenate([X, Y]), groups)
        weights = labellings(n, m, 999, rng)
        tests: list[Callable[[], float]] = [
            lambda Z=Z, weights=weights: energy_test(Z, weights),
            lambda Z=Z, weights=weights: mmd_test(Z, weights),
            lambda Z=Z, groups=groups, weights=weights: best_group_test(Z, groups, weights),
        ]
        others = [f"{fastest(test)[0]:.2f}" for test in tests]
        rows.append([f"{n} and {m}, {count} groups of {features}", f"{ours:.2f}", *others])
    table(["999 permutations, s", "frot", "energy", "MMD", "best group"], rows)


def null(kind: str, n: int, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw both samples from one distribution, of groups of two features."""
    shape = (2 * n, 2 * count)
    if kind == "normal":
        Z = rng.normal(size=shape)
    else:
        # Heavy tails whose scale differs between features a hundredfold, groups that depend on one
        # another, and points of which some are noisier than others.
        Z = rng.standard_t(3, size=shape) + rng.standard_t(3, size=(2 * n, 1))
        Z *= rng.choice([1.0, 3.0], size=(2 * n, 1)) * np.geomspace(0.1, 10.0, 2 * count)
    return Z[:n], Z[n:]


def alternative(name: str, n: int, m: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Draw two samples that differ, of ten groups of three features."""
    X, Y = rng.normal(size=(n, 30)), rng.normal(size=(m, 30))
    if name == "mean of one group":
        Y[:, :3] += 0.45
    elif name == "mean of all groups":
        Y += 0.12
    elif name == "scale of one group":
        Y[:, :3] *= 1.5
    elif name == "shape of one group":
        # Two clusters, of the same mean and variance.
        Y[:, 0] = (Y[:, 0] + 4.0 * rng.choice([-1.0, 1.0], size=m)) / np.sqrt(17.0)
    elif name == "dependence of groups":
        # Every group is normal as before; the first features of all depend on one another.
        Y[:, ::3] = np.sqrt(0.5) * (Y[:, ::3] + rng.normal(size=(m, 1)))
    elif name == "mean of one group, heavy tails":
        X, Y = rng.standard_t(3, size=(n, 30)), rng.standard_t(3, size=(m, 30))
        Y[:, :3] += 0.7
    return X, Y


ALTERNATIVES = (
    "mean of one group",
    "mean of all groups",
    "scale of one group",
    "shape of one group",
    "dependence of groups",
    "mean of one group, heavy tails",
)


def rejections(
    draw: Callable[[np.random.Generator], tuple[np.ndarray, ...]],
    sizes: list[int],
    sets: int,
    count: int,
) -> list[float]:
    """Return how often each test rejects at .05: ours over all and by groups, then the peers."""
    found = []
    for number in range(sets):
        X, Y = draw(np.random.default_rng([number, len(sizes)]))
        test = frot.two_sample_test(X, Y, sizes, permutations=count, random_state=number)
        found.append([test.p, test.p_groups.min(), *peers(X, Y, sizes, count, number)])
    return (np.array(found) <= LEVEL).mean(axis=0).tolist()


def power(sets: int, alternatives: int, count: int) -> None:
    """Print level and power, as rows of a table in Markdown."""
    print("| | n, m | groups | overall | groups | energy | MMD | best group |", flush=True)
    print("|---|---|---|---|---|---|---|---|")
    for n, groups in ((30, 5), (30, 50), (100, 5), (100, 50)):
        for kind in ("normal", "heavy tails"):
            if sets:
                shares = rejections(
                    lambda rng, kind=kind, n=n, groups=groups: null(kind, n, groups, rng),
                    [2] * groups,
                    sets,
                    count,
                )
                _row(f"no difference, {kind}", (n, n), groups, shares)
    for n, m in ((50, 50), (30, 70)):
        for name in ALTERNATIVES if alternatives else ():
            shares = rejections(
                lambda rng, name=name, n=n, m=m: alternative(name, n, m, rng),
                [3] * 10,
                alternatives,
                count,
            )
            _row(name, (n, m), 10, shares)


def _row(name: str, sizes: tuple[int, int], groups: int, shares: list[float]) -> None:
    cells = " | ".join(f"{share:.3f}".removeprefix("0") for share in shares)
    print(f"| {name} | {sizes[0]}, {sizes[1]} | {groups} | {cells} |", flush=True)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--power", action="store_true")
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--alternatives", type=int, default=200)
    parser.add_argument("--permutations", type=int, default=99)
    options = parser.parse_args()
    if options.power:
        power(options.sets, options.alternatives, options.permutations)
    else:
        times()


if __name__ == "__main__":
    main()
