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
from frot.correspondence.methods import MatchProblem
from frot.correspondence.settings import Settings
from tests.correspondence.layers import SOURCE, TARGET, plain_stack, random_maps
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
    layer = given.pop("layer", None)
    a, b = weights(layers)
    return MatchProblem(layers, a, b, Settings(**{"eta": 0.3, **given}), layer)


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
    C, a, b = plain_stack(given.layers.source, given.layers.target), given.a, given.b
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
    assert paper.proven.value == pytest.approx(core.value, rel=1e-4)
    # KL to the uniform prior is the negative entropy and log L.
    assert equal.proven.value == pytest.approx(core.value - 0.3 * np.log(4), rel=1e-4)


def test_the_papers_steps_are_proven_when_that_is_asked_for():
    found = METHODS["frot"](setting(prior="uniform", steps=3))
    assert found.proven is None
    proven: Any = found.transport
    proven = proven()
    assert proven.lower <= proven.value <= proven.upper
    assert l1(found.plan, proven.plan) < 1e-2
    assert found.phi == pytest.approx(np.asarray(proven.phi), abs=1e-2)


def test_the_coherence_prior_is_the_coherences_to_their_power():
    given = setting(power=3.0, tol=TOL)
    q = given.layers.coherences**3
    assert given.q == pytest.approx(q / q.sum())
    found = METHODS["frot"](given)
    answer = given.q * np.exp(found.phi / 0.3)
    assert found.alpha == pytest.approx(answer / answer.sum(), abs=1e-2)
    assert setting(prior="uniform").q is None
    assert setting(prior=(1.0, 2.0, 3.0, 4.0)).q.tolist() == [1.0, 2.0, 3.0, 4.0]


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
    straight = METHODS[method](setting(tol=TOL, rank=6))
    turned = METHODS[method](setting(chosen(pair(), order), tol=TOL, rank=6))
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
    found = {name: METHODS[name](given) for name in ("frot", "max-min", "uniform", "best-layer")}
    value = {name: one.proven.value for name, one in found.items()}
    # The adversary's entropy is at least zero, and it may answer with any one layer or all alike.
    assert value["max-min"] <= value["frot"] + 1e-4
    assert value["best-layer"] <= value["max-min"] + 1e-4
    assert value["uniform"] + 0.3 * np.log(4) <= value["frot"] + 1e-4
    for one in found.values():
        assert one.proven.lower <= one.proven.value <= one.proven.upper
        assert one.alpha.sum() == pytest.approx(1.0)
        assert one.proven.status is frot.Status.CONVERGED


@pytest.mark.parametrize("method", ["uniform", "ot", "best-layer", "max-min"])
def test_methods_with_one_cost_are_plain_transport(method):
    given, worst = setting(tol=TOL, layer=2), None
    C = plain_stack(given.layers.source, given.layers.target)
    if method == "ot":
        X, Y = (
            np.concatenate(list(upsampled(maps)), axis=1)
            for maps in (given.layers.source, given.layers.target)
        )
        X, Y = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (X, Y))
        cost = 2.0 - 2.0 * X @ Y.T
    elif method == "max-min":
        # Layer by layer, the costliest optimum, its entropy included.
        def optimum(C):
            plan = sinkhorn(C, given.a, given.b, 0.1, 300)
            product = np.outer(given.a, given.b)
            return (plan * C).sum() + 0.1 * (plan * np.log(plan / product)).sum()

        worst = int(np.argmax([optimum(C) for C in C]))
        cost = C[worst]
    else:
        cost = {"uniform": C.mean(axis=0), "best-layer": C[2]}[method]
    found = METHODS[method](given)
    assert l1(found.plan, sinkhorn(cost, given.a, given.b, 0.1)) < 3e-3
    if method == "best-layer":
        assert found.alpha.tolist() == [0, 0, 1, 0]
    if method == "max-min":
        assert found.alpha.argmax() == worst
    assert found.phi == pytest.approx((C * to_numpy(found.plan)).sum(axis=(1, 2)), abs=1e-4)


def test_max_min_solves_no_layer_that_cannot_be_the_costliest(monkeypatch):
    given = setting()
    solved, alone = [], MatchProblem.solve_cost

    def counted(self, cost, name):
        solved.append(name)
        return alone(self, cost, name)

    monkeypatch.setattr(MatchProblem, "solve_cost", counted)
    found = METHODS["max-min"](given).proven
    names = given.layers.names
    every = [
        alone(given, given.layers.mixed(given.one_hot(k)), name) for k, name in enumerate(names)
    ]
    assert len(set(solved)) == len(solved) < len(names)
    assert found.lower >= max(one.lower for one in every) - 1e-6
    assert found.upper <= max(one.upper for one in every) + 1e-6


