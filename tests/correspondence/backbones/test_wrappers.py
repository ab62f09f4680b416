import pickle
from typing import Any

import numpy as np
import pytest

from frot._base.errors import InputError
from frot.correspondence import FeatureMap, Matcher, coherence
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
    big = ArrayBackbone(
        {image_key(image): {"patches": RNG.random((32, 20, 30))} for image in (ONE, OTHER)}
    )
    noisy = NoisyBackbone(big, count=1)
    found = coherence(noisy.extract(ONE)[-1], noisy.extract(OTHER)[-1])
    assert found < 0.05


def test_layers_of_places_match_the_same_place_whatever_is_there():
    grids = {image_key(ONE): (9, 13), image_key(OTHER): (17, 25)}
    inner = ArrayBackbone({key: {"patches": RNG.random((5, *hw))} for key, hw in grids.items()})
    noisy = NoisyBackbone(inner, count=2, kind="place")
    assert noisy.noise == ("place_0", "place_1")
    assert noisy.fingerprint != NoisyBackbone(inner, count=2).fingerprint
    small, large = (noisy.extract(image)[-1] for image in (ONE, OTHER))
    assert small.values.shape[1:] == (9, 13)
    assert coherence(small, large) == 1.0
    F, G = (one.values.reshape(len(one.values), -1) for one in (small, large))
    # Every other cell of the larger frame is a place of the smaller one; all waves are as long.
    y, x = np.divmod((F.T @ G).argmax(axis=1), 25)
    np.testing.assert_array_equal(y.reshape(9, 13), 2 * np.arange(9)[:, None] + np.zeros(13))
    np.testing.assert_array_equal(x.reshape(9, 13), 2 * np.arange(13) + np.zeros((9, 1)))


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


def test_features_of_photographs_that_were_made_square_match_where_things_are(tmp_path):
    """The second photograph is narrower, and its features have as many cells across."""
    from PIL import Image

    from frot.correspondence import Matcher

    rng = np.random.default_rng(1)
    paths = [tmp_path / "wide.png", tmp_path / "narrow.png"]
    for path, width in zip(paths, (120, 80), strict=True):
        Image.fromarray(np.full((120, width, 3), 128, dtype=np.uint8)).save(path)
    cells = rng.normal(size=(32, 24, 24)).astype(np.float32)
    backbone = ArrayBackbone({path.name: {"only": cells} for path in paths})
    match = Matcher(backbone, side=120, stride="first")(*paths)
    points = np.array([[60.0, 60.0], [30.0, 90.0], [90.0, 30.0]])
    expected = points * [2 / 3, 1.0]
    # A median is the displacement of some cell, which is off by a third of the way to that cell.
    assert np.abs(match.transfer(points).points - expected).max() <= 2.5 / 3 + 0.01


def test_cells_cover_a_photograph_whose_sides_have_strides_of_their_own():
    backbone = ArrayBackbone({"cat.jpg": {"square": np.ones((2, 8, 8))}})
    (one,) = backbone.extract_named("cat.jpg", ONE)
    assert one.grid.strides == (8.0, 12.0)
    assert one.grid.centres[[0, 1, 8, -1]].tolist() == [
        [5.5, 3.5], [17.5, 3.5], [5.5, 11.5], [89.5, 59.5]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"only": np.ones((2, 12, 8))}, "neither square nor of the shape of the photograph"),
        ({"only": np.ones((2, 6, 4))}, r"or \(channels, w, h\)"),
        ({"only": np.ones((8, 12, 384))}, "more than the photograph's 64 x 96 pixels"),
        ([FeatureMap("only", np.ones((2, 12, 18)), 8, 8)], "do not fit the photograph, 64 x 96"),
        ([FeatureMap("only", np.ones((2, 8, 6)), 8, 8)], "give `side` as it was"),
    ],
)
def test_features_of_another_photograph_or_size(features, words):
    backbone = ArrayBackbone({"cat.jpg": features})
    with pytest.raises(InputError, match=words):
        backbone.extract_named("cat.jpg", ONE)


def test_features_with_strides_of_their_own_are_taken_as_they_are():
    given = FeatureMap("only", np.ones((2, 9, 7)), 8, 20, column_stride=16, start=(-1.5, 3.0))
    (one,) = ArrayBackbone({"cat.jpg": [given]}).extract_named("cat.jpg", ONE)
    assert one.grid == given.grid
