"""`Settings`: a matcher's options, each with its default and its check; and the presets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np

from frot._base.contract import refuse_masked
from frot._base.errors import InputError, brief
from frot._base.validate import check_choice, check_count, check_flag, check_number
from frot.correspondence._features import MASSES
from frot.correspondence.agreement import AUTO
from frot.correspondence.methods import METHODS, hpf, method_name, scot
from frot.correspondence.transfer import TRANSFERS

PRIORS = ("coherence", "uniform")

Check = Callable[[Any, str], Any]


def _setting(default: Any, check: Check) -> Any:
    return field(default=default, metadata={"check": check})


def _choice(default: str, choices: tuple[str, ...]) -> Any:
    return _setting(default, partial(check_choice, choices=choices))


def _number(default: float, *, strict: bool = True) -> Any:
    return _setting(default, partial(check_number, strict=strict))


def _whole(default: int | None, least: int) -> Any:
    check = partial(check_count, least=least)
    return _setting(default, _or_none(check) if default is None else check)


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


def _check_method(value: Any, name: str) -> Any:
    return value if callable(value) else check_choice(value, name, tuple(METHODS))


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
    method : str or callable
        "frot", or one of "weighted" (transport with the mean of the layers' costs, weighted by the
        prior), "uniform" (their plain mean), "ot" (layers put end to end) and "nn" (cosine nearest
        neighbours). Or a function of the layers, a `LayerPair`, and the weights a and b of their
        cells that returns a plan, (n, m), or a `frot.Result`; ``layers.costs`` is what
        `frot.solve_costs` takes.
    agreement : float or "auto"
        How strongly votes are weighed by Hough matching: they are multiplied by the agreement on
        their displacement to this power. 0 is without, 1 is the original's. "auto" takes 0.5, or
        0.75 where matches move alike, with a wider smoothing; and agreement on a reflection where
        A and B face opposite ways, for which A is looked at mirrored, too, where votes leave it
        open; see `Match.reflected`, `Match.looks`.
    eta : float
        What the adversary pays for leaving the prior, in units of cost (from 0 to 4).
    eps : float
        Entropy of the plan, in the same units.
    steps : int
        Steps of the paper's Frank-Wolfe, on the paper's costs: cosines of vectors that are
        interpolated to the cells. 0 solves to `tol`, with the cosines of layers' own cells.
    tol : float
        Relative gap to solve to.
    prior : str or array of shape (L,)
        Weights of the layers that the adversary starts from: "coherence", squared, "uniform" (the
        paper's entropy), or a user's, all positive.
    mass : {"uniform", "cam", "cam-top"}
        Weights of the cells; see `frot.correspondence`.
    exponent : float
        Votes are :math:`(n \Pi)^e`.
    transfer : {"median", "boxes", "argmax"}
        How points are read off.
    side : int, optional
        Longer side that photographs are resized to; 320 if None, 400 for EfficientNet-Lite2,
        which was trained on larger images than the others, and 60 patches for vision transformers
        (840 pixels where patches have 14).
    antialias : bool
        Whether all pixels of a photograph that shrinks count, and not only those next to where it
        is sampled; the presets of the literature do not use it.
    stride : float or str
        Pixels between cells. A number is obeyed: where no layer has that stride, one is
        interpolated to it. ``"8+"``, the default, is the first layer with this stride or more (of
        this stride where all layers are finer), and ``"first"`` the very first layer.
    centres : {"measured", "nominal"}
        Where cells of convolutions look: the offset of each stride is measured once for a network,
        on images and their mirror images; or multiples of the stride, as in the literature.
    """

    method: Any = _setting("frot", _check_method)
    agreement: float | str = _setting(AUTO, _check_agreement)
    eta: float = _number(0.6, strict=False)
    eps: float = _number(0.1)
    steps: int = _whole(0, 0)
    tol: float = _number(1e-3)
    prior: Any = _setting("coherence", _check_prior)
    mass: str = _choice("uniform", MASSES)
    exponent: float = _number(0.5)
    transfer: str = _choice("median", TRANSFERS)
    side: int | None = _whole(None, 32)
    antialias: bool = _setting(True, check_flag)
    stride: float | str = _setting("8+", _check_stride)
    centres: str = _choice("measured", ("measured", "nominal"))

    def having(self, **changes: Any) -> Settings:
        """Return the settings with those that are not None replaced."""
        return replace(self, **{name: x for name, x in changes.items() if x is not None})

    def check(self) -> Settings:
        """Return checked settings, or raise an error that names the wrong one."""
        checked = {
            one.name: one.metadata["check"](getattr(self, one.name), one.name)
            for one in fields(self)
        }
        if self.method == "frot" and checked["steps"] and not checked["eta"]:
            raise InputError("eta: must be > 0 for the paper's steps; use steps=0 to solve with 0")
        if self.method == "frot" and not checked["eta"] and checked["prior"] != "uniform":
            raise InputError(
                "eta: at 0 the adversary takes the layers that cost most, whatever the prior; pass "
                "eta > 0, or prior='uniform'"
            )
        return replace(self, **checked)

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
        # A little more than what most networks were trained on, and for one that was trained on
        # larger images more: chosen on pairs of cars.
        suited = 400 if network.startswith("efficientnet-lite2") else 320
        if patch is not None:
            suited = 60 * patch
        return replace(self, side=suited if side is None else side)

    @property
    def parts(self) -> dict[str, Any]:
        """All settings by name, a method of the user's by its own."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return found | {"method": method_name(self.method)}


# "frot-paper": the paper's reading; "scot": the framework it builds on, its OT-HPF; "hpf":
# hyperpixel flow, which that extends. They match the cells of the first layer of a ResNet, whose
# stride is 4; that of other networks may be 2, and four times as many cells sixteen times the work.
_BOXES: dict[str, Any] = {
    "agreement": 1.0, "transfer": "boxes", "side": 300, "stride": "4+", "antialias": False,
    "centres": "nominal",
}  # fmt: skip
PRESETS: dict[str, Settings] = {
    "frot": Settings(),
    "frot-paper": Settings(
        eta=0.3, steps=3, prior="uniform", mass="cam-top", exponent=1.0, **_BOXES
    ),
    "scot": Settings(method=scot, mass="cam", exponent=1.0, **_BOXES),
    "hpf": Settings(method=hpf, exponent=1.0, **_BOXES),
}
