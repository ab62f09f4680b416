"""Entropic transport of 10^4 to 10^6 points on a CUDA device: time, passes, memory, interval.

    python benchmarks/gpu_scale.py [--most 1000000] [--eps 0.05] [--plain]

Two kinds of points: two Gaussian clouds with one group shifted, and the same around twenty centres
(up to 10^5). `--plain` streams in blocks of plain PyTorch instead of fused kernels.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter, defaultdict

import frot
from _common import table
from frot._base.arrays import has_triton
from frot.solvers.entropic import _fused

GROUPS, FEATURES, CENTRES = 8, 64, 20


def watch(module, counter: Counter, seconds: dict, synchronize) -> None:
    """Count the kernels' calls, and their time."""
    for name in ("log_sums", "column_sums", "apply", "products"):
        kernel = getattr(module, name)

        def counted(*arguments, inner=kernel, name=name, **options):
            synchronize()
            begin = time.perf_counter()
            found = inner(*arguments, **options)
            synchronize()
            fine = options.get("precise", name not in ("log_sums", "products"))
            counter[name, fine] += 1
            seconds[name, fine] += time.perf_counter() - begin
            return found

        setattr(module, name, counted)


def points(torch, n: int, kind: str):
    """Two clouds, one group shifted; around centres where that is asked for."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    X, Y = (torch.randn(n, FEATURES, device="cuda", generator=generator) for _ in range(2))
    if kind == "clusters":
        centres = 6.0 * torch.randn(CENTRES, FEATURES, device="cuda", generator=generator)
        for side in (X, Y):
            side += centres[torch.randint(CENTRES, (n,), device="cuda", generator=generator)]
    Y[:, : FEATURES // GROUPS] += 0.7
    return X, Y


def main() -> None:
    parser = argparse.ArgumentParser(description="Entropic transport on a CUDA device.")
    parser.add_argument("--most", type=int, default=1_000_000, help="largest number of points")
    parser.add_argument("--eps", type=float, default=0.05, help="share of the mean cost")
    parser.add_argument("--eta", type=float, default=0.05, help="share of the mean cost")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--limit", type=float, default=200.0, help="seconds a problem")
    parser.add_argument("--plain", action="store_true", help="blocks in plain PyTorch only")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: pip install 'frot[cuda]'")
        return
    if not torch.cuda.is_available():
        print("no CUDA device here; nothing to measure")
        return
    counter, seconds = Counter(), defaultdict(float)
    if options.plain or not has_triton():
        _fused.FusedEngine.of = classmethod(lambda cls, *rest: None)  # type: ignore[method-assign]
    else:
        from frot.solvers.entropic import _fused_triton

        watch(_fused_triton, counter, seconds, torch.cuda.synchronize)
    print(f"{torch.cuda.get_device_name()}; gap asked {options.tol:.0e}")
    print(f"eta = {options.eta}, eps = {options.eps} of the mean cost")
    groups = [FEATURES // GROUPS] * GROUPS
    rows = []
    for n, kind in (
        (10_000, "clouds"), (100_000, "clouds"), (1_000_000, "clouds"),
        (10_000, "clusters"), (100_000, "clusters"),
    ):  # fmt: skip
        if n > options.most:
            continue
        X, Y = points(torch, n, kind)
        eta, eps = frot.relative(options.eta), frot.relative(options.eps)
        took, peak, result = 0.0, 0, None
        # The first run of a shape compiles.
        for _ in range(2 if n <= 100_000 else 1):
            counter.clear()
            seconds.clear()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            begin = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", frot.ConvergenceWarning)
                result = frot.solve(
                    X, Y, groups, eta=eta, eps=eps, tol=options.tol, time_limit=options.limit,
                    memory_budget=1e8,
                )  # fmt: skip
            torch.cuda.synchronize()
            took = time.perf_counter() - begin
            peak = torch.cuda.max_memory_allocated() - before
        assert result is not None
        low, high = result.unregularised
        spent = ", ".join(
            f"{name}{' x3' if fine else ''} {count} ({seconds[name, fine]:.2f} s)"
            for (name, fine), count in counter.items()
        )
        rows.append(
            [
                f"{n:,}",
                kind,
                f"{took:.2f} s",
                f"{peak / 1e9:.2f} GB",
                f"[{result.lower:.5f}, {result.upper:.5f}]",
                f"{result.gap:.1e}",
                f"[{low:.4f}, {high:.4f}]",
                str(result.status),
            ]
        )
        print(rows[-1], spent, flush=True)
    table(["n", "points", "time", "peak", "interval", "gap", "without eps", ""], rows)


if __name__ == "__main__":
    main()
