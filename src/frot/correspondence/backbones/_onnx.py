"""`OnnxBackbone`: networks in ONNX files, and what a graph says about its own layers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, require
from frot._base.fingerprint import fingerprint
from frot._base.spelling import second_names
from frot.correspondence._features import FeatureMap, refuse_classes, top_maps
from frot.correspondence.backbones._preprocess import preprocessing
from frot.correspondence.backbones.wrappers import choose_layers, warn_of_few

_POOLS = ("MaxPool", "AveragePool", "LpPool")
# Each cell of the output depends on the same cell of the inputs.
_CELLWISE = """
    Relu LeakyRelu PRelu Elu Selu Celu Gelu Clip Sigmoid HardSigmoid HardSwish Mish Tanh Softplus
    Erf Sqrt Pow Neg Abs Exp BatchNormalization InstanceNormalization LRN Identity Dropout Cast
    Add Sub Mul Div Min Max Sum Concat Pad QuantizeLinear DequantizeLinear
"""
# The same where the channels are last.
_LAST_AXIS = frozenset(("MatMul", "LayerNormalization"))
_AVERAGES = ("GlobalAveragePool", "AveragePool", "ReduceMean")
# The axis of channels of tokens.
TOKENS = 2
_RESHAPES = frozenset(("Reshape", "Flatten", "Squeeze", "Dropout", "Identity", "Cast"))


@dataclass(frozen=True)
class GraphCells:
    """How the cells of a tensor lie over the network's input, in pixels."""

    stride: int
    receptive_field: int
    # Where the channels are, 1 or 3, or 2 for the tokens of patches, and how many, where the graph
    # says so.
    axis: int
    channels: int | None = None


@dataclass(frozen=True, eq=False)
class Classifier:
    """The end of a network: averages of the tensor `maps` over its cells, then one matrix.

    Of shape (classes, channels); the bias, (classes,), is zero where there is none.
    """

    maps: str
    weights: np.ndarray
    bias: np.ndarray


def geometries(graph: Any, source: str, axis: int) -> dict[str, GraphCells]:
    """Return the geometry of every tensor that is still a map over the image.

    Along a sum the larger receptive field counts: the longer path through the block.
    """
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    known = {source: GraphCells(1, 1, axis)}
    cellwise = set(_CELLWISE.split())
    for node in graph.node:
        inputs = [known[name] for name in node.input if name in known]
        if not inputs:
            continue
        widest = max(inputs, key=lambda geometry: geometry.receptive_field)
        attributes = _attributes(node)
        if node.op_type == "Transpose":
            order = list(attributes.get("perm", ()))
            if len(order) == 4 and inputs[0].axis in order:
                known[node.output[0]] = replace(widest, axis=order.index(inputs[0].axis))
        elif node.op_type == "Conv" or node.op_type in _POOLS:
            window = attributes.get("kernel_shape") or shapes.get(node.input[1], ())[2:]
            if len(window) != 2:
                continue
            stride = max(attributes.get("strides") or [1])
            spread = max(
                (size - 1) * gap
                for size, gap in zip(window, attributes.get("dilations") or [1, 1], strict=True)
            )
            known[node.output[0]] = GraphCells(
                widest.stride * stride,
                widest.receptive_field + spread * widest.stride,
                1,
                shapes.get(node.input[1], (None,))[0]
                if node.op_type == "Conv"
                else widest.channels,
            )
        elif node.op_type in cellwise or (node.op_type in _LAST_AXIS and widest.axis == 3):
            for output in node.output:
                known[output] = replace(widest, stride=max(g.stride for g in inputs))
    return known


def find_sums(graph: Any, known: Mapping[str, GraphCells]) -> list[str]:
    """Return the stem (the first pooled tensor, if pooled before any sum) and the residual sums.

    A graph without residuals gives the outputs of its convolutions, after their batch
    normalisation and before their activation.
    """
    sums = [
        node.output[0]
        for node in graph.node
        if node.op_type in ("Add", "Sum")
        and len(node.input) == 2
        and all(name in known for name in node.input)
        and known[node.input[0]].stride == known[node.input[1]].stride
    ]
    if not sums:
        follows = {node.input[0]: node for node in graph.node if node.input}
        found = []
        for node in graph.node:
            if node.op_type == "Conv" and node.output[0] in known:
                after = follows.get(node.output[0], node)
                found.append((after if after.op_type == "BatchNormalization" else node).output[0])
        return found
    for node in graph.node:
        if node.output[0] == sums[0]:
            break
        if node.op_type == "MaxPool" and node.output[0] in known:
            return [node.output[0], *sums]
    return sums


