"""`Settings`: a matcher's options, each declared once with its values and its default.

`Matcher`, `frot match` and `frot evaluate` take theirs from here, and the presets of the literature
are here too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.contract import refuse_masked
from frot._base.errors import InputError, brief
from frot._base.validate import check_choice, check_count, check_flag, check_number
from frot.correspondence._features import MASSES
from frot.correspondence.agreement import AUTO
from frot.correspondence.methods import METHODS
from frot.correspondence.poses import POSES
from frot.correspondence.transfer import TRANSFERS
from frot.problem.terms import NORMALISATIONS

PRIORS = ("coherence", "uniform")
# Longer sides of photographs: a little more than what most networks were trained on, and for those
# that were trained on larger images more. Chosen on pairs of cars.
SIDE = 320
SIDES = {"efficientnet-lite2": 400}
# Patches along the longer side of a vision transformer's photographs.
PATCHES = 60
# Pixels between cells, of the first layer that has this stride or a larger one.
STRIDE = "8+"

Check = Callable[[Any, str], Any]


@dataclass(frozen=True)
class Option:
    """How an option is told to users, and what it may be.

    Attributes
    ----------
    text : str
        What it is, in a line, as the help of a command has it.
    kind : type
        Of the word on the command line.
    metavar : str, optional
        What the help calls that word.
    check : callable, optional
        From a value and the option's name to the checked value; raises `InputError`.
    """

    text: str
    kind: type = str
    metavar: str | None = "NAME"
    check: Check | None = None


def _setting(
    default: Any, text: str, check: Check, kind: type = str, metavar: str | None = "NAME"
) -> Any:
    return field(default=default, metadata={"option": Option(text, kind, metavar, check)})


def _choice(default: str, text: str, choices: tuple[str, ...], metavar: str = "NAME") -> Any:
    return _setting(default, text, partial(check_choice, choices=choices), str, metavar)


def _flag(default: bool, text: str) -> Any:
    return _setting(default, text, check_flag, bool, None)


def _number(default: float, text: str, metavar: str = "NUMBER", *, strict: bool = True) -> Any:
    return _setting(default, text, partial(check_number, strict=strict), float, metavar)


def _whole(default: int | None, text: str, least: int) -> Any:
    check = partial(check_count, least=least)
    return _setting(default, text, _or_none(check) if default is None else check, int, "COUNT")


def _or_none(check: Check) -> Check:
    return lambda value, name: None if value is None else check(value, name)


def _check_stride(value: Any, name: str) -> Any:
    if not isinstance(value, str):
        return check_number(value, name, strict=True)
    if value == "first" or at_least(value) is not None:
        return value
    raise InputError(
        f"{name}: {value!r} is no stride; give pixels such as 8, '8+' for the first layer of 8 or "
        "more, or 'first' for the first layer"
    )


def at_least(stride: float | str) -> float | None:
    """Return the number in a stride such as ``"8+"``; None for others.

    Examples
    --------
    >>> at_least("8+"), at_least("first"), at_least(8.0)
    (8.0, None, None)
    """
    if isinstance(stride, str) and stride.endswith("+"):
        try:
            return check_number(float(stride[:-1]), "stride", strict=True)
        except ValueError:
            return None
    return None


def _check_agreement(value: Any, name: str) -> Any:
    if isinstance(value, str) and value != AUTO:
        raise InputError(f"{name}: {brief(value)} is neither {AUTO!r} nor a number")
    return value if value == AUTO else check_number(value, name)


def _check_prior(prior: Any, name: str) -> str | tuple[float, ...]:
    """Return the name of a prior, or a user's weights as plain numbers, which can be compared."""
    if isinstance(prior, str):
        return check_choice(prior, name, PRIORS)
    refuse_masked(prior, name)
    try:
        weights = np.asarray(prior, dtype=float)
    except (TypeError, ValueError):
        weights = np.zeros(0)
    if weights.ndim != 1 or not len(weights):
        raise InputError(
            f"prior: {prior!r} is none of {', '.join(map(repr, PRIORS))}, nor one weight per layer"
        )
    if not (np.isfinite(weights) & (weights > 0.0)).all():
        raise InputError(
            "prior: has weights that are not finite and > 0; leave out layers by `layers` instead"
        )
    return tuple(weights.tolist())


