"""Methods of matching on small maps: against plain references, and what must not change them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import frot
from frot._base.arrays import to_numpy
from frot._base.names import distinct
from frot.correspondence import methods
from frot.correspondence._features import FeatureMap
from frot.correspondence.layers import LayerPair
from frot.correspondence.methods import MatchProblem, hpf, match_cells, scot
from frot.correspondence.settings import Settings
from tests.correspondence.layers import SOURCE, TARGET, papers_stack, plain_stack, random_maps
from tests.correspondence.test_layers import upsampled

METHODS: Any = methods.METHODS
GRIDS = SOURCE[:4], TARGET[:4]
CHANNELS = (8, 20, 16, 16)
# Cosines in single precision prove no gap much below it.
TOL = 2e-4


def pair(device=None):
    """Maps of two images, the second with the first planted in it, so that layers differ."""
    source, target = (
        random_maps(grids, CHANNELS, seed) for seed, grids in enumerate(GRIDS, start=1)
    )
    for layer, strength in ((1, 2.0), (2, 0.7)):
        one, other = source[layer].values, target[layer].values
        h, w = min(one.shape[1], other.shape[1]), min(one.shape[2], other.shape[2])
        other[:, :h, :w] += strength * one[:, :h, :w]
    return LayerPair(tuple(source), tuple(target), 0, device)


def weights(layers, seed=0) -> Any:
    rng = np.random.default_rng(seed)
    found = (rng.random(grid.count) + 0.5 for grid in (layers.source_grid, layers.target_grid))
    return [one / one.sum() for one in found]


def setting(layers=None, **given) -> Any:
    layers = pair() if layers is None else layers
    a, b = weights(layers)
    return MatchProblem(layers, a, b, Settings(**{"eta": 0.3, **given}))


def sinkhorn(cost, a, b, eps, sweeps=3000):
    f, g = np.zeros(len(a)), np.zeros(len(b))
    with np.errstate(over="ignore"):
        for _ in range(sweeps):
            f = -eps * np.log(np.exp((g[None, :] - cost) / eps) @ b)
            g = -eps * np.log(np.exp((f[:, None] - cost) / eps).T @ a)
    return np.outer(a, b) * np.exp((f[:, None] + g[None, :] - cost) / eps)


def l1(one, other):
    return np.abs(to_numpy(one) - to_numpy(other)).sum()


def test_the_papers_three_steps():
    given = setting(steps=3, prior="uniform")
    found = METHODS["frot"](given)
    C, a, b = papers_stack(given.layers.source, given.layers.target), given.a, given.b
    plan = np.outer(a, b)
    for t in range(3):
        alpha = np.exp((C * plan).sum(axis=(1, 2)) / 0.3)
        alpha /= alpha.sum()
        step = sinkhorn(np.einsum("l,lij->ij", alpha, C), a, b, 0.1)
        plan = plan + 2 / (2 + t) * (step - plan)
    assert l1(found.plan, plan) < 4e-3
    assert found.phi == pytest.approx((C * plan).sum(axis=(1, 2)), abs=2e-3)
    answer = np.exp(found.phi / 0.3)
    assert found.alpha == pytest.approx(answer / answer.sum(), abs=1e-4)


def test_a_uniform_prior_is_the_papers_entropy():
    paper = METHODS["frot"](setting(prior="uniform", tol=1e-4))
    equal = METHODS["frot"](setting(prior=(2.0,) * 4, tol=1e-4))
    given = setting()
    C = plain_stack(given.layers.source, given.layers.target)
    core = frot.solve_costs(C, given.a, given.b, eta=0.3, eps=0.1, solver=frot.Entropic(tol=1e-7))
    for found in (paper, equal):
        assert l1(found.plan, core.plan) < 2e-2
        assert found.alpha == pytest.approx(core.alpha, abs=3e-3)
    assert paper.result.value == pytest.approx(core.value, rel=1e-4)
    # KL to the uniform prior is the negative entropy and log L.
    assert equal.result.value == pytest.approx(core.value - 0.3 * np.log(4), rel=1e-4)


def test_the_papers_steps_are_proven_too():
    proven = METHODS["frot"](setting(prior="uniform", steps=3)).result
    assert proven.status is frot.Status.MAX_ITER
    assert proven.iterations == 3
    C = papers_stack(pair().source, pair().target)
    given = setting()
    best = frot.solve_costs(C, given.a, given.b, eta=0.3)
    assert proven.lower <= best.value <= proven.upper


def test_a_result_holds_no_costs_and_claims_nothing_that_takes_them():
    result = METHODS["frot"](setting()).result
    assert result.problem is None
    assert result.unregularised == (-np.inf, result.upper)


def test_the_coherence_prior_is_the_coherences_to_their_power():
    given = setting(tol=TOL)
    q = given.layers.coherences**2
    assert given.q == pytest.approx(q / q.sum())
    found = METHODS["frot"](given)
    answer = given.q * np.exp(found.phi / 0.3)
    assert found.alpha == pytest.approx(answer / answer.sum(), abs=1e-2)
    assert setting(prior="uniform").q is None
    assert setting(prior=(1.0, 2.0, 3.0, 4.0)).q.tolist() == [0.1, 0.2, 0.3, 0.4]


def chosen(layers, order):
    """The same layers in another order, on the same cells; a copy has a name of its own."""
    names = distinct([layers.names[k] for k in order])
    source, target = (
        tuple(replace(side[k], name=name) for k, name in zip(order, names, strict=True))
        for side in (layers.source, layers.target)
    )
    return LayerPair(source, target, list(order).index(layers.grid_of))


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_layers_does_not_matter(method):
    order = [2, 0, 3, 1]
    straight = METHODS[method](setting(tol=TOL))
    turned = METHODS[method](setting(chosen(pair(), order), tol=TOL))
    assert turned.alpha == pytest.approx(straight.alpha[order], abs=1e-3)
    assert to_numpy(turned.votes) == pytest.approx(to_numpy(straight.votes), abs=2e-2)


def test_a_layer_twice_with_half_the_prior_each_changes_nothing():
    prior, double = np.array([0.1, 0.2, 0.3, 0.4]), [0, 1, 2, 2, 3]
    doubled = chosen(pair(), double)
    once = METHODS["frot"](setting(prior=prior, tol=5e-5))
    half = prior[double] / [1, 1, 2, 2, 1]
    twice = METHODS["frot"](setting(doubled, prior=half, tol=5e-5))
    assert l1(twice.plan, once.plan) < 2e-2
    assert twice.alpha[2] == pytest.approx(twice.alpha[3], abs=1e-6)
    merged = np.array([twice.alpha[0], twice.alpha[1], twice.alpha[2:4].sum(), twice.alpha[4]])
    assert merged == pytest.approx(once.alpha, abs=5e-3)
    whole = METHODS["frot"](setting(doubled, prior=prior[double], tol=5e-5))
    assert l1(whole.plan, once.plan) > 3e-2
    # With the paper's entropy it does: a layer gains by being there twice.
    once, twice = (
        METHODS["frot"](setting(layers, prior="uniform")) for layers in (pair(), doubled)
    )
    assert twice.alpha[2:4].sum() > 1.2 * once.alpha[2]


def test_noise_is_dropped_by_the_prior_alone():
    """The trap: noise is expensive in every pair, so an adversary without prior goes there."""
    layers = pair()
    rng = np.random.default_rng(5)
    noisy = [
        FeatureMap("noise", rng.normal(size=(64, grid.h, grid.w)).astype("float32"), 4, 11)
        for grid in (layers.source_grid, layers.target_grid)
    ]
    good = layers.source[1], layers.target[1]
    planted = LayerPair((good[0], noisy[0]), (good[1], noisy[1]))
    trapped = METHODS["frot"](setting(planted, prior="uniform", eta=0.1))
    free = METHODS["frot"](setting(planted, eta=0.1))
    assert trapped.alpha[1] > 0.7
    assert free.alpha[1] < 0.01


def test_bounds_between_methods():
    given = setting(prior="uniform", tol=TOL)
    found = {name: METHODS[name](given) for name in ("frot", "uniform")}
    value = {name: one.result.value for name, one in found.items()}
    # The adversary's entropy is at least zero, and it may answer with all layers alike.
    assert value["uniform"] + 0.3 * np.log(4) <= value["frot"] + 1e-4
    for one in found.values():
        assert one.result.lower <= one.result.value <= one.result.upper
        assert one.alpha.sum() == pytest.approx(1.0)
        assert one.result.status is frot.Status.CONVERGED


@pytest.mark.parametrize("method", ["uniform", "ot"])
def test_methods_with_one_cost_are_plain_transport(method):
    given = setting(tol=TOL)
    C = plain_stack(given.layers.source, given.layers.target)
    cost = C.mean(axis=0)
    if method == "ot":
        X, Y = (
            np.concatenate(list(upsampled(maps)), axis=1)
            for maps in (given.layers.source, given.layers.target)
        )
        X, Y = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (X, Y))
        cost = 2.0 - 2.0 * X @ Y.T
    found = METHODS[method](given)
    assert l1(found.plan, sinkhorn(cost, given.a, given.b, 0.1)) < 3e-3
    assert found.phi == pytest.approx((C * to_numpy(found.plan)).sum(axis=(1, 2)), abs=1e-4)


@pytest.mark.parametrize("method", ["frot", "uniform"])
def test_an_interrupted_solve_is_an_answer(monkeypatch, method):
    solve = methods.solve_costs

    def cut(*given, **options):
        raise frot.Interrupted(replace(solve(*given, **options), status=frot.Status.INTERRUPTED))

    monkeypatch.setattr(methods, "solve_costs", cut)
    with pytest.raises(frot.Interrupted) as stop:
        METHODS[method](setting())
    outcome = stop.value.result
    assert outcome.result.status is frot.Status.INTERRUPTED
    assert outcome.votes.shape == outcome.plan.shape


def test_a_users_own_method():
    def product(layers, a, b):
        return np.outer(a, b)

    def worst_layer(layers, a, b):
        return frot.solve_costs(layers.costs, a, b, eps=0.1, tol=1e-3)

    given = setting(method=product)
    found: Any = match_cells(given)
    assert to_numpy(found.plan) == pytest.approx(np.outer(given.a, given.b))
    C = plain_stack(given.layers.source, given.layers.target)
    assert found.phi == pytest.approx(np.einsum("i,lij,j->l", given.a, C, given.b), abs=1e-4)
    found = match_cells(setting(method=worst_layer))
    assert found.result.gap <= 1e-3
    assert found.alpha == pytest.approx(found.result.alpha)
    with pytest.raises(frot.InputError, match=r"method: <lambda> returned what has the shape \(4,"):
        match_cells(setting(method=lambda layers, a, b: np.zeros(4)))


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("eps", [0.05, 0.002])
def test_scot_is_one_sweep(device, eps):
    given = setting(pair(device))
    cosines = to_numpy(given.layers.end_to_end).astype(float)
    K = np.exp(-(1.0 - np.maximum(cosines, 0.0)) / eps)
    a, b, n = given.a, given.b, len(given.a)
    right = b / (K.T @ np.full(n, 1 / n))
    left = a / (K @ right)
    plan = to_numpy(scot(given.layers, a, b, eps))
    # Single precision holds exp(-1 / eps) no more at the smaller eps.
    assert l1(plan, left[:, None] * K * right) < (1e-4 if eps == 0.05 else 2e-3)
    assert plan.sum(axis=1) == pytest.approx(a, rel=1e-4)


def test_scot_with_cells_that_weigh_nothing():
    given = setting()
    given.a[:5], given.b[7:9] = 0.0, 0.0
    plan = to_numpy(scot(given.layers, given.a, given.b))
    assert (plan[:5] == 0.0).all()
    assert (plan[:, 7:9] == 0.0).all()
    assert plan.sum(axis=1) == pytest.approx(given.a, abs=1e-6)


def test_cosines_cubed():
    given = setting()
    C = plain_stack(given.layers.source, given.layers.target)
    # Of the vectors' mean, which is as long as they all are only where cells are not interpolated.
    lengths = [np.sqrt((side**2).sum(axis=1) / len(C)) for side in given.layers.vectors()]
    assert 0.5 < lengths[0].min() < 0.99
    cosines = np.maximum((1.0 - C.mean(axis=0) / 2.0) / np.outer(*lengths), 0.0)
    assert METHODS["nn"](given).votes == pytest.approx(cosines**3, abs=1e-5)
    together = np.maximum(given.layers.end_to_end, 0.0)
    assert hpf(given.layers, given.a, given.b) == pytest.approx(together**3, abs=1e-6)
    assert (together == 0.0).any()


@pytest.mark.parametrize("exponent", [0.5, 1.0, 0.8])
def test_votes(exponent):
    given = setting(exponent=exponent)
    found = METHODS["uniform"](given)
    plan = to_numpy(found.plan)
    n = len(given.a)
    assert to_numpy(found.votes) == pytest.approx((n * plan) ** exponent, rel=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_torch_agrees(method):
    ours = METHODS[method](setting(tol=TOL))
    theirs = METHODS[method](setting(pair("cpu"), tol=TOL))
    assert theirs.alpha == pytest.approx(ours.alpha, abs=1e-3)
    assert to_numpy(theirs.votes) == pytest.approx(to_numpy(ours.votes), abs=5e-3)


def test_a_result_of_one_cost_that_the_method_mixed_itself():
    def deepest(layers, a, b):
        alpha = np.eye(len(layers.names))[-1]
        cost = to_numpy(layers.mixed(alpha))
        return frot.solve_costs(cost[None], a, b, eps=0.1, normalise_weights=True)

    problem = setting(method=deepest)
    found = match_cells(problem)
    assert found.alpha == pytest.approx(problem.equal)
    assert found.result is not None
    assert found.result.status.ok
    assert found.phi == pytest.approx(to_numpy(problem.layers.costs.inner(found.plan)), rel=1e-5)
