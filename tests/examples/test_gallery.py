"""Examples of the gallery run as they stand, offline and without a warning, and draw something."""

from __future__ import annotations

import ast
import os
import re
import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

GALLERY = Path(__file__).resolve().parents[2] / "examples"
FOLDERS = ("ot", "biology", "vision")
EXAMPLES = sorted(GALLERY.glob("*/plot_*.py"))

# Those of some three seconds or more run when the site is built, and here where FROT_SLOW is set.
SLOW = {
    "plot_breast_cancer",
    "plot_eps",
    "plot_mask_transfer",
    "plot_noise_layers",
    "plot_own_cost",
    "plot_own_network",
    "plot_ten_thousand_points",
    "plot_training",
    "plot_turned",
    "plot_warped_cat",
    "plot_when_frot_fails",
}


def named(paths: list[Path]) -> list[object]:
    return [pytest.param(path, id=f"{path.parent.name}/{path.stem}") for path in paths]


def test_there_are_enough_of_each_kind():
    count = {folder: len(list((GALLERY / folder).glob("plot_*.py"))) for folder in FOLDERS}
    assert count["ot"] >= 13
    assert count["biology"] >= 8
    assert count["vision"] >= 6
    assert {path.stem for path in EXAMPLES} >= SLOW


@pytest.mark.parametrize("folder", [".", *FOLDERS])
def test_every_folder_has_a_header(folder):
    title, line, *text = (GALLERY / folder / "README.rst").read_text(encoding="utf-8").splitlines()
    assert len(line) == len(title)
    assert set(line) <= set("=-")
    assert any(text)


@pytest.mark.parametrize("path", named(EXAMPLES))
def test_title_text_and_public_names(path: Path):
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, line, *text = (ast.get_docstring(tree) or "").splitlines()
    assert line == "=" * len(title)
    paragraphs = re.split(r"\n\s*\n", "\n".join(text).strip())
    paragraphs += re.findall(r"^# %%\n#", source, flags=re.MULTILINE)
    assert len(paragraphs) >= 4, "tell what question the example answers, and what one sees"
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    ]
    own = {name for name in imported if name and name.split(".")[0] == "frot"}
    assert own
    assert own <= {"frot", "frot.torch", "frot.selection", "frot.correspondence", "frot.datasets"}


@pytest.fixture
def drawing():
    """Draw to memory, and leave no figure and no setting behind."""
    with matplotlib.rc_context():
        plt.switch_backend("Agg")
        plt.close("all")
        yield
        plt.close("all")


@pytest.mark.usefixtures("drawing")
@pytest.mark.parametrize("path", named(EXAMPLES))
def test_it_runs_and_draws(path: Path, capsys):
    if path.stem in SLOW and not os.environ.get("FROT_SLOW"):
        pytest.skip("takes some seconds; set FROT_SLOW=1, or build the site")
    left = runpy.run_path(str(path))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures, "Sphinx-Gallery shows the figures of pyplot"
    figures += [value for value in left.values() if isinstance(value, Figure)]
    for figure in figures:
        assert figure.axes
        assert any(axes.has_data() for axes in figure.axes)
        # Layout, tick labels and mathematics are laid out when a figure is drawn.
        figure.draw_without_rendering()
