"""The public calls on a device against the host, on random problems: do the answers agree?

    python benchmarks/devices.py [--device cuda] [--first 0] [--n 250] [--seed 0] [--only 17]

Every problem is solved on the host in double precision to a gap of 1e-6, and on the device with
options drawn at random: one of `solve`, `solve_costs`, `solve_batch` and `FRWDLoss`, single or
double precision, 1 to 600 features in 1 to 40 groups, kept in memory or streamed. The intervals
must meet, the gap must be what was asked for or the status say why not, marginals must be right,
gradients agree, and nothing may raise or warn. Failures are printed, and end in exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from _common import table  # isort: skip  (sets the number of threads)

import numpy as np
import torch

import frot
from frot.torch import FRWDLoss

DOORS = ("solve", "streamed", "costs", "batch", "loss")
KINDS = ("plain", "far", "clusters", "shifted", "copies", "uneven", "zeros")
# What a loss has to be right to: its gradients are those of a tolerance of its own.
GRADIENT = 3e-2


@dataclass(frozen=True, eq=False)
class Drawn:
    """A problem and how it is to be solved."""

    door: str
    kind: str
    X: np.ndarray
    Y: np.ndarray
    a: np.ndarray
    b: np.ndarray
    sizes: list[int]
    single: bool
    options: dict[str, Any]

    def __str__(self) -> str:
        kind = "float32" if self.single else "float64"
        size = f"{len(self.X)} x {len(self.Y)}, {self.X.shape[1]} features"
        return f"{self.door}, {self.kind}, {size}, {len(self.sizes)} groups, {kind}, {self.options}"


def draw(seed: int, number: int) -> Drawn:
    """Return the problem that a seed and a number stand for."""
    rng = np.random.default_rng([seed, number])
    door, kind = DOORS[number % len(DOORS)], str(rng.choice(KINDS))
    n, m = (int(np.exp(rng.uniform(np.log(20), np.log(1500)))) for _ in range(2))
    groups = int(rng.choice([1, 2, 5, 12, 40]))
    sizes = [int(size) for size in rng.integers(1, 16, size=groups)]
    d = sum(sizes)
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    Y[:, : sizes[0]] += rng.uniform(0.0, 1.0)
    if kind == "far":
        X[:3], Y[:2] = X[:3] + 100.0, Y[:2] + 100.0
    if kind == "clusters":
        centres = 6.0 * rng.normal(size=(6, d))
        X, Y = X + centres[rng.integers(6, size=n)], Y + centres[rng.integers(6, size=m)]
    if kind == "shifted":
        X, Y = X + 30.0, Y + 30.0
    if kind == "copies":
        X = X[rng.integers(max(n // 3, 1), size=n)]
    a, b = np.full(n, 1.0 / n), np.full(m, 1.0 / m)
    if kind in ("uneven", "zeros"):
        a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    if kind == "zeros":
        a[::5], b[1::7] = 0.0, 0.0
        a, b = a / a.sum(), b / b.sum()
    options: dict[str, Any] = {
        "eps": frot.relative(float(rng.choice([1.0, 0.2, 0.05, 0.02]))),
        "eta": frot.relative(float(rng.choice([0.0, 0.05, 0.5]))),
    }
    if door in ("solve", "streamed", "loss") and rng.random() < 0.2:
        options["tau"] = frot.relative(float(rng.choice([0.5, 2.0, 10.0])))
    if door in ("solve", "streamed") and groups > 2 and rng.random() < 0.2:
        options["adversary"] = frot.CappedSimplex(2)
        options.pop("eta")
    if door != "loss" and rng.random() < 0.5:
        options["tol"] = 1e-3
    return Drawn(door, kind, X, Y, a, b, sizes, bool(rng.random() < 0.6), options)


def brought(device: str, *arrays: np.ndarray, single: bool) -> list[torch.Tensor]:
    """Return arrays as tensors of a device."""
    dtype = torch.float32 if single else torch.float64
    return [torch.as_tensor(array, dtype=dtype, device=device) for array in arrays]


def compare(case: Drawn, device: str) -> list[str]:
    """Return what is wrong with the device's answer."""
    X, Y, a, b = brought(device, case.X, case.Y, case.a, case.b, single=case.single)
    # The host gets what the device has: rounding the input is none of the library's doing.
    host = [one.double().cpu().numpy() for one in (X, Y, a, b)]
    weights = {"a": host[2] / host[2].sum(), "b": host[3] / host[3].sum()}
    given: dict[str, Any] = {"a": a, "b": b, "normalise_weights": True}
    options = dict(case.options)
    if case.door == "loss":
        return _loss(case, X, Y, host, options)
    tol = options.get("tol", 1e-4)
    if case.door == "costs":
        ends = np.cumsum([0, *case.sizes])
        parts = [slice(*both) for both in pairwise(ends)]
        costs = torch.stack([torch.cdist(X[:, p], Y[:, p]) ** 2 for p in parts])
        found = frot.solve_costs(costs, **given, **options)
        exact = costs.double().cpu().numpy()
        truth = frot.solve_costs(exact, **weights, **{**options, "tol": 1e-6})
        return _judged([found], [truth], tol, weights)
    closely = {**options, "tol": 1e-6}
    if case.door == "batch":
        members = [(X, Y), (1.5 * X, Y), (X, Y.flip(0) - X.mean())]
        kept = [[one.double().cpu().numpy() for one in pair] for pair in members]
        sides = [[pair[side] for pair in members] for side in (0, 1)]
        found = frot.solve_batch(sides[0], sides[1], case.sizes, **options)
        truth = [frot.solve(pair[0], pair[1], case.sizes, **closely) for pair in kept]
        return _judged(list(found), truth, tol, None)
    if case.door == "streamed":
        given["memory_budget"] = 1e5
    found = frot.solve(X, Y, case.sizes, **given, **options)
    truth = frot.solve(host[0], host[1], case.sizes, **weights, **closely)
    kept_marginals = None if "tau" in options else weights
    return _judged([found], [truth], tol, kept_marginals)


