from itertools import permutations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from frot.cells import Cells, _coherence, couple, simulate
from frot.cells._blocks import Block, mean_cost
from frot.cells._coherence import Coherence, agreement
from frot.cells._coupling import CouplingSettings


def confirmed(blocks, level):
    return Coherence.of(blocks).confirmed(level)


def denoised(blocks, weights):
    return CouplingSettings(None).denoised(blocks, weights)


def block(name, source, target, loadings=True):
    k = source.shape[1]
    genes = tuple(f"{name}{at}" for at in range(k))
    return Block(name, source, target, genes, np.eye(k) if loadings else None, 1.0, 1.0, np.ones(k))


def uniform(n, m):
    return np.full(n, 1.0 / n), np.full(m, 1.0 / m)


def two_groups(seed=0, turn=1.0, **more):
    """Two groups that share their first coordinate; on the second day with the sign `turn`."""
    rng = np.random.default_rng(seed)
    days = []
    for n, sign in ((150, 1.0), (200, turn)):
        signal, noise = rng.normal(size=(n, 1)), rng.normal(size=(2, n, 2))
        days.append((np.hstack([signal, noise[0]]), np.hstack([sign * signal, noise[1]])))
    return [block(name, days[0][at], days[1][at], **more) for at, name in enumerate("ab")]


def in_units(blocks, weights):
    """Divide by the root of the mean cost, as blocks of genes are."""
    units = [np.sqrt(mean_cost(one.source, one.target, weights)) for one in blocks]
    return [
        block(one.name, one.source / unit, one.target / unit)
        for one, unit in zip(blocks, units, strict=True)
    ]


def test_what_the_other_group_confirms_counts_most():
    weights = uniform(150, 200)
    for one in denoised(in_units(two_groups(), weights), weights):
        matrix = np.asarray(one.filter)
        metric = matrix @ matrix
        # Distances as they were are half of it, and so nothing is lost; the rest is confirmed.
        signal, *noise = np.diag(metric) - 0.5
        assert signal > 3.0 * max(noise)
        assert np.linalg.eigvalsh(metric).min() >= 0.5 - 1e-12


def test_distances_are_those_of_the_formula_and_coupling_at_random_costs_one():
    rng = np.random.default_rng(1)
    weights = rng.uniform(size=150), rng.uniform(size=200)
    plain = in_units(two_groups(), weights)
    metrics = confirmed(plain, 0.01)
    for one, metric, found in zip(plain, metrics, denoised([*plain], weights), strict=True):
        here = cdist(one.source, one.target, "sqeuclidean")
        apart = one.source[:, None] - one.target
        there = np.einsum("ijk,kl,ijl->ij", apart, np.asarray(metric), apart)
        a, b = (w / w.sum() for w in weights)
        expected = here / 2.0 + there / (a @ there @ b) / 2.0
        np.testing.assert_allclose(cdist(found.source, found.target, "sqeuclidean"), expected)
        assert mean_cost(found.source, found.target, weights) == pytest.approx(1.0)


def test_relations_that_turn_round_between_the_days_confirm_nothing():
    blocks = two_groups(turn=-1.0)
    assert confirmed(blocks, 0.01) == [None, None]
    left = denoised([*blocks], uniform(150, 200))
    assert all(one is two for one, two in zip(left, blocks, strict=True))


def test_groups_that_share_genes_do_not_confirm_each_other():
    one, two = two_groups()
    copy = Block("copy", one.source, one.target, one.genes, one.loadings, 1.0, 1.0, one.spread)
    assert confirmed([one, copy], 0.01) == [None, None]
    # And a copy confirms to others what they know already.
    with_copy = np.asarray(confirmed([one, two, copy], 0.01)[0])
    np.testing.assert_allclose(np.asarray(confirmed([one, two], 0.01)[0]), with_copy)


def test_latent_coordinates_are_left_as_they_are():
    blocks = two_groups(loadings=False)
    assert all(one.filter is None for one in denoised([*blocks], uniform(150, 200)))


@pytest.mark.parametrize("options", [{"denoise": False}, {"gate": None}])
def test_without_witnesses_the_coordinates_are_the_principal_components(options):
    made = simulate(40, noise=0.0, n_groups=4, seed=0)
    found = couple(made.cells, groups=made.groups, **options)
    assert all(one.filter is None for one in found.blocks)
    assert all(one.filter is not None for one in couple(made.cells, groups=made.groups).blocks)


@pytest.mark.parametrize("switch", [True, False])
def test_drivers_tell_the_change_of_genes_in_the_units_of_the_table(switch):
    made = simulate(60, noise=0.0, n_groups=4, group_size=5, seed=0)
    X = made.X * np.linspace(0.5, 3.0, made.X.shape[1])
    found = couple(Cells(X, made.obs, made.names), groups=made.groups, denoise=switch)
    assert all((one.filter is not None) == switch for one in found.blocks)
    # All components are kept and so are the weights of cells: the change is that of the means.
    change = dict(zip(made.names, X[60:].mean(axis=0) - X[:60].mean(axis=0), strict=True))
    table = found.drivers(top=None)
    expected = [change[gene] for gene in table["gene"]]
    np.testing.assert_allclose(table["change"], expected, atol=1e-3)
    assert sum(table["gene_share"]) == pytest.approx(4.0)


