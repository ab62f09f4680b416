import subprocess
import sys
from pathlib import Path

import pytest

from frot.datasets.catalogue import cache_folder, folders


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


def test_importing_frot_does_not_import_the_data_sets():
    probe = "import sys, frot; print('frot.datasets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
