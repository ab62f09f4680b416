"""The loss on a CUDA device beside GeomLoss, or a stand-in of its algorithm where it is missing."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from _common import table
from frot._base.arrays import has_triton
from frot.torch import FRWDLoss

FEATURES, SHIFT, GROUPS = 64, 0.7, 8
EPS, ETA, MOVE = 0.05, 0.05, 0.01
SCALINGS = (0.5, 0.9)
# Points that GeomLoss's matrices, and references in double precision, fit.
TENSORIZED_TO, REFERENCE_TO, GROUPS_REFERENCE_TO = 20_000, 10_000, 1_000
# A gradient this close is that of double precision.
CLOSE = 1e-6
# Steps of a training loop, and after how many its memory is looked at first.
STEPS, SETTLED = 1_000, 10


def has_keops() -> bool:
    """Whether GeomLoss can form kernels on the fly."""
    return importlib.util.find_spec("pykeops") is not None


class Stand:
    """GeomLoss's `tensorized` algorithm, written anew: symmetric updates, eps coming down.

    `block` rows of a kernel are formed at a time; with fewer than all of them it is `online`.
    """

    def __init__(self, blur: float, scaling: float, block: int) -> None:
        self.blur, self.scaling, self.block = blur, scaling, block

    def _soft(self, eps: float, x: Tensor, y: Tensor, scores: Tensor) -> Tensor:
        def some(part: Tensor, y: Tensor) -> Tensor:
            cost = 0.5 * (part**2).sum(1)[:, None] + 0.5 * (y**2).sum(1) - part @ y.T
            return -eps * (scores - cost / eps).logsumexp(1)

        parts = x.split(self.block)
        if len(parts) == 1 or not torch.is_grad_enabled():
            return torch.cat([some(part, y) for part in parts])
        from torch.utils.checkpoint import checkpoint

        return torch.cat([checkpoint(some, part, y, use_reentrant=False) for part in parts])

    def _all(self, eps: float, x: Tensor, y: Tensor, at: list[Tensor]) -> list[Tensor]:
        f, g, own_x, own_y = at
        log_a, log_b = -torch.tensor(len(x)).log().item(), -torch.tensor(len(y)).log().item()
        return [
            self._soft(eps, x, y.detach(), log_b + g / eps),
            self._soft(eps, y, x.detach(), log_a + f / eps),
            self._soft(eps, x, x.detach(), log_a + own_x / eps),
            self._soft(eps, y, y.detach(), log_b + own_y / eps),
        ]

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            both = torch.cat([x, y])
            width = float((both.amax(0) - both.amin(0)).norm())
            eps, least = width**2, self.blur**2
            at = self._all(eps, x, y, [x.new_zeros(len(p)) for p in (x, y, x, y)])
            while True:
                ahead = self._all(eps, x, y, at)
                at = [0.5 * (one + two) for one, two in zip(at, ahead, strict=True)]
                if eps <= least:
                    break
                eps = max(least, eps * self.scaling**2)
        # Only the last update is differentiated.
        f, g, own_x, own_y = self._all(least, x, y, at)
        return (f - own_x).mean() + (g - own_y).mean()


def clouds(n: int, device: str) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, FEATURES, generator=draw) for _ in range(2))
    y[:, : FEATURES // GROUPS] += SHIFT
    return x.to(device), y.to(device)


def gradient(loss: Callable[..., Tensor], x: Tensor, y: Tensor) -> Tensor:
    leaf = x.clone().requires_grad_()
    loss(leaf, y).backward()
    assert leaf.grad is not None
    return leaf.grad


def off(found: Tensor, exact: Tensor | None) -> str:
    if exact is None:
        return "-"
    return f"{float((found.double() - exact).norm() / exact.norm()):.1e}"


class Meter:
    """Seconds and bytes of calls on a device."""

    def __init__(self, device: str) -> None:
        self.cuda = device.startswith("cuda")

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def reset(self) -> None:
        if self.cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def held(self, most: bool = False) -> int:
        if not self.cuda:
            return 0
        return torch.cuda.max_memory_allocated() if most else torch.cuda.memory_allocated()

    def __call__(self, work: Callable[[], Any], repeats: int) -> tuple[float, int, Any]:
        """Return the least seconds, the peak of bytes, and what came out last."""
        least, found = float("inf"), None
        self.reset()
        before = self.held()
        for _ in range(repeats):
            self.wait()
            begin = time.perf_counter()
            found = work()
            self.wait()
            least = min(least, time.perf_counter() - begin)
        return least, self.held(most=True) - before, found


def reference(x: Tensor, y: Tensor, eps: float) -> Tensor:
    """The debiased gradient with one group, by sweeps in double precision on whole matrices."""
    x, y = x.double(), y.double()

    def goes(one: Tensor, two: Tensor) -> Tensor:
        scores = -(torch.cdist(one, two, compute_mode="donot_use_mm_for_euclid_dist") ** 2) / eps
        f, g = scores.new_zeros(len(one)), scores.new_zeros(len(two))
        for _ in range(2_000):
            f = -(scores + g).logsumexp(1)
            ahead = -(scores + f[:, None]).logsumexp(0)
            done = float(torch.expm1(g - ahead).abs().mean()) < CLOSE / 10
            g = ahead
            if done:
                break
        return (scores + g).softmax(1) @ two

    return 2.0 * (goes(x, x) - goes(x, y)) / len(x)


def measure(n: int, device: str, meter: Meter) -> list[list[str]]:
    x, y = clouds(n, device)
    repeats = 10 if n <= 1_000 else 5 if n <= 10_000 else 2
    rows = []

    def row(who: str, groups: int, spent: tuple[float, int, Any], exact: Any, note: str) -> None:
        seconds, peak, found = spent
        cells = [f"{1e3 * seconds:.1f} ms", f"{peak / 1e6:.0f} MB", off(found, exact), note]
        rows.append([f"{n:,}", who, str(groups), *cells])
        print(rows[-1], flush=True)

    for groups in (1, GROUPS):
        level = float((x.var(0) + y.var(0) + (x.mean(0) - y.mean(0)) ** 2).sum()) / groups
        eps, eta = EPS * level, ETA * level if groups > 1 else 0.0
        options: dict[str, Any] = {"groups": [FEATURES // groups] * groups, "eta": eta, "eps": eps}
        options["debias"] = True
        exact = None
        if groups == 1 and n <= REFERENCE_TO:
            exact = reference(x, y, eps)
        elif groups > 1 and n <= GROUPS_REFERENCE_TO:
            exact = gradient(FRWDLoss(**options, gradient_tol=CLOSE), x.double(), y.double())
        meter.reset()
        cold = FRWDLoss(**options, warm_start=False)
        gradient(cold, x, y)
        row("frot", groups, meter(lambda loss=cold: gradient(loss, x, y), repeats), exact, "")
        warm, moved = FRWDLoss(**options), x
        gradient(warm, x, y)
        spent, draw = (float("inf"), 0, None), torch.Generator(device=device).manual_seed(1)
        for _ in range(repeats):
            moved = moved + MOVE * torch.randn(moved.shape, device=device, generator=draw)
            one = meter(lambda at=moved, loss=warm: gradient(loss, at, y), 1)
            spent = (min(one[0], spent[0]), max(one[1], spent[1]), one[2])
        road = "blocks"
        if warm._clouds:
            state = warm._clouds[0]
            road = f"{state.sweeps} sweeps, {state.steps} steps"
        exact = reference(moved, y, eps) if groups == 1 and exact is not None else None
        row("frot, next step", groups, spent, exact, road)
        if groups == 1:
            peers(n, x, y, eps, meter, lambda *cells: row(*cells))
    return rows


def peers(n: int, x: Tensor, y: Tensor, eps: float, meter: Meter, row: Callable[..., None]) -> None:
    """Time GeomLoss: its cost is half of ours, and so is its eps."""
    blur = (0.5 * eps) ** 0.5
    exact = reference(x, y, eps) if n <= REFERENCE_TO else None
    # Of many points one call of the faster kind is enough.
    scalings = SCALINGS if n <= TENSORIZED_TO else SCALINGS[:1]
    for scaling in scalings:
        calls: dict[str, Callable[..., Tensor]] = {}
        try:
            from geomloss import SamplesLoss  # pyright: ignore[reportMissingImports]

            given = {"p": 2, "blur": blur, "scaling": scaling}
            if n <= TENSORIZED_TO:
                calls["GeomLoss, tensorized"] = SamplesLoss(
                    "sinkhorn", **given, backend="tensorized"
                )
            if has_keops():
                calls["GeomLoss, online"] = SamplesLoss("sinkhorn", **given, backend="online")
        except ImportError:
            if n <= TENSORIZED_TO:
                calls["stand-in, tensorized"] = Stand(blur, scaling, n)
        if n > 1_000 and not has_keops():
            calls["stand-in, online"] = Stand(blur, scaling, max(1, 100_000_000 // n))
        for who, loss in calls.items():
            try:
                if n <= TENSORIZED_TO:
                    gradient(loss, x, y)
                repeats = 3 if n <= TENSORIZED_TO else 1
                seconds, peak, found = meter(lambda loss=loss: gradient(loss, x, y), repeats)
            except (ImportError, RuntimeError) as error:
                print(f"{n:,} {who}: {type(error).__name__} {str(error)[:100]}", flush=True)
                continue
            row(who, 1, (seconds, peak, 2.0 * found), exact, f"scaling {scaling}")


def train(n: int, device: str, meter: Meter, steps: int) -> list[str]:
    """Move a cloud to another through a layer, under autocast."""
    x, y = clouds(n, device)
    layer = torch.nn.Linear(FEATURES, FEATURES).to(device)
    moves = torch.optim.SGD(layer.parameters(), lr=1e-3)
    loss = FRWDLoss([FEATURES // GROUPS] * GROUPS, eta=0.5, eps=0.5, debias=True)
    held, begin, first, last = 0, 0.0, 0.0, 0.0
    for step in range(steps):
        if step == SETTLED:
            meter.wait()
            held, begin = meter.held(), time.perf_counter()
        moves.zero_grad()
        with torch.autocast(device.partition(":")[0], dtype=torch.bfloat16):
            found = loss(x + layer(x), y.bfloat16())
        found.backward()
        moves.step()
        last = float(found.detach())
        first = first if step else last
    meter.wait()
    each = (time.perf_counter() - begin) / max(1, steps - SETTLED)
    grown = meter.held() - held
    return [f"{n:,}", str(steps), f"{1e3 * each:.1f} ms", f"{grown} B", f"{first:.4f}, {last:.4f}"]


def main(sizes: list[int], device: str, steps: int) -> None:
    """Print two tables."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        print("no CUDA device here; nothing to measure")
        return
    name = torch.cuda.get_device_name() if device.startswith("cuda") else device
    print(f"{name}; torch {torch.__version__}; Triton {has_triton()}")
    try:
        import geomloss  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError:
        print("GeomLoss is not installed: the stand-in is its algorithm, written anew")
    if not has_keops():
        print("KeOps is not installed: a stand-in forms GeomLoss's kernels in blocks of rows")
    meter = Meter(device)
    rows = [row for n in sizes for row in measure(n, device, meter)]
    print()
    table(["n", "loss", "L", "a step", "peak", "gradient off by", ""], rows)
    print()
    loops = [train(n, device, meter, steps) for n in sizes if n <= 10_000]
    table(["n", "steps", "a step", "memory since step 10", "first and last loss"], loops)
