"""`OnnxBackbone`: a network in an ONNX file, by the names of its outputs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, require
from frot._base.fingerprint import fingerprint
from frot._base.validate import check_choice, second_names
from frot.correspondence._features import FeatureMap
from frot.correspondence.backbones._preprocess import preprocessing
from frot.correspondence.backbones._readings import PROBES, Reading, layout_of, noise
from frot.correspondence.backbones.wrappers import choose_layers


class OnnxBackbone:
    """A network in an ONNX file; its layers are outputs of the graph, or tensors inside it.

    By default the layers are those outputs of the graph that are maps or tokens. Tensors inside
    have the names that the file gives them. Of a file it is not known what a cell sees: its
    receptive field is taken to be its stride.

    Parameters
    ----------
    path : path
        Of the file.
    layers : sequence of str or int, optional
        Names of outputs or tensors, or places among the outputs.
    layout : {"NCHW", "NHWC"}
        Of the images that the network takes.
    mean, std, scale, colour :
        The input is (scale x - mean) / std; ImageNet's mean and standard deviation by default.

    Examples
    --------
    >>> OnnxBackbone("network.onnx")
    Traceback (most recent call last):
    ...
    frot.InputError: network.onnx does not exist; give the path of an ONNX file
    """

    @second_names
    def __init__(
        self,
        path: str | os.PathLike[str],
        layers: Sequence[str | int] | None = None,
        *,
        layout: str = "NCHW",
        mean: Sequence[float] | float | None = None,
        std: Sequence[float] | float | None = None,
        scale: float = 1.0,
        colour: str = "RGB",
    ) -> None:
        path = Path(path)
        self.name = path.stem
        self._layout = check_choice(layout, "layout", ("NCHW", "NHWC"))
        self._prepare = preprocessing(colour, mean, std, scale)
        model = _load(path)
        graph, channels = model.graph, 1 if layout == "NCHW" else 3
        inputs = _inputs(graph)
        _check_input(inputs, layout, channels, path)
        self._input = inputs[0].name
        own = [value.name for value in graph.output]
        inside = [name for node in graph.node for name in node.output if name]
        asked = [layers] if isinstance(layers, str | int) else layers
        if asked is None:
            names = own
        else:
            known = [*own, *(name for name in inside if name not in own)]
            named = [
                x if isinstance(x, str) else choose_layers(own, [x], self.name)[0] for x in asked
            ]
            chosen = set(choose_layers(known, named, self.name))
            # In the order of the network.
            names = [name for name in inside if name in chosen]
        self._model = _pruned(model, names, channels)
        # A file that onnxruntime refuses is refused now, not at the first photograph.
        self._session: Any = _session(self._model, self.name)
        found = self._probe(names, inputs[0], channels)
        if asked is not None and len(found) < len(names):
            raise InputError(
                f"layers names {next(name for name in names if name not in found)!r} of "
                f"{self.name}, which is no map of the image and no tokens of one"
            )
        if not found:
            sums = [node.output[0] for node in graph.node if node.op_type in ("Add", "Conv")]
            raise InputError(
                f"{self.name} has no maps among its outputs ({', '.join(own)}); name tensors "
                f"inside by `layers`, such as {', '.join(sums[-6:])}"
            )
        self._readings = found
        self.layers: tuple[str, ...] = tuple(found)

    @property
    def fingerprint(self) -> str:
        """A hash of the file, the layers and the preprocessing."""
        model = hashlib.sha256(self._model).hexdigest()
        layers = list(self.layers)
        return fingerprint(model=model, layers=layers, layout=self._layout, prepare=self._prepare)

    @property
    def strides(self) -> dict[str, float]:
        """Pixels between the cells of each layer."""
        return {name: float(one.stride) for name, one in self._readings.items()}

    @property
    def patch(self) -> int | None:
        """Side of the patches of a vision transformer, in pixels; None for other networks."""
        tokens = {one.stride for one in self._readings.values() if one.layout == "tokens"}
        return tokens.pop() if len(tokens) == 1 else None

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return one map per layer for an image of shape (h, w, 3) in [0, 1]."""
        ready = self._prepare(image)
        if (patch := self.patch) is not None:
            sides = [(0, -side % patch) for side in ready.shape[:2]]
            ready = np.pad(ready, [*sides, (0, 0)], mode="edge")
        values = self._run(list(self.layers), ready)
        maps = []
        for (name, one), value in zip(self._readings.items(), values, strict=True):
            found = np.ascontiguousarray(one.as_map(value, ready.shape[:2]), dtype=np.float32)
            # Of maps it is not known whether their cells are patches.
            start = one.start if one.layout == "tokens" else None
            maps.append(FeatureMap(name, found, one.stride, one.field, start=start))
        return maps

    def _probe(self, names: list[str], image: Any, channels: int) -> dict[str, Reading]:
        """Return how tensors lie over the first image that the network takes."""
        sides = [one.dim_value for one in image.type.tensor_type.shape.dim]
        own = (sides[2], sides[3]) if channels == 1 else (sides[1], sides[2])
        problem: InputError | None = None
        for size in (*PROBES, *([own] if all(own) else [])):
            try:
                values = self._run(names, noise(size))
            except InputError as error:
                problem = problem or error
                continue
            found = {}
            for name, value in zip(names, values, strict=True):
                if (lying := layout_of(value.shape, size)) is not None:
                    layout, stride = lying
                    found[name] = Reading("output", name, layout, stride, stride)
            return found
        assert problem is not None
        raise problem

    def _run(self, names: list[str], ready: np.ndarray) -> list[np.ndarray]:
        batch = ready[None] if self._layout == "NHWC" else ready[None].transpose(0, 3, 1, 2)
        if self._session is None:
            self._session = _session(self._model, self.name)
        try:
            values = self._session.run(names, {self._input: np.ascontiguousarray(batch)})
        except Exception as error:
            raise InputError(
                f"{self.name} cannot take an image of {ready.shape[1]} x {ready.shape[0]} pixels; "
                f"export it for images of any size: {str(error).splitlines()[0]}"
            ) from None
        return [np.asarray(value) for value in values]

    def __getstate__(self) -> dict[str, Any]:
        # Sessions cannot be sent to another process; the model can.
        return {**self.__dict__, "_session": None}

    def __repr__(self) -> str:
        return f"OnnxBackbone({self.name}, {len(self.layers)} layers)"


