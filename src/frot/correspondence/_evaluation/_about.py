"""What a store was begun for, and whether it is the same work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from frot._errors import InputError
from frot._fingerprint import fingerprint
from frot.correspondence._datasets import PairSet
from frot.correspondence._evaluation._store import Store

__all__ = ["check_same", "describe"]


def describe(pairs: PairSet, matcher: Any) -> dict[str, Any]:
    """Return data set, matcher and rules, as JSON can hold them."""
    from frot import __version__

    known = getattr(matcher, "fingerprint", None)
    return {
        "data set": pairs.name,
        "pairs": pairs.fingerprint,
        "matcher": known if isinstance(known, str) else fingerprint(matcher=matcher),
        "settings": _settings(matcher),
        "protocol": pairs.protocol,
        "score": pairs.score,
        "skipped": list(pairs.skipped),
        "notes": list(pairs.notes),
        "version": __version__,
    }


def _settings(matcher: Any) -> dict[str, str]:
    """What a matcher says of itself, in words, for tables and for messages."""
    named = getattr(matcher, "settings", matcher)
    if is_dataclass(named):
        named = {one.name: getattr(named, one.name) for one in fields(named)}
    if not isinstance(named, Mapping):
        named = {"matcher": getattr(matcher, "__qualname__", type(matcher).__qualname__)}
    if (backbone := getattr(matcher, "backbone", None)) is not None:
        layers = getattr(backbone, "layers", ())
        known = {"backbone": getattr(backbone, "name", backbone), "layers": len(layers)}
        named = {**named, **known}
    return {str(name): str(value) for name, value in named.items()}


def check_same(store: Store, about: Mapping[str, Any]) -> None:
    """Refuse to go on with other work, and say what is other about it."""
    was = store.about
    if was["data set"] != about["data set"]:
        difference = f"is of {was['data set']}, not of {about['data set']}"
    elif was["pairs"] != about["pairs"]:
        difference = f"is of other pairs, points or photographs of {about['data set']}"
    elif was["matcher"] != about["matcher"]:
        names = dict.fromkeys([*was["settings"], *about["settings"]])
        changed = [
            f"{name} was {was['settings'].get(name)} and is {about['settings'].get(name)}"
            for name in names
            if was["settings"].get(name) != about["settings"].get(name)
        ]
        what = "; ".join(changed) or "its fingerprint has changed"
        difference = f"was begun with another matcher: {what}"
    else:
        return
    raise InputError(f"store: {store.path} {difference}; give another path")
