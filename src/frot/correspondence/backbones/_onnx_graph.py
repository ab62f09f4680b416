"""What an ONNX graph says about its own layers: where they look, and which sums join a residual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._base.errors import require

__all__ = ["Classifier", "Geometry", "find_classifier", "find_sums", "geometries", "pruned"]

_POOLS = ("MaxPool", "AveragePool", "LpPool")
# Each cell of the output depends on the same cell of the inputs.
_CELLWISE = """
    Relu LeakyRelu PRelu Elu Selu Celu Gelu Clip Sigmoid HardSigmoid HardSwish Mish Tanh Softplus
    Erf Sqrt Pow Neg Abs Exp BatchNormalization InstanceNormalization LRN Identity Dropout Cast
    Add Sub Mul Div Min Max Sum Concat Pad QuantizeLinear DequantizeLinear
"""
# The same where the channels are last.
_LAST_AXIS = frozenset(("MatMul", "LayerNormalization"))
_RESHAPES = frozenset(("Reshape", "Flatten", "Squeeze", "Dropout", "Identity", "Cast"))


@dataclass(frozen=True)
class Geometry:
    """How the cells of a tensor lie over the network's input.

    Parameters
    ----------
    stride : int
        Pixels between neighbouring cells.
    receptive_field : int
        Pixels across that a cell sees.
    axis : int
        Where the channels are: 1 or 3.
    channels : int or None
        How many, where the graph says so.
    """

    stride: int
    receptive_field: int
    axis: int
    channels: int | None = None


@dataclass(frozen=True, eq=False)
class Classifier:
    """The end of a network: averages over the cells, then one matrix.

    Parameters
    ----------
    maps : str
        The tensor that is averaged.
    weights : array of shape (classes, channels)
        The matrix.
    bias : array of shape (classes,)
        Zero where there is none.
    """

    maps: str
    weights: np.ndarray
    bias: np.ndarray


def geometries(graph: Any, source: str, axis: int) -> dict[str, Geometry]:
    """Return the geometry of every tensor that is still a map over the image.

    Along a sum the larger receptive field counts: the longer path through the block.
    """
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    known = {source: Geometry(1, 1, axis)}
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
            known[node.output[0]] = Geometry(
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


def find_sums(graph: Any, known: Mapping[str, Geometry]) -> list[str]:
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
                after = follows.get(node.output[0])
                normed = after is not None and after.op_type == "BatchNormalization"
                found.append(after.output[0] if after is not None and normed else node.output[0])
        return found
    for node in graph.node:
        if node.output[0] == sums[0]:
            break
        if node.op_type == "MaxPool" and node.output[0] in known:
            return [node.output[0], *sums]
    return sums


def find_classifier(graph: Any, known: Mapping[str, Geometry]) -> Classifier | None:
    """Return the last matrix that is applied to averages over the cells, if there is one."""
    numpy_helper = require("onnx.numpy_helper", "correspondence")
    constants = {tensor.name: tensor for tensor in graph.initializer}
    maker = {output: node for node in graph.node for output in node.output}
    for node in reversed(graph.node):
        if node.op_type not in ("Gemm", "MatMul") or node.input[1] not in constants:
            continue
        before = maker.get(node.input[0])
        while before is not None and before.op_type in _RESHAPES:
            before = maker.get(before.input[0])
        if before is None or before.input[0] not in known or not _averages(before):
            continue
        weights = np.asarray(numpy_helper.to_array(constants[node.input[1]]), dtype=np.float32)
        if not _attributes(node).get("transB", 0):
            weights = weights.T
        bias = node.input[2] if len(node.input) > 2 else _bias_after(graph, node.output[0])
        values = (
            np.asarray(numpy_helper.to_array(constants[bias]), dtype=np.float32).ravel()
            if bias in constants
            else np.zeros(len(weights), dtype=np.float32)
        )
        return Classifier(before.input[0], weights, values)
    return None


def pruned(model: Any, outputs: list[str], axis: int) -> bytes:
    """Return the part of a model that leads to `outputs`, for images of any size."""
    onnx = require("onnx", "correspondence")
    small = onnx.ModelProto()
    small.CopyFrom(model)
    graph = small.graph
    needed, kept = set(outputs), []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            kept.append(node)
    del graph.node[:], graph.output[:], graph.value_info[:]
    graph.node.extend(reversed(kept))
    constants = [tensor for tensor in model.graph.initializer if tensor.name in needed]
    del graph.initializer[:]
    graph.initializer.extend(constants)
    names = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in names]
    del graph.input[:]
    graph.input.extend(inputs)
    for place, dimension in enumerate(graph.input[0].type.tensor_type.shape.dim):
        if place != axis:
            dimension.Clear()
            dimension.dim_param = f"side_{place}"
    for name in outputs:
        graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    return small.SerializeToString()


def _averages(node: Any) -> bool:
    if node.op_type in ("GlobalAveragePool", "AveragePool"):
        return True
    return node.op_type == "ReduceMean"


def _bias_after(graph: Any, product: str) -> str | None:
    for node in graph.node:
        if node.op_type == "Add" and product in node.input:
            return next(name for name in node.input if name != product)
    return None


def _attributes(node: Any) -> dict[str, Any]:
    value = require("onnx.helper", "correspondence").get_attribute_value
    return {attribute.name: value(attribute) for attribute in node.attribute}
