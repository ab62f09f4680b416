from itertools import permutations

import numpy as np
import pytest

from frot.cells._blocks import Block
from frot.cells._gate import agreement, chance, coherence


def block(name, source, target, genes=None):
    k = source.shape[1]
    return Block(name, source, target, genes or (name,), None, 1.0, 1.0, np.ones(k))


def noise_blocks(count, n, seed):
    rng = np.random.default_rng(seed)
    return [block(str(at), *rng.normal(size=(2, n, 2))) for at in range(count)]


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
    passed = [(chance(coherence(noise_blocks(10, 100, seed))) <= 0.1).any() for seed in range(20)]
    # Of 20 families at a level of ten percent, seven or more happen once in 400 times.
    assert sum(passed) < 7


def test_two_groups_of_one_signal_pass_among_noise():
    rng = np.random.default_rng(1)
    signal = rng.normal(size=(2, 200, 2))
    pair = [block(name, *(signal + 0.7 * rng.normal(size=signal.shape))) for name in ("one", "two")]
    passed = chance(coherence([*pair, *noise_blocks(18, 200, 2)])) <= 0.01
    np.testing.assert_array_equal(np.flatnonzero(passed), [0, 1])


def test_groups_that_share_genes_do_not_vouch_for_each_other():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(2, 200, 2))
    first = block("one", noise[0], noise[1], ("a", "b", "c"))
    second = block("two", noise[0], noise[1], ("b", "c", "d"))
    z = coherence([first, second, *noise_blocks(3, 200, 4)])
    assert z[0, 1] == z[1, 0] == -np.inf
    assert (chance(z) > 0.01).all()


def test_a_group_that_is_silent_on_a_day_teaches_nothing():
    rng = np.random.default_rng(5)
    signal = rng.normal(size=(2, 100, 2))
    silent = block("silent", signal[0], np.zeros((100, 2)))
    z = coherence([block("one", *signal), block("two", *signal), silent])
    assert (z[2, :2] <= 0.0).all()
    assert (z[:2, 2] <= 0.0).all()
    assert z[0, 1] > 4.0


def test_a_relation_that_turns_round_between_the_days_is_none():
    rng = np.random.default_rng(3)
    one, two = rng.normal(size=(2, 300, 1))
    blocks = [block("x", one, two), block("y", one, -two)]
    assert coherence(blocks).max() < 0.0
