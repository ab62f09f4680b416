"""Keras' ResNets from TensorFlow.js files, with a plain forward pass in Keras' terms as referee."""

import json
import string
from typing import Any

import numpy as np
import pytest

from frot import InputError
from frot.correspondence import Matcher
from frot.correspondence.backbones._networks import build_resnet, resnet

torch = pytest.importorskip("torch")
functional: Any = torch.nn.functional

BLOCKS, WIDTH, CLASSES, EPSILON = (2, 1, 3, 1), 4, 5, 1e-3
IMAGE = np.random.default_rng(0).random((64, 96, 3), dtype=np.float32)
MEANS = np.array([103.939, 116.779, 123.68], dtype=np.float32)


def name_of(old, stage, block, part, kind):
    """Keras' name of a layer; part 0 is the shortcut."""
    if not old:
        return f"conv{stage + 2}_block{block + 1}_{part}_{kind}"
    start = "res" if kind == "conv" else "bn"
    letter = string.ascii_lowercase[block]
    return f"{start}{stage + 2}{letter}_branch{'1' if part == 0 else '2' + ' abc'[part]}"


def random_weights(old=True, head=True):
    """Weights of a small ResNet by Keras' names, biases and all."""
    rng = np.random.default_rng(1)
    found = {}

    def convolution(conv, bn, inputs, outputs, side):
        scale = np.sqrt(1.0 / (inputs * side * side))
        found[f"{conv}/kernel"] = rng.normal(0.0, scale, (side, side, inputs, outputs))
        found[f"{conv}/bias"] = rng.normal(size=outputs)
        found[f"{bn}/gamma"], found[f"{bn}/beta"] = rng.uniform(0.5, 1.5, (2, outputs))
        found[f"{bn}/moving_mean"] = rng.normal(size=outputs)
        found[f"{bn}/moving_variance"] = rng.uniform(0.01, 1.0, outputs)

    names = ("conv1", "bn_conv1") if old else ("conv1_conv", "conv1_bn")
    convolution(*names, 3, WIDTH, 7)
    inputs = WIDTH
    for stage, count in enumerate(BLOCKS):
        width = WIDTH * 2**stage
        for block in range(count):
            shapes = {1: (inputs, width, 1), 2: (width, width, 3), 3: (width, 4 * width, 1)}
            if block == 0:
                shapes[0] = (inputs, 4 * width, 1)
            for part, shape in shapes.items():
                both = (name_of(old, stage, block, part, kind) for kind in ("conv", "bn"))
                convolution(*both, *shape)
            inputs = 4 * width
    if head:
        layer = "fc1000" if old else "predictions"
        found[f"{layer}/kernel"] = rng.normal(size=(inputs, CLASSES))
        found[f"{layer}/bias"] = rng.normal(size=CLASSES)
    return {key: value.astype(np.float32) for key, value in found.items()}


def write(folder, weights, epsilon=EPSILON, **entries):
    """As TensorFlow.js lays a model out: arrays end to end, cut into shards."""
    folder.mkdir(exist_ok=True)
    content = b"".join(value.tobytes() for value in weights.values())
    cuts = [0, len(content) // 3 + 1, len(content)]
    for k in (0, 1):
        (folder / f"shard{k}.bin").write_bytes(content[cuts[k] : cuts[k + 1]])
    listed = [
        {"name": key, "shape": list(value.shape), "dtype": "float32", **entries}
        for key, value in weights.items()
    ]
    layers = [
        {"class_name": "InputLayer", "config": {"name": "input"}},
        {"class_name": "BatchNormalization", "config": {"name": "bn", "epsilon": epsilon}},
    ]
    model = {
        "format": "layers-model",
        "modelTopology": {"model_config": {"config": {"layers": layers}}},
        "weightsManifest": [{"paths": ["shard0.bin", "shard1.bin"], "weights": listed}],
    }
    path = folder / "model.json"
    path.write_text(json.dumps(model), encoding="utf-8")
    return path


def forward(weights, old):
    """Sums of the bottlenecks and the last maps, in Keras' own terms."""
    tensors: Any = {key: torch.from_numpy(value) for key, value in weights.items()}

    def step(x, names, stride=1, padding=0):
        conv, bn = names
        kernel = tensors[f"{conv}/kernel"].permute(3, 2, 0, 1)
        x = functional.conv2d(x, kernel, tensors[f"{conv}/bias"], stride, padding)
        parts = [tensors[f"{bn}/{part}"] for part in ("moving_mean", "moving_variance")]
        scale = [tensors[f"{bn}/{part}"] for part in ("gamma", "beta")]
        return functional.batch_norm(x, *parts, *scale, eps=EPSILON)

    # Blue, green, red, from 0 to 255, the means subtracted.
    pixels = 255.0 * IMAGE[:, :, ::-1] - MEANS
    x = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))[None]
    x = step(x, ("conv1", "bn_conv1") if old else ("conv1_conv", "conv1_bn"), 2, 3)
    x = functional.max_pool2d(functional.pad(torch.relu(x), (1, 1, 1, 1)), 3, 2)
    maps = [x]
    for stage, count in enumerate(BLOCKS):
        for block in range(count):
            names: dict[int, Any] = {
                part: tuple(name_of(old, stage, block, part, kind) for kind in ("conv", "bn"))
                for part in range(4)
            }
            stride = 2 if stage > 0 and block == 0 else 1
            y = torch.relu(step(x, names[1], stride))
            y = step(torch.relu(step(y, names[2], 1, 1)), names[3])
            y = y + (step(x, names[0], stride) if block == 0 else x)
            maps.append(y)
            x = torch.relu(y)
    return [one[0].numpy() for one in maps], x[0].numpy()


