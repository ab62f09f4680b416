"""Tiny data sets in the public layouts: drawn photographs, moved by maps that are known."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

# The target is the source turned, scaled and shifted: q = MATRIX p + SHIFT.
MATRIX = np.array([[0.9, -0.15], [0.15, 0.9]])
SHIFT = np.array([8.0, -2.0])
WIDTH, HEIGHT = 64, 48


def move(points: np.ndarray, times: int = 1) -> np.ndarray:
    """Where points of a photograph are in the one that is `times` maps further."""
    for _ in range(times):
        points = points @ MATRIX.T + SHIFT
    return points


def draw(path: Path, times: int = 0, seed: int = 0) -> None:
    """Draw a photograph of coloured waves, as it is after so many maps."""
    path.parent.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    places = np.stack([x.ravel(), y.ravel()], axis=1).astype(float)
    for _ in range(times):
        places = (places - SHIFT) @ np.linalg.inv(MATRIX).T
    rng = np.random.default_rng(seed)
    waves = np.sin(places @ rng.normal(0.0, 0.25, (2, 9)) + rng.uniform(0.0, 6.0, 9))
    pixels = waves.reshape(HEIGHT, WIDTH, 3, 3).sum(axis=3) / 3.0
    Image.fromarray((127.5 + 127.0 * pixels).astype(np.uint8)).save(path)


def points(count: int, seed: int = 0) -> np.ndarray:
    """Points that stay in the photograph under two maps."""
    rng = np.random.default_rng(seed)
    return np.round(rng.uniform([14, 12], [38, 32], (count, 2)), 3)


@dataclass(frozen=True)
class Warp:
    """A matcher that knows the truth, but for a shift by so many pixels."""

    off: float = 0.0
    fingerprint: str = "warp"

    def __call__(self, source: Any, target: Any) -> Warped:
        def number(path: Any) -> int:
            return int(Path(path).stem[-1])

        return Warped(number(target) - number(source), self.off)


@dataclass(frozen=True)
class Warped:
    times: int
    off: float
    alpha = {"first": 0.25, "last": 0.75}  # noqa: RUF012
    result = None

    def transfer(self, where: Any) -> Transfer:
        where = np.asarray(where, dtype=float)
        for _ in range(-self.times):
            where = (where - SHIFT) @ np.linalg.inv(MATRIX).T
        return Transfer(move(where, self.times) + np.array([self.off, 0.0]))


@dataclass(frozen=True)
class Transfer:
    points: np.ndarray


def pf_willow(
    root: Path, classes: tuple[str, ...] = ("car(G)", "duck(S)"), photos: int = 3
) -> Path:
    """The raw release: folders of .png and .mat."""
    from scipy.io import savemat

    for seed, name in enumerate(classes):
        for times in range(photos):
            path = root / name / f"photo_{times}.png"
            draw(path, times, seed)
            # MATLAB counts from one.
            where = move(points(10, seed), times).T + 1.0
            savemat(path.with_suffix(".mat"), {"pts_coord": where})
    return root


def pf_willow_list(root: Path) -> Path:
    """The layout with a list of pairs."""
    raw = pf_willow(root / "PF-dataset-WILLOW", ("car(G)",))
    rows = []
    for i, j in ((0, 1), (1, 2)):
        names = [f"PF-dataset/car(G)/photo_{k}.png" for k in (i, j)]
        both = [move(points(10), k) + 1.0 for k in (i, j)]
        rows.append([*names, *(value for some in both for value in some.T.ravel())])
    heading = [
        "imageA",
        "imageB",
        *(f"{a}{i}" for a in ("XA", "YA", "XB", "YB") for i in range(10)),
    ]
    write_rows(root / "test_pairs.csv", [heading, *rows])
    assert raw.is_dir()
    return root


def spair(root: Path, pairs: int = 3) -> Path:
    """SPair-71k."""
    lines = []
    for number in range(pairs):
        category = ("cat", "tvmonitor")[number % 2]
        seed = number % 2
        names = [f"2008_00000{k}" for k in (0, 1)]
        for times, name in enumerate(names):
            draw(root / "JPEGImages" / category / f"{name}.jpg", times, seed)
        first = points(3 + number, number)
        line = f"{number:06d}-{names[0]}-{names[1]}:{category}"
        annotation = {
            "pair_id": number,
            "filename": line,
            "src_imname": f"{names[0]}.jpg",
            "trg_imname": f"{names[1]}.jpg",
            "src_imsize": [WIDTH, HEIGHT, 3],
            "trg_imsize": [WIDTH, HEIGHT, 3],
            "src_bndbox": [10, 8, 40, 40],
            "trg_bndbox": [12, 6, 52, 36],
            "category": category,
            "src_kps": first.tolist(),
            "trg_kps": move(first).tolist(),
            "kps_ids": [str(i) for i in range(len(first))],
            "viewpoint_variation": number % 3,
            "scale_variation": 0,
            "truncation": 1,
            "occlusion": 0,
        }
        path = root / "PairAnnotation" / "test" / f"{line.replace(':', '_')}.json"
        path = path if number % 2 else path.with_name(f"{line}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(annotation))
        lines.append(line)
    layout = root / "Layout" / "large"
    layout.mkdir(parents=True)
    (layout / "test.txt").write_text("\n".join(lines) + "\n")
    return root


def pf_pascal(root: Path) -> Path:
    """PF-PASCAL."""
    from scipy.io import savemat

    for times in (0, 1):
        draw(root / "JPEGImages" / f"2008_00000{times}.jpg", times)
        where = move(points(6), times) + 1.0
        # What is not seen in a photograph has no place there.
        where[times] = np.nan
        path = root / "Annotations" / "cat" / f"2008_00000{times}.mat"
        path.parent.mkdir(parents=True, exist_ok=True)
        savemat(path, {"kps": where, "bbox": [[5.0, 5.0, 50.0, 40.0]]})
    names = [f"PF-PASCAL/JPEGImages/2008_00000{times}.jpg" for times in (0, 1)]
    write_rows(root / "test_pairs.csv", [["source_image", "target_image", "class"], [*names, 8]])
    heading = ["source_image", "target_image", "class", "flip"]
    rows = [heading, [*names, 8, 0], [*names, 8, 1]]
    write_rows(root / "trn_pairs.csv", rows)
    return root


def caltech(root: Path) -> Path:
    """Caltech-101 with outlines."""
    outline = np.array([[16.0, 14.0], [36.0, 14.0], [36.0, 30.0], [26.0, 34.0], [16.0, 30.0]])
    for times in (0, 1):
        draw(root / "101_ObjectCategories" / "anchor" / f"image_000{times}.jpg", times)
    names = [f"Caltech-101/101_ObjectCategories/anchor/image_000{times}.jpg" for times in (0, 1)]

    def text(values: np.ndarray) -> str:
        return ",".join(f"{value:.4f}" for value in values)

    # One corner more in the target: outlines need not match.
    moved = move(outline)
    theirs = np.concatenate([moved, (moved[:1] + moved[-1:]) / 2])
    row = [*names, 3, text(outline[:, 0]), text(outline[:, 1])]
    row += [text(theirs[:, 0]), text(theirs[:, 1])]
    heading = ["source_image", "target_image", "class", "XA", "YA", "XB", "YB"]
    write_rows(root / "test_pairs_caltech_with_category.csv", [heading, row])
    return root


def birds(root: Path, photos: int = 3) -> Path:
    """Parts of two species by number; not every photograph has every part."""
    images, pairs = {}, []
    for seed, species in enumerate(("078.Gray_Kingbird", "197.Marsh_Wren")):
        names = [f"0{seed}{times}.jpg" for times in range(photos)]
        for times, name in enumerate(names):
            draw(root / name, times, seed)
            where = move(points(6, seed), times).tolist()
            parts = {str(k): place for k, place in enumerate(where, 1) if k != times + 1}
            images[name] = {"species": species, "box": [12, 6, 40, 30], "parts": parts}
        pairs += [[one, other] for one in names for other in names if one != other]
    content = {"parts": {}, "images": images, "pairs": pairs}
    (root / "pairs.json").write_text(json.dumps(content))
    return root


def write_rows(path: Path, rows: list[list[Any]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
