"""A match in a file, with everything that its methods need."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.archive import load, write_archive
from frot._base.arrays import Home, to_numpy
from frot.correspondence._features import Grid
from frot.correspondence._photo import Photo
from frot.correspondence.agreement import rigidity
from frot.correspondence.match import Match
from frot.correspondence.poses import Pose, Turn
from frot.correspondence.transfer import Transferring
from frot.plans.plan import Plan
from frot.problem import result_file
from frot.problem.result_file import arrays_of

__all__ = ["load_match", "rebuilt", "save_match"]


def save_match(match: Match, path: str | os.PathLike[str]) -> Path:
    """Write a match to an ``.npz`` file: both photographs, the scores, the plan, the interval.

    The file is complete or not there. It holds arrays and one text in JSON, and no pickles, so
    that reading one from elsewhere runs no code. Photographs of 8 or 16 bits take as many.

    Examples
    --------
    >>> import tempfile
    >>> from frot.correspondence import Matcher
    >>> from skimage.data import chelsea
    >>> match = Matcher(side=64)(chelsea(), chelsea())
    >>> again = load_match(save_match(match, Path(tempfile.mkdtemp()) / "cats.npz"))
    >>> bool((again.transfer([[220, 100]]).points == match.transfer([[220, 100]]).points).all())
    True
    """
    read, result = match.transferring, match.result
    about: dict[str, Any] = {
        "names": [match.source.name, match.target.name],
        "grids": [asdict(match.source_grid), asdict(match.target_grid)],
        "ratios": [match.source_ratio, match.target_ratio],
        "transfer": [read.mode, read.radius, read.blank],
        "turned": None if read.turned is None else read.turned.tolist(),
        **{name: getattr(match, name) for name in ("alpha", "phi", "prior", "method", "seconds")},
        "agreement": match.agreement,
        "rigidity": match.rigidity,
        "reflected": match.reflected,
        "pose": asdict(match.pose),
    }
    arrays = {
        "source": _packed(match.source.pixels),
        "target": _packed(match.target.pixels),
        "a": match.a,
        "b": match.b,
        "scores": to_numpy(read.scores),
        "plan": match.plan,
        "source_cam": match.source_cam,
        "target_cam": match.target_cam,
    }
    if result is not None:
        known = arrays_of(result, plan=False)
        arrays |= {f"result_{name}": array for name, array in known.items()}
    arrays["about"] = np.array(json.dumps(about, default=float))
    return write_archive(path, "match", arrays)


def load_match(path: str | os.PathLike[str]) -> Match:
    """Read a match that `Match.save` wrote; see `frot.load`.

    Its arrays are NumPy's, whatever device it was made on.
    """
    return load(path, "match")


def rebuilt(arrays: dict[str, np.ndarray]) -> Match:
    """Make the match that `save_match` took apart."""
    about = json.loads(str(arrays["about"]))
    grids = [Grid(**grid) for grid in about["grids"]]
    scores, plan = arrays["scores"], arrays.get("plan")
    known = {name.partition("_")[2]: x for name, x in arrays.items() if name[:7] == "result_"}
    result = result_file.rebuilt(known, Plan(plan, copy=False)) if known else None
    photos = [
        Photo(_unpacked(arrays[side]), name)
        for side, name in zip(("source", "target"), about["names"], strict=True)
    ]
    ratios, (mode, radius, blank) = about["ratios"], about["transfer"]
    turned = None if about.get("turned") is None else np.array(about["turned"])
    rigid = about.get("rigidity")
    if rigid is None:
        # The first files have none, and are not to be read as if nothing agreed.
        rigid = rigidity(scores, grids[0], grids[1], Home.of(scores), turned)
    return Match(
        photos[0], photos[1], grids[0], grids[1], ratios[0], ratios[1], arrays["a"], arrays["b"],
        about["alpha"], about["phi"], about["prior"], result, about["method"], about["seconds"],
        arrays.get("source_cam"), arrays.get("target_cam"),
        Transferring(scores, grids[0], grids[1], Home.of(scores), mode, radius, blank, turned),
        plan, about.get("agreement", 0.0), _pose(about.get("pose")), rigid,
        about.get("reflected", False),
    )  # fmt: skip


def _pose(known: dict[str, Any] | None) -> Pose:
    # The first files have none.
    return Pose() if known is None else Pose(**{**known, "turn": Turn(**known["turn"])})


def _packed(pixels: np.ndarray) -> np.ndarray:
    """Pixels as the whole numbers that they were read from, where they are such."""
    for kind in (np.uint8, np.uint16):
        whole = np.rint(pixels * np.float32(np.iinfo(kind).max)).astype(kind)
        if np.array_equal(_unpacked(whole), pixels):
            return whole
    return pixels


def _unpacked(stored: np.ndarray) -> np.ndarray:
    if stored.dtype.kind != "u":
        return stored
    return stored.astype(np.float32) / np.float32(np.iinfo(stored.dtype).max)
