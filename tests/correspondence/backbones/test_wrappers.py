import pickle
from typing import Any

import numpy as np
import pytest

from frot._base.errors import InputError
from frot.correspondence import Matcher, coherence
from frot.correspondence.backbones.wrappers import ArrayBackbone, NoisyBackbone, image_key

RNG = np.random.default_rng(0)
ONE, OTHER = (RNG.random((64, 96, 3), dtype=np.float32) for _ in range(2))


def arrays():
    maps = {
        image_key(image): {f"layer{k}": RNG.random((4 + k, 8 - k, 12 - k)) for k in range(6)}
        for image in (ONE, OTHER)
    }
    return ArrayBackbone(maps)


def test_noise_comes_behind_and_has_shapes_of_the_networks_own():
    inner = arrays()
    maps = NoisyBackbone(inner, count=3).extract(ONE)
    assert [one.name for one in maps] == [*inner.layers, "noise_0", "noise_1", "noise_2"]
    for real, kept in zip(inner.extract(ONE), maps, strict=False):
        np.testing.assert_array_equal(real.values, kept.values)
    for noise, like in zip(maps[6:], (1, 3, 5), strict=True):
        assert noise.values.shape == maps[like].values.shape
        assert noise.values.dtype == np.float32
        assert (noise.stride, noise.receptive_field) == (
            maps[like].stride, maps[like].receptive_field
        )  # fmt: skip


def test_noise_is_the_same_for_a_photograph_and_independent_between_two():
    inner = arrays()
    noisy = NoisyBackbone(inner, count=1)
    first, again = (noisy.extract(ONE)[-1].values.ravel() for _ in range(2))
    np.testing.assert_array_equal(first, again)
    for other in (
        noisy.extract(OTHER)[-1].values.ravel(),
        NoisyBackbone(inner, count=1, random_state=1).extract(ONE)[-1].values.ravel(),
    ):
        assert abs(np.corrcoef(first, other)[0, 1]) < 4.0 / np.sqrt(first.size)
    assert abs(first.std() - 1.0) < 4.0 / np.sqrt(first.size)


def test_names_are_passed_on_and_it_travels():
    inner = ArrayBackbone({"cat.jpg": {"patches": np.ones((5, 4, 6))}})
    noisy = pickle.loads(pickle.dumps(NoisyBackbone(inner, random_state=2)))
    assert [one.name for one in noisy.extract_named("cat.jpg", ONE)] == list(noisy.layers)
    assert noisy.fingerprint == NoisyBackbone(inner, random_state=2).fingerprint
    assert noisy.fingerprint != NoisyBackbone(inner, random_state=3).fingerprint
    assert noisy.fingerprint != NoisyBackbone(inner, count=2, random_state=2).fingerprint
    with pytest.raises(InputError, match="no classifier"):
        noisy.class_maps(ONE)


def test_noise_is_not_coherent():
    from frot._base.arrays import Home

    big = ArrayBackbone(
        {image_key(image): {"patches": RNG.random((32, 20, 30))} for image in (ONE, OTHER)}
    )
    noisy = NoisyBackbone(big, count=1)
    found = coherence(noisy.extract(ONE)[-1], noisy.extract(OTHER)[-1], Home.of(np.zeros(1)))
    assert found < 0.05


def test_layers_of_places_match_the_same_place_whatever_is_there():
    grids = {image_key(ONE): (9, 12), image_key(OTHER): (17, 23)}
    inner = ArrayBackbone({key: {"patches": RNG.random((5, *hw))} for key, hw in grids.items()})
    noisy = NoisyBackbone(inner, count=2, kind="place")
    assert noisy.noise == ("place_0", "place_1")
    assert noisy.fingerprint != NoisyBackbone(inner, count=2).fingerprint
    small, large = (noisy.extract(image)[-1] for image in (ONE, OTHER))
    assert small.values.shape[1:] == (9, 12)
    assert coherence(small, large) == 1.0
    F, G = (one.values.reshape(len(one.values), -1) for one in (small, large))
    # Every other cell of the larger frame is a place of the smaller one; all waves are as long.
    y, x = np.divmod((F.T @ G).argmax(axis=1), 23)
    np.testing.assert_array_equal(y.reshape(9, 12), 2 * np.arange(9)[:, None] + np.zeros(12))
    np.testing.assert_array_equal(x.reshape(9, 12), 2 * np.arange(12) + np.zeros((9, 1)))


def test_bad_input():
    inner = arrays()
    with pytest.raises(InputError, match="kind"):
        NoisyBackbone(inner, kind="dead")
    bad: tuple[tuple[dict[str, Any], str], ...] = (
        ({"count": 0}, "count"),
        ({"random_state": -1}, "random_state"),
        ({"count": 1.5}, "count"),
    )
    for options, what in bad:
        with pytest.raises(InputError, match=f"{what}: must be a whole number"):
            NoisyBackbone(inner, **options)
    with pytest.raises(InputError, match="has a layer 'noise_0' already"):
        NoisyBackbone(NoisyBackbone(inner))


def test_it_matches_like_any_other(tmp_path):
    from tests.correspondence import planted

    pair = planted.pairs(tmp_path).pairs[0]
    backbone = NoisyBackbone(planted.Planted(("x", "y")), count=2)
    match = Matcher(backbone, side=96, stride=4)(pair.source, pair.target)
    assert list(match.alpha) == ["x", "y", "noise_0", "noise_1"]
    assert match.alpha["noise_0"] + match.alpha["noise_1"] < 0.01
