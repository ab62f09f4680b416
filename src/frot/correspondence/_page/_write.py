"""Fill the page's skeleton from a match and write it."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from frot._files import check_writable, replacing
from frot._report._parts import calls
from frot.correspondence._page._embed import array_text, data_block, photo_source
from frot.correspondence._page._heat_rows import HeatRows, heat_rows
from frot.correspondence._page._parts import (
    answer_section,
    layers_section,
    points_section,
)
from frot.correspondence._page._sampled import Sampled, sample
from frot.correspondence._page._template import PAGE
from frot.correspondence._pictures._heat import grid_extent
from frot.correspondence._pictures._matched import Matched
from frot.correspondence._pictures._points import as_points

__all__ = ["write_match_page"]

# From black over purple and orange to pale yellow: stops of matplotlib's "inferno".
COLOURS = ((0, 0, 4), (87, 16, 110), (188, 55, 84), (249, 142, 9), (252, 255, 164))


def write_match_page(
    match: Matched,
    path: str | os.PathLike[str],
    points: Any = None,
    title: str | None = None,
    *,
    call: str = "",
    command: str = "",
) -> Path:
    """Write a match as one web page: click a point of A and see it in B, with its heat map.

    The page holds both photographs and all numbers itself and asks nothing of the network. It
    replaces an existing file only once it is complete. Points are moved by `match.transfer`
    beforehand, one a pixel up to 60,000 and on a coarser grid beyond that; of the scores of each
    cell the best are kept and the others averaged over blocks, so that a page of 4,275 x 4,275
    cells is below five megabytes. The page says what it rounds.

    Parameters
    ----------
    match : Match
    path : path
        The .html file to write.
    points : array of shape (k, 2), or int, optional
        Points of the source to list, x and y in pixels; or how many to choose on the object (16).
        The surest of them is shown first.
    title : str, optional
        By default the names of the photographs.
    call, command : str
        Python code and a command line that make the match, shown as they are.

    Returns
    -------
    pathlib.Path
        The file written.
    """
    path = Path(path)
    check_writable(path)
    page = render(match, as_points(match, points), title, call, command)
    with replacing(path) as draft:
        draft.write_text(page, encoding="utf-8")
    return path


def render(match: Matched, points: np.ndarray, title: str | None, call: str, command: str) -> str:
    """Return the page as text; all that users wrote is escaped."""
    sampled = sample(match)
    heat = heat_rows(match.scores, match.target_grid)
    moved = match.transfer(points)
    surest = int(np.argmax(moved.confidence))
    (h_a, w_a), (h_b, w_b) = match.source.size, match.target.size
    if title is None:
        title = f"{match.source.name} → {match.target.name}"
    layers = f"{len(match.alpha)} layers" if match.alpha else "no layers"
    return PAGE.substitute(
        title=escape(title),
        subtitle=f"Semantic correspondence by {escape(match.method)} over {layers}",
        name_a=escape(match.source.name or "A"),
        name_b=escape(match.target.name or "B"),
        width_a=w_a,
        height_a=h_a,
        width_b=w_b,
        height_b=h_b,
        shape_a=f"{w_a / h_a:.4f}",
        shape_b=f"{w_b / h_b:.4f}",
        source_a=photo_source(match.source),
        source_b=photo_source(match.target),
        heat_box=_heat_box(match),
        points=points_section(points, moved),
        layers=layers_section(match),
        answer=answer_section(match, sampled, heat),
        calls=calls(call, command),
        data=data_block(_data(match, sampled, heat) | {"start": surest}),
        footer=f"frot {version('frot')} · {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
    )


def _heat_box(match: Matched) -> str:
    """Where the canvas of cells lies over the photograph, of which it is a bit larger."""
    h, w = match.target.size
    left, right, bottom, top = grid_extent(match.target_grid, match.target_ratio)
    # A pixel's coordinates are those of its centre; the photograph's edge is half a pixel before.
    return (
        f"left: {100 * (left + 0.5) / w:.4f}%; top: {100 * (top + 0.5) / h:.4f}%; "
        f"width: {100 * (right - left) / w:.4f}%; height: {100 * (bottom - top) / h:.4f}%"
    )


def _data(match: Matched, sampled: Sampled, heat: HeatRows) -> dict[str, Any]:
    def about(photo: Any, grid: Any, ratio: float) -> dict[str, float]:
        h, w = photo.size
        cells = {"w": grid.w, "h": grid.h, "stride": float(grid.stride), "ratio": float(ratio)}
        return {"width": w, "height": h, **cells}

    return {
        "a": about(match.source, match.source_grid, match.source_ratio),
        "b": about(match.target, match.target_grid, match.target_ratio),
        "grid": {"step": sampled.step, "across": sampled.across, "down": sampled.down},
        "low": sampled.low.tolist(),
        "high": sampled.high.tolist(),
        "places": array_text(sampled.places),
        "sure": array_text(sampled.sure),
        "kept": heat.cells.shape[1],
        "wide": heat.cells.dtype.itemsize == 4,
        "cells": array_text(heat.cells),
        "scores": array_text(heat.scores),
        "block": heat.block,
        "blocks": heat.rest.shape[1],
        "rest": array_text(heat.rest),
        "shares": array_text(heat.shares),
        "colours": COLOURS,
    }
