"""Second names of arguments at the doors of the library."""

import inspect
from dataclasses import is_dataclass

import numpy as np
import pytest

import frot
from frot._base.spelling import SECOND_NAMES

X, Y, GROUPS = frot.toy(8)


def test_both_names_do_the_same():
    assert np.array_equal(frot.toy(5, seed=3)[0], frot.toy(5, random_state=3)[0])
    one, other = (frot.solve(X, Y, GROUPS, **{name: "mean"}) for name in ("normalise", "normalize"))
    assert one.value == other.value
    weights = np.arange(1.0, 9.0)
    a, b = (
        frot.distance(X, Y, GROUPS, a=weights, b=weights, **{name: True})
        for name in ("normalise_weights", "normalize_weights")
    )
    assert a == b
    assert frot.sliced(X, Y, seed=4).value == frot.sliced(X, Y, random_state=4).value
    assert frot.generalized_max_sliced is frot.generalised_max_sliced


def test_both_at_once_are_refused():
    with pytest.raises(frot.InputError, match="normalize: is normalise by another name"):
        frot.solve(X, Y, GROUPS, normalise="mean", normalize="none")


def test_every_door_takes_both():
    """No public function has one of these arguments and refuses its second name."""
    import frot.correspondence

    doors = [getattr(frot, name) for name in frot.__all__]
    doors += [getattr(frot.correspondence, name) for name in frot.correspondence.__all__]
    for door in doors:
        call = door.__init__ if inspect.isclass(door) else door
        if not inspect.isfunction(call) or is_dataclass(door):
            continue
        assert "seed" not in inspect.signature(call).parameters, door
        if SECOND_NAMES.keys() & inspect.signature(call).parameters.keys():
            assert hasattr(call, "__wrapped__"), door
