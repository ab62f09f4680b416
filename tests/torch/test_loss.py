"""FRWDLoss: gradients against finite differences, and a module that behaves like any other."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import frot
from frot.torch import FRWDLoss

N, M, D = 7, 6, 4
GROUPS = {"a": [0, 1], "b": [1, 2], "c": [3]}


def points(seed: int = 0, batch: tuple[int, ...] = ()) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(*batch, N, D, dtype=torch.float64, generator=draw)
    return x, 0.5 + torch.randn(*batch, M, D, dtype=torch.float64, generator=draw)


def masses(seed: int, size: int, zeros: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    found = 0.2 + torch.rand(size, dtype=torch.float64, generator=draw)
    found[:zeros] = 0.0
    return found / found.sum()


def slope(loss: Any, parts: list[Tensor], ways: list[Tensor], h: float = 1e-4) -> float:
    """The derivative along some directions, by central differences of fourth order.

    The four values are those of one batch, which costs little more than one of them.
    """
    steps = h * torch.tensor([1.0, -1.0, 2.0, -2.0], dtype=torch.float64)
    moved = [
        part + steps.view(-1, *[1] * part.ndim) * way for part, way in zip(parts, ways, strict=True)
    ]
    ahead, back, far_ahead, far_back = loss(*moved).tolist()
    return (8.0 * (ahead - back) - (far_ahead - far_back)) / (12.0 * h)


def gradient(loss: Any, parts: list[Tensor]) -> list[Tensor]:
    leaves = [part.clone().requires_grad_() for part in parts]
    loss(*leaves).sum().backward()
    return [leaf.grad for leaf in leaves if leaf.grad is not None]


def directions(parts: list[Tensor], seed: int = 1) -> list[Tensor]:
    """Any for points; those that keep the mass, and zeros, for weights."""
    draw = torch.Generator().manual_seed(seed)
    ways = [torch.randn(part.shape, dtype=part.dtype, generator=draw) for part in parts]
    for at in range(2, len(parts)):
        ways[at] = ways[at] * (parts[at] > 0.0)
        ways[at] -= (
            ways[at].mean(-1, keepdim=True)
            * (parts[at] > 0.0)
            * (parts[at].shape[-1] / (parts[at] > 0.0).sum(-1, keepdim=True))
        )
    return ways


CASES: dict[str, dict[str, Any]] = {
    "plain": {"eta": 0.1, "eps": 0.2},
    "no eta": {"eta": 0.0, "eps": 0.2},
    "relative": {"eta": frot.relative(0.1), "eps": frot.relative(0.05)},
    "relative eps": {"eta": 0.0, "eps": frot.relative(0.05)},
    "debias": {"eta": 0.1, "eps": 0.3, "debias": True},
    "debias relative": {"eta": frot.relative(0.1), "eps": frot.relative(0.1), "debias": True},
    "cosine": {"eta": 0.05, "eps": 0.1, "metric": "cosine"},
    "prior": {"eta": frot.relative(0.2), "eps": 0.2, "prior": [0.6, 0.3, 0.1]},
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_finite_differences(name):
    parts = [*points(), masses(1, N, zeros=1), masses(2, M)]
    closest = FRWDLoss(GROUPS, gradient_tol=1e-9, **CASES[name])
    found = {
        wanted: gradient(FRWDLoss(GROUPS, gradient_tol=tol, **CASES[name]), parts)
        for tol, wanted in ((1e-4, 1e-4), (1e-9, 1e-6))
    }
    ways = directions(parts)
    for at, part in enumerate(parts):
        alone = [way if at == k else torch.zeros_like(way) for k, way in enumerate(ways)]
        exact = slope(closest, parts, alone)
        for wanted, grads in found.items():
            size = float(grads[at].norm() * alone[at].norm()) / part.numel() ** 0.5
            got = float((grads[at] * alone[at]).sum())
            assert got == pytest.approx(exact, rel=wanted, abs=wanted * size)


@pytest.mark.parametrize("side", [2, 3])
@pytest.mark.parametrize("name", ["plain", "relative", "debias"])
def test_gradients_at_zero_weights_are_one_sided_differences(name, side):
    parts = [*points(3), masses(1, N, zeros=2), masses(2, M, zeros=2)]
    loss = FRWDLoss(GROUPS, gradient_tol=1e-9, **CASES[name])
    got = gradient(loss, parts)[side]
    way = torch.zeros_like(parts[side])
    way[0], way[3], way[4] = 1.0, -0.5, -0.5

    def at(t: float) -> float:
        moved = [part + t * way if k == side else part for k, part in enumerate(parts)]
        return float(loss(*moved))

    # Self-transport of a lone point bends the cost sharply.
    h = 1e-6
    # One-sided, of third order.
    exact = (-11 * at(0.0) + 18 * at(h) - 9 * at(2 * h) + 2 * at(3 * h)) / (6 * h)
    assert float((got * way).sum()) == pytest.approx(exact, rel=1e-4)


def test_gradcheck():
    x, y = (part[:4].requires_grad_() for part in points(4))
    loss = FRWDLoss(GROUPS, eta=0.1, eps=0.5, gradient_tol=1e-9)
    assert torch.autograd.gradcheck(lambda *xy: loss(*xy), (x, y), eps=1e-4, atol=1e-5)
    # Softmax keeps the mass, so that weights may be moved at will.
    logits = torch.randn(4, dtype=torch.float64, requires_grad=True)
    weighed = lambda z: loss(x.detach(), y.detach(), z.softmax(0))  # noqa: E731
    assert torch.autograd.gradcheck(weighed, (logits,), eps=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_a_batch_has_the_values_and_gradients_of_its_members(name):
    x, y = points(5, (3,))
    y[1] *= 3.0
    a = torch.stack([masses(at, N, zeros=at) for at in range(3)])
    b = masses(9, M)
    loss = FRWDLoss(GROUPS, gradient_tol=1e-8, **CASES[name])
    together = gradient(loss, [x, y, a, b])
    assert isinstance(loss.result, frot.BatchResult)
    whole = loss(x, y, a, b)
    total = torch.zeros_like(b)
    for at in range(3):
        alone = gradient(loss, [x[at], y[at], a[at], b])
        assert float(loss(x[at], y[at], a[at], b)) == pytest.approx(float(whole[at]), rel=1e-9)
        for got, want in zip(together, alone[:2], strict=False):
            assert got[at] == pytest.approx(want, rel=1e-6, abs=1e-7)
        shift = together[2][at] - alone[2]
        assert shift == pytest.approx(float(shift[0]), abs=1e-6)
        total += alone[3]
    shift = together[3] - total
    assert shift == pytest.approx(float(shift[0]), abs=1e-6)


@pytest.mark.parametrize("name", ["plain", "no eta", "relative", "cosine", "prior"])
def test_values_are_those_of_solve(name):
    x, y = points(6)
    options = {key: value for key, value in CASES[name].items() if key != "debias"}
    loss = FRWDLoss(GROUPS, **options)
    value = float(loss(x, y))
    want = frot.solve(x.numpy(), y.numpy(), GROUPS, solver=frot.Entropic(tol=1e-8), **options)
    # The dual value is closer than either bound: errors enter it by their squares.
    assert value == pytest.approx(want.value, rel=1e-5)
    assert loss.result.lower <= value <= loss.result.upper
    assert loss.result.gap <= loss.gradient_tol
    assert loss.result.lower <= want.upper
    assert want.lower <= loss.result.upper
    assert loss.result.metric == want.metric
    assert loss.result.adversary == want.adversary


def test_single_precision_gets_double_precisions_gradient():
    x, y = points(7)
    # Far from the origin, where expanded squares in single precision would be noise.
    x, y = (x + 300.0).float(), (y + 300.0).float()
    loss = FRWDLoss(GROUPS, eta=frot.relative(0.1), eps=frot.relative(0.05))
    single = gradient(loss, [x, y])
    double = gradient(loss, [x.double(), y.double()])
    for got, want in zip(single, double, strict=True):
        assert got.dtype == torch.float32
        assert got == pytest.approx(want.float(), rel=1e-3, abs=1e-5)
    assert loss(x, y).dtype == torch.float32
    a = torch.full((N,), 1.0 / N)
    assert float(loss(x, y, a)) == pytest.approx(float(loss(x, y)), rel=1e-6)


def clouds(kind: str, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(40, 4, dtype=torch.float64, generator=draw) for _ in range(2))
    scales = torch.tensor([5.0, 1.0, 1.0, 0.2], dtype=torch.float64)
    kinds = {
        "apart": (x, y + 2.0),
        "over each other": (x, y + 0.3),
        "scales": (x * scales, y * scales + 0.5),
        "clusters": (0.1 * x + 3.0 * x[:1], 0.1 * y + torch.where(x[:, :1] > 0.0, 2.0, -2.0)),
        "tails": (x.exp(), 0.7 * y.exp()),
    }
    return kinds[kind]


KINDS = ("apart", "over each other", "scales", "clusters", "tails")


@pytest.mark.parametrize("debias", [False, True])
@pytest.mark.parametrize("eps", [0.3, 0.02])
@pytest.mark.parametrize("eta", [0.0, 0.1])
def test_the_tolerance_is_that_of_the_gradient(eta, eps, debias):
    given: dict[str, Any] = {"eta": eta, "eps": frot.relative(eps), "debias": debias}
    pairs = [clouds(kind, 0) for kind in KINDS]
    both = [torch.stack(sides) for sides in zip(*pairs, strict=True)]
    # Together they are as exact, and cost little more than one.
    closest = 1e-5 if debias else 1e-8
    exact = gradient(FRWDLoss(GROUPS, gradient_tol=closest, **given), both)
    for kind, pair, *closest in zip(KINDS, pairs, *exact, strict=True):
        for tol in (5e-3, 5e-2):
            loss = FRWDLoss(GROUPS, gradient_tol=tol, **given)
            found = gradient(loss, list(pair))
            assert loss.result.gap <= tol
            for got, want in zip(found, closest, strict=True):
                assert float((got - want).norm()) <= tol * float(want.norm()), kind


def test_points_of_no_weight_that_are_far_away_change_nothing():
    x, y = points(3)
    a, b = masses(1, N, zeros=1), masses(2, M, zeros=2)
    far_x, far_y = x.clone(), y.clone()
    far_x[0], far_y[:2] = 1e9, -1e12
    for eps, debias in ((0.2, False), (0.2, True), (1e-3, False)):
        loss = FRWDLoss(GROUPS, eta=0.1, eps=eps, debias=debias, gradient_tol=1e-8)
        near, far = gradient(loss, [x, y, a, b]), gradient(loss, [far_x, far_y, a, b])
        for one, other in zip(near[:2], far[:2], strict=True):
            assert one == pytest.approx(other, abs=1e-7)
        assert (far[0][0] == 0.0).all()
        assert (far[1][:2] == 0.0).all()


@pytest.mark.parametrize("eta", [0.0, 0.1])
@pytest.mark.parametrize(
    ("eps", "debias"),
    [(1e-2, False), (1e-3, False), (1e-5, False), (1e-2, True), (1e-3, True), (1e-5, True)],
)
def test_gradients_at_small_eps(eps, debias, eta):
    # Below a thousandth of the mean cost members are solved one by one.
    parts = [*points(3), masses(1, N, zeros=1), masses(2, M, zeros=2)]
    given: dict[str, Any] = {"eta": eta, "eps": frot.relative(eps), "debias": debias}
    loss, ways = FRWDLoss(GROUPS, gradient_tol=1e-8, **given), directions(parts)
    exact = slope(loss, parts, ways, h=1e-5)
    for tol, wanted in ((1e-8, 1e-6), (5e-3, 5e-3)):
        grads = gradient(FRWDLoss(GROUPS, gradient_tol=tol, **given), parts)
        got = sum(float((grad * way).sum()) for grad, way in zip(grads, ways, strict=True))
        assert got == pytest.approx(exact, rel=wanted)


def test_debiased_costs_share_one_eps():
    x, y = points(2)
    y = 0.2 * y
    whole = FRWDLoss([D], eps=frot.relative(0.1), debias=True, gradient_tol=1e-8)
    value = float(whole(x, y))
    alone = FRWDLoss([D], eps=whole.result.eps, gradient_tol=1e-8)
    own = 0.5 * float(alone(x, x) + alone(y, y))
    assert value == pytest.approx(float(alone(x, y)) - own, rel=1e-9)
    assert value > 0.0


def test_a_cloud_with_itself_takes_few_sweeps():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(80, 3, generator=draw)
    loss = FRWDLoss([3], eps=frot.relative(0.01), warm_start=False)
    value = float(loss(x, x))
    want = frot.solve(x.numpy(), x.numpy(), [3], eps=frot.relative(0.01), tol=1e-8)
    assert value == pytest.approx(want.value, rel=1e-5)
    f, g = loss.result.potentials
    shift = f - g
    # The symmetric update leaves both sides with one potential.
    assert shift == pytest.approx(float(shift.mean()), abs=1e-3 * float(f.abs().max()))


@pytest.mark.parametrize("name", ["debias", "debias relative"])
def test_debiased_loss_of_a_cloud_with_itself_is_zero(name):
    x, _ = points(8)
    loss = FRWDLoss(GROUPS, **CASES[name])
    x.requires_grad_()
    value = loss(x, x)
    value.backward()
    assert value.item() == pytest.approx(0.0, abs=1e-7)
    assert x.grad is not None
    assert float(x.grad.abs().max()) < 1e-4
    other = x.detach().clone().requires_grad_()
    loss(other, x.detach()).backward()
    assert other.grad is not None
    assert float(other.grad.abs().max()) < 1e-4


def nodes(root: Any) -> int:
    seen, todo = set(), [root]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [parent for parent, _ in node.next_functions]
    return len(seen)


def test_the_graph_does_not_grow_with_iterations():
    x, y = points(9)
    x.requires_grad_()
    sizes, kept, steps = [], [], []
    for tol, eps in ((1e-2, 1.0), (1e-9, 0.05)):
        loss, saved = FRWDLoss(GROUPS, eta=0.1, eps=eps, gradient_tol=tol), []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda part, saved=saved: saved.append(part.numel()) or part, lambda part: part
        ):
            sizes.append(nodes(loss(x, y).grad_fn))
        kept.append(saved)
        steps.append(loss.result.iterations)
    assert steps[0] < steps[1]
    assert sizes[0] == sizes[1]
    assert kept[0] == kept[1]
    assert max(kept[0]) == N * D


def test_no_gradient_where_none_is_asked_for():
    x, y = points(10)
    loss = FRWDLoss(GROUPS, eta=0.1, eps=0.2)
    assert not loss(x, y).requires_grad
    x.requires_grad_()
    with torch.no_grad():
        assert not loss(x, y).requires_grad
    loss(x, y).backward()
    assert y.grad is None


def test_views_and_a_second_call():
    x, y = points(11)
    loss = FRWDLoss(GROUPS, eta=0.1, eps=0.2)
    first = gradient(loss, [x, y])
    strided = torch.empty(D, N, 2, dtype=torch.float64)[:, :, 0].T.copy_(x)
    assert not strided.is_contiguous()
    second = gradient(loss, [strided, y.mT.contiguous().mT])
    for one, other in zip(first, second, strict=True):
        assert one == pytest.approx(other, abs=1e-9)
    # Two losses at once, each with its own answer.
    x.requires_grad_()
    both = loss(x, y) + 2.0 * loss(x, y)
    both.backward()
    assert x.grad == pytest.approx(3.0 * first[0], abs=1e-9)


def test_a_module_like_any_other():
    x, y = points(12)
    loss = FRWDLoss(GROUPS, eta=0.1, eps=frot.relative(0.1), prior=np.array([0.5, 0.25, 0.25]))
    value = float(loss(x, y))
    assert loss.state_dict() == {}
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), loss.to(torch.float32)):
        assert float(other(x, y)) == value
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert other.result is None
        assert other._last == {}
    assert loss._last
    assert "eta=0.1" in repr(loss)
    assert "tau=(2.0, 2.0)" in repr(FRWDLoss(tau=2.0))
    result = pickle.loads(pickle.dumps(loss.result))
    assert result.value == loss.result.value
    assert result.plan.dense() == pytest.approx(loss.result.plan.dense())


def test_warm_starts_are_shorter_and_come_to_the_same():
    x, y = clouds("over each other", 1)
    given: dict[str, Any] = {"eta": 0.1, "eps": 0.1}
    warm, cold = FRWDLoss(GROUPS, **given), FRWDLoss(GROUPS, warm_start=False, **given)
    exact = FRWDLoss(GROUPS, gradient_tol=1e-8, **given)
    for loss in (warm, cold):
        loss(x, y)
    assert warm.result.iterations == cold.result.iterations
    assert cold._last == {}
    for _ in range(3):
        # In place, as an optimiser does it: what was kept has to be a copy.
        x -= 20.0 * gradient(warm, [x, y])[0]
        for loss in (warm, cold):
            (got, _), (want, _) = gradient(loss, [x, y]), gradient(exact, [x, y])
            assert float((got - want).norm()) <= loss.gradient_tol * float(want.norm())
    cold(x, y)
    x += 1e-3
    warm(x, y)
    assert warm.result.iterations < cold.result.iterations


def test_an_unchanged_problem_is_not_solved_again():
    x, y = points(1)
    loss = FRWDLoss(GROUPS, eta=0.1, eps=0.2)
    first, found = float(loss(x, y)), loss._last["xy"][1]
    assert float(loss(x, y)) == first
    assert loss._last["xy"][1] is found
    loss.gradient_tol = 1e-7
    loss(x, y)
    assert loss._last["xy"][1] is not found
    assert loss.result.gap <= 1e-7
    # Nor is its warning lost.
    rough = FRWDLoss(GROUPS, eta=0.1, eps=0.05, gradient_tol=1e-6, max_iter=1)
    for _ in range(2):
        with pytest.warns(frot.ConvergenceWarning):
            rough(x, y)


def test_other_shapes_and_other_points_start_anew():
    loss = FRWDLoss(GROUPS, eta=0.1, eps=0.2)
    for seed, batch in ((0, ()), (1, (2,)), (2, ())):
        x, y = points(seed, batch)
        for parts in ((x, y), (y, x), (x.float(), y.float()), (100.0 * x, y)):
            fresh = FRWDLoss(GROUPS, eta=0.1, eps=0.2, warm_start=False)
            assert loss(*parts).numpy() == pytest.approx(fresh(*parts).numpy(), rel=1e-5)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(D, D).double()
        self.loss = FRWDLoss(GROUPS, eta=0.1, eps=0.2, debias=True)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * self.loss(self.layer(x), y)


# PyTorch hides this warning of its own, unless warnings are errors.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_compiled_models_are_the_same_and_compile_once():
    from torch._dynamo.testing import CompileCounter

    x, y = points(2)
    eager, model, counter = Model(), Model(), CompileCounter()
    compiled: Any = torch.compile(model, backend=counter)
    counts = []
    for _ in range(3):
        one, other = eager(x, y), compiled(x, y)
        (one + other).backward()
        assert other.item() == one.item()
        counts.append((counter.frame_count, counter.op_count))
    assert model.layer.weight.grad is not None
    assert (model.layer.weight.grad == eager.layer.weight.grad).all()
    # The layer and the factor; nothing of the search, and nothing the second time.
    assert counts[0] == counts[2]
    assert counter.op_count <= 4


# PyTorch would rather not trace any more.
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_recorders_are_refused():
    x, y = points(3, (2,))
    loss = FRWDLoss(eps=0.2)
    for record in (torch.jit.trace, torch.export.export):
        # The oldest torch refuses before it gets there.
        said = "FRWDLoss cannot be traced or exported|skip function disable"
        with pytest.raises(RuntimeError, match=said):
            record(loss, (x[0], y[0]))


def test_autocast_does_not_reach_the_search():
    draw = torch.Generator().manual_seed(0)
    x, y = (torch.randn(300, 6, generator=draw) for _ in range(2))
    # Single precision's products are what autocast would take over.
    loss = FRWDLoss([3, 3], eta=0.1, eps=0.2, warm_start=False)
    plain = gradient(loss, [x, y])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = gradient(loss, [x, y])
        # What comes in half precision is taken in single, as by PyTorch's own losses.
        halves = gradient(loss, [x.bfloat16(), y.bfloat16()])
    for one, other in zip(plain, inside, strict=True):
        assert (one == other).all()
    assert halves[0].dtype == torch.bfloat16
    assert halves[0].float().numpy() == pytest.approx(plain[0].numpy(), rel=0.1, abs=1e-3)
    with pytest.raises(frot.InputError, match=r"x: is torch\.bfloat16; convert it to float32"):
        loss(x.bfloat16(), y.bfloat16())


def test_inference_mode_leaves_nothing_that_training_trips_over():
    x, y = points(4)
    loss = FRWDLoss(GROUPS, eta=0.1, eps=0.2, debias=True)
    with torch.inference_mode():
        value = float(loss(x, y))
    for part in (x, x + 1e-4):
        leaf = part.clone().requires_grad_()
        found = loss(leaf, y)
        found.backward()
        assert found.item() == pytest.approx(value, rel=1e-3)
        assert leaf.grad is not None


def test_second_derivatives_are_refused():
    x, y = points(13)
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(FRWDLoss(eps=0.2)(x, y), x, create_graph=True)


@pytest.mark.parametrize("debias", [False, True])
@pytest.mark.parametrize("eps", [0.1, frot.relative(0.1)])
def test_points_that_are_all_the_same(eps, debias):
    # The mean of copies of such a number is another one.
    x = torch.full((6, 2), -1.5699026340728512, dtype=torch.float64, requires_grad=True)
    loss = FRWDLoss(eps=eps, debias=debias)
    value = loss(x, x.detach()[:4])
    value.backward()
    assert value.item() == pytest.approx(0.0, abs=1e-12)
    assert x.grad is not None
    assert float(x.grad.abs().max()) < 1e-12


@pytest.mark.parametrize("debias", [False, True])
def test_the_result_says_what_was_asked_for(debias):
    x, y = points()
    loss = FRWDLoss(GROUPS, eta=0.1, eps=0.05, metric="euclidean", gradient_tol=0.02, debias=debias)
    loss(x, y)
    result = loss.result
    # The gap that was asked for is that of the gradient, whatever the search aimed at.
    assert result.status is frot.Status.CONVERGED
    assert result.gap <= result.tol == 0.02
    for part in ("metric euclidean", "eps 0.05", "FRWDLoss(gradient_tol=0.02", "tol 0.02 of the"):
        assert part in result.summary()


def test_non_convergence_is_seen_at_the_callers_line():
    x, y = points(15, (3,))
    x[2] *= 5.0
    loss = FRWDLoss(GROUPS, eta=0.1, eps=0.05, gradient_tol=1e-6, max_iter=2)
    with pytest.warns(frot.ConvergenceWarning, match="gap .* of member . where 1.0e-06") as seen:
        loss(x, y)
    assert [warning.filename for warning in seen] == [__file__]


X, Y = points()
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "array": ({"x": X.numpy()}, "x: is ndarray, not a tensor"),
    "list": ({"a": [1.0] * N}, "a: is list, not a tensor"),
    "dtype": ({"y": Y.float()}, "x, y: are torch.float64 and torch.float32"),
    "weights' dtype": ({"a": torch.full((N,), 1.0 / N)}, "x, a: are torch.float64 and"),
    "device": ({"y": Y.to("meta")}, "y: is a meta tensor, which holds no numbers"),
    "whole numbers": ({"x": X.long(), "y": Y.long()}, "x: is torch.int64"),
    "half": ({"x": X.half(), "y": Y.half()}, "x: is torch.float16"),
    "features": ({"y": Y[:, :3]}, "x, y: have 4 and 3 features"),
    "dimensions": ({"x": X[0]}, r"x, y: have shapes \(4,\) and \(6, 4\)"),
    "batches": ({"x": X[None], "y": Y.expand(2, M, D)}, "batches of 1 and 2"),
    "empty": ({"x": X[:0]}, r"x: is empty \(shape \(0, 4\)\)"),
    "nan": ({"x": X * float("nan")}, "x: has NaN"),
    "mass": ({"a": torch.full((N,), 0.3).double()}, "a: .*sum"),
    "negative": ({"a": torch.tensor([1.5, -0.5] + [0.0] * 5).double()}, "a: weights must be >= 0"),
    "size": ({"b": torch.ones(2).double() / 2}, r"b: has shape \(2,\)"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tensors_are_named(name):
    change, message = BAD[name]
    given = {"x": X, "y": Y, **change}
    with pytest.raises(frot.InputError, match=message):
        FRWDLoss(eps=0.1)(**given)


def test_bad_members_are_named():
    x, y = points(0, (3,))
    a = torch.stack([masses(0, N)] * 3)
    a[1] *= 2.0
    with pytest.raises(frot.InputError, match=r"a\[1\]: "):
        FRWDLoss(eps=0.1)(x, y, a)
    y[2, 4, 3] = 0.0
    with pytest.raises(frot.InputError, match=r"y\[2\] row 4 is all zeros in group 'c'"):
        FRWDLoss(GROUPS, eps=0.1, metric="cosine")(x, y)
    with pytest.raises(frot.InputError, match="y row 4 is all zeros in group 'c'"):
        FRWDLoss(GROUPS, eps=0.1, metric="cosine")(x[2], y[2])
    y[1, 0, 0] = torch.inf
    with pytest.raises(frot.InputError, match=r"y\[1\]: has NaN or infinite"):
        FRWDLoss(eps=0.1)(x, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": 0.0}, "eps: .*kinks"),
        ({"eps": frot.relative(0.0)}, "eps: .*kinks"),
        ({"eps": -1.0}, "eps: "),
        ({"eta": -1.0}, "eta: "),
        ({"gradient_tol": 0.0}, "gradient_tol: "),
        ({"max_iter": 0}, "max_iter: "),
        ({"metric": "canberra"}, "metric: "),
        ({"warm_start": 1}, "warm_start: "),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(frot.InputError, match=message):
        FRWDLoss(**options)


@pytest.mark.parametrize("debias", [False, True])
def test_a_loss_beyond_single_precision_is_refused(debias):
    x, y = (1e20 * part.float() for part in points())
    loss = FRWDLoss(GROUPS, debias=debias)
    with pytest.raises(frot.InputError, match=r"float32 holds; scale the points, or pass x"):
        loss(x, y)
    assert torch.isfinite(loss(x.double(), y.double()))


class TestMassThatMayGo:
    """The loss with tau: gradients are finite differences, values those of `solve`."""

    @property
    def options(self):
        return {"groups": [2, 3], "eta": 0.1, "gradient_tol": 1e-6}

    @staticmethod
    def points():
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(6, 5)), 0.5 + rng.normal(size=(7, 5))
        a, b = 0.1 + rng.random(6), 0.2 + rng.random(7)
        return [torch.tensor(part, requires_grad=True) for part in (x, y, a, b)]

    @pytest.mark.parametrize(
        "tau", [1.0, (0.5, 3.0), (float("inf"), 2.0), (2.0, float("inf")), frot.relative(0.3)]
    )
    def test_gradients_are_finite_differences(self, tau):
        loss = FRWDLoss(eps=0.3, tau=tau, warm_start=False, **self.options)
        points = self.points()
        value = loss(*points)
        value.backward()
        step, found, moved = 1e-5, [], []
        for index, part in enumerate(points):
            assert part.grad is not None
            for at in (0, part.numel() // 2):
                found.append(float(part.grad.view(-1)[at]))
                for sign in (1.0, -1.0):
                    copies = [one.detach().clone() for one in points]
                    copies[index].view(-1)[at] += sign * step
                    moved.append(copies)
        # All ends in one batch, which costs little more than one of them.
        ends = loss(*(torch.stack(parts) for parts in zip(*moved, strict=True))).numpy()
        wanted = (ends[::2] - ends[1::2]) / (2 * step)
        assert np.array(found) == pytest.approx(wanted, rel=2e-3, abs=2e-4)

    def test_relative_eps_and_prices_are_differentiated(self):
        options = {**self.options, "eps": frot.relative(0.05), "tau": frot.relative(0.5)}
        loss = FRWDLoss(**options, warm_start=False)
        x, y, a, b = self.points()
        loss(x, y, a, b).backward()
        # Scaling all points by 1 + t scales the value at eta = 0; here, what eta leaves of it.
        step = 1e-4
        ends = [float(loss((1 + s) * x, (1 + s) * y, a, b).detach()) for s in (step, -step)]
        assert x.grad is not None
        assert y.grad is not None
        found = float((x.grad * x.detach()).sum() + (y.grad * y.detach()).sum())
        assert found == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-3)

    def test_values_are_those_of_solve(self):
        x, y, a, b = (part.detach() for part in self.points())
        loss = FRWDLoss(eps=0.3, tau=(1.0, 2.0), **self.options)
        res = frot.solve(x, y, [2, 3], a=a, b=b, eta=0.1, eps=0.3, tau=(1.0, 2.0), tol=1e-7)
        assert float(loss(x, y, a, b)) == pytest.approx(res.value, rel=1e-6)

    def test_debiased_it_is_zero_for_the_same_and_not_negative_for_others(self):
        x, y, a, b = (part.detach() for part in self.points())
        loss = FRWDLoss(eps=0.5, tau=1.0, debias=True, **self.options)
        assert float(loss(x, x, a, a)) == pytest.approx(0.0, abs=1e-7)
        assert float(loss(x, x, a, 2.0 * a)) > 0.01
        assert float(loss(x, y, a, b)) > 0.01
        with pytest.raises(frot.InputError, match="one price for both sides"):
            FRWDLoss(tau=(1.0, 2.0), debias=True)


@pytest.mark.parametrize("debias", [False, True])
@pytest.mark.parametrize(
    ("scale", "message"), [(1e160, "^x, y: the costs: some are infinite"), (1e-156, "rescale")]
)
def test_costs_outside_the_contract_are_refused(scale: float, message: str, debias: bool):
    x, y = (scale * torch.randn(size, 3, dtype=torch.float64) for size in (5, 6))
    with pytest.raises(frot.InputError, match=message):
        FRWDLoss(debias=debias)(x.requires_grad_(), y)