def find_classifier(graph: Any, known: Mapping[str, GraphCells]) -> Classifier | None:
    """Return the last matrix that is applied to averages over the cells, if there is one."""
    to_array = require("onnx.numpy_helper", "correspondence").to_array
    constants = {tensor.name: tensor for tensor in graph.initializer}
    maker = {output: node for node in graph.node for output in node.output}
    for node in reversed(graph.node):
        if node.op_type not in ("Gemm", "MatMul") or node.input[1] not in constants:
            continue
        before = maker.get(node.input[0])
        while before is not None and before.op_type in _RESHAPES:
            before = maker.get(before.input[0])
        if before is None or before.input[0] not in known or before.op_type not in _AVERAGES:
            continue
        weights = np.asarray(to_array(constants[node.input[1]]), dtype=np.float32)
        if not _attributes(node).get("transB", 0):
            weights = weights.T
        bias = node.input[2] if len(node.input) > 2 else _bias_after(graph, node.output[0])
        offset = to_array(constants[bias]) if bias in constants else np.zeros(len(weights))
        values = np.asarray(offset, dtype=np.float32).ravel()
        return Classifier(before.input[0], weights, values)
    return None


def pruned(model: Any, outputs: list[str], axis: int, any_size: bool = True) -> bytes:
    """Return the part of a model that leads to `outputs`, for images of any size or of its own."""
    onnx = require("onnx", "correspondence")
    small = onnx.ModelProto()
    small.CopyFrom(model)
    graph = small.graph
    needed, kept = set(outputs), []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            needed.update(_needs(node))
            kept.append(node)
    del graph.node[:], graph.output[:], graph.value_info[:]
    graph.node.extend(reversed(kept))
    del graph.initializer[:], graph.input[:]
    graph.initializer.extend(one for one in model.graph.initializer if one.name in needed)
    graph.input.extend(_inputs(model.graph))
    for place, dimension in enumerate(graph.input[0].type.tensor_type.shape.dim):
        if place == 0 or (any_size and place != axis):
            dimension.Clear()
            dimension.dim_param = f"side_{place}"
    for name in outputs:
        graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    return small.SerializeToString()


def _inputs(graph: Any) -> list[Any]:
    """Inputs of a graph, of which old files have its constants, too."""
    constants = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in constants]


def _needs(node: Any) -> set[str]:
    """Tensors that a node takes, those inside its branches as well."""
    inside = (part.g.node for part in node.attribute if part.HasField("g"))
    return {*node.input, *(name for nodes in inside for one in nodes for name in _needs(one))}


def _bias_after(graph: Any, product: str) -> str | None:
    for node in graph.node:
        if node.op_type == "Add" and product in node.input:
            return next(name for name in node.input if name != product)
    return None


def _attributes(node: Any) -> dict[str, Any]:
    value = require("onnx.helper", "correspondence").get_attribute_value
    return {attribute.name: value(attribute) for attribute in node.attribute}


