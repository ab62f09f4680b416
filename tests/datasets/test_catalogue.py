import subprocess
import sys
from pathlib import Path

import pytest

from frot import datasets
from frot.datasets.catalogue import CATALOGUE, cache_folder, folders


def test_a_root_is_the_only_place(nowhere, monkeypatch):
    monkeypatch.setenv("FROT_DATA", "elsewhere")
    assert folders("here") == (Path("here"),)


def test_the_environment_comes_first_and_the_cache_last(nowhere, monkeypatch):
    monkeypatch.setenv("FROT_DATA", "elsewhere")
    assert folders()[0] == Path("elsewhere")
    assert folders()[-1] == cache_folder()
    assert len(set(folders())) == len(folders())


@pytest.mark.skipif(sys.platform != "linux", reason="each system has its own place")
def test_the_cache_follows_the_system(nowhere, tmp_path):
    assert cache_folder() == tmp_path / "cache" / "frot" / "data"


def test_importing_frot_imports_no_data_set_but_the_toy():
    probe = "import sys, frot; print(*(name for name in sys.modules if 'datasets' in name))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"frot.datasets", "frot.datasets.synthetic"}


def test_data_sets_are_there_when_they_are_asked_for():
    assert {name: getattr(datasets, name) for name in datasets.__all__}["NAMES"] == tuple(CATALOGUE)
    with pytest.raises(AttributeError, match=r"'frot\.datasets' has no attribute 'iris'"):
        _ = datasets.iris  # pyright: ignore[reportAttributeAccessIssue]