@pytest.mark.parametrize("method", ["max-min", "srw", "uniform", "best-layer"])
def test_an_interruption_of_any_solve_is_seen(monkeypatch, method):
    """One of many solves that was cut short makes the whole incomplete, the last one or not."""
    alone = MatchProblem.solve_cost

    def cut(self, *given):
        raise frot.Interrupted(replace(alone(self, *given), status=frot.Status.INTERRUPTED))

    monkeypatch.setattr(MatchProblem, "solve_cost", cut)
    with pytest.raises(KeyboardInterrupt) as stop:
        METHODS[method](setting(rank=5))
    if method == "srw":
        # A plan that was cut short has no interval there: it is no answer.
        assert not isinstance(stop.value, frot.Interrupted)
        return
    assert isinstance(stop.value, frot.Interrupted)
    outcome = stop.value.result
    assert outcome.proven.status is frot.Status.INTERRUPTED
    assert outcome.votes.shape == outcome.plan.shape


def test_the_best_layer_is_the_most_coherent_one_where_none_is_named():
    given = setting()
    assert METHODS["best-layer"](given).alpha.argmax() == given.layers.coherences.argmax() == 1


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("eps", [0.05, 0.002])
def test_scot_is_one_sweep(device, eps):
    given = setting(pair(device), eps=eps)
    cosines = to_numpy(given.layers.concatenated).astype(float)
    K = np.exp(-(1.0 - np.maximum(cosines, 0.0)) / eps)
    a, b, n = given.a, given.b, len(given.a)
    right = b / (K.T @ np.full(n, 1 / n))
    left = a / (K @ right)
    found = METHODS["scot"](given)
    # Single precision holds exp(-1 / eps) no more at the smaller eps.
    assert l1(found.plan, left[:, None] * K * right) < (1e-4 if eps == 0.05 else 2e-3)
    assert to_numpy(found.plan).sum(axis=1) == pytest.approx(a, rel=1e-4)
    assert found.proven is None


def test_scot_with_cells_that_weigh_nothing():
    given = setting(eps=0.05)
    given.a[:5], given.b[7:9] = 0.0, 0.0
    plan = to_numpy(METHODS["scot"](given).plan)
    assert (plan[:5] == 0.0).all()
    assert (plan[:, 7:9] == 0.0).all()
    assert plan.sum(axis=1) == pytest.approx(given.a, abs=1e-6)


def test_cosines_cubed():
    given = setting()
    C = plain_stack(given.layers.source, given.layers.target)
    cosines = np.maximum(1.0 - C.mean(axis=0) / 2.0, 0.0)
    assert METHODS["nn"](given).votes == pytest.approx(cosines**3, abs=1e-5)
    together = np.maximum(given.layers.concatenated, 0.0)
    assert METHODS["hpf"](given).votes == pytest.approx(together**3, abs=1e-6)
    assert (together == 0.0).any()


@pytest.mark.parametrize("exponent", [0.5, 1.0, 0.8])
def test_votes(exponent):
    given = setting(exponent=exponent)
    found = METHODS["uniform"](given)
    plan = to_numpy(found.plan)
    n = len(given.a)
    assert to_numpy(found.votes) == pytest.approx((n * plan) ** exponent, rel=1e-5)


def test_srw_in_all_directions_is_the_sum_of_the_layers():
    layers = pair()
    every = METHODS["srw"](setting(layers, eps=0.4, rank=10_000, tol=TOL))
    # Squared distances of vectors end to end are added over the layers.
    mean = METHODS["uniform"](setting(layers, eps=0.1, tol=TOL))
    assert l1(every.plan, mean.plan) < 5e-3
    share = np.array(CHANNELS) / sum(CHANNELS)
    assert every.alpha == pytest.approx(share)


def test_srw_finds_the_same_directions_with_and_without_a_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 60)) * np.geomspace(3, 0.1, 60), rng.normal(size=(25, 60))
    plan = rng.random((30, 25))
    plan /= plan.sum()
    dense = methods._directions(X, Y, plan, 4)
    apart = X[:, None] - Y[None]
    moments = np.einsum("ij,ijk,ijl->kl", plan, apart, apart)
    largest = np.linalg.eigvalsh(moments)[-4:]
    assert np.linalg.eigvalsh(dense.T @ moments @ dense) == pytest.approx(largest)
    monkeypatch.setattr(methods, "DENSE_UP_TO", 10)
    sparse = methods._directions(X, Y, plan, 4)
    assert sparse @ sparse.T == pytest.approx(dense @ dense.T, abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_torch_agrees(method):
    ours = METHODS[method](setting(tol=TOL, rank=6))
    theirs = METHODS[method](setting(pair("cpu"), tol=TOL, rank=6))
    assert theirs.alpha == pytest.approx(ours.alpha, abs=1e-3)
    assert to_numpy(theirs.votes) == pytest.approx(to_numpy(ours.votes), abs=5e-3)
