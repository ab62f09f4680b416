"""Second names of arguments at the doors of the library."""

import inspect
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pytest

import frot
from frot._base.spelling import SECOND_NAMES

X, Y, GROUPS = frot.toy(8)
# Type checkers know the first names only.
DOORS: Any = frot


def test_both_names_do_the_same():
    assert np.array_equal(DOORS.toy(5, seed=3)[0], frot.toy(5, random_state=3)[0])
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
    assert DOORS.sliced(X, Y, seed=4).value == frot.sliced(X, Y, random_state=4).value


def test_both_at_once_are_refused():
    with pytest.raises(frot.InputError, match="normalize: is normalise by another name"):
        DOORS.solve(X, Y, GROUPS, normalise="mean", normalize="none")


@pytest.mark.parametrize(
    ("door", "words", "ours"),
    [
        (DOORS.solve, {"reg": 0.1}, "eps"),
        (lambda **words: frot.solve_costs(np.ones((1, 2, 2)), **words), {"epsilon": 0.1}, "eps"),
        (lambda **words: frot.distance(X, Y, **words), {"numItermax": 9}, "max_iter"),
        (lambda **words: frot.pairwise([X, Y], **words), {"stopThr": 1e-3}, "tol"),
        (lambda **words: frot.solve_batch(X[None], Y[None], **words), {"reg_m": 1.0}, "tau"),
        (lambda **words: frot.srw(X, Y, 2, **words), {"max_iterations": 3}, "max_iter"),
        (DOORS.solve, {"M": np.eye(2)}, "solve_costs"),
    ],
)
def test_words_of_other_libraries_are_answered_with_ours(door, words, ours):
    with pytest.raises(frot.InputError, match=f"is called .*{ours}"):
        door(**words)


def test_a_loss_answers_with_our_word_too():
    pytest.importorskip("torch")
    words: Any = {"blur": 0.05}
    with pytest.raises(frot.InputError, match="blur: is called eps"):
        frot.torch.FRWDLoss(**words)


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


@pytest.mark.parametrize(
    ("door", "word", "ours"),
    [("solve", "group", "groups"), ("solve", "metrc", "metric"), ("pairwise", "n_job", "n_jobs")],
)
def test_a_misspelt_argument_is_named(door: str, word: str, ours: str):
    message = rf"{door}\(\) got an unexpected keyword argument '{word}'; did you mean '{ours}'\?"
    with pytest.raises(TypeError, match=message):
        getattr(DOORS, door)(X, Y, **{word: 1})