def _load(path: Path) -> Any:
    onnx = require("onnx", "correspondence")
    if not path.is_file():
        raise InputError(f"{path} does not exist; give the path of an ONNX file")
    try:
        model = onnx.load(str(path))
    except Exception:
        model = None
    if model is None or not model.graph.node:
        raise InputError(f"{path} is not an ONNX file, or is cut short")
    return model


def _inputs(graph: Any) -> list[Any]:
    """Inputs of a graph, of which old files have its constants, too."""
    constants = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in constants]


def _check_input(inputs: Sequence[Any], layout: str, axis: int, path: Path) -> None:
    if len(inputs) != 1:
        raise InputError(f"{path} has {len(inputs)} inputs; a backbone has one, the image")
    dimensions = inputs[0].type.tensor_type.shape.dim
    if len(dimensions) != 4:
        raise InputError(f"{path} takes {len(dimensions)} axes; a backbone takes four, {layout}")
    channels = dimensions[axis].dim_value
    if channels not in (0, 3):
        other = "NHWC" if layout == "NCHW" else "NCHW"
        raise InputError(f"{path} has {channels} channels as {layout}; try layout='{other}'")


def _pruned(model: Any, outputs: Sequence[str], axis: int) -> bytes:
    """Return the part of a model that leads to `outputs`, for images of any size."""
    onnx = require("onnx", "correspondence")
    small = onnx.ModelProto()
    small.CopyFrom(model)
    graph = small.graph
    needed, kept = set(outputs), []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            needed.update(_needs(node))
            kept.append(node)
    del graph.node[:], graph.output[:], graph.value_info[:], graph.initializer[:], graph.input[:]
    graph.node.extend(reversed(kept))
    graph.initializer.extend(one for one in model.graph.initializer if one.name in needed)
    graph.input.extend(_inputs(model.graph))
    for place, dimension in enumerate(graph.input[0].type.tensor_type.shape.dim):
        if place != axis:
            dimension.Clear()
            dimension.dim_param = f"side_{place}"
    for name in outputs:
        graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    return small.SerializeToString()


def _needs(node: Any) -> Iterator[str]:
    """Tensors that a node takes, those inside its branches as well."""
    yield from node.input
    for part in node.attribute:
        if part.HasField("g"):
            for inner in part.g.node:
                yield from _needs(inner)


def _session(model: bytes, name: str) -> Any:
    runtime = require("onnxruntime", "correspondence")
    options = runtime.SessionOptions()
    # What a network does not take is said once, in a sentence.
    options.log_severity_level = 4
    # onnxruntime does not look at what worker processes are told about their threads.
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdigit():
        options.intra_op_num_threads = int(threads)
    try:
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise InputError(f"onnxruntime refuses {name}: {str(error).splitlines()[0]}") from None
