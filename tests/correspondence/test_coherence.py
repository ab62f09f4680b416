import numpy as np
import pytest

from frot._base.arrays import Home
from frot.correspondence._coherence import LEAST, coherence, coherences
from frot.correspondence._features import FeatureMap
from frot.correspondence.layer_costs import at_most, layer_costs
from frot.correspondence.layers import LayerPair


def noise(h, w, seed=0, channels=32):
    values = np.random.default_rng(seed).normal(size=(channels, h, w)).astype(np.float32)
    return FeatureMap("noise", values, 8, 19)


def like(layer, values):
    return FeatureMap(layer.name, values, layer.stride, layer.receptive_field)


def plain(source, target):
    """The definition, pair of neighbours by pair of neighbours."""

    def one_way(one, other):
        _, h, w = one.values.shape
        _, other_h, other_w = other.values.shape

        def unit(layer):
            flat = layer.values.reshape(layer.channels, -1).T.astype(float)
            return flat / np.linalg.norm(flat, axis=1, keepdims=True)

        nearest = (unit(one) @ unit(other).T).argmax(axis=1)
        good = total = 0
        for y in range(h):
            for x in range(w):
                for dy, dx in ((0, 1), (1, 0)):
                    if y + dy < h and x + dx < w:
                        here = divmod(int(nearest[y * w + x]), other_w)
                        there = divmod(int(nearest[(y + dy) * w + x + dx]), other_w)
                        moved = there[0] - here[0] - dy, there[1] - here[1] - dx
                        good += max(map(abs, moved)) <= 1
                        total += 1
        chance = 9 / (other_h * other_w)
        return max((good / total - chance) / (1 - chance), 1e-6)

    return np.sqrt(one_way(source, target) * one_way(target, source))


def half_right(h=10, w=12):
    """A layer and itself with the lower half drawn anew."""
    source = noise(h, w)
    values = source.values.copy()
    values[:, h // 2 :] = noise(h, w, seed=9).values[:, h // 2 :]
    return source, like(source, values)


def test_the_definition():
    source, target = half_right()
    assert coherence(source, target) == pytest.approx(plain(source, target), rel=1e-12)
    assert 0.3 < coherence(source, target) < 0.7
    # Of other sizes, too.
    larger = like(source, np.pad(source.values, ((0, 0), (0, 5), (2, 0)), mode="wrap"))
    assert coherence(source, larger) == pytest.approx(plain(source, larger), rel=1e-12)


def test_what_matches_perfectly_has_one_and_noise_next_to_nothing():
    layer = noise(20, 25)
    assert coherence(layer, layer) == 1.0
    found = [coherence(noise(20, 25, seed), noise(20, 25, seed + 50)) for seed in range(5)]
    assert max(found) < 0.03
    assert min(found) >= LEAST


def test_scales_and_rotations_of_the_features_do_not_matter():
    source, target = half_right()
    expected = coherence(source, target)
    rng = np.random.default_rng(3)
    lengths = rng.uniform(0.1, 9.0, (1, *source.values.shape[1:]))
    assert coherence(like(source, source.values * lengths), target) == expected
    turn = np.linalg.qr(rng.normal(size=(32, 32)))[0]
    one, other = (like(one, np.einsum("ck,kyx->cyx", turn, one.values)) for one in (source, target))
    assert coherence(one, other) == expected
    assert coherence(target, source) == pytest.approx(expected, rel=1e-12)
    # Both pictures mirrored, or on their sides.
    for change in (lambda v: v[:, :, ::-1], lambda v: v.swapaxes(1, 2)):
        one, other = (like(one, change(one.values)) for one in (source, target))
        assert coherence(one, other) == pytest.approx(expected, rel=1e-12)


def test_one_mirrored_picture_is_not_coherent():
    layer = noise(12, 12)
    # Down is still down, so half of the neighbours agree, before chance is taken off.
    mirrored = like(layer, layer.values[:, :, ::-1])
    assert coherence(layer, mirrored) == pytest.approx((0.5 - 9 / 144) / (1 - 9 / 144))


def test_a_single_cell_has_no_neighbours():
    assert coherence(noise(1, 1), noise(1, 1)) == pytest.approx(LEAST)
    assert coherence(noise(2, 2), noise(2, 2)) == 1.0


def test_a_dead_layer_has_the_least():
    layer = noise(9, 7)
    ones = np.ones((1, 9, 7), dtype=np.float32)
    for values in (0.0 * layer.values, layer.values[:, :1, :1] * ones, layer.values[:, :1, :1] * 9):
        dead = like(layer, np.broadcast_to(values, layer.values.shape).copy())
        for source, target in ((dead, dead), (dead, layer), (layer, dead)):
            assert coherence(source, target) == pytest.approx(LEAST)


def test_layers_finer_than_the_cells_are_measured_on_the_cells():
    fine, cells = noise(16, 16, 1), noise(8, 8, 2)
    other_fine, other_cells = noise(16, 16, 3), half_right(8, 8)[1]
    for device in (None, "cpu"):
        pair = LayerPair((fine, cells), (other_fine, other_cells), 1, device)
        one, other = (at_most(one, cells.grid) for one in (fine, other_fine))
        expected = [coherence(one, other), coherence(cells, other_cells)]
        assert pair.coherences == pytest.approx(expected)


def test_torch_agrees():
    import torch

    source, target = half_right()
    dead = like(source, np.zeros_like(source.values))
    cells, home = (source.grid, target.grid), Home.of(torch.zeros(1))
    costs = layer_costs([source, dead], [target, target], cells, home)
    assert coherences(costs) == pytest.approx([coherence(source, target), LEAST])
