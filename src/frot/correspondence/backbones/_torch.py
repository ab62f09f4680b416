"""`TorchBackbone`: a torch module whose layers are read while it runs."""

from __future__ import annotations

import copy
import hashlib
import inspect
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError, require
from frot._base.fingerprint import fingerprint
from frot._base.validate import second_names
from frot.correspondence._features import FeatureMap, refuse_classes, top_maps
from frot.correspondence.backbones._preprocess import preprocessing
from frot.correspondence.backbones._readings import PROBES, Reading, layout_of, noise
from frot.correspondence.backbones.wrappers import choose_layers, warn_of_few

if TYPE_CHECKING:
    from frot.correspondence.backbones._cuda_graphs import ModuleOutputs
    from frot.correspondence.backbones._watch import Found, Watch

# Hooks belong to the module, so two threads must not run one module at the same time.
_ONE_AT_A_TIME = threading.Lock()


class TorchBackbone:
    """A torch module whose layers are read while it runs.

    By default the layers are the module's own outputs, where it returns several maps or says that
    its outputs are features (``timm.create_model(..., features_only=True)``, torchvision's
    ``create_feature_extractor``, backbones of transformers with ``out_features``). Otherwise they
    are the stem after its max-pool and the blocks: every residual sum, copied before an activation
    overwrites it, and the outputs of parts of the same kind that add nothing. Where there are no
    sums, they are the convolutions, each after its normalisation.

    A layer is named after a part of the module, as in ``module.named_modules()``. Where that part
    adds a residual, its map is the sum; elsewhere, or with ``:output`` behind the name, it is what
    the part returns. Tokens become grids, and those that belong to no cell are dropped.

    The module is run in evaluation mode without gradients, and is left as it was found.

    Parameters
    ----------
    module : torch.nn.Module
        Takes a batch of images (1, 3, h, w).
    layers : sequence of str or int, or mapping of str to str, optional
        Names of parts or places in the default list; a mapping gives each part a name of its own.
    mean, std, scale, colour :
        The input is (scale x - mean) / std; ImageNet's mean and standard deviation by default.
    device : str or torch.device, optional
        Where to run; a module that is elsewhere is copied there.
    name : str, optional
        By default the name of the module's class.
    call : dict, optional
        More arguments of the module's forward pass.

    Examples
    --------
    >>> import torch
    >>> network = torch.nn.Sequential(
    ...     torch.nn.Conv2d(3, 4, 3, stride=2, padding=1), torch.nn.ReLU(inplace=True)
    ... )
    >>> (map,) = TorchBackbone(network).extract(np.zeros((32, 48, 3), dtype="float32"))
    >>> map.name, map.values.shape, map.stride, map.receptive_field
    ('0', (4, 16, 24), 2, 3)
    """

    @second_names
    def __init__(
        self,
        module: Any,
        layers: Sequence[str | int] | Mapping[str, str] | None = None,
        *,
        mean: Sequence[float] | float | None = None,
        std: Sequence[float] | float | None = None,
        scale: float = 1.0,
        colour: str = "RGB",
        device: Any = None,
        name: str | None = None,
        call: Mapping[str, Any] | None = None,
    ) -> None:
        torch = require("torch", "correspondence")
        from frot.correspondence.backbones._cuda_graphs import CudaGraphs

        if not isinstance(module, torch.nn.Module):
            raise InputError(f"module is a {type(module).__name__}; give a torch.nn.Module")
        scripted = torch.jit.ScriptModule
        if compiled := [n for n, p in module.named_modules() if isinstance(p, scripted)]:
            raise InputError(
                f"module: {repr(compiled[0]) if compiled[0] else 'it'} is compiled by TorchScript, "
                "which cannot be watched at work; give the module that it was made from, or export "
                "that to an ONNX file"
            )
        self._prepare = preprocessing(colour, mean, std, scale)
        self.name = name or type(module).__name__
        self._module: Any = module
        self._call, self._graphs = dict(call or {}), CudaGraphs()
        # Under the state of the weights that it is of.
        self._hash: tuple[str, str] | None = None
        with _ONE_AT_A_TIME:
            probe = self._probe()
        self._readings = self._choose([layers] if isinstance(layers, str | int) else layers, probe)
        self._head = _find_head(probe.watch)
        self._module = _placed(module, device)
        self.layers: tuple[str, ...] = tuple(self._readings)

    @property
    def fingerprint(self) -> str:
        """A hash of the weights, the structure, the layers and the preprocessing.

        It is taken anew after the weights have changed.
        """
        state = self.state
        if self._hash is None or self._hash[0] != state:
            kind = type(self._module)
            found = fingerprint(
                weights=_weights_digest(self._module),
                structure=[kind.__module__, kind.__qualname__, repr(self._module)],
                layers=[(name, repr(one)) for name, one in self._readings.items()],
                prepare=self._prepare,
                call=self._call,
            )
            self._hash = (state, found)
        return self._hash[1]

    @property
    def strides(self) -> dict[str, float]:
        """Pixels between the cells of each layer."""
        return {name: float(one.stride) for name, one in self._readings.items()}

    @property
    def patch(self) -> int | None:
        """Side of the patches of a vision transformer, in pixels; None for other networks."""
        strides = {one.stride for one in self._readings.values()}
        patches = all(one.patches for one in self._readings.values())
        return strides.pop() if patches and len(strides) == 1 else None

    @property
    def state(self) -> str:
        """A cheap key of the weights in this process, another one after they have changed.

        Where they lie and how often each was written to; what is written through ``.data`` is not
        counted.
        """
        return fingerprint(
            weights=[(one.data_ptr(), _version(one)) for one in _weights(self._module)]
        )

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return one map per layer for an image of shape (h, w, 3) in [0, 1]."""
        maps = self.extract_on_device(image)
        return [replace(one, values=one.values.cpu().numpy()) for one in maps]

    def extract_on_device(self, image: np.ndarray) -> list[FeatureMap]:
        """The same with tensors where the module is, each in one piece."""
        found = self._outputs(self._ready(image), self.layers).maps
        return [
            FeatureMap(name, found[name], one.stride, one.field, start=one.start)
            for name, one in self._readings.items()
        ]

    def class_maps(self, image: np.ndarray, classes: int = 1) -> np.ndarray:
        """Return class activation maps of the most probable classes, shape (classes, h, w).

        The classifier is the matrix that the module applies to maps averaged over their cells.
        """
        look = self._outputs(self._ready(image), ())
        if look.head is None:
            raise refuse_classes(self.name)
        maps, weights, scores = (value.float().cpu().numpy() for value in look.head)
        return top_maps(maps, weights, scores.ravel(), classes)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_module": _without_local_hooks(self._module)}

    def __repr__(self) -> str:
        return f"TorchBackbone({self.name}, {len(self.layers)} layers)"

    def _ready(self, image: np.ndarray) -> np.ndarray:
        """The image as the network takes it, filled up to whole patches."""
        ready = self._prepare(image)
        tokens = (one for one in self._readings.values() if one.patches or one.layout == "tokens")
        whole = max((one.stride for one in tokens), default=1)
        sides = [(0, -side % whole) for side in ready.shape[:2]]
        return np.pad(ready, [*sides, (0, 0)], mode="edge") if whole > 1 else ready

    def _choose(
        self, layers: Sequence[str | int] | Mapping[str, str] | None, probe: _Probe
    ) -> dict[str, Reading]:
        """Return how the layers asked for are read, or those that are found."""
        parts = [part for part, _ in self._module.named_modules() if part]
        if isinstance(layers, Mapping):
            choose_layers(parts, [_bare(part) for part in layers.values()], self.name)
            return {name: probe.reading(part, self.name) for name, part in layers.items()}
        found = probe.own_outputs(self._module) or probe.blocks(self._module)
        if layers is None:
            if not found:
                raise InputError(
                    f"{self.name} has no layers of two dimensions, neither residual sums nor "
                    "convolutions; name parts whose outputs are (1, channels, h, w) or tokens"
                )
            if not any(one.kind == "output" for one in found.values()):
                warn_of_few(self.name, len(found), probe.watch.weights)
            return found
        # Places count in the list of found layers, names in everything there is.
        named = [
            layer if isinstance(layer, str) else choose_layers(list(found), [layer], self.name)[0]
            for layer in layers
        ]
        asked = {_bare(layer) if _bare(layer) in parts else layer: layer for layer in named}
        order = (
            parts if set(asked) <= set(parts) else [*found, *(p for p in parts if p not in found)]
        )
        chosen = choose_layers(order, list(asked), self.name)
        return {
            asked[part]: found.get(asked[part]) or probe.reading(asked[part], self.name)
            for part in chosen
        }

    def _probe(self) -> _Probe:
        from frot.correspondence.backbones._watch import Watch

        problem: Exception | None = None
        parts = {part for part, _ in self._module.named_modules()}
        for size in PROBES:
            image = self._tensor(noise(size))
            watch = Watch(image, None)
            try:
                result, outputs = self._run(image, watch, parts)
            except InputError as error:
                problem = problem or error
                continue
            return _Probe(size, watch, outputs, result)
        raise InputError(
            f"{self.name} cannot be run on an image: {problem}; give a module whose forward pass "
            "takes a batch of images alone, of shape (1, 3, h, w)"
        )

    def _outputs(self, ready: np.ndarray, layers: Sequence[str]) -> ModuleOutputs:
        """Run the module on an image, or replay its run, for maps of some layers and the head."""

        def run(image: Any) -> ModuleOutputs:
            return self._look(image, {name: self._readings[name] for name in layers})

        with _ONE_AT_A_TIME:
            return self._graphs(self._module, self._tensor(ready), layers, run)

    def _look(self, image: Any, readings: Mapping[str, Reading]) -> ModuleOutputs:
        from frot.correspondence.backbones._cuda_graphs import ModuleOutputs
        from frot.correspondence.backbones._watch import Watch

        of_kind = {
            kind: {one.key for one in readings.values() if one.kind == kind}
            for kind in ("sum", "part")
        }
        watch = Watch(image, of_kind["sum"])
        result, outputs = self._run(image, watch, of_kind["part"])
        own = _named_outputs(self._module, result)
        known: dict[tuple[str, Any], Any] = {
            **{("sum", one.number): one.value for one in watch.sums},
            **{("pool", one.number): one.value for one in watch.pools},
            **{("part", name): one.value for name, one in outputs.items()},
            **{("output", name): value for name, value in own.items()},
        }
        size = (int(image.shape[2]), int(image.shape[3]))
        maps = {}
        for name, one in readings.items():
            if (one.kind, one.key) not in known:
                raise InputError(f"layers names {name!r}, which {self.name} does not run")
            value = one.as_map(known[one.kind, one.key], size).float()
            # A module's own output may be what it goes on with.
            maps[name] = value.contiguous().clone() if one.kind == "output" else value.contiguous()
        head = None
        if self._head is not None:
            averaged, matrix = self._head
            _, weights, scores, _ = watch.matrices[matrix]
            head = (watch.averaged[averaged].value[0], weights, scores)
        return ModuleOutputs(maps, head)

    def _tensor(self, ready: np.ndarray) -> Any:
        """The batch of one image that the module takes."""
        torch = require("torch", "correspondence")
        example = next((p for p in self._module.parameters() if p.is_floating_point()), None)
        image = torch.from_numpy(np.ascontiguousarray(ready.transpose(2, 0, 1)[None]))
        if example is None:
            return image
        return image.to(device=example.device, dtype=example.dtype)

    def _run(self, image: Any, watch: Watch, parts: Iterable[str]) -> tuple[Any, dict[str, Found]]:
        """Return what the module makes of an image, and what some of its parts returned."""
        torch = require("torch", "correspondence")
        from frot.correspondence.backbones._watch import evaluating, watching

        module = self._module
        with torch.no_grad(), evaluating(module), watching(module, watch, set(parts)) as outputs:
            try:
                with watch:
                    result = module(image, **self._call)
            except MemoryError:
                raise
            except Exception as error:
                raise InputError(
                    f"{self.name} cannot take an image of {image.shape[3]} x {image.shape[2]} "
                    f"pixels: {_first_line(error).rstrip('.')}{_any_size(module)}"
                ) from error
        return result, outputs


@dataclass(frozen=True, eq=False)
class _Probe:
    """What a module did with an image of noise: all there is to choose layers from."""

    size: tuple[int, int]
    watch: Watch
    # By part, in the order in which the parts were left.
    outputs: dict[str, Found]
    result: Any

    def reading(self, part: str, network: str) -> Reading:
        """Return how a part is read, with ``:output`` behind its name or not."""
        sums = {one.name: one for one in self.watch.sums}
        if part in sums:
            found = self._read("sum", sums[part].number, sums[part])
        elif _bare(part) in self.outputs:
            found = self._read("part", _bare(part), self.outputs[_bare(part)])
        else:
            raise InputError(f"layers names {part!r}, which {network} does not run")
        if found is None:
            shape = tuple((sums.get(part) or self.outputs[_bare(part)]).value.shape)
            raise InputError(
                f"layers names {part!r} of {network}: a tensor of shape {shape} is not a map"
            )
        return found

    def blocks(self, module: Any) -> dict[str, Reading]:
        """Return the stem and what leaves the blocks, or else the convolutions."""
        # A block of attention adds twice; what leaves it is the second sum.
        sums = {one.name: one for one in self.watch.sums if self._read("sum", 0, one)}
        # Parts without parts of their own add inside a block, as some normalisations do.
        inner = {name for name in sums if name and not [*module.get_submodule(name).children()]}
        if set(sums) - inner:
            sums = {name: one for name, one in sums.items() if name not in inner}
        kinds = {type(module.get_submodule(name)) for name in sums if name}
        named: list[tuple[int, str, Reading | None]] = []
        for name, one in sums.items():
            if name:
                named.append((one.time, name, self._read("sum", one.number, one)))
        # The module itself may add without parts around it.
        own = [one for one in self.watch.sums if not one.name]
        for number, one in enumerate(own if not kinds else (), start=1):
            named.append((one.time, f"sum_{number}", self._read("sum", one.number, one)))
        for name, one in self.outputs.items():
            if name and name not in sums and type(module.get_submodule(name)) in kinds:
                named.append((one.time, name, self._read("part", name, one)))
        if named and self.watch.pools and self.watch.pools[0].time < min(named)[0]:
            stem = self.watch.pools[0]
            named.append((stem.time, stem.name or "stem", self._read("pool", 0, stem)))
        named = named or self._convolutions(module)
        return {name: one for _, name, one in sorted(named, key=lambda x: x[0]) if one is not None}

    def own_outputs(self, module: Any) -> dict[str, Reading]:
        """Return the outputs of a module that says what they are; none of any other."""
        found = {}
        for name, value in _named_outputs(module, self.result).items():
            lying = layout_of(tuple(value.shape), self.size)
            if lying is None:
                return {}
            layout, stride = lying
            # Some encoders have the image itself among their outputs.
            if stride > 1:
                found[name] = Reading(
                    "output", name, layout, stride, max(self.watch.field(value), stride)
                )
        return found

    def _convolutions(self, module: Any) -> list[tuple[int, str, Reading | None]]:
        """The convolutions that make maps, each after the normalisation behind it."""
        torch = require("torch", "correspondence")
        leaves = [
            (name, module.get_submodule(name)) for name in self.outputs
            if name and not [*module.get_submodule(name).children()]
        ]  # fmt: skip
        found: list[tuple[int, str, Reading | None]] = []
        for (name, part), (after, behind) in pairwise([*leaves, ("", None)]):
            if not isinstance(part, torch.nn.Conv2d):
                continue
            if isinstance(behind, torch.nn.modules.batchnorm._BatchNorm):
                name = after
            one = self.outputs[name]
            found.append((one.time, name, self._read("part", name, one)))
        return found

    def _read(self, kind: str, key: Any, found: Found) -> Reading | None:
        lying = layout_of(tuple(found.value.shape), self.size)
        if lying is None:
            return None
        layout, stride = lying
        return Reading(kind, key, layout, stride, max(found.field, stride))


def _named_outputs(module: Any, result: Any) -> dict[str, Any]:
    """Return what a module returns by name, where these are several tensors or features."""
    torch = require("torch", "correspondence")
    maps = getattr(result, "feature_maps", None)
    if maps is not None and hasattr(module, "out_features"):
        found = dict(zip(module.out_features, maps, strict=True))
    elif torch.is_tensor(result) or is_transformers(module):
        return {}
    elif isinstance(result, Mapping):
        found = {str(name): value for name, value in result.items()}
    elif isinstance(result, list | tuple):
        about: Any = getattr(module, "feature_info", None)
        names = about.module_name() if hasattr(about, "module_name") else None
        if names is None or len(names) != len(result):
            names = [f"output_{number}" for number in range(len(result))]
        found = dict(zip(names, result, strict=True))
    else:
        return {}
    return found if all(torch.is_tensor(value) for value in found.values()) else {}


def _find_head(watch: Watch) -> tuple[int, int] | None:
    """Return which averaged maps and which matrix are the classifier; None where there is none.

    It is applied to the averages themselves, and no maps are made behind it: those would make it
    the gate of a block.
    """
    for number, (given, _, _, before) in reversed(list(enumerate(watch.matrices))):
        if before < watch.maps:
            return None
        for one in reversed(watch.averaged):
            means = one.value.float().mean(dim=(2, 3)).flatten()
            values = given.float().flatten()
            if means.shape == values.shape and (means - values).abs().max() <= 1e-3 * means.std():
                return one.number, number
    return None


def _placed(module: Any, device: Any) -> Any:
    """Return a module on a device: itself if it is there, otherwise a copy."""
    torch = require("torch", "correspondence")
    if device is None:
        return module
    try:
        device = torch.device(device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device is {device}: {str(error).splitlines()[0]}") from None
    if all(p.device == device for p in _weights(module)):
        return module
    return copy.deepcopy(module).to(device)


def _without_local_hooks(module: Any) -> Any:
    """Return a module that can be sent to another process.

    What transformers leaves on its models to look at what passes are functions inside functions,
    which cannot be sent; they are dropped from a copy.
    """

    def local(part: Any) -> list[tuple[Any, int]]:
        return [
            (hooks, key)
            for hooks in (part._forward_hooks, part._forward_pre_hooks)
            for key, hook in hooks.items()
            if "<locals>" in getattr(hook, "__qualname__", "")
        ]

    if not any(local(part) for part in module.modules()):
        return module
    module = copy.deepcopy(module)
    for part in module.modules():
        for hooks, key in local(part):
            del hooks[key]
    return module


def _weights(module: Any) -> list[Any]:
    return [*module.parameters(), *module.buffers()]


def _weights_digest(module: Any) -> str:
    """Return a hash of every weight, 64 hexadecimal digits."""
    torch = require("torch", "correspondence")
    digest = hashlib.sha256()
    for key, value in sorted(module.state_dict().items()):
        digest.update(f"{key} {tuple(value.shape)} {value.dtype}".encode())
        raw = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(raw.numpy().tobytes())
    return digest.hexdigest()


def _version(value: Any) -> int:
    try:
        return int(value._version)
    except RuntimeError:
        # Tensors made in inference mode do not count, and cannot be written to outside of it.
        return -1


def is_transformers(model: Any) -> bool:
    """Whether an object is a model of transformers, without importing that library.

    Examples
    --------
    >>> is_transformers("resnet101")
    False
    """
    return any(
        part.__name__ == "PreTrainedModel" and part.__module__.startswith("transformers.")
        for part in type(model).__mro__
    )


def _first_line(error: Exception) -> str:
    """The first line of an error; of kinds whose text is no sentence, the kind as well."""
    line = (str(error).splitlines() or [""])[0]
    known = isinstance(error, RuntimeError | ValueError | TypeError | AssertionError | IndexError)
    return line if known and line else f"{type(error).__name__}: {line}".rstrip(": ")


def _any_size(module: Any) -> str:
    """Say how to get a network like this one that takes images of any size."""
    if type(module).__module__.startswith("timm."):
        taken = inspect.signature(type(module).__init__).parameters
        for option, value in (("dynamic_img_size", True), ("strict_img_size", False)):
            if option in taken:
                return f"; make it with timm.create_model(..., {option}={value}) to take any size"
    if (side := getattr(module, "image_size", None)) is not None and isinstance(side, int):
        return (
            f"; it takes images of {side} x {side} pixels alone, and photographs have any shape: "
            "take the same network of timm, timm.create_model(..., dynamic_img_size=True), or of "
            "transformers, whose embeddings of places are interpolated"
        )
    return ""


def _bare(part: str) -> str:
    return part.removesuffix(":output")