@pytest.mark.parametrize("old", [True, False])
def test_maps_are_those_of_a_forward_pass_in_keras_terms(tmp_path, old):
    weights = random_weights(old)
    backbone = build_resnet("small", BLOCKS, WIDTH, write(tmp_path / "net", weights))
    expected, _ = forward(weights, old)
    found = backbone.extract(IMAGE)
    assert [one.name for one in found[:4]] == ["stem", "layer1.0", "layer1.1", "layer2.0"]
    assert [one.stride for one in found] == [4, 4, 4, 8, 16, 16, 16, 32]
    for one, other in zip(found, expected, strict=True):
        assert np.abs(one.values - other).max() <= 1e-5 * np.abs(other).max()


def test_the_classifier_comes_along(tmp_path):
    weights = random_weights()
    backbone = build_resnet("small", BLOCKS, WIDTH, write(tmp_path / "net", weights))
    _, last = forward(weights, True)
    scores = last.mean(axis=(1, 2)) @ weights["fc1000/kernel"] + weights["fc1000/bias"]
    best = weights["fc1000/kernel"][:, scores.argmax()]
    expected = np.einsum("k,kyx->yx", best, last)
    assert backbone.class_maps(IMAGE, 1)[0] == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_a_network_without_a_classifier(tmp_path):
    path = write(tmp_path / "net", random_weights(head=False))
    assert len(build_resnet("small", BLOCKS, WIDTH, path).extract(IMAGE)) == 8


def test_a_folder_is_enough_and_other_networks_are_refused(tmp_path):
    write(tmp_path / "net", random_weights())
    with pytest.raises(InputError, match="resnet50"):
        resnet("resnet50", tmp_path / "net")
    with pytest.raises(InputError, match="resnet50"):
        Matcher("resnet50", tmp_path / "net" / "model.json")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "shard1.bin").unlink(), "shard1.bin is missing"),
        (lambda folder: (folder / "shard1.bin").write_bytes(b""), "holds less than"),
        (lambda folder: (folder / "shard1.bin").write_bytes(bytes(10**6)), "holds more than"),
        (lambda folder: (folder / "model.json").write_text("<html>"), "is no model.json"),
        (lambda folder: (folder / "model.json").write_text("{}"), "is no model.json"),
        (lambda folder: (folder / "model.json").unlink(), "does not exist"),
    ],
)
def test_broken_files(tmp_path, change, said):
    path = write(tmp_path / "net", random_weights())
    change(path.parent)
    with pytest.raises(InputError, match=said):
        build_resnet("small", BLOCKS, WIDTH, path)


def test_quantised_weights_and_shards_elsewhere_are_refused(tmp_path):
    path = write(tmp_path / "net", random_weights(), quantization={"scale": 1.0})
    with pytest.raises(InputError, match=r"holds conv1/kernel quantised"):
        build_resnet("small", BLOCKS, WIDTH, path)
    path = write(tmp_path / "net", random_weights())
    path.write_text(path.read_text("utf-8").replace("shard0.bin", "../shard0.bin"), "utf-8")
    with pytest.raises(InputError, match="outside its folder"):
        build_resnet("small", BLOCKS, WIDTH, path)


def test_layers_that_no_resnet_has(tmp_path):
    weights = random_weights()
    path = write(tmp_path / "net", {**weights, "dense_3/kernel": np.zeros(2, dtype=np.float32)})
    with pytest.raises(InputError, match="'dense_3', which no ResNet of Keras has"):
        build_resnet("small", BLOCKS, WIDTH, path)
    del weights["bn2a_branch1/gamma"]
    path = write(tmp_path / "net", weights)
    with pytest.raises(InputError, match="no gamma of bn2a_branch1"):
        build_resnet("small", BLOCKS, WIDTH, path)
