"""`Matcher` on a device, through its public door: a pair of photographs, and PF-WILLOW's 900.

    python benchmarks/matcher.py [--device cuda] [--willow FOLDER --weights FILE] [--limit N]

A pair has the cells and layers of ResNet-101 at a side of 300 (n = 4,275, L = 34). "Known" are two
photographs whose features are in the matcher's memory; ten key points are read off at the end.
"New" are two that the network, a ResNet-101 of random weights, has not seen, at a strength of Hough
matching that is given; "mirrored" the same where the strength is found, for which A is looked at
mirrored, too: these photographs are noise, and nothing in them is rigid. "Proven" is the time
that `match.result` takes once more. Cosines are kept as a stack, and as factors. With ``--willow``
the data set is evaluated from files to the table, twice: the first run compiles kernels.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import product
from typing import Any

from _common import table  # isort: skip  (sets the number of threads)

import numpy as np
import torch

from _pair_plain import synthetic_maps
from frot.correspondence import FeatureMap, Matcher, evaluate, load_pairs
from frot.correspondence.backbones._torch_networks import ResNet
from frot.correspondence.cuda import pair

PRESETS = {"frot": {"stride": 4, "side": 300}, "frot-paper": {"mass": "uniform"}}
FORMS = {"stack": pair.STACK_BYTES, "factors": 0}


class Synthetic:
    """A network that knows two photographs, by their first pixel."""

    name, fingerprint = "synthetic", "1"

    def __init__(self) -> None:
        self.pair = synthetic_maps()
        self.layers = tuple(one.name for one in self.pair[0])

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return the maps of one of them."""
        return list(self.pair[int(image[0, 0, 0] > 0.5)])


def least(
    work: Callable[[], Any], wait: Callable[[], None], repeats: int = 10
) -> tuple[float, Any]:
    """Return the least time of `work` in milliseconds, and what it returned last."""
    times, found = [], None
    for _ in range(repeats):
        wait()
        begin = time.perf_counter()
        found = work()
        wait()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times), found


def new_photographs(
    preset: str, given: dict[str, Any], device: str, wait: Callable[[], None]
) -> float:
    """Return the least time of a pair whose photographs were not seen before, in milliseconds."""
    torch.manual_seed(0)
    module = ResNet((3, 4, 23, 3)).eval()
    matcher = Matcher(module, preset=preset, device=device, **{**given, "mass": "uniform"})
    rng = np.random.default_rng(1)
    photographs = [rng.integers(0, 255, (300, 228, 3), dtype=np.uint8) for _ in range(16)]
    left = iter(photographs)
    return least(lambda: matcher(next(left), next(left)), wait, 8)[0]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="Matcher on a device.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--willow", help="folder of PF-WILLOW")
    parser.add_argument("--weights", help="file of MobileNetV2's weights")
    parser.add_argument("--limit", type=int, help="pairs of PF-WILLOW")
    options = parser.parse_args()
    cuda = options.device.startswith("cuda")
    if cuda and not torch.cuda.is_available():
        print("no CUDA device here; nothing to measure")
        return
    wait = torch.cuda.synchronize if cuda else lambda: None
    rng = np.random.default_rng(0)
    one = rng.integers(0, 255, (300, 228, 3), dtype=np.uint8)
    other, points = one.copy(), 200.0 * rng.random((10, 2))
    one[:4, :4], other[:4, :4] = 0, 255
    network, rows = Synthetic(), []
    for (preset, given), (form, most) in product(PRESETS.items(), FORMS.items()):
        # What the planner may keep as a stack.
        pair.STACK_BYTES = most
        matcher = Matcher(network, preset=preset, device=options.device, **given)
        for _ in range(6):
            matcher(one, other).transfer(points)
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        alone, _ = least(lambda m=matcher: m(one, other), wait)
        moved, _ = least(lambda m=matcher: m(one, other).transfer(points), wait)
        peak = f"{torch.cuda.max_memory_allocated() / 1e9:.2f} GB" if cuda else "-"
        match = matcher(one, other)
        proven, result = least(lambda match=match: match.result, wait, 1)
        rows.append([preset, form, f"{alone:.1f} ms", f"{moved:.1f} ms", peak, f"{proven:.0f} ms",
                     f"{result.gap:.1e}"])  # fmt: skip
        del match, result, matcher
        new = new_photographs(preset, given, options.device, wait)
        rows[-1].insert(2, f"{new:.1f} ms")
    pair.STACK_BYTES = FORMS["stack"]
    print(torch.cuda.get_device_name() if cuda else options.device)
    table(["preset", "kept", "new", "known", "and key points", "peak", "proven", "gap"], rows)
    if options.willow is None:
        return
    pairs, rows = load_pairs("pf-willow", options.willow), []
    for network, weights in (("mobilenetv2", options.weights), (None, None)):
        if network is not None and weights is None:
            continue
        for run in ("first", "second"):
            begin = time.perf_counter()
            matcher = Matcher(network, weights=weights, device=options.device)
            found = evaluate(pairs, matcher, limit=options.limit, progress=False)
            seconds = time.perf_counter() - begin
            rows.append([matcher.backbone.name, run, f"{seconds:.1f} s", str(found)])
    table(["network", "run", "time", "evaluation"], rows)


if __name__ == "__main__":
    main()
