"""Identity of a torch module: a hash of its code and weights, on any device, in any process."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from frot._base.errors import InputError
from frot._base.fingerprint import fingerprint

# Values of each tensor that are looked at for changes that its counter does not see.
_SAMPLES = 8
# Classes that do what their text says: theirs is torch's code, or this library's.
_PLAIN = tuple(
    f"torch.nn.modules.{part}"
    for part in (
        *("activation", "batchnorm", "container", "conv", "dropout", "flatten", "linear"),
        *("normalization", "padding", "pooling", "upsampling"),
    )
)
_OWN = frozenset(vars(torch.nn.Module()))


def weights_digest(module: Any) -> str:
    """Return a hash of every weight, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for key, value in sorted(module.state_dict().items()):
        digest.update(f"{key} {tuple(value.shape)} {value.dtype}".encode())
        digest.update(_bytes(value))
    return digest.hexdigest()


class Weights:
    """The weights of a module, looked at again and again for changes.

    Examples
    --------
    >>> layer = torch.nn.Linear(3, 2)
    >>> weights = Weights(layer)
    >>> before = weights.state
    >>> before == weights.state
    True
    >>> layer.weight.data.mul_(0.5).shape, before == weights.state
    (torch.Size([2, 3]), False)
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        # Where the tensors were and what they had been, its hash, and views of some values.
        self._known: list[Any] | None = None
        self._hash, self._samples = "", dict[Any, list[torch.Tensor]]()

    @property
    def state(self) -> str:
        """A key, in a millisecond, that is another after the weights have changed.

        It holds in this process alone: where the tensors lie, how often each was written to, and
        a few of its values, because what is written through ``.data`` is not counted.
        """
        tensors = list(_weights(self._module))
        parts = [(value.data_ptr(), _version(value), tuple(value.shape)) for value in tensors]
        with torch.no_grad():
            if parts != self._known:
                self._known, self._samples = parts, _samples(tensors)
                self._hash = repr(parts)
            digest = hashlib.sha256(self._hash.encode())
            # One copy from each device: every one of them waits for it.
            for (_, kind), some in self._samples.items():
                digest.update(f"{kind}".encode())
                digest.update(_bytes(torch.cat(some)))
        return digest.hexdigest()

    @property
    def places(self) -> tuple[int, ...]:
        """Where the tensors of the module lie, those that are left out of files included."""
        return tuple(
            value.data_ptr()
            for part in parts_of(self._module)
            for tensors in (part._parameters, part._buffers)
            for value in tensors.values()
            if value is not None
        )

    def __reduce__(self) -> tuple[type[Weights], tuple[Any]]:
        # The same weights lie elsewhere in another process.
        return Weights, (self._module,)


def _samples(tensors: Sequence[torch.Tensor]) -> dict[Any, list[torch.Tensor]]:
    """Views of a few values of tensors, by device and kind."""
    found: dict[Any, list[torch.Tensor]] = {}
    for value in tensors:
        if value.numel() and value.device.type != "meta" and value.layout is torch.strided:
            # Without copying what does not lie in one piece.
            flat = value.detach().as_strided((_extent(value),), (1,))
            some = flat[:: max(1, flat.shape[0] // _SAMPLES)]
            found.setdefault((value.device, value.dtype), []).append(some)
    return found


def parts_of(module: Any) -> list[Any]:
    """Return a module and all its parts, each once; torch's own walk takes ten times as long."""
    found, left = {id(module): module}, [module]
    while left:
        for part in left.pop()._modules.values():
            if part is not None and id(part) not in found:
                found[id(part)] = part
                left.append(part)
    return list(found.values())


def code_digest(module: Any) -> str | None:
    """Return a hash of the code of a module and its parts, and of what they have beside weights.

    None where the module's text says it all: layers of torch's, and networks of this library's,
    whose fingerprint is then the same in every version of Python.
    """
    parts = []
    for name, part in module.named_modules():
        kind, own = type(part), vars(part)
        if not _is_plain(kind) or "forward" in own:
            known: set[int] = set()
            beside = {key: own[key] for key in sorted(own) if key not in _OWN}
            parts.append((name, _name(kind), _as_text(beside, known)))
    kinds = [type(part) for part in module.modules() if not _is_plain(type(part))]
    code = [
        (_name(owner), key, _as_text(value, set()))
        for owner in dict.fromkeys(one for kind in kinds for one in _written(kind))
        for key, value in sorted(vars(owner).items())
        if not key.startswith("__") or key == "__call__"
    ]
    return fingerprint(parts=parts, code=code) if parts else None


