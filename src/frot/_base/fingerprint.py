"""A hash of data and options: the same in every session, different for different work."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from frot._base.errors import InputError


def fingerprint(**parts: Any) -> str:
    """Return 64 hexadecimal digits that depend on every part, by name and value.

    Parameters
    ----------
    **parts :
        Arrays, numbers, text, None, lists, mappings, dataclasses and functions of those. A
        function is known by its name, its code, its defaults and the variables it encloses, not
        by the globals it reads.

    Raises
    ------
    InputError
        If a part holds an object that looks different in every session.
    """
    digest = hashlib.sha256()
    for name in sorted(parts):
        try:
            for piece in _pieces((name, parts[name])):
                # With their lengths, pieces cannot run into one another.
                digest.update(len(piece).to_bytes(8, "little"))
                digest.update(piece)
        except _UnknownError as unknown:
            raise InputError(
                f"{name}: {unknown.value!r} cannot be recognised in another session, which a "
                "checkpoint needs; pass a plain function or a dataclass, or no checkpoint"
            ) from None
    return digest.hexdigest()


class _UnknownError(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


def _pieces(value: Any) -> Iterable[bytes | memoryview]:
    """Take a value apart into bytes, each kind with a mark of its own."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex | str):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, bytes):
        yield from (b"bytes", value)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"array {value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    elif isinstance(value, list | tuple):
        yield f"list {len(value)}".encode()
        for part in value:
            yield from _pieces(part)
    elif isinstance(value, set | frozenset):
        yield b"set"
        yield from _pieces(sorted(map(repr, value)))
    elif isinstance(value, Mapping):
        yield b"mapping"
        yield from _pieces(list(value.items()))
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"dataclass {_name(type(value))}".encode()
        for field in fields(value):
            yield from _pieces((field.name, getattr(value, field.name)))
    else:
        yield from _pieces_of_callable(value)


def _pieces_of_callable(value: Any) -> Iterable[bytes | memoryview]:
    if isinstance(value, partial):
        yield b"partial"
        yield from _pieces((value.func, value.args, value.keywords))
    elif isinstance(value, MethodType):
        yield b"method"
        yield from _pieces((value.__func__, value.__self__))
    elif isinstance(value, FunctionType):
        yield f"function {_name(value)}".encode()
        enclosed = [cell.cell_contents for cell in value.__closure__ or ()]
        # A function that refers to itself by closure would never end.
        others = [cell for cell in enclosed if cell is not value]
        yield from _pieces((value.__code__, value.__defaults__, value.__kwdefaults__, others))
    elif isinstance(value, CodeType):
        yield from _pieces((value.co_code, value.co_consts, value.co_names))
    elif callable(value) and hasattr(value, "__qualname__"):
        yield f"builtin {_name(value)}".encode()
    elif value is Ellipsis:
        yield b"ellipsis"
    else:
        raise _UnknownError(value)


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', None)}.{value.__qualname__}"
