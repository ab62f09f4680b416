"""`TorchBackbone`: any torch module, by the names of its parts, and models of transformers."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError, require
from frot._base.fingerprint import fingerprint
from frot._base.spelling import second_names
from frot.correspondence._features import FeatureMap, refuse_classes, top_maps
from frot.correspondence.backbones._preprocess import preprocessing
from frot.correspondence.backbones.wrappers import choose_layers, warn_of_few

if TYPE_CHECKING:
    from frot.correspondence.backbones._trace import ModuleOutputs

# Hooks belong to the module, so two threads must not run one module at the same time.
_ONE_AT_A_TIME = threading.Lock()
# Sides of the image that a module is first tried on; transformers often take one size alone.
_PROBES = (128, 224, 256, 384, 518)


class TorchBackbone:
    """A torch module whose layers are read while it runs.

    A layer is named after a part of the module, as in ``module.named_modules()``. Where that part
    adds a residual, its map is the sum, copied before any activation overwrites it; elsewhere, or
    with ``:output`` behind the name, it is what the part returns. By default the layers are the
    stem after its max-pool and every residual sum, or every convolution where there are no
    residuals. Tokens become grids, and those that belong to no cell are dropped.

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
    fixed : bool
        Whether nobody changes the weights any more, so that they need not be looked at for it
        before every photograph.

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
        fixed: bool = False,
    ) -> None:
        torch = require("torch", "correspondence")
        from frot.correspondence.backbones._module_identity import Weights, placed
        from frot.correspondence.backbones._trace import CudaGraphs

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
        self._module = placed(module, device)
        self._weights, self._graphs = Weights(self._module), CudaGraphs()
        self._call, self._fixed = dict(call or {}), fixed
        self._parts = self._choose([layers] if isinstance(layers, str | int) else layers)
        self._border = self._find_border()
        self.layers: tuple[str, ...] = tuple(self._parts)
        # Under the state of the weights that it is of.
        self._hash: tuple[str, str] | None = None

    @property
    def fingerprint(self) -> str:
        """A hash of the weights, the structure, the code, the layers and the preprocessing.

        It is taken anew after the weights have changed. What else a module has, such as an
        activation that is swapped later on, is looked at once.
        """
        from frot.correspondence.backbones._module_identity import code_digest, weights_digest

        state = self.state
        if self._hash is None or self._hash[0] != state:
            code = code_digest(self._module)
            found = fingerprint(
                weights=weights_digest(self._module),
                structure=repr(self._module),
                parts=list(self._parts.items()),
                prepare=self._prepare,
                call=self._call,
                **({} if code is None else {"code": code}),
            )
            self._hash = (state, found)
        return self._hash[1]

    @property
    def patch(self) -> int | None:
        """Side of the patches of a vision transformer, in pixels; None for other networks."""
        before, multiple = self._border
        return multiple if before else None

    @property
    def state(self) -> str:
        """A cheap key of the weights in this process, another one after they have changed."""
        return "" if self._fixed else self._weights.state

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return one map per layer for an image of shape (h, w, 3) in [0, 1]."""
        maps = self.extract_on_device(image)
        return [replace(one, values=one.values.cpu().numpy()) for one in maps]

    def extract_on_device(self, image: np.ndarray) -> list[FeatureMap]:
        """The same with tensors where the module is, each in one piece."""
        ready, maps = self._ready(image), []
        for name, (seen, values) in self._outputs(ready, self.layers).maps.items():
            # Layers that were followed say how far apart their cells are.
            far = field = max(1, round(ready.shape[0] / values.shape[1]))
            if seen is not None:
                far, field = seen.stride, seen.receptive_field
            maps.append(FeatureMap(name, values, far, field))
        return maps

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
        from frot.correspondence.backbones._module_identity import without_local_hooks

        # A hash of weights that have changed since is none of what is sent.
        known = None if self._hash is None or self._hash[0] != self.state else self._hash
        module = without_local_hooks(self._module)
        sent = {"_module": module, "_weights": type(self._weights)(module), "_hash": known}
        return {**self.__dict__, **sent}

    def __setstate__(self, sent: dict[str, Any]) -> None:
        self.__dict__.update(sent)
        if self._hash is not None:
            # The same weights lie elsewhere in this process.
            self._hash = (self.state, self._hash[1])

    def __repr__(self) -> str:
        return f"TorchBackbone({self.name}, {len(self.layers)} layers)"

    def _ready(self, image: np.ndarray) -> np.ndarray:
        before, multiple = self._border
        ready = self._prepare(image)
        if before == 0:
            return ready
        sides = [(before, -(before + side) % multiple) for side in ready.shape[:2]]
        return np.pad(ready, [*sides, (0, 0)], mode="edge")

    def _choose(self, layers: Sequence[str | int] | Mapping[str, str] | None) -> dict[str, str]:
        """Name the parts asked for, or those that are found by running the module once."""
        parts = [part for part, _ in self._module.named_modules() if part]
        if isinstance(layers, Mapping):
            choose_layers(parts, [_bare(part) for part in layers.values()], self.name)
            return dict(layers)
        if layers is not None and all(isinstance(layer, str) for layer in layers):
            asked = {_bare(str(layer)): str(layer) for layer in layers}
            if set(asked) <= set(parts):
                chosen = choose_layers(parts, list(asked), self.name)
                return {asked[part]: asked[part] for part in chosen}
        trace, _ = self._probe(set())
        # Parts without parts of their own add inside a block, as some normalisations do.
        part = self._module.get_submodule
        blocks = [name for name in trace.sums if name not in parts or [*part(name).children()]]
        found = blocks or list(trace.sums)
        if found and trace.stem is not None:
            found.insert(0, trace.stem[0])
        found = found or list(dict.fromkeys(trace.convolutions))
        if not found:
            raise InputError(f"{self.name} has no residual sums or convolutions; name its layers")
        if layers is None:
            warn_of_few(self.name, len(found), trace.weights)
            return {part: part for part in found}
        # Places count in the list of found layers, names in everything there is.
        named = [
            layer if isinstance(layer, str) else choose_layers(found, [layer], self.name)[0]
            for layer in layers
        ]
        available = [*found, *(part for part in parts if part not in found)]
        return {part: part for part in choose_layers(available, named, self.name)}

    def _find_border(self) -> tuple[int, int]:
        """Return how many pixels go before the image, and what its sides become multiples of.

        Patches begin at the image's corner, so their centres are half a patch off the places that
        cells have here, stride times index. Half a patch of border puts them there. Convolutions
        get none: their layers begin at different places, and no border is right for all.
        """
        try:
            trace, outputs = self._probe(set(self._parts.values()))
            cells = [self._found(part, trace, outputs)[0] for part in self._parts.values()]
        except InputError:
            return 0, 1
        first = cells[0]
        patches = all(
            seen is not None and seen.stride == seen.receptive_field == first.stride > 1
            for seen in cells
        )
        return (int(first.start + 0.5), first.stride) if patches else (0, 1)

    def _probe(self, wanted: set[str]) -> tuple[Any, dict[str, Any]]:
        problem: Exception | None = None
        for side in _PROBES:
            try:
                with _ONE_AT_A_TIME:
                    return self._run(self._tensor(np.zeros((side, side, 3), np.float32)), wanted)
            except InputError as error:
                problem = problem or error
        raise InputError(
            f"{self.name} cannot be run on an image: {problem}; give a module whose forward pass "
            "takes a batch of images alone, of shape (1, 3, h, w)"
        )

    def _outputs(self, ready: np.ndarray, layers: Sequence[str]) -> ModuleOutputs:
        """Run the module on an image, or replay its run, for maps of some layers and the head."""
        from frot.correspondence.backbones._trace import ModuleOutputs

        def run(image: Any) -> ModuleOutputs:
            trace, outputs = self._run(image, {self._parts[name] for name in layers})
            maps = {name: self._map(self._parts[name], trace, outputs) for name in layers}
            return ModuleOutputs(maps, trace.head)

        with _ONE_AT_A_TIME:
            return self._graphs(self._module, self._weights, self._tensor(ready), layers, run)

    def _tensor(self, ready: np.ndarray) -> Any:
        """The batch of one image that the module takes."""
        torch = require("torch", "correspondence")
        example = next((p for p in self._module.parameters() if p.is_floating_point()), None)
        image = torch.from_numpy(np.ascontiguousarray(ready.transpose(2, 0, 1)[None]))
        if example is None:
            return image
        return image.to(device=example.device, dtype=example.dtype)

    def _run(self, image: Any, wanted: set[str]) -> tuple[Any, dict[str, Any]]:
        torch = require("torch", "correspondence")
        from frot.correspondence.backbones._trace import Trace, evaluating, watching

        trace, module, parts = Trace(image, wanted), self._module, map(_bare, wanted)
        with torch.no_grad(), evaluating(module), watching(module, trace, parts) as outputs:
            try:
                with trace:
                    module(image, **self._call)
            except MemoryError:
                raise
            except Exception as error:
                raise InputError(
                    f"{self.name} cannot take an image of {image.shape[3]} x {image.shape[2]} "
                    f"pixels: {_first_line(error).rstrip('.')}{_any_size(module)}"
                ) from error
        return trace, outputs

    def _map(self, part: str, trace: Any, outputs: dict[str, Any]) -> tuple[Any, Any]:
        """What the cells of a part see, and its map, in one piece."""
        from frot.correspondence.backbones._trace import as_map

        seen, value = self._found(part, trace, outputs)
        try:
            return seen, as_map(value, seen).float().contiguous()
        except ValueError as error:
            raise InputError(f"layers names {part!r} of {self.name}: {error}") from None

    def _found(self, part: str, trace: Any, outputs: dict[str, Any]) -> tuple[Any, Any]:
        if part in trace.sums:
            return trace.sums[part]
        if trace.stem is not None and part == trace.stem[0]:
            return trace.stem[1:]
        found = outputs.get(_bare(part))
        if found is None:
            raise InputError(f"layers names {part!r}, which {self.name} does not run")
        return found


def _first_line(error: Exception) -> str:
    """The first line of an error; of kinds whose text is no sentence, the kind as well."""
    line = (str(error).splitlines() or [""])[0]
    known = isinstance(error, RuntimeError | ValueError | TypeError | AssertionError | IndexError)
    return line if known and line else f"{type(error).__name__}: {line}".rstrip(": ")


def _any_size(module: Any) -> str:
    """Say how timm makes a network like this one that takes images of any size."""
    if not type(module).__module__.startswith("timm."):
        return ""
    taken = inspect.signature(type(module).__init__).parameters
    for option, value in (("dynamic_img_size", True), ("strict_img_size", False)):
        if option in taken:
            return f"; make it with timm.create_model(..., {option}={value}) to take any size"
    return ""


def _bare(part: str) -> str:
    return part.removesuffix(":output")


_CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
# ImageNet's mean and standard deviation, except where a family was trained with others.
_COLOURS = {
    "clip": _CLIP,
    "clip_vision_model": _CLIP,
    "siglip": _HALF,
    "siglip_vision_model": _HALF,
    "siglip2": _HALF,
    "vit": _HALF,
    "beit": _HALF,
}


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


def transformers_backbone(
    model: Any,
    layers: Sequence[str | int] | Mapping[str, str] | None = None,
    device: Any = None,
) -> TorchBackbone:
    """Return a ResNet, ConvNeXt, DINOv2, DINOv3, ViT or CLIP of transformers as a backbone.

    Layers are the sums that leave the blocks. Tokens become a grid with the stride of the patches;
    those of the class and the registers are dropped. Images may be of any size: where the model
    can interpolate its embeddings of places, it is told to. Of a model of images and text, the
    part for images is taken.
    """
    if not is_transformers(model):
        raise InputError(f"model is a {type(model).__name__}; give a model of transformers")
    kind = str(getattr(model.config, "model_type", ""))
    vision = getattr(model, "vision_model", None)
    if vision is not None and hasattr(model.config, "vision_config"):
        model = vision
    accepted = inspect.signature(model.forward).parameters
    call = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in accepted else {}
    mean, std = _COLOURS.get(kind, (None, None))
    return TorchBackbone(
        model, layers, mean=mean, std=std, device=device, name=kind or None, call=call
    )
