"""A match in a file, with everything that its methods need."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot._base.errors import InputError
from frot._base.files import check_path, check_writable, replacing
from frot.correspondence._features import Grid
from frot.correspondence._photo import Photo
from frot.correspondence.match import Match
from frot.correspondence.poses import Pose, Turn
from frot.correspondence.transfer import Transferring
from frot.plans.plan import Plan
from frot.problem.result import Progress, Result
from frot.problem.status import Status

__all__ = ["load_match", "save_match"]

FORMAT = "frot match 1"
_NUMBERS = ("value", "lower", "upper", "mean_cost", "solver", "iterations", "time", "eta", "eps")


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
    path = check_path(path)
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path} must end in .npz")
    check_writable(path)
    read, result = match.transferring, match.result
    about: dict[str, Any] = {
        "format": FORMAT,
        "names": [match.source.name, match.target.name],
        "grids": [asdict(match.source_grid), asdict(match.target_grid)],
        "ratios": [match.source_ratio, match.target_ratio],
        "transfer": [read.mode, read.radius, read.blank],
        "turned": None if read.turned is None else read.turned.tolist(),
        **{name: getattr(match, name) for name in ("alpha", "phi", "prior", "method", "seconds")},
        "agreement": match.agreement,
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
        about["result"] = {name: getattr(result, name) for name in _NUMBERS}
        about["result"] |= {"status": result.status.name, "plain": result.plain}
        about["result"] |= {"names": result.names}
        f, g = result.potentials
        arrays |= {"f": to_numpy(f), "g": to_numpy(g)}
        arrays |= {"alpha": to_numpy(result.alpha), "phi": to_numpy(result.phi)}
        arrays["history"] = np.array([astuple(one) for one in result.history]).reshape(-1, 5)
    arrays["about"] = np.array(json.dumps(about, default=float))
    with replacing(path) as draft:
        np.savez(draft, **{name: x for name, x in arrays.items() if x is not None})
    return path


def load_match(path: str | os.PathLike[str]) -> Match:
    """Read a match that `Match.save` wrote.

    Its arrays are NumPy's, whatever device it was made on.
    """
    path = check_path(path)
    if not path.is_file():
        raise InputError(f"{path} does not exist; give a file that Match.save wrote")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        about = json.loads(str(arrays["about"]))
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']!r}")
        return _rebuilt(about, arrays)
    except MemoryError:
        raise
    except Exception as error:
        # Damaged files make the decoders of zip, NumPy and JSON raise almost anything.
        raise InputError(f"{path} is no match that can be read: {error}") from None


def _rebuilt(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Match:
    grids = [Grid(**grid) for grid in about["grids"]]
    scores, plan = arrays["scores"], arrays.get("plan")
    result = None
    if "result" in about:
        known = about["result"]
        result = Result(
            **{name: known[name] for name in _NUMBERS},
            status=Status[known["status"]],
            alpha=arrays["alpha"],
            phi=arrays["phi"],
            plan=Plan(plan, copy=False),
            potentials=(arrays["f"], arrays["g"]),
            names=tuple(known["names"]),
            history=tuple(Progress(int(row[0]), *row[1:].tolist()) for row in arrays["history"]),
            plain=None if known["plain"] is None else tuple(known["plain"]),
        )
    photos = [
        Photo(_unpacked(arrays[side]), name)
        for side, name in zip(("source", "target"), about["names"], strict=True)
    ]
    ratios, (mode, radius, blank) = about["ratios"], about["transfer"]
    turned = None if about.get("turned") is None else np.array(about["turned"])
    return Match(
        photos[0], photos[1], grids[0], grids[1], ratios[0], ratios[1], arrays["a"], arrays["b"],
        about["alpha"], about["phi"], about["prior"], result, about["method"], about["seconds"],
        arrays.get("source_cam"), arrays.get("target_cam"),
        Transferring(scores, grids[0], grids[1], Home.of(scores), mode, radius, blank, turned),
        plan, about.get("agreement", 0.0), _pose(about.get("pose")),
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
