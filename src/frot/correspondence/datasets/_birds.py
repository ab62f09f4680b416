"""Birds: 80 photographs of eight species, up to 15 parts each, 240 pairs within species."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from frot._base.errors import InputError
from frot.correspondence.datasets._source import Source
from frot.correspondence.datasets.annotation import (
    BrokenAnnotationError,
    longer_side,
    matched_points,
)
from frot.correspondence.datasets.pair_set import Pair

__all__ = ["Birds"]

LIST = "pairs.json"


class Birds(Source):
    """A selection of Caltech-UCSD Birds: pairs.json, and photographs beside it.

    The file has ``images`` (``species``, ``box`` as x, y, w, h, and ``parts``, each with x and y)
    and ``pairs`` of names of images. Points of a pair are the parts that both photographs have.
    """

    name = "Birds"
    folders = ("birds",)
    expected = f"{LIST} and the photographs that it names"
    address = "https://www.vision.caltech.edu/datasets/cub_200_2011/"
    counts = MappingProxyType({"test": 240})
    protocol = "Birds: a point is right within t times the longer side of the target's box"

    def is_it(self, folder: Path) -> bool:
        """Return whether a folder has the list."""
        return (folder / LIST).is_file()

    def parts(self, folder: Path, split: str) -> Sequence[str]:
        """The list."""
        return (LIST,)

    def absent(self, folder: Path, split: str) -> Iterator[Path]:
        """Yield photographs that are not there."""
        images = _content(folder)["images"]
        return (folder / name for name in images if not (folder / name).is_file())

    def tasks(self, folder: Path, split: str) -> Iterator[tuple[str, Callable[[], Pair]]]:
        """One per pair of the list."""
        content = _content(folder)
        for number, pair in enumerate(content["pairs"]):
            yield f"pair {number} of {LIST}", partial(_read, folder, content["images"], pair)

    def classes(self, folder: Path, split: str) -> Iterable[str]:
        """All species of the list."""
        return (_species(image) for image in _content(folder)["images"].values())


def _content(folder: Path) -> dict[str, Any]:
    path = folder / LIST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if all(isinstance(content[part], kind) for part, kind in _PARTS.items()):
            return content
    except (ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{path} is no JSON object with images and pairs; get it anew")


_PARTS = {"images": dict, "pairs": list}


def _species(image: Any) -> str:
    """Return "Gray Kingbird" for "078.Gray_Kingbird"."""
    return str(image["species"]).rpartition(".")[2].replace("_", " ")


def _read(folder: Path, images: dict[str, Any], pair: Any) -> Pair:
    try:
        first, second = pair
        source, target = images[first], images[second]
        common = [part for part in source["parts"] if part in target["parts"]]
        x, y, w, h = target["box"]
        ours, theirs = matched_points(
            [source["parts"][part] for part in common],
            [target["parts"][part] for part in common],
            folder / first,
            folder / second,
        )
        name = f"{Path(first).stem}-{Path(second).stem}"
        length = longer_side((x, y, x + w, y + h))
        return Pair(name, folder / first, folder / second, ours, theirs, _species(source), length)
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenAnnotationError(f"its annotation is incomplete: {error!r}") from None
