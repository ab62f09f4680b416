"""The page of a match: click a point of A or B and see it in the other, with its heat map.

What the page's script needs goes in beforehand, rounded to what a screen shows: where a grid of
points goes (`Sampled`), and the best scores of every cell (`HeatRows`), from A to B and back.
"""

from __future__ import annotations

import base64
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import require
from frot.correspondence._features import Grid
from frot.correspondence._photo import Photo, as_bytes
from frot.correspondence.agreement import told
from frot.correspondence.chance import tells
from frot.correspondence.flow import spacing
from frot.correspondence.match_picture import as_points, check_match
from frot.correspondence.pictures import grid_extent
from frot.show.page import check_page, data_address, render, save_page

if TYPE_CHECKING:
    from frot.correspondence.match import Match

# From black over purple and orange to pale yellow: stops of matplotlib's "inferno".
COLOURS = ((0, 0, 4), (87, 16, 110), (188, 55, 84), (249, 142, 9), (252, 255, 164))


def write_match_page(
    match: Match,
    path: str | os.PathLike[str],
    points: Any = None,
    title: str | None = None,
    *,
    command: str = "",
) -> Path:
    """Write a match as one web page: click a point of A or B and see it in the other.

    Its heat map shows where else it may be, and a slider lays A, warped, over B.
    The page holds both photographs and all numbers itself and asks nothing of the network. It
    replaces an existing file only once it is complete. Points are moved by `match.transfer`
    beforehand, one per pixel up to 60,000 and on a coarser grid beyond that; of the scores of each
    cell the best are kept and the others averaged over blocks, so that a page of 4,275 x 4,275
    cells is below six megabytes. The page says what it rounds. Needs the extra ``frot[plot]``.

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
    command : str
        A command line that makes the match, shown as it is.

    Returns
    -------
    pathlib.Path
        The file written.
    """
    check_match(match)
    given = {"command": command} | ({} if title is None else {"title": title})
    path = check_page(path, **given)
    chosen = as_points(match, points)
    moved = match.transfer(chosen)
    ways = [
        (way, sample(way), heat_rows(way.scores, way.target_grid)) for way in (match, match.inverse)
    ]
    warped = match.warp(onto="target")
    seen = np.where(warped.valid[..., None], warped.pixels, match.target.pixels)
    if title is None:
        title = f"{match.source.name} → {match.target.name}"
    layers = f"{len(match.alpha)} layers" if match.alpha else "no layers"
    page = render(
        "match.html",
        "frot.correspondence",
        title=title,
        subtitle=f"Semantic correspondence by {match.method} over {layers}",
        command=command,
        match=match,
        a=_photo(match.source, "A"),
        b=_photo(match.target, "B"),
        warped=_photo(Photo(seen, ""), "A over B"),
        unknown="" if warped.valid.all() else ", and B where nothing is known",
        heat_boxes=[_heat_box(match.inverse), _heat_box(match)],
        points=np.column_stack([chosen, moved.points, moved.confidence]).tolist(),
        telling=tells(match),
        facts=_facts(match),
        rounded=_rounded(*ways[0]),
        data={
            "sides": [_side(*way) for way in ways],
            "colours": COLOURS,
            "telling": tells(match),
            "start": int(np.argmax(moved.confidence)),
        },
    )
    return save_page(path, page)


def _facts(match: Match) -> list[tuple[str, str]]:
    facts = [
        ("Method", match.method),
        ("Cells", f"{len(match.a):,} of A to {len(match.b):,} of B"),
        ("Strength of Hough matching", _strength(match)),
        ("Time", f"{match.seconds:.3g} s"),
    ]
    if match.looks:
        found = "yes" if match.reflected else "no"
        facts.insert(3, ("A and B face opposite ways", f"{found}: {told(match.looks)}"))
    result = match.result
    if result is not None:
        facts += [
            ("Entropy of α, η", f"{result.eta:g}"),
            ("Entropy of the plan, ε", f"{result.eps:g}"),
            ("Solver", result.solver),
        ]
    return facts


def _strength(match: Match) -> str:
    what = ", of a reflection" if match.reflected else ""
    twice = " (A was looked at mirrored, too)" if len(match.looks) > 1 else ""
    return f"{match.agreement:.2g}{what}{twice}"


