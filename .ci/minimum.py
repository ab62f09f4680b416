"""Print the lower bounds of pyproject.toml as constraints: ``python .ci/minimum.py [EXTRA...]``.

Of the package itself, of the extras that are named, and of those that these name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def bounds(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield name and lower bound of requirements, through extras of frot's own."""
    for requirement in map(Requirement, lines):
        if requirement.name == "frot":
            for extra in requirement.extras:
                yield from bounds(PROJECT["optional-dependencies"][extra])
        elif requirement.marker is None or requirement.marker.evaluate():
            bound = next(part for part in requirement.specifier if part.operator == ">=")
            yield requirement.name, bound.version


def main(extras: list[str]) -> None:
    """Print one line a package."""
    wanted = [*PROJECT["dependencies"], *(f"frot[{extra}]" for extra in extras)]
    for name, version in sorted(set(bounds(wanted))):
        print(f"{name}=={version}")


if __name__ == "__main__":
    main(sys.argv[1:])
