"""The archives that a release would upload: whole, valid, and tested by what they carry."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

import frot

ROOT = Path(__file__).resolve().parents[1]
# With -n, the archives are built once.
pytestmark = pytest.mark.xdist_group("archives")


def run(*words: str | Path, folder: Path, **more: str) -> str:
    """Run Python with arguments, and return what it wrote."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder, env={**os.environ, **more}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory) -> tuple[Path, Path]:
    """The wheel and the source archive; the wheel is made from the latter, as others do."""
    for module in ("build", "hatchling", "twine"):
        pytest.importorskip(module)
    folder = tmp_path_factory.mktemp("dist")
    run("-m", "build", "--no-isolation", "--outdir", folder, ROOT, folder=ROOT)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def test_the_index_would_take_them(archives):
    told = run("-m", "twine", "check", "--strict", *archives, folder=ROOT)
    assert told.count("PASSED") == 2


def test_the_wheel_has_all_of_the_package_and_nothing_else(archives):
    with zipfile.ZipFile(archives[0]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (metadata,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        about = wheel.read(metadata).decode()
    package = ROOT / "src" / "frot"
    kept = {
        f"frot/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == kept
    assert "Project-URL: Documentation, https://frot-developers.github.io/frot/" in about


def test_the_wheel_works_in_a_fresh_environment(archives, tmp_path):
    """Installed by pip beside the libraries of this one, with no sources in reach."""
    fresh = tmp_path / "fresh"
    run("-m", "venv", "--without-pip", fresh, folder=tmp_path)
    python = fresh / "bin" / "python"
    run(
        *("-m", "pip", "--python", python, "install", "--no-index", "--no-deps", archives[0]),
        folder=tmp_path,
    )
    (packages,) = fresh.glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(str(Path(np.__file__).parents[1]) + "\n")
    code = (
        "import frot; print(frot.__file__, frot.__version__);"
        "print(frot.solve(*frot.toy()).summary())"
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.check_output([python, "-c", code], cwd=tmp_path, text=True, env=env)
    assert str(packages) in told
    assert "CONVERGED" in told
    assert f" {frot.__version__}" in told
    command = [fresh / "bin" / "frot", "--help"]
    told = subprocess.check_output(command, cwd=tmp_path, text=True, env=env)
    assert "solve" in told


@pytest.mark.timeout(300)
def test_the_source_archive_passes_its_own_tests(archives, tmp_path):
    with tarfile.open(archives[1]) as source:
        source.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    for name in (
        "docs/conf.py",
        "examples",
        "conftest.py",
        "Makefile",
        "CONTRIBUTING.md",
        ".ci/run",
    ):
        assert (folder / name).exists(), name
    assert not (folder / "docs" / "_build").exists()
    tests = {path.relative_to(folder) for path in (folder / "tests").rglob("*.py")}
    ours = {path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py")}
    assert tests == ours
    quick = ("tests/test_house.py", "tests/base/test_second_names.py")
    told = run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *quick,
        folder=folder, PYTHONPATH=str(folder / "src"), PYTEST_XDIST_WORKER="",
    )  # fmt: skip
    assert sum(map(int, re.findall(r"(\d+) passed", told))) > 20


def test_the_repository_has_one_address():
    """Whoever moves it changes it everywhere: pyproject, citation, README, site, templates."""
    (address,) = re.findall(r'Homepage = "(.*)"', (ROOT / "pyproject.toml").read_text())
    owner, name = address.removeprefix("https://github.com/").split("/")
    for path in ("CITATION.cff", "README.md", "docs/conf.py", "docs/start.md"):
        text = (ROOT / path).read_text(encoding="utf-8")
        assert address in text, path
        assert set(re.findall(r"https://github\.com/([\w-]+)/frot\b", text)) == {owner}, path
        assert set(re.findall(r"https://([\w-]+)\.github\.io/(\w+)", text)) <= {(owner, name)}, path
