"""ONNX files that are written out here, so that every figure is known."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def write(path, *, layout="NCHW", residual=True, gemm=True, constants=False, side=32, inputs=1):
    """A stem, two residual blocks (or plain convolutions), global average, classifier."""
    rng = np.random.default_rng(1)
    weights, nodes = {}, []

    def conv(name, source, shape, stride=1, pad=None):
        values = rng.normal(size=shape) / np.prod(shape[1:]) ** 0.5
        weights[name + ".w"] = values.astype(np.float32)
        pad = (shape[2] - 1) // 2 if pad is None else pad
        nodes.append(
            helper.make_node(
                "Conv", [source, name + ".w"], [name], strides=[stride] * 2, pads=[pad] * 4
            )
        )
        return name

    x = "image"
    if layout == "NHWC":
        nodes.append(helper.make_node("Transpose", [x], ["first"], perm=[0, 3, 1, 2]))
        x = "first"
    x = conv("a", x, (6, 3, 7, 7), 2)
    nodes.append(helper.make_node("Relu", [x], ["a.relu"]))
    nodes.append(
        helper.make_node(
            "MaxPool", ["a.relu"], ["pooled"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4
        )
    )
    x = "pooled"
    for block, (inputs_, outputs, stride) in enumerate([(6, 6, 1), (6, 8, 2)]):
        y = conv(f"b{block}", x, (outputs, inputs_, 3, 3), stride)
        if residual:
            if stride > 1:
                x = conv(f"d{block}", x, (outputs, inputs_, 1, 1), stride)
            nodes.append(helper.make_node("Add", [y, x], [f"added{block}"]))
            y = f"added{block}"
        nodes.append(helper.make_node("Relu", [y], [f"out{block}"]))
        x = f"out{block}"
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["averaged"]))
    nodes.append(helper.make_node("Flatten", ["averaged"], ["flat"]))
    weights["fc.b"] = rng.normal(size=4).astype(np.float32)
    matrix = rng.normal(size=(4, 8)).astype(np.float32)
    if gemm:
        weights["fc.w"] = matrix
        nodes.append(helper.make_node("Gemm", ["flat", "fc.w", "fc.b"], ["scores"], transB=1))
    else:
        weights["fc.w"] = matrix.T.copy()
        nodes.append(helper.make_node("MatMul", ["flat", "fc.w"], ["product"]))
        nodes.append(helper.make_node("Add", ["product", "fc.b"], ["scores"]))
    shape = [1, 3, side, side] if layout == "NCHW" else [1, side, side, 3]
    initial = [numpy_helper.from_array(value, key) for key, value in weights.items()]
    if constants:
        made = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in initial]
        nodes, initial = made + nodes, []
    graph = helper.make_graph(
        nodes,
        "small",
        [
            helper.make_tensor_value_info(f"image{i or ''}", TensorProto.FLOAT, shape)
            for i in range(inputs)
        ],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, None)],
        initial,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    return path