class OnnxBackbone:
    """A network from an ONNX file.

    Its layers are found in the graph: the stem after its max-pool, called ``stem``, and every sum
    that joins a residual, before its activation, called ``sum_1``, ``sum_2``, ... Strides and
    receptive fields are those of the graph's convolutions and pools. Images may be of any size,
    also where the file fixes one. In a vision transformer the layers are the sums that leave its
    blocks; where such a file takes images of one size alone, smaller ones are put into a frame of
    that size, and the cells of the frame are cut off.

    Parameters
    ----------
    path : path
        The file.
    layout : {"NCHW", "NHWC"}
        Order of the axes of its input.
    colour : {"RGB", "BGR"}
        Order of the colours of its input.
    mean, std : three floats, optional
        In the network's order of colours. By default ImageNet's; where `mean` or `scale` is given,
        what is not given is 0 and 1.
    scale : float
        1, or 255 where the network expects bytes: the input is (scale x - mean) / std.
    layers : sequence of str or int, optional
        Which layers: their names or places, or any names of tensors in the graph. By default all.
    names : sequence of str, optional
        Other names for the layers that are found, in their order.

    Examples
    --------
    >>> OnnxBackbone("resnet50.onnx")
    Traceback (most recent call last):
    ...
    frot.InputError: resnet50.onnx does not exist; give the path of an ONNX file
    """

    @second_names
    def __init__(
        self,
        path: str | os.PathLike[str],
        layout: str = "NCHW",
        colour: str = "RGB",
        mean: Sequence[float] | float | None = None,
        std: Sequence[float] | float | None = None,
        scale: float = 1.0,
        layers: Sequence[str | int] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if layout not in ("NCHW", "NHWC"):
            raise InputError(f"layout is {layout!r}; give 'NCHW' or 'NHWC'")
        self._prepare = preprocessing(colour, mean, std, scale)
        self._layout = layout
        self.name = Path(path).stem
        model = _load(Path(path))
        graph = model.graph
        inputs = _inputs(graph)
        axis = 1 if layout == "NCHW" else 3
        _check_input(inputs, layout, axis, Path(path))
        known = geometries(graph, inputs[0].name, axis)
        sums = find_sums(graph, known)
        self._patches, self._frame = None, None
        if not _made_by(graph, "Add", "Sum").intersection(sums):
            sums = self._find_blocks(model, inputs[0], known, axis) or sums
        tensors = _named(sums, graph)
        if names is not None:
            if len(names) != len(tensors):
                raise InputError(f"{path} has {len(tensors)} layers, but names has {len(names)}")
            tensors = dict(zip(names, tensors.values(), strict=True))
        for layer in [] if layers is None or isinstance(layers, str) else layers:
            if isinstance(layer, str) and layer not in tensors and layer in known:
                tensors[layer] = layer
        if not tensors:
            raise InputError(f"{path} has no convolutions whose maps could be matched")
        # Tensors that the user names lie between the sums: the order is that of the graph.
        order = {name: place for place, name in enumerate(known)}
        available = sorted(tensors, key=lambda name: order[tensors[name]])
        if layers is None:
            warn_of_few(self.name, len(available), _count_weights(graph))
        self.layers: tuple[str, ...] = choose_layers(available, layers, self.name)
        self._tensors = {name: tensors[name] for name in self.layers}
        self.geometry = {name: known[tensors[name]] for name in self.layers}
        self._classifier = find_classifier(graph, known)
        self._axis = axis if self._classifier is None else known[self._classifier.maps].axis
        outputs = list(self._tensors.values())
        if self._classifier is not None and self._classifier.maps not in outputs:
            outputs.append(self._classifier.maps)
        if self._patches is not None:
            outputs.append(self._patches)
        self._input = inputs[0].name
        self._model = pruned(model, outputs, axis, self._frame is None)
        self._hash: str | None = None
        # A file that onnxruntime refuses is refused now, not at the first photograph.
        self._session: Any = _session(self._model, self.name)

    @property
    def fingerprint(self) -> str:
        """A hash of the weights, the layers and the preprocessing."""
        if self._hash is None:
            model = hashlib.sha256(self._model).hexdigest()
            self._hash = fingerprint(
                model=model, tensors=self._tensors, layout=self._layout, prepare=self._prepare
            )
        return self._hash

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return one map per layer for an image of shape (h, w, 3) in [0, 1]."""
        names = list(self._tensors.values())
        more = [] if self._patches is None else [self._patches]
        values = self._run([*names, *more], image)
        rows, columns = (self._rows(side) for side in image.shape[:2])
        maps = []
        for name, value in zip(self.layers, values, strict=False):
            seen = self.geometry[name]
            if seen.axis == TOKENS:
                value = as_grid(value, values[-1])[:, :rows, :columns]
            else:
                value = np.moveaxis(value[0], seen.axis - 1, 0)
            maps.append(
                FeatureMap(name, np.ascontiguousarray(value), seen.stride, seen.receptive_field)
            )
        return maps

    @property
    def patch(self) -> int | None:
        """Side of the patches of a vision transformer, in pixels; None for other networks."""
        return None if self._patches is None else next(iter(self.geometry.values())).stride

    @property
    def most_side(self) -> int | None:
        """The longest side of an image, in pixels; None where there is no limit."""
        if self._frame is None or self.patch is None:
            return None
        return min(self._frame) - self.patch // 2

    def _rows(self, side: int) -> int | None:
        """How many patches an image has along a side, where a frame may have more."""
        patch = self.patch
        return None if patch is None else -(-(side + patch // 2) // patch)

    def _find_blocks(
        self, model: Any, source: Any, known: dict[str, GraphCells], axis: int
    ) -> list[str]:
        """Return the sums that leave the blocks of a transformer; none where it is no transformer.

        What is found is added to the tensors that are `known`.
        """
        graph = model.graph
        convolved = [
            n.output[0] for n in graph.node if n.op_type == "Conv" and n.output[0] in known
        ]
        found = [name for name in candidates(graph, source.name) if name not in known]
        if not convolved or not found or known[convolved[-1]].axis != 1:
            return []
        patches = convolved[-1]
        sides = [one.dim_value for one in source.type.tensor_type.shape.dim]
        own = (sides[2], sides[3]) if axis == 1 else (sides[1], sides[2])
        stride = known[patches].stride
        free = (14 * stride, 15 * stride)
        for size, frame in ((free, None), (own, own)):
            if not all(size):
                continue
            shapes = _shapes(model, [patches, *found], axis, source.name, size)
            sums = [name for name in found if shapes and is_tokens(shapes[name], shapes[patches])]
            if sums:
                self._patches, self._frame = patches, frame
                known |= dict.fromkeys(sums, replace(known[patches], axis=TOKENS))
                return block_ends(graph, sums)
        return []

    def class_maps(self, image: np.ndarray, classes: int = 1) -> np.ndarray:
        """Return class activation maps of the most probable classes, shape (classes, h, w)."""
        if self._classifier is None:
            raise refuse_classes(self.name)
        (value,) = self._run([self._classifier.maps], image)
        maps = np.moveaxis(value[0], self._axis - 1, 0)
        weights = self._classifier.weights
        scores = weights @ maps.mean(axis=(1, 2)) + self._classifier.bias
        return top_maps(maps, weights, scores, classes)

    def _run(self, names: list[str], image: np.ndarray) -> list[np.ndarray]:
        ready = self._padded(self._prepare(image))[None]
        if self._layout == "NCHW":
            ready = ready.transpose(0, 3, 1, 2)
        if self._session is None:
            self._session = _session(self._model, self.name)
        try:
            values = self._session.run(names, {self._input: np.ascontiguousarray(ready)})
        except Exception as error:
            raise InputError(
                f"{self.name} cannot take an image of {image.shape[1]} x {image.shape[0]} pixels: "
                f"{str(error).splitlines()[0]}"
            ) from None
        return [np.asarray(value, dtype=np.float32) for value in values]

    def _padded(self, ready: np.ndarray) -> np.ndarray:
        """Put patches where cells are, half a patch before the image, and fill up to the frame."""
        patch = self.patch
        if patch is None:
            return ready
        before = patch // 2
        whole = self._frame or [-(-(before + side) // patch) * patch for side in ready.shape[:2]]
        behind = [size - before - side for size, side in zip(whole, ready.shape[:2], strict=True)]
        if min(behind) < 0:
            raise InputError(
                f"{self.name} takes images of {self.most_side} pixels a side at most, not of "
                f"{ready.shape[1]} x {ready.shape[0]}"
            )
        return np.pad(ready, [*((before, more) for more in behind), (0, 0)], mode="edge")

    def __getstate__(self) -> dict[str, Any]:
        # Sessions cannot be sent to another process; the model can.
        return {**self.__dict__, "_session": None}

    def __repr__(self) -> str:
        return f"OnnxBackbone({self.name}, {len(self.layers)} layers)"


def _shapes(
    model: Any, names: list[str], axis: int, source: str, size: tuple[int, int]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of tensors for an image of some size; none where it is not taken."""
    channels = (3, *size) if axis == 1 else (*size, 3)
    empty = np.zeros((1, *channels), dtype=np.float32)
    try:
        session = _session(pruned(model, names, axis), "", quiet=True)
        values = session.run(names, {source: empty})
    except Exception:
        return {}
    return {name: value.shape for name, value in zip(names, values, strict=True)}


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
    _constants_to_initializers(onnx, model.graph)
    return model


def _constants_to_initializers(onnx: Any, graph: Any) -> None:
    """Some writers keep weights in Constant nodes, or share them; find all in one place."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    kept = []
    for node in graph.node:
        value = next((part.t for part in node.attribute if part.name == "value"), None)
        if node.op_type == "Identity" and node.input[0] in constants:
            value = constants[node.input[0]]
        elif node.op_type != "Constant":
            value = None
        if value is None:
            kept.append(node)
            continue
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value)
        tensor.name = node.output[0]
        graph.initializer.append(tensor)
        constants[tensor.name] = tensor
    if len(kept) < len(graph.node):
        copies = [type(node).FromString(node.SerializeToString()) for node in kept]
        del graph.node[:]
        graph.node.extend(copies)


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


def _made_by(graph: Any, *kinds: str) -> set[str]:
    """Tensors that come first out of operations of some kinds."""
    return {node.output[0] for node in graph.node if node.op_type in kinds}


def _count_weights(graph: Any) -> int:
    """Matrices and filters of the graph."""
    constants = {tensor.name for tensor in graph.initializer}
    kinds = ("Conv", "Gemm", "MatMul")
    return sum(n.op_type in kinds and not constants.isdisjoint(n.input) for n in graph.node)


def _named(found: Sequence[str], graph: Any) -> dict[str, str]:
    pooled, added = _made_by(graph, "MaxPool"), _made_by(graph, "Add", "Sum")
    names: dict[str, str] = {}
    for tensor in found:
        if tensor in pooled:
            names["stem"] = tensor
        else:
            kind = "sum" if tensor in added else "convolution"
            names[f"{kind}_{len(names) + (0 if 'stem' in names else 1)}"] = tensor
    return names


def _session(model: bytes, name: str, quiet: bool = False) -> Any:
    runtime = require("onnxruntime", "correspondence")
    options = runtime.SessionOptions()
    options.log_severity_level = 4 if quiet else 3
    # onnxruntime does not look at what worker processes are told about their threads.
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdigit():
        options.intra_op_num_threads = int(threads)
    try:
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise InputError(f"onnxruntime refuses {name}: {str(error).splitlines()[0]}") from None


# A graph does not say which of its tensors are the tokens of a vision transformer. Sums of two
# tensors that both come from the image are candidates; the network is run once on an empty image,
# and those that have a vector for every patch, as wide as the patches' own, are kept.

# What comes out of them is about sizes, not about the image.
_SIZES = frozenset(("Shape", "Size", "ConstantOfShape", "Range"))
_ATTENTION = frozenset(
    ("Softmax", "Attention", "MultiHeadAttention", "GroupQueryAttention", "QAttention")
)
# Tokens of no cell: of the class, and registers.
_MOST_OTHERS = 64


def candidates(graph: Any, source: str) -> list[str]:
    """Return the sums of two tensors that both come from the image, in the order of the graph."""
    made = {source}
    found = []
    for node in graph.node:
        if node.op_type in _SIZES or not made.intersection(node.input):
            continue
        made.update(node.output)
        if node.op_type == "Add" and all(name in made for name in node.input):
            found.append(node.output[0])
    return found


def is_tokens(shape: Sequence[int], patches: Sequence[int]) -> bool:
    """Whether a tensor has a vector for every patch: (1, n, c), where patches are (1, c, h, w).

    Examples
    --------
    >>> is_tokens((1, 197, 64), (1, 64, 14, 14)), is_tokens((1, 197, 256), (1, 64, 14, 14))
    (True, False)
    """
    _, channels, h, w = patches
    if len(shape) != 3 or shape[0] != 1 or shape[2] != channels:
        return False
    return 0 <= shape[1] - h * w <= _MOST_OTHERS


def block_ends(graph: Any, sums: Sequence[str]) -> list[str]:
    """Return the sums that leave a block: those that the next attention begins from, and the last.

    A block adds twice, what attention found and what a small network makes of each token. All sums
    are returned where there is no attention.
    """
    maker = {output: node for node in graph.node for output in node.output}
    attends = [_passes(maker, after, {before}) for before, after in pairwise(sums)]
    if not any(attends):
        return list(sums)
    return [one for one, next_ in zip(sums, [*attends, True], strict=True) if next_]


def _passes(maker: Mapping[str, Any], end: str, stop: set[str]) -> bool:
    """Whether there is attention on the way from some tensors to one behind them."""
    seen, left = set(stop), [end]
    while left:
        node = maker.get(left.pop())
        if node is None:
            continue
        if node.op_type in _ATTENTION:
            return True
        fresh = [name for name in node.input if name not in seen]
        seen.update(fresh)
        left += fresh
    return False


def as_grid(tokens: np.ndarray, patches: np.ndarray) -> np.ndarray:
    """Return tokens (1, n, c) as a map (c, h, w); those that come before the cells' are cut.

    Examples
    --------
    >>> tokens = np.arange(5.0).reshape(1, 5, 1)
    >>> as_grid(tokens, np.zeros((1, 1, 2, 2))).tolist()
    [[[1.0, 2.0], [3.0, 4.0]]]
    """
    h, w = patches.shape[2:]
    cells = tokens[0, tokens.shape[1] - h * w :]
    return np.ascontiguousarray(cells.T.reshape(-1, h, w))