def _rounded(match: Match, sampled: Sampled, heat: HeatRows) -> str:
    """What the page does not show to the last digit."""
    unit = float(((sampled.high - sampled.low) / 65_535).max()) / 2
    where = "every pixel of A" if sampled.step == 1 else f"every {sampled.step} pixels of A"
    snap = "" if sampled.step == 1 else ", and a click goes to the nearest of these"
    m = len(match.b)
    kept = heat.cells.shape[1]
    rest = (
        f"the {kept:,} best of {m:,} cells to 1/255, the others as means over blocks of "
        f"{heat.block} × {heat.block}"
        if kept < m
        else "all cells to 1/255"
    )
    return (
        f"points were moved beforehand at {where}{snap}; their places in B are "
        f"stored to {max(unit, 0.001):.1g} pixels. The heat map is the mean over the cells of A "
        f"close to the point, over its maximum: of each, {rest}; drawn smoothly between the cells."
    )


def _photo(photo: Photo, name: str, longest: int = 1_000) -> dict[str, Any]:
    """A photograph as the page shows it: shrunk to half a screen, inside its own address."""
    image = require("PIL.Image", "correspondence").fromarray(as_bytes(photo.pixels))
    # Only shrinks, and keeps the proportions to a pixel.
    image.thumbnail((longest, longest))
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=88)
    h, w = photo.size
    source = data_address("image/jpeg", buffer.getvalue())
    return {"name": photo.name or name, "width": w, "height": h, "source": source}


def _heat_box(match: Match) -> str:
    """Where the canvas of cells lies over the photograph, of which it is a bit larger."""
    h, w = match.target.size
    left, right, bottom, top = grid_extent(match.target_grid, match.target_ratio)
    # A pixel's coordinates are those of its centre; the photograph's edge is half a pixel before.
    return (
        f"left: {100 * (left + 0.5) / w:.4f}%; top: {100 * (top + 0.5) / h:.4f}%; "
        f"width: {100 * (right - left) / w:.4f}%; height: {100 * (bottom - top) / h:.4f}%"
    )


def _side(match: Match, sampled: Sampled, heat: HeatRows) -> dict[str, Any]:
    """The source of a match, and where its points go."""
    (h, w), grid = match.source.size, match.source_grid
    cells = {"w": grid.w, "h": grid.h, "strides": grid.strides, "start": grid.start}
    return {
        "photo": {"width": w, "height": h, "ratio": float(match.source_ratio), **cells},
        "grid": {"step": sampled.step, "across": sampled.across, "down": sampled.down},
        "low": sampled.low.tolist(),
        "high": sampled.high.tolist(),
        "places": _text(sampled.places),
        "sure": _text(sampled.sure),
        "kept": heat.cells.shape[1],
        "wide": heat.cells.dtype.itemsize == 4,
        "cells": _text(heat.cells),
        "scores": _text(heat.scores),
        "block": heat.block,
        "blocks": heat.rest.shape[1],
        "rest": _text(heat.rest),
        "shares": _text(heat.shares),
    }


def _text(array: np.ndarray) -> str:
    """Return the bytes of an array as text, little end first.

    Examples
    --------
    >>> _text(np.array([1, 256], dtype="<u2"))
    'AQAAAQ=='
    """
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii")


@dataclass(frozen=True, eq=False)
class Sampled:
    """The points (step x, step y), row by row, and where they go.

    Parameters
    ----------
    step : int
        Pixels between the points.
    across, down : int
        Points in a row, and rows.
    low, high : arrays of shape (2,)
        The smallest and largest x and y in the target.
    places : uint16 array of shape (down across, 2)
        x and y in the target, from 0 for `low` to 65,535 for `high`.
    sure : uint8 array of shape (down across,)
        The confidence, from 0 to 255 for 1.
    """

    step: int
    across: int
    down: int
    low: np.ndarray
    high: np.ndarray
    places: np.ndarray
    sure: np.ndarray