def _judged(
    found: list[Any], truth: list[Any], tol: float, weights: dict[str, np.ndarray] | None
) -> list[str]:
    wrong = []
    for one, other in zip(found, truth, strict=True):
        slack = 1e-9 * max(abs(other.lower), abs(other.upper))
        if one.lower > other.upper + slack or other.lower > one.upper + slack:
            wrong.append(f"[{one.lower}, {one.upper}] does not meet [{other.lower}, {other.upper}]")
        if one.gap > tol and one.status == frot.Status.CONVERGED:
            wrong.append(f"CONVERGED at a gap of {one.gap:.1e} for {tol:.0e}")
        if one.gap > max(tol, 1e-3):
            wrong.append(f"{one.status} at a gap of {one.gap:.1e}; on the host {other.gap:.1e}")
        if weights is not None:
            for axis, side in ((1, "a"), (0, "b")):
                sums = torch.as_tensor(one.plan.sum(axis=axis)).cpu().numpy()
                if (off := float(np.abs(sums - weights[side]).sum())) > 1e-4:
                    wrong.append(f"the marginal {side} is off by {off:.1e}")
    return wrong


def _loss(
    case: Drawn, X: torch.Tensor, Y: torch.Tensor, host: list[np.ndarray], options: dict[str, Any]
) -> list[str]:
    """Compare a loss and its gradient with those in double precision on the host."""
    answers: list[tuple[float, np.ndarray]] = []
    for x, y, tol in ((X, Y, None), (*map(torch.as_tensor, host[:2]), 1e-6)):
        leaf = x.clone().requires_grad_()
        given = options if tol is None else {**options, "gradient_tol": tol}
        value = FRWDLoss(case.sizes, **given)(leaf, y)
        value.backward()
        assert leaf.grad is not None
        answers.append((float(value.detach()), leaf.grad.double().cpu().numpy()))
    (value, gradient), (right, slope) = answers
    scale, size = float(np.abs(slope).sum()), abs(right) + 1e-3
    off = float(np.abs(gradient - slope).sum())
    # Without eta the gradient jumps from group to group.
    steady = len(case.sizes) == 1 or options["eta"].share > 0.0
    wrong = [] if np.isfinite(gradient).all() else ["the gradient is not finite"]
    if steady and off > GRADIENT * scale + 1e-6:
        wrong.append(f"the gradient is off by {off / scale:.1e}")
    if abs(value - right) > 0.05 * size:
        wrong.append(f"the loss is {value:.6g}, on the host {right:.6g}")
    return wrong


def attempt(work: Callable[[], list[str]]) -> list[str]:
    """Return what is wrong with an answer, warnings and exceptions included."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            wrong = work()
        except Exception as error:
            last = traceback.format_exc().strip().splitlines()
            wrong = [f"{type(error).__name__}: {error}", *last[-7:-1]]
    return wrong + [f"warned: {one.category.__name__}: {one.message}" for one in heard]


def main() -> None:
    """Compare, and print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--n", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    asked = parser.parse_args()
    if asked.device.startswith("cuda") and not torch.cuda.is_available():
        print("no CUDA device here; nothing to compare")
        return
    numbers = range(asked.first, asked.first + asked.n) if asked.only is None else [asked.only]
    begin, failed = time.perf_counter(), 0
    done: dict[str, int] = dict.fromkeys(DOORS, 0)
    for number in numbers:
        case = draw(asked.seed, number)
        if wrong := attempt(lambda case=case: compare(case, asked.device)):
            failed += 1
            print(f"{number}: {case}", *wrong, sep="\n    ", flush=True)
        done[case.door] += 1
    table(["call", "problems"], [[door, str(count)] for door, count in done.items()])
    print(f"{failed} of {sum(done.values())} failed, {time.perf_counter() - begin:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
