import math
import threading
import warnings

import pytest

from frot._errors import (
    ConvergenceWarning,
    InputError,
    MissingDependencyError,
    SolverError,
    hearing,
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


def test_hearing_is_of_one_thread_only():
    """What is said in another thread meanwhile is still warned there."""
    with hearing() as heard:
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


def test_hearing_ends():
    with pytest.raises(KeyError), hearing():
        raise KeyError
    with pytest.warns(ConvergenceWarning, match="again"):
        warn_caller("again")