def sample(match: Match, most: int = 60_000) -> Sampled:
    """Move a grid of at most so many points by `match.transfer`: every pixel, where that is few."""
    (h, w), step = match.source.size, spacing(match.source.size, most)
    x, y = np.arange(0, w, step), np.arange(0, h, step)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2).astype(float)
    moved = match.transfer(points)
    found, sure = np.asarray(moved.points, dtype=float), np.asarray(moved.confidence, dtype=float)
    low, high = found.min(axis=0), found.max(axis=0)
    # A map onto one place has no extent to divide by.
    high = np.maximum(high, low + 1e-6)
    return Sampled(
        step,
        len(x),
        len(y),
        low,
        high,
        (65_535 * (found - low) / (high - low)).round().astype("<u2"),
        (255.0 * np.clip(sure, 0.0, 1.0)).round().astype(np.uint8),
    )


@dataclass(frozen=True, eq=False)
class HeatRows:
    """For every cell of the source, where in the target it may be.

    A row's scores are divided by its largest one; 255 stands for that.

    Parameters
    ----------
    cells : array of shape (n, k), uint16 or uint32
        The k cells of the target with the largest scores.
    scores : uint8 array of shape (n, k)
        Their scores.
    block : int
        Cells of the target along a side of a block.
    rest : uint8 array of shape (n, blocks)
        Means over what is not kept, of blocks row by row.
    shares : float32 array of shape (n,)
        Share of the row's sum that its largest score is; 0 for a cell without votes, as off a mask.

    A page draws the kept scores over the means of the blocks; the heat of a point is the mean of
    the rows of the cells with votes within a stride of it, or else the nearest that have, each as
    shares of its sum, over its maximum: what `Match.heatmap` gives.
    """

    cells: np.ndarray
    scores: np.ndarray
    block: int
    rest: np.ndarray
    shares: np.ndarray


def heat_rows(
    scores: np.ndarray, grid: Grid, most: int = 250_000, along: int = 12, at_once: int = 256
) -> HeatRows:
    """Keep about `most` scores of a matrix of shape (n, m), the same number in each row.

    There are so many blocks `along` the longer side of the target for what is not kept.

    Examples
    --------
    >>> rows = heat_rows(np.array([[1.0, 4.0, 0.0, 2.0]]), Grid(1, 4, 8.0, 8.0))
    >>> dict(zip(rows.cells[0].tolist(), rows.scores[0].tolist()))[1]
    255
    """
    n, m = scores.shape
    if not np.any(scores > 0.0):
        # Where no cell has votes, all have, and spread them evenly.
        scores = np.broadcast_to(np.float32(1.0), (n, m))
    kept = int(np.clip(most // n, 16, m)) if m > 16 else m
    block = -(-max(grid.h, grid.w) // along)
    y, x = np.mgrid[: grid.h, : grid.w] // block
    wide = -(-grid.w // block)
    blocks = wide * -(-grid.h // block)
    owner = np.zeros((m, blocks), dtype=np.float32)
    owner[np.arange(m), (y * wide + x).ravel()] = 1.0
    cells = np.empty((n, kept), dtype="<u2" if m <= 65_536 else "<u4")
    values = np.empty((n, kept), dtype=np.uint8)
    rest = np.empty((n, blocks), dtype=np.uint8)
    shares = np.empty(n, dtype="<f4")
    for start in range(0, n, at_once):
        part = np.clip(np.asarray(scores[start : start + at_once], dtype=np.float32), 0.0, None)
        largest = part.max(axis=1, keepdims=True)
        part = part / np.where(largest > 0.0, largest, np.float32(1.0))
        best = np.argpartition(part, m - kept, axis=1)[:, m - kept :]
        rows = slice(start, start + len(part))
        shares[rows] = (largest[:, 0] > 0.0) / np.maximum(part.sum(axis=1, dtype=float), 1.0)
        cells[rows] = best
        values[rows] = (255.0 * np.take_along_axis(part, best, axis=1)).round()
        left = np.ones_like(part)
        np.put_along_axis(left, best, 0.0, axis=1)
        means = (part * left) @ owner / np.maximum(left @ owner, 1.0)
        rest[rows] = (255.0 * means).round()
    return HeatRows(cells, values, block, rest, shares)
