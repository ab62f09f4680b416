"""How `make docs` builds the site: without the internet, and with warnings as errors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

from sphinx.ext.napoleon.docstring import NumpyDocstring  # noqa: E402

import frot  # noqa: E402

project = "frot"
author = "the frot developers"
copyright = "the frot developers"
version = release = frot.__version__

REPOSITORY = "https://github.com/frot-developers/frot"
# Without the gallery a build takes seconds instead of minutes; the tests build it so.
GALLERY = os.environ.get("FROT_DOCS_GALLERY", "1") == "1"

extensions = [
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.typer",
]
# The page of the paper includes the last two.
exclude_patterns = ["_build", "_templates", "_ext", "paper_verdicts.md", "paper_remarks.md"]
templates_path = ["_templates"]
nitpicky = False

# Markdown: headings are link targets, $ is mathematics.
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

# Docstrings: `name` links to the reference where it is a public name.
default_role = "py:obj"
autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    "undoc-members": False,
    "show-inheritance": False,
    # scikit-learn writes these, with references to pages of its own.
    "exclude-members": "set_fit_request, set_score_request, set_transform_request",
}
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
# Attributes are written like parameters: fields of a class are listed once.
napoleon_custom_sections = [("Attributes", "params_style")]
strip_signature_backslash = True  # names that end in an underscore are no links

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_title = "frot"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
# Pages that stand alone have the width of the window.
ALONE = ["index", "start", "cli", "benchmarks", "paper", "changelog"]
html_sidebars = {name: [] for name in ALONE}
html_theme_options = {
    "github_url": REPOSITORY,
    "navbar_align": "left",
    "show_prev_next": False,
    "show_toc_level": 2,
    # The table of notation needs the width.
    "secondary_sidebar_items": {"**": ["page-toc"], "notation": []},
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Constants, whose type would be described in their place.
CONSTANTS = {
    "frot.costs.METRICS": "Metrics that factor over features, by name: a dict that takes more.",
    "frot.costs.MEMORY_BUDGET": "Bytes that matrices may take unless a call says otherwise.",
    "frot.correspondence.PRESETS": "Settings of the literature, by the name that `Matcher` takes.",
    "frot.correspondence.PAIR_SETS": "Readers of data sets of pairs, by name.",
    "frot.datasets.NAMES": "Names of the expression sets that `load_expression` reads.",
}


def describe_constants(app: object, what: str, name: str, obj: object, _: object, lines: list[str]):
    """Say what a constant is."""
    if name in CONSTANTS:
        lines[:] = [CONSTANTS[name]]


def hide_protocol_arguments(
    app: object, what: str, name: str, obj: object, _: object, arguments: str, returns: str
):
    """Leave out what nobody passes: a protocol is not called."""
    return ("", returns) if getattr(obj, "_is_protocol", False) else None


def whole_docstring(self: NumpyDocstring) -> tuple[str, list[str]]:
    """Read a property's docstring as text: what stands before a colon is no type."""
    return "", type(self)(self._dedent(self._consume_to_end()), self._config).lines()


NumpyDocstring._consume_inline_attribute = whole_docstring


def setup(app: object) -> None:
    """Tell Sphinx of the above."""
    app.connect("autodoc-process-docstring", describe_constants)
    app.connect("autodoc-process-signature", hide_protocol_arguments)


# Examples run where a file has changed since the last build, and their output is kept.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": ["../examples/ot", "../examples/biology", "../examples/vision"],
    "within_subsection_order": "gallery.ReadingOrder",
    "filename_pattern": r"/plot_",
    "plot_gallery": GALLERY,
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 30.0,
    "image_scrapers": ("matplotlib", "gallery"),
    "nested_sections": True,
    "parallel": True,
    "write_computation_times": False,
    "reset_modules": ("matplotlib",),
}
# The settings of the gallery hold objects, which Sphinx cannot keep between builds.
suppress_warnings = ["config.cache"]
