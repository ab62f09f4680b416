"""Options that every command with a matcher takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

__all__ = [
    "Backbone",
    "Device",
    "Eps",
    "Eta",
    "Hough",
    "Method",
    "Preset",
    "Prior",
    "Weights",
    "given",
    "option",
]


def option(panel: str, text: str, metavar: str | None = None, **more: Any) -> Any:
    """Return an option without a default to show, in a panel of the help."""
    return typer.Option(
        help=text, metavar=metavar, show_default=False, rich_help_panel=panel, **more
    )


def _matching(text: str, metavar: str | None = None) -> Any:
    return option("Matching", text, metavar)


_BACKBONE = "Network: efficientnet-lite2 by default, resnet101, an .onnx file, ..."
_METHOD = "frot (default), ot, uniform, weighted, nn, best-layer, hpf, scot, srw or max-min."
_PRIOR = "Prior on the layers: coherence (default) or uniform, the paper's."

Backbone: TypeAlias = Annotated[str | None, _matching(_BACKBONE, "NAME")]
Weights: TypeAlias = Annotated[Path | None, _matching("File of the network's weights.", "FILE")]
Method: TypeAlias = Annotated[str | None, _matching(_METHOD, "NAME")]
Preset: TypeAlias = Annotated[
    str | None, _matching("Settings by name: frot-paper, scot or hpf.", "NAME")
]
Eta: TypeAlias = Annotated[float | None, _matching("Entropy of the layers' weights.", "COST")]
Eps: TypeAlias = Annotated[float | None, _matching("Entropy of the plan.", "COST")]
Prior: TypeAlias = Annotated[str | None, _matching(_PRIOR, "NAME")]
Hough: TypeAlias = Annotated[
    bool | None, _matching("Let displacements vote (regularised Hough matching).")
]
Device: TypeAlias = Annotated[str | None, _matching("cpu, cuda, cuda:1, ...", "NAME")]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given: the others are the matcher's affair.

    Examples
    --------
    >>> given(eta=None, eps=0.2)
    {'eps': 0.2}
    """
    return {name: value for name, value in options.items() if value is not None}
