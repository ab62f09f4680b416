"""The differentiable loss beside GeomLoss: forward and backward, debiased, on one thread.

    python benchmarks/loss.py [--points 1000 5000]
    python benchmarks/loss.py --device cuda [--points 1000 10000 100000] [--steps 1000]

Both in one process, from tensors to the gradient by x, validation and proofs included, least
processor time of some calls. The points are two normal clouds in eight dimensions, half a standard
deviation apart in each, in single precision; eps is 5 % of the mean cost, and with eight groups
eta is 10 %. Errors are of the gradient, relative, against our own at a far smaller tolerance in
double precision. GeomLoss knows one group only: its rows are that problem, at the same eps. "Next"
is a step of training: the points have moved by a hundredth since the last call. A peer that is not
installed is named: ``pip install "frot[bench]"`` brings it. On a device there are 64 dimensions, in
eight groups or one, seconds and peak memory of a step, and a loop of training under autocast.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

from _common import fastest, table  # isort: skip  (sets the number of threads)

import torch

from frot.torch import FRWDLoss

FEATURES, SHIFT = 8, 0.5
EPS, ETA = 0.05, 0.1
MOVE = 0.01
GROUPS = {1_000: (1, 8), 5_000: (1, 8)}
SCALINGS = (0.5, 0.9)
REFERENCE = {1_000: 1e-6, 5_000: 2e-4}
REPEATS = {1_000: 5, 5_000: 1}
HEADER = [
    "n",
    "L",
    "frot s",
    "error",
    "next s",
    "next error",
    "GeomLoss s (.5)",
    "error",
    "GeomLoss s (.9)",
    "error",
    "ratio to .9",
]


class Case(NamedTuple):
    """Points, the number of groups, and what their mean cost is."""

    x: torch.Tensor
    y: torch.Tensor
    groups: int
    level: float

    @property
    def options(self) -> dict[str, Any]:
        eta = ETA * self.level if self.groups > 1 else 0.0
        sizes = [FEATURES // self.groups] * self.groups
        return {"groups": sizes, "eta": eta, "eps": EPS * self.level, "debias": True}


def make_case(n: int, groups: int) -> Case:
    draw = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, FEATURES, generator=draw) for _ in range(2))
    y = y + SHIFT
    level = float((x.var(0) + y.var(0) + (x.mean(0) - y.mean(0)) ** 2).sum()) / groups
    return Case(x, y, groups, level)


def gradient(loss: Callable[..., torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    leaf = x.clone().requires_grad_()
    loss(leaf, y).backward()
    assert leaf.grad is not None
    return leaf.grad


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact).norm() / exact.norm())


def converged(case: Case, x: torch.Tensor, n: int) -> torch.Tensor:
    loss = FRWDLoss(**case.options, gradient_tol=REFERENCE[n], warm_start=False)
    return gradient(loss, x.double(), case.y.double())


def ours(case: Case, exact: torch.Tensor, n: int) -> list[str]:
    """Time a first call and a next one."""
    cold = FRWDLoss(**case.options, warm_start=False)
    seconds, found = fastest(lambda: gradient(cold, case.x, case.y), REPEATS[n])
    warm, draw = FRWDLoss(**case.options), torch.Generator().manual_seed(1)
    gradient(warm, case.x, case.y)
    later, x, moved = float("inf"), case.x, case.x
    for _ in range(REPEATS[n]):
        x = x + MOVE * torch.randn(x.shape, generator=draw)
        spent, moved = fastest(lambda x=x: gradient(warm, x, case.y), 1)
        later = min(later, spent)
    off = error(moved, converged(case, x, n))
    return [f"{seconds:.3f}", f"{error(found, exact):.1e}", f"{later:.3f}", f"{off:.1e}"]


def geomloss(case: Case, exact: torch.Tensor, scaling: float, n: int) -> tuple[float, float] | None:
    """Time GeomLoss and return its error: its cost is half of ours, and so is its eps."""
    try:
        from geomloss import SamplesLoss  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    blur = (0.5 * EPS * case.level) ** 0.5
    loss = SamplesLoss("sinkhorn", p=2, blur=blur, scaling=scaling, backend="tensorized")
    seconds, found = fastest(lambda: gradient(loss, case.x, case.y), REPEATS[n])
    return seconds, error(2.0 * found, exact)


def rows_of(n: int) -> list[list[str]]:
    rows, peers = [], None
    for groups in GROUPS[n]:
        case = make_case(n, groups)
        exact = converged(case, case.x, n)
        found = ours(case, exact, n)
        if peers is None:
            peers = [geomloss(case, exact, scaling, n) for scaling in SCALINGS]
        cells, ratio = [], "-"
        for peer in peers:
            cells += (
                ["not installed", "-"] if peer is None else [f"{peer[0]:.2f}", f"{peer[1]:.1e}"]
            )
            ratio = "-" if peer is None else f"{peer[0] / float(found[0]):.1f}"
        rows.append([str(n), str(groups), *found, *cells, ratio])
    return rows


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--points", type=int, nargs="+")
    parser.add_argument("--device", default="cpu", help="cpu, or a CUDA device")
    parser.add_argument("--steps", type=int, default=1_000, help="of the loop of training")
    options = parser.parse_args()
    if options.device != "cpu":
        from _loss_device import main as on_device

        on_device(options.points or [1_000, 10_000, 100_000], options.device, options.steps)
        return
    torch.set_num_threads(1)
    sizes = options.points or list(GROUPS)
    if not set(sizes) <= set(GROUPS):
        parser.error(f"--points: choose among {list(GROUPS)}")
    table(HEADER, [row for n in sizes for row in rows_of(n)])


if __name__ == "__main__":
    main()
