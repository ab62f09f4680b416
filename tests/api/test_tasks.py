import subprocess
import sys

import numpy as np
import pytest

from frot.api.tasks import check_run, run_chunks

WITHOUT = """
import sys
sys.modules[{module!r}] = None
try:
    import frot.selection
except ImportError as error:
    print(type(error).__name__, error)
"""


def run_tasks(task, count, **run):
    return run_chunks(lambda indices: [task(index) for index in indices], count, **run)


def test_only_what_a_checkpoint_lacks_is_done(tmp_path):
    done = []

    def task(index):
        done.append(index)
        return np.array([index])

    path = tmp_path / "run"
    run_tasks(task, 3, checkpoint=path, fingerprint=lambda: "f")
    found = run_tasks(task, 5, checkpoint=path, fingerprint=lambda: "f")
    assert done == [0, 1, 2, 3, 4]
    assert np.concatenate(found).tolist() == [0, 1, 2, 3, 4]
    # Fewer than were done: the rest is not returned.
    assert len(run_tasks(task, 2, checkpoint=path, fingerprint=lambda: "f")) == 2


def test_what_was_done_before_an_error_is_kept(tmp_path):
    def fails(index):
        if index == 9:
            raise RuntimeError("stop")
        return np.array([index])

    path = tmp_path / "run"
    with pytest.raises(RuntimeError):
        run_tasks(fails, 12, checkpoint=path, fingerprint=lambda: "f")
    done = []
    run_tasks(
        lambda index: (done.append(index), np.array([index]))[1],
        12,
        checkpoint=path,
        fingerprint=lambda: "f",
    )
    assert done == [8, 9, 10, 11]


def test_a_bar_is_shown_on_request(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    run_tasks(lambda index: np.zeros(1), 3, progress=True, what="permutations")
    assert "permutations" in capsys.readouterr().err
    run_tasks(lambda index: np.zeros(1), 3)
    assert capsys.readouterr().err == ""


def test_a_seed_is_drawn_where_none_is_given():
    drawn = [check_run(1, False, None, None) for _ in range(2)]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(("module", "package"), [("sklearn", "sklearn"), ("joblib", "joblib")])
def test_a_missing_library_is_named_with_the_extra_that_brings_it(module, package):
    command = [sys.executable, "-c", WITHOUT.format(module=module)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert out.startswith("MissingDependencyError")
    assert f'{package} is not installed; pip install "frot[selection]"' in out
