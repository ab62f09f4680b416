import warnings

import numpy as np
import pandas as pd
import pytest

import frot
from frot.selection import FROTSelector, pathway_test, permutation_test, shape_test
from frot.selection._design import contrasts_of, held_together, read_blocks
from tests.selection.planted import planted

CLASSES = np.array(["a", "b", "c"])


def test_every_class_is_compared_with_the_rest_or_with_the_reference():
    codes = np.repeat([0, 1, 2], [4, 3, 5])
    block = np.arange(12) % 2
    rest = contrasts_of(codes, CLASSES, block)
    assert [one.name for one in rest] == ["a vs rest", "b vs rest", "c vs rest"]
    assert rest[1].sizes == (3, 9)
    assert rest[1].labels == ("b", "rest")
    np.testing.assert_array_equal(rest[1].sides[0], [4, 5, 6])
    table = np.arange(24.0).reshape(12, 2)
    assert rest[1].of(table) is table
    pairs = contrasts_of(codes, CLASSES, block, reference=2)
    assert [one.name for one in pairs] == ["a vs c", "b vs c"]
    np.testing.assert_array_equal(pairs[1].of(table)[:, 0], 2.0 * np.arange(4, 12))


def test_blocks_are_counted_from_zero_in_each_comparison():
    codes = np.repeat([0, 1, 2], 4)
    block = np.array([0, 0, 1, 1, 2, 2, 1, 1, 3, 3, 2, 1])
    pair = contrasts_of(codes, CLASSES, block, reference=2)[1]
    assert pair.block.tolist() == [1, 1, 0, 0, 2, 2, 1, 0]


def test_samples_of_blocks_of_one_class_are_counted():
    is_first = np.array([True, True, False, True, False])
    block = np.array([0, 0, 1, 2, 2])
    assert held_together(is_first, block).tolist() == [False, False, False, True, True]
    X, y = planted(n=20, m=20)
    given = np.where(np.arange(40) < 6, "only controls", "both")
    with pytest.warns(frot.DataWarning, match=r"6 of 40 samples of control vs treated are in 1 bl"):
        FROTSelector(3, plan=False).fit(X, y, given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FROTSelector(3, plan=False).fit(X, y, np.tile(["b1", "b2"], 20))


def test_confounded_blocks_are_refused_with_what_to_do():
    X, y = planted()
    donor = np.repeat(np.arange(10), 4)
    advice = (
        r"^block: every block holds a single class.*average the cells of a donor first, X\.grou"
    )
    for call in (
        lambda: FROTSelector(3).fit(X, y, donor),
        lambda: permutation_test(X, y, block=donor),
        lambda: pathway_test(X, y, [range(9), range(9, 20)], block=donor),
        lambda: shape_test(X, y, block=donor),
    ):
        with pytest.raises(frot.InputError, match=advice):
            call()


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (np.zeros(3), r"block: has shape \(3,\); give one block per row, shape \(40,\)"),
        ([None] + ["a"] * 39, "block: 1 of 40 samples have none, the first in row 0"),
        (pd.Series([np.nan, 1.0] * 20), "block: 20 of 40 samples have none, the first in row 0"),
        (np.ma.masked_less(np.ones(40), 0.0), "block: is a masked array"),
        ([1, "a"] * 20, None),
        (np.array([1, "a"] * 20, dtype=object), "block: holds labels of kinds that cannot be"),
    ],
)
def test_what_blocks_cannot_be(block, message):
    if message is None:
        assert read_blocks(block, 40).max() == 1
        return
    with pytest.raises(frot.InputError, match=message):
        read_blocks(block, 40)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros(5, dtype=int), "y: has one class, a; give labels of two or more"),
        (np.array([0, 1, 1, 1, 1]), "y: class a has one sample, which has no spread; drop it"),
    ],
)
def test_classes_that_cannot_be_compared(codes, message):
    with pytest.raises(frot.InputError, match=message):
        contrasts_of(codes, CLASSES[: codes.max() + 1], np.zeros(5, dtype=int))