def test_noisy_cells_are_coupled_better():
    better = []
    for seed in range(4):
        made = simulate(100, noise=0.5, shared=True, counts=True, seed=seed)
        on, off = (couple(made.cells, groups=made.groups, denoise=way) for way in (True, False))
        better.append(made.kept_fate(on.result.plan) - made.kept_fate(off.result.plan))
    assert np.mean(better) > 0.01


def latent(name, source, target, genes=None):
    k = source.shape[1]
    return Block(name, source, target, genes or (name,), None, 1.0, 1.0, np.ones(k))


def noise_blocks(count, n, seed):
    rng = np.random.default_rng(seed)
    return [latent(str(at), *rng.normal(size=(2, n, 2))) for at in range(count)]


def test_agreement_has_the_mean_and_variance_of_permutations():
    rng = np.random.default_rng(0)
    # Skewed, correlated, off centre: the moments hold for any values.
    points = rng.exponential(size=(6, 2)) @ np.array([[1.0, 0.5], [0.0, 2.0]]) + 3.0
    predicted = rng.exponential(size=(6, 2))
    z = [agreement(predicted[list(order)], points) for order in permutations(range(6))]
    assert np.mean(z) == pytest.approx(0.0, abs=1e-12)
    assert np.var(z) == pytest.approx(1.0)


def test_constant_predictions_agree_with_nothing():
    assert agreement(np.ones((5, 2)), np.arange(10.0).reshape(5, 2)) == 0.0


def test_noise_passes_as_rarely_as_it_should():
    passed = [Coherence.of(noise_blocks(10, 100, seed)).passed(0.1).any() for seed in range(20)]
    # Of 20 families at a level of ten percent, seven or more happen once in 400 times.
    assert sum(passed) < 7


def test_two_groups_of_one_signal_pass_among_noise():
    rng = np.random.default_rng(1)
    signal = rng.normal(size=(2, 200, 2))
    pair = [
        latent(name, *(signal + 0.7 * rng.normal(size=signal.shape))) for name in ("one", "two")
    ]
    passed = Coherence.of([*pair, *noise_blocks(18, 200, 2)]).passed(0.01)
    np.testing.assert_array_equal(np.flatnonzero(passed), [0, 1])


def test_groups_that_share_genes_do_not_vouch_for_each_other():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(2, 200, 2))
    first = latent("one", noise[0], noise[1], ("a", "b", "c"))
    second = latent("two", noise[0], noise[1], ("b", "c", "d"))
    found = Coherence.of([first, second, *noise_blocks(3, 200, 4)])
    assert found.z[0, 1] == found.z[1, 0] == -np.inf
    assert not found.passed(0.01).any()


def test_a_group_that_is_silent_on_a_day_teaches_nothing():
    rng = np.random.default_rng(5)
    signal = rng.normal(size=(2, 100, 2))
    silent = latent("silent", signal[0], np.zeros((100, 2)))
    z = Coherence.of([latent("one", *signal), latent("two", *signal), silent]).z
    assert (z[2, :2] <= 0.0).all()
    assert (z[:2, 2] <= 0.0).all()
    assert z[0, 1] > 4.0


def test_a_relation_that_turns_round_between_the_days_is_none():
    rng = np.random.default_rng(3)
    one, two = rng.normal(size=(2, 300, 1))
    blocks = [latent("x", one, two), latent("y", one, -two)]
    assert Coherence.of(blocks).z.max() < 0.0


def test_some_of_the_groups_need_no_new_regressions():
    blocks = [*two_groups(), *(block(str(at), *noise) for at, noise in enumerate(more_noise()))]
    kept = np.array([True, False, True, True])
    taken = [one for one, yes in zip(blocks, kept, strict=True) if yes]
    found, again = Coherence.of(blocks).among(kept), Coherence.of(taken)
    np.testing.assert_allclose(found.z, again.z)
    for one, two in zip(found.coefficients, again.coefficients, strict=True):
        for some, same in zip(one, two, strict=True):
            np.testing.assert_allclose(some, same)
    assert [part.tolist() for part in found.columns] == [part.tolist() for part in again.columns]


def more_noise():
    rng = np.random.default_rng(7)
    return [(rng.normal(size=(150, 2)), rng.normal(size=(200, 2))) for _ in range(2)]


def test_a_coupling_fits_its_regressions_once(monkeypatch):
    calls = []
    fit = _coherence._coefficients
    monkeypatch.setattr(_coherence, "_coefficients", lambda day: calls.append(1) or fit(day))
    made = simulate(40, noise=0.0, n_groups=4, seed=0)
    assert all(one.filter is not None for one in couple(made.cells, groups=made.groups).blocks)
    # One for each day.
    assert len(calls) == 2
