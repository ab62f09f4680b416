import math
import threading
import warnings

import numpy as np
import pytest

from frot._base.errors import (
    ConvergenceWarning,
    InputError,
    MissingDependencyError,
    SolverError,
    brief,
    collect_warnings,
    require,
    warn_caller,
)


@pytest.mark.parametrize(
    ("ours", "builtin"),
    [
        (InputError, ValueError),
        (ConvergenceWarning, UserWarning),
        (SolverError, RuntimeError),
        (MissingDependencyError, ImportError),
    ],
)
def test_each_can_be_caught_as_the_builtin_it_refines(ours, builtin):
    assert issubclass(ours, builtin)


class TestBrief:
    """Messages show what was given, and stay messages."""

    def test_small_things_are_shown_whole(self):
        for value in (0.1, "mean", None, [1, 2], {"a": 1}, (1,), {3}):
            assert brief(value) == repr(value)

    @pytest.mark.parametrize(
        "value",
        [
            "x" * 10**6,
            b"x" * 10**6,
            list(range(10**6)),
            {n: n for n in range(10**5)},
            [["x" * 1000] * 1000] * 1000,
            10**4000,
            ValueError("x" * 10**6),
            type("N" * 1000, (), {})(),
        ],
        ids=["text", "bytes", "list", "mapping", "nested", "number", "error", "name"],
    )
    def test_large_things_are_not(self, value):
        assert len(brief(value)) <= 60

    def test_arrays_are_their_shapes(self):
        assert brief(np.zeros((10**6, 2))) == "ndarray of shape (1000000, 2)"
        assert brief(np.array(1.5)) == "array(1.5)"

    def test_what_cannot_be_shown(self):
        class Odd:
            def __repr__(self) -> str:
                raise RuntimeError("no")

        assert "Odd" in brief(Odd())


def test_require_returns_the_module():
    assert require("math", "plot") is math


@pytest.mark.parametrize("module", ["no_such_library", "no_such_library.part"])
def test_require_says_what_to_install(module):
    with pytest.raises(MissingDependencyError, match=r'pip install "frot\[plot\]"') as caught:
        require(module, "plot")
    assert caught.value.name == "no_such_library"


def test_require_does_not_hide_a_broken_library(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("import another_missing_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="another_missing_library") as caught:
        require("broken_library", "plot")
    assert not isinstance(caught.value, MissingDependencyError)


def test_collected_warnings_are_of_one_thread_only():
    """What is said in another thread meanwhile is still warned there."""
    with collect_warnings() as heard:
        warn_caller("here")
        caught: list[warnings.WarningMessage] = []

        def elsewhere() -> None:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                warn_caller("there")
            caught.extend(seen)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert heard == ["here"]
    assert [str(one.message) for one in caught] == ["there"]


def test_collecting_ends():
    with pytest.raises(KeyError), collect_warnings():
        raise KeyError
    with pytest.warns(ConvergenceWarning, match="again"):
        warn_caller("again")
