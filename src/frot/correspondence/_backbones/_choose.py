"""Which layers of a network are taken, by name or by number."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from frot._errors import InputError

__all__ = ["choose_layers"]


def choose_layers(
    available: Sequence[str], asked: Sequence[str | int] | None, network: str
) -> tuple[str, ...]:
    """Return the names of the layers asked for, in the order of the network.

    Parameters
    ----------
    available : sequence of str
        Every layer of the network, in its order.
    asked : sequence of str or int, optional
        Names, or places counted from 0; None takes all.
    network : str
        Name of the network, for messages.

    Examples
    --------
    >>> choose_layers(["stem", "layer1.0", "layer1.1"], ["layer1.1", 0], "resnet50")
    ('stem', 'layer1.1')
    """
    if asked is None:
        return tuple(available)
    if isinstance(asked, str | int):
        asked = [asked]
    wanted: set[str] = set()
    for layer in asked:
        if isinstance(layer, str):
            if layer not in available:
                near = difflib.get_close_matches(layer, available, n=3, cutoff=0.0)
                raise InputError(
                    f"layers names {layer!r}, which {network} does not have; nearest: "
                    + ", ".join(near)
                )
            wanted.add(layer)
        elif isinstance(layer, bool) or not 0 <= int(layer) < len(available):
            raise InputError(
                f"layers holds {layer!r}, but {network} has layers 0 to {len(available) - 1}"
            )
        else:
            wanted.add(available[int(layer)])
    if not wanted:
        raise InputError("layers is empty; name at least one, or leave it out to take all")
    return tuple(name for name in available if name in wanted)
