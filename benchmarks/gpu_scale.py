"""Entropic transport of 10^4 to 10^6 points on a CUDA device: time, rate, memory, interval.

    python benchmarks/gpu_scale.py [--most 1000000] [--eps 0.05] [--plain]

The rate counts the matrix products that the passes need (and none that are only there to avoid
memory): 4 n m d for a pass of the search or of the certificate, 2 n m d for its c-transforms. It is
set against the rate of a large single-precision product measured in the same process.
"""

from __future__ import annotations

import argparse
import time
import warnings

import frot
from _common import table
from frot.solvers.sinkhorn import _flash, _stream, certificate

GROUPS, FEATURES = 8, 64


def matrix_rate(torch, dtype) -> float:
    """Return TFLOP/s of a large product in `dtype` on random numbers."""
    size = 8192
    left, right = (torch.randn(size, size, device="cuda", dtype=dtype) for _ in range(2))
    for _ in range(3):
        torch.matmul(left, right)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(5):
        torch.matmul(left, right)
    torch.cuda.synchronize()
    return 5 * 2.0 * size**3 / (time.perf_counter() - begin) / 1e12


class Counter:
    """Counts passes over the kernel by their precision."""

    def __init__(self) -> None:
        self.single = self.double = 0.0

    def watch(self, owner, name: str, products: float) -> None:
        """Count every call of a pass as so many products of n m d multiplications."""
        inner = getattr(owner, name)

        def counted(first, *arguments):
            # An engine, or the geometry that it is about.
            home = getattr(first, "geometry", first).home
            if str(home.dtype).endswith("64"):
                self.double += products
            else:
                self.single += products
            return inner(first, *arguments)

        setattr(owner, name, counted)


def points(torch, n: int):
    """Two Gaussian clouds, one group shifted."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    X, Y = (
        torch.randn(n, FEATURES, device="cuda", generator=generator, dtype=torch.float32)
        for _ in range(2)
    )
    Y[:, : FEATURES // GROUPS] += 0.7
    return X, Y


def main() -> None:
    parser = argparse.ArgumentParser(description="Entropic transport on a CUDA device.")
    parser.add_argument("--most", type=int, default=1_000_000, help="largest number of points")
    parser.add_argument("--eps", type=float, default=0.05, help="share of the mean cost")
    parser.add_argument("--eta", type=float, default=0.05, help="share of the mean cost")
    parser.add_argument("--tol", type=float, default=1e-3)
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
    if options.plain:
        _flash.FlashEngine.suits = staticmethod(lambda geometry: False)  # type: ignore[method-assign]
    counter = Counter()
    counter.watch(_stream.StreamEngine, "sweep_once", 4.0)
    counter.watch(_flash._TensorCores, "sweep_once", 4.0)
    counter.watch(certificate, "measure", 4.0)
    counter.watch(_stream.StreamEngine, "transforms", 2.0)
    name = torch.cuda.get_device_name()
    rates = matrix_rate(torch, torch.float32), matrix_rate(torch, torch.float64)
    print(f"{name}: float32 product {rates[0]:.0f} TFLOP/s, float64 {rates[1]:.0f} TFLOP/s")
    print(f"eta = {options.eta}, eps = {options.eps} of the mean cost, gap asked {options.tol:.0e}")
    groups = [FEATURES // GROUPS] * GROUPS
    rows = []
    for n in (10_000, 100_000, 1_000_000):
        if n > options.most:
            continue
        X, Y = points(torch, n)
        eta, eps = frot.relative(options.eta), frot.relative(options.eps)
        seconds, result, before = 0.0, None, 0
        for warm in (True, False) if n <= 100_000 else (False,):
            counter.single = counter.double = 0.0
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            begin = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", frot.ConvergenceWarning)
                result = frot.solve(X, Y, groups, eta=eta, eps=eps, tol=options.tol)
            torch.cuda.synchronize()
            seconds = time.perf_counter() - begin
            if warm:
                print(f"n = {n:,} with compilation: {seconds:.1f} s", flush=True)
        assert result is not None
        peak = torch.cuda.max_memory_allocated() - before
        products = float(n) * n * FEATURES * (counter.single + counter.double)
        low, high = result.unregularised
        rows.append(
            [
                f"{n:,}",
                f"{seconds:.2f} s",
                f"{counter.single / 4:.0f} + {counter.double / 4:.1f}",
                f"{products / seconds / 1e12:.1f}",
                f"{peak / 1e9:.2f} GB",
                f"[{result.lower:.5f}, {result.upper:.5f}]",
                f"{result.gap:.1e}",
                f"[{low:.4f}, {high:.4f}]",
                str(result.status),
            ]
        )
        print(rows[-1], flush=True)
    header = ["n", "time", "passes 32+64", "TFLOP/s", "peak", "interval", "gap", "without eps", ""]
    table(header, rows)


if __name__ == "__main__":
    main()
