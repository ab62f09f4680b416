from dataclasses import replace

import pytest

from frot import InputError
from frot.correspondence.datasets import PairSet, pf_willow
from tests.correspondence import generated


@pytest.fixture
def pairs(tmp_path):
    return pf_willow(generated.pf_willow(tmp_path / "a"))


def test_a_few_are_of_every_class(pairs):
    assert pairs.first(2).counts == {"car(G)": 1, "duck(S)": 1}
    assert pairs.first(None) is pairs
    assert pairs.first(99) is pairs
    with pytest.raises(InputError, match="limit=0 leaves no pair"):
        pairs.first(0)


def test_classes_are_chosen_by_name(pairs):
    assert pairs.only("duck(S)").categories == ("duck(S)",)
    assert len(pairs.only(["car(G)", "duck(S)"])) == 12
    with pytest.raises(InputError, match=r"categories: no 'cat' in PF-WILLOW; it has 'car\(G\)'"):
        pairs.only("cat")


def test_the_same_set_elsewhere_is_the_same(pairs, tmp_path):
    moved = pf_willow(generated.pf_willow(tmp_path / "b"))
    assert moved.fingerprint == pairs.fingerprint
    assert pairs.only("duck(S)").fingerprint != pairs.fingerprint
    longer = replace(pairs, pairs=(*pairs.pairs[:-1], replace(pairs.pairs[-1], length=1.0)))
    assert longer.fingerprint != pairs.fingerprint


def test_ids_are_unique(pairs):
    with pytest.raises(InputError, match=r"pairs: 'car\(G\)/photo_0-photo_1' occur more than once"):
        PairSet("twice", pairs.pairs[:1] * 2)