@dataclass(frozen=True)
class Settings:
    r"""Constants of matching; the defaults are the library's own.

    Attributes
    ----------
    method : str
        "frot", or one of "ot" (layers put end to end), "uniform" (mean of the layers' costs),
        "weighted" (their mean weighted by the prior), "nn" (cosine nearest neighbour),
        "best-layer", "hpf", "scot", "srw", "max-min".
    hough : bool
        Whether votes are weighed by regularised Hough matching.
    agreement : float or "auto"
        How strongly: votes are multiplied by the agreement on their displacement to this power.
        1 is the original's. "auto" takes 0.5, or 0.75 where matches move alike, with a wider
        smoothing; and agreement on a reflection where A and B face opposite ways, for which A is
        looked at mirrored, too, where votes leave it open; see `Match.reflected`, `Match.looks`.
    poses : {"none", "mirror", "all"}
        Whether A is also tried mirrored, or also turned by eighths, mirrored or not, and at 0.7
        and 1.4 times its size; see `Match.pose`.
    eta : float
        What the adversary pays for leaving the prior, in units of cost (from 0 to 4).
    eps : float
        Entropy of the plan, in the same units.
    steps : int
        Steps of the paper's Frank-Wolfe; 0 solves to `tol` instead.
    tol : float
        Relative gap to solve to.
    prior : str or array of shape (L,)
        Weights of the layers that the adversary starts from: "coherence", "uniform" (the paper's
        entropy), or a user's, all positive.
    power : float
        What coherences are raised to.
    normalise : {"none", "mean", "regret"}
        As in `frot.solve`; for "frot" alone.
    mass : {"uniform", "cam", "cam-top"}
        Weights of the cells; see `frot.correspondence`.
    exponent : float
        Votes are :math:`(n \Pi)^e`.
    transfer : {"median", "near", "boxes", "argmax", "soft"}
        How points are read off.
    radius : float, optional
        Pixels of the resized photograph within which cells are near; a stride if None (for
        "median" the standard deviation of their weights; one and a half strides).
    side : int, optional
        Longer side that photographs are resized to; 320 if None, 400 for EfficientNet-Lite2,
        which was trained on larger images than the others, and 60 patches for vision transformers
        (840 pixels where patches have 14).
    enlarge : bool
        Whether photographs that are smaller than the side are enlarged.
    antialias : bool
        Whether all pixels of a photograph that shrinks count, and not only those next to where it
        is sampled; the presets of the literature do not use it.
    stride : float or str
        Pixels between cells. A number is obeyed: where no layer has that stride, one is
        interpolated to it. ``"8+"``, the default, is the first layer with this stride or more (of
        this stride where all layers are finer), and ``"first"`` the very first layer.
    rank : int
        Directions of "srw".
    edges : bool
        Whether cells that see more than a stride beyond the photograph vote and are voted for.
    """

    method: str = _choice(
        "frot",
        "frot (default), ot, uniform, weighted, nn, best-layer, hpf, scot, srw or max-min.",
        tuple(METHODS),
    )
    hough: bool = _flag(True, "Let displacements vote (regularised Hough matching).")
    agreement: float | str = _setting(
        AUTO, "Strength of that: auto (default; also of reflections), or a power; 1 is full.",
        _check_agreement, str, "POWER",
    )  # fmt: skip
    poses: str = _choice(
        "none", "Try A turned: none (default), mirror or all.", tuple(POSES), "WHICH"
    )
    eta: float = _number(0.6, "Entropy of the layers' weights.", "COST", strict=False)
    eps: float = _number(0.1, "Entropy of the plan.", "COST")
    steps: int = _whole(0, "Steps of the paper's Frank-Wolfe; 0 (default) solves instead.", 0)
    tol: float = _number(1e-3, "Relative gap to solve to.", "GAP")
    prior: Any = _setting(
        "coherence",
        "Prior on the layers: coherence (default) or uniform, the paper's.",
        _check_prior,
    )
    power: float = _number(2.0, "What coherences are raised to for the prior.")
    normalise: str = _choice(
        "none", "Of costs: none, mean or regret; for frot.", NORMALISATIONS, "HOW"
    )
    mass: str = _choice(
        "uniform",
        "Weights of the cells: uniform, or cam, where the network's classifier looks.",
        MASSES,
        "HOW",
    )
    exponent: float = _number(0.5, "Masses of the plan to this power are the votes.")
    transfer: str = _choice(
        "median", "How points are read off: median, near, boxes, argmax or soft.", TRANSFERS, "HOW"
    )
    radius: float | None = _setting(
        None, "Pixels within which cells are near.", _or_none(check_number), float, "PIXELS"
    )
    side: int | None = _whole(None, "Pixels of the longer side, matched at.", 32)
    enlarge: bool = _flag(True, "Enlarge photographs that are smaller than the side.")
    antialias: bool = _flag(True, "Antialias photographs that are made smaller.")
    stride: float | str = _setting(
        STRIDE,
        "Pixels between cells; 8+ (default): of the first layer with 8 or more; or first.",
        _check_stride,
        str,
        "PIXELS",
    )
    rank: int = _whole(50, "Directions of srw.", 1)
    edges: bool = _flag(True, "Use cells whose receptive field reaches beyond the photograph.")

    def having(self, **changes: Any) -> Settings:
        """Return the settings with those that are not None replaced."""
        return replace(self, **{name: x for name, x in changes.items() if x is not None})

    def check(self) -> Settings:
        """Return checked settings, or raise an error that names the wrong one."""
        checked = {
            name: option.check(getattr(self, name), name)
            for name, option in _declared().items()
            if option.check is not None
        }
        if self.method == "frot" and checked["steps"] and not checked["eta"]:
            raise InputError("eta: must be > 0 for the paper's steps; use steps=0 to solve with 0")
        if self.method == "frot" and not checked["eta"] and checked["prior"] != "uniform":
            raise InputError(
                "eta: at 0 the adversary takes the layers that cost most, whatever the prior; pass "
                "eta > 0, or prior='uniform'"
            )
        return replace(self, **checked)

    def refuse(self, *, normalise: str | None = None, layer: Any = None) -> Settings:
        """Return the settings, or raise an error that names a setting the method does not use."""
        if normalise not in (None, "none") and self.method != "frot":
            raise InputError(
                f"normalise: {normalise!r} does nothing for method={self.method!r}; leave it out, "
                "or use method='frot'"
            )
        if layer is not None and self.method != "best-layer":
            raise InputError(
                f"layer: {layer!r} does nothing for method={self.method!r}; use "
                "method='best-layer', or `layers` to choose those that are matched by"
            )
        return self

    def sized(self, network: str, patch: int | None = None, side: int | None = None) -> Settings:
        """Return the settings with the side that suits a network, where none is given.

        Parameters
        ----------
        network : str
            Its name.
        patch : int, optional
            Pixels of its patches, where it has some.
        side : int, optional
            The longest side that it takes.
        """
        if side is not None and self.side is not None and self.side > side:
            raise InputError(f"side: {network} takes {side} pixels at most, not {self.side}")
        if self.side is not None:
            return self
        known = [pixels for name, pixels in SIDES.items() if network.startswith(name)]
        suited = known[0] if known else SIDE if patch is None else PATCHES * patch
        return replace(self, side=suited if side is None else side)

    @property
    def parts(self) -> dict[str, Any]:
        """All settings by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _declared() -> dict[str, Option]:
    """The options that are settings, by name."""
    return {one.name: one.metadata["option"] for one in fields(Settings)}


# "frot-paper": the paper's reading; "scot": the framework it builds on, its OT-HPF; "hpf":
# hyperpixel flow, which that extends. They match the cells of the first layer of a ResNet, whose
# stride is 4; that of other networks may be 2, and four times as many cells sixteen times the work.
_BOXES: dict[str, Any] = {
    "agreement": 1.0, "transfer": "boxes", "side": 300, "stride": "4+", "antialias": False,
}  # fmt: skip
PRESETS: dict[str, Settings] = {
    "frot": Settings(),
    "frot-paper": Settings(
        eta=0.3, steps=3, prior="uniform", mass="cam-top", exponent=1.0, **_BOXES
    ),
    "scot": Settings(method="scot", eps=0.05, mass="cam", exponent=1.0, **_BOXES),
    "hpf": Settings(method="hpf", enlarge=False, edges=False, **_BOXES),
}

# Which network, which of its layers and where it runs; the others say how they are matched.
NETWORK_OPTIONS: dict[str, Option] = {
    "backbone": Option(
        "Network: efficientnet-lite2 by default, resnet101, dinov2, an .onnx file, ..."
    ),
    "weights": Option("File, or folder, of the network's weights.", Path, "FILE"),
    "layers": Option("Only these layers, names with commas.", metavar="NAMES"),
    "layer": Option("The layer of --method best-layer."),
    "preset": Option("Settings by name: frot-paper, scot or hpf."),
    "device": Option("cpu, cuda, cuda:1, ..."),
    "cache": Option("Keep features here.", Path, "FOLDER"),
}
# Of `OnnxBackbone`, which only an ONNX file has a use for.
ONNX_OPTIONS: dict[str, Option] = {
    "layout": Option("Axes of the input: NCHW (default) or NHWC.", metavar="AXES"),
    "colour": Option("Colours: RGB (default) or BGR.", metavar="ORDER"),
    "mean": Option("Taken off the input; ImageNet's by default.", metavar="NUMBERS"),
    "std": Option("The input is divided by it; ImageNet's by default.", metavar="NUMBERS"),
    "scale": Option("255 where the network wants bytes.", float, "NUMBER"),
}


def matcher_options() -> dict[str, Option]:
    """Every option of `Matcher`, by name.

    Examples
    --------
    >>> list(matcher_options())[:3], matcher_options()["eps"].text
    (['backbone', 'weights', 'layers'], 'Entropy of the plan.')
    """
    return {**NETWORK_OPTIONS, **_declared()}
