"""American spellings of arguments at the doors of the library."""

import inspect
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pytest

import frot
from frot._base.validate import SECOND_NAMES

X, Y, GROUPS = frot.toy(8)
# Type checkers know the first names only.
DOORS: Any = frot


def test_both_names_do_the_same():
    one, other = (
        DOORS.solve(X, Y, GROUPS, **{name: "mean"}) for name in ("normalise", "normalize")
    )
    assert one.value == other.value
    weights = np.arange(1.0, 9.0)
    a, b = (
        DOORS.distance(X, Y, GROUPS, a=weights, b=weights, **{name: True})
        for name in ("normalise_weights", "normalize_weights")
    )
    assert a == b


def test_both_at_once_are_refused():
    with pytest.raises(TypeError, match=r"solve\(\) got normalise and normalize, which are one"):
        DOORS.solve(X, Y, GROUPS, normalise="mean", normalize="none")


@pytest.mark.parametrize("name", ["reg", "group"])
def test_other_words_are_python_s_own_error(name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        DOORS.solve(X, Y, **{name: 1})


def test_every_door_takes_both():
    """No public function has one of these arguments and refuses its second name."""
    import frot.correspondence

    doors = [getattr(frot, name) for name in frot.__all__]
    doors += [getattr(frot.correspondence, name) for name in frot.correspondence.__all__]
    for door in doors:
        call = door.__init__ if inspect.isclass(door) else door
        if not inspect.isfunction(call) or is_dataclass(door):
            continue
        if SECOND_NAMES.keys() & inspect.signature(call).parameters.keys():
            assert hasattr(call, "__wrapped__"), door
