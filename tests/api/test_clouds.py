from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frot import InputError
from frot.api._pairwise_table import check_clouds

RNG = np.random.default_rng(0)
CLOUDS = [RNG.normal(size=(n, 3)) for n in (4, 5, 6)]


def test_arrays_frames_lists_stacks_and_arrays_of_objects():
    frames = [pd.DataFrame(cloud, columns=pd.Index(list("abc"))) for cloud in CLOUDS]
    ragged = np.empty(3, dtype=object)
    ragged[:] = CLOUDS
    for given in (
        CLOUDS,
        tuple(CLOUDS),
        iter(CLOUDS),
        [x.tolist() for x in CLOUDS],
        frames,
        ragged,
    ):
        found = check_clouds(given, None, normalise=False)
        assert found.sizes.tolist() == [4, 5, 6]
        for cloud, expected in zip(found.members, CLOUDS, strict=True):
            assert np.array_equal(cloud.points, expected)
    assert check_clouds(frames, None, normalise=False).columns == ("a", "b", "c")
    assert check_clouds(np.zeros((2, 4, 3)), None, normalise=False).sizes.tolist() == [4, 4]


def test_columns_of_any_member_name_the_features():
    mixed = [CLOUDS[0], pd.DataFrame(CLOUDS[1], columns=pd.Index(list("abc"))), CLOUDS[2]]
    assert check_clouds(mixed, None, normalise=False).columns == ("a", "b", "c")


BAD = {
    "nothing": ([], "clouds: is empty; give one cloud at least"),
    "one array": (CLOUDS[0], r"clouds: is one table; pass a list of clouds, \[clouds\]"),
    "one frame": (pd.DataFrame(CLOUDS[0]), "clouds: is one table"),
    "a mapping": ({"a": CLOUDS[0]}, r"clouds: is a mapping; pass list\(clouds.values\(\)\)"),
    "a path": ("a.csv", "clouds: 'a.csv' is not a list of clouds"),
    "a number": (3, "clouds: 3 is not a list of clouds"),
    "a flat member": ([CLOUDS[0], CLOUDS[1][0]], r"clouds\[1\]: has shape \(3,\), but points are"),
    "an empty member": ([*CLOUDS, np.zeros((0, 3))], r"clouds\[3\]: has no points"),
    "another width": (
        [*CLOUDS, np.zeros((2, 4))],
        r"clouds\[3\]: has 4 features and clouds\[0\] has 3; they must be the same ones",
    ),
    "other columns": (
        [CLOUDS[0], *(pd.DataFrame(CLOUDS[1], columns=pd.Index(list(c))) for c in ("abc", "acb"))],
        r"clouds\[2\]: has other columns than clouds\[1\]; reorder them",
    ),
    "NaN": (
        [*CLOUDS, np.array([[0.0, np.nan, 0.0]])],
        r"clouds\[3\]: 1 of 3 entries are NaN or infinite, the first at clouds\[3\]\[0, 1\]",
    ),
    "text": ([CLOUDS[0], CLOUDS[1].astype(str)], r"clouds\[1\]: holds <U32, not numbers"),
}


@pytest.mark.parametrize("mistake", BAD)
def test_a_bad_member_is_named(mistake):
    clouds, message = BAD[mistake]
    with pytest.raises(InputError, match=message):
        check_clouds(clouds, None, normalise=False)


UNIFORM = [np.full(n, 1 / n) for n in (4, 5, 6)]
BAD_WEIGHTS = {
    "too few": (UNIFORM[:2], r"weights: 2 vectors for 3 clouds; give one for each, or None"),
    "a wrong length": ([*UNIFORM[:2], UNIFORM[0]], r"weights\[2\]: has shape \(4,\), expected"),
    "negative": ([None, [-1.0, 1, 1, 0, 0], None], r"weights\[1\]: weights must be >= 0"),
    "a sum of two": ([None, 2 * UNIFORM[1], None], r"weights\[1\]: the weights sum to 2, .*=True"),
    "a number": (1.0, "weights: is not a list of weight vectors; give one for each of clouds"),
    "flat": ([0.2, 0.3, 0.5], r"weights\[0\]: has shape \(\), expected one weight per point"),
}


@pytest.mark.parametrize("mistake", BAD_WEIGHTS)
def test_bad_weights_are_named(mistake):
    weights, message = BAD_WEIGHTS[mistake]
    with pytest.raises(InputError, match=message):
        check_clouds(CLOUDS, weights, normalise=False)


def test_weights_are_kept_as_they_came():
    found = check_clouds(CLOUDS, [None, 2 * UNIFORM[1], UNIFORM[2]], normalise=True)
    assert found.members[0].weights is None
    assert np.array_equal(found.members[1].weights, 2 * UNIFORM[1])  # type: ignore[arg-type]