def _weights(module: Any) -> Iterator[torch.Tensor]:
    """Parameters and buffers; not those that are left out of files, which are often made anew."""
    for part in parts_of(module):
        yield from (value for value in part._parameters.values() if value is not None)
        for name, value in part._buffers.items():
            if value is not None and name not in part._non_persistent_buffers_set:
                yield value


def _version(value: torch.Tensor) -> int | str:
    try:
        return value._version
    except RuntimeError:
        # Tensors made in inference mode do not count.
        return hashlib.sha256(_bytes(value)).hexdigest()


def _extent(value: torch.Tensor) -> int:
    """Numbers from the first to the last in memory."""
    return 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))


def _bytes(value: torch.Tensor) -> bytes:
    raw = value.detach().cpu().contiguous()
    return raw.reshape(-1).view(torch.uint8).numpy().tobytes()


def _is_plain(kind: type) -> bool:
    if kind.__module__.split(".")[0] == "frot":
        return True
    # The text of attention does not say into how many heads it is cut.
    return kind.__module__ in _PLAIN and kind is not torch.nn.MultiheadAttention


def _written(kind: type) -> list[type]:
    """The classes that a module's class is made of, except torch's."""
    return [one for one in kind.__mro__ if one is not object and not _of_torch(one)]


def _of_torch(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).split(".")[0] == "torch"


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _as_text(value: Any, known: set[int]) -> Any:
    """Return a value as text, numbers and lists of those, the same in every session."""
    if isinstance(value, staticmethod | classmethod | MethodType):
        return _as_text(value.__func__, known)
    if isinstance(value, property):
        return _as_text(value.fget, known)
    if isinstance(value, partial):
        return ["partial", _as_text([value.func, value.args, value.keywords], known)]
    if isinstance(value, FunctionType):
        return _function(value, known)
    if isinstance(value, torch.nn.Module | ModuleType):
        return f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, torch.Tensor):
        return "tensor" if value.device.type == "meta" else _bytes(value)
    if isinstance(value, list | tuple | Mapping):
        if id(value) in known:
            return "again"
        parts = [list(pair) for pair in value.items()] if isinstance(value, Mapping) else value
        # Only inside itself: the next one may lie where this one was.
        known.add(id(value))
        said = [_as_text(part, known) for part in parts]
        known.discard(id(value))
        return said
    try:
        return fingerprint(value=value)
    except InputError:
        shown = repr(value)
        # Some texts hold addresses, which are others in every session.
        return _name(type(value)) if " at 0x" in shown else shown


def _function(value: FunctionType, known: set[int]) -> Any:
    if id(value) in known or _of_torch(value):
        return _name(value)
    known.add(id(value))
    cells = []
    for cell in value.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:
            # Not filled yet.
            continue
    inside = [cell for cell in cells if not isinstance(cell, type)]
    # Functions and numbers of the same file that it uses by name.
    used = [(name, value.__globals__[name]) for name in _names(value.__code__)
            if name in value.__globals__]  # fmt: skip
    near = [
        (name, one)
        for name, one in used
        if isinstance(one, bool | int | float | str)
        or (isinstance(one, FunctionType) and one.__module__ == value.__module__)
    ]
    about = [value.__defaults__, value.__kwdefaults__, inside, near]
    return [_name(value), fingerprint(code=value.__code__), _as_text(about, known)]


def _names(code: CodeType) -> list[str]:
    nested = [name for one in code.co_consts if isinstance(one, CodeType) for name in _names(one)]
    return sorted({*code.co_names, *nested})


def placed(module: Any, device: Any) -> Any:
    """Return a module on a device: itself if it is there, otherwise a copy."""
    if device is None:
        return module
    try:
        device = torch.device(device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device is {device}: {str(error).splitlines()[0]}") from None
    if all(p.device == device for p in (*module.parameters(), *module.buffers())):
        return module
    return copy.deepcopy(module).to(device)


def without_local_hooks(module: Any) -> Any:
    """Return a module that can be sent to another process.

    Hooks that others left, which only look at what passes, are often functions inside functions,
    which cannot be sent; they are dropped from a copy.
    """
    if not any(_local_hooks(part) for part in module.modules()):
        return module
    module = copy.deepcopy(module)
    for part in module.modules():
        for hooks, key in _local_hooks(part):
            del hooks[key]
    return module


def _local_hooks(part: Any) -> list[tuple[Any, int]]:
    return [
        (hooks, key)
        for hooks in (part._forward_hooks, part._forward_pre_hooks)
        for key, hook in hooks.items()
        if "<locals>" in getattr(hook, "__qualname__", "")
    ]
