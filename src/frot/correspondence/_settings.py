"""How two photographs are matched: every constant, and the presets of the literature."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from frot._errors import InputError
from frot._normalise import NORMALISATIONS
from frot._validate import check_choice, check_number
from frot.correspondence._mass import MASSES
from frot.correspondence._methods import METHODS
from frot.correspondence._transfer import TRANSFERS

__all__ = ["PRESETS", "Settings"]

PRIORS = ("coherence", "uniform")
# Longer sides of photographs: a little more than what most networks were trained on, and for those
# that were trained on larger images more. Chosen on pairs of cars.
SIDE = 320
SIDES = {"efficientnet-lite2": 400}


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
        Longer side that photographs are resized to; 320 if None, and 400 for EfficientNet-Lite2,
        which was trained on larger images than the others.
    enlarge : bool
        Whether smaller photographs grow.
    stride : float or "first"
        The grid of cells is that of the first layer with this stride or more (of this stride
        where all layers are finer), or of the very first layer.
    rank : int
        Directions of "srw".
    edges : bool
        Whether cells that see more than a stride beyond the photograph vote and are voted for.
    """

    method: str = "frot"
    hough: bool = True
    eta: float = 0.6
    eps: float = 0.1
    steps: int = 0
    tol: float = 1e-3
    prior: Any = "coherence"
    power: float = 2.0
    normalise: str = "none"
    mass: str = "uniform"
    exponent: float = 0.5
    transfer: str = "median"
    radius: float | None = None
    side: int | None = None
    enlarge: bool = True
    stride: float | str = 8
    rank: int = 50
    edges: bool = True

    def having(self, **changes: Any) -> Settings:
        """Return the settings with those that are not None replaced."""
        return replace(self, **{name: x for name, x in changes.items() if x is not None})

    def check(self) -> Settings:
        """Return checked settings, or raise with the one that is wrong."""
        check_choice(self.method, "method", tuple(METHODS))
        check_choice(self.normalise, "normalise", NORMALISATIONS)
        check_choice(self.mass, "mass", MASSES)
        check_choice(self.transfer, "transfer", TRANSFERS)
        for name in ("hough", "enlarge", "edges"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InputError(f"{name}: is {getattr(self, name)!r}; use True or False")
        numbers = {"eta": check_number(self.eta, "eta")}
        for name in ("eps", "tol", "exponent", "power"):
            numbers[name] = check_number(getattr(self, name), name, strict=True)
        if self.radius is not None:
            numbers["radius"] = check_number(self.radius, "radius")
        if self.stride != "first":
            numbers["stride"] = check_number(self.stride, "stride", strict=True)
        for name, least in (("steps", 0), ("side", 32), ("rank", 1)):
            value = getattr(self, name)
            if name == "side" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise InputError(f"{name}: must be a whole number >= {least}, got {value!r}")
        if self.method == "frot" and self.steps and not numbers["eta"]:
            raise InputError("eta: must be > 0 for the paper's steps; use steps=0 to solve with 0")
        return replace(self, **numbers, prior=_checked_prior(self.prior))

    def refuse(self, *, normalise: str | None = None, layer: Any = None) -> Settings:
        """Return the settings, or raise with what was asked for and the method has no use for."""
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

    def sized(self, network: str) -> Settings:
        """Return the settings with the side that suits a network, where none is given."""
        if self.side is not None:
            return self
        known = [side for name, side in SIDES.items() if network.startswith(name)]
        return replace(self, side=known[0] if known else SIDE)

    @property
    def parts(self) -> dict[str, Any]:
        """All settings by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _checked_prior(prior: Any) -> str | tuple[float, ...]:
    """The name of a prior, or a user's weights as plain numbers, which can be compared."""
    if isinstance(prior, str):
        return check_choice(prior, "prior", PRIORS)
    try:
        weights = np.asarray(prior, dtype=float)
    except (TypeError, ValueError):
        weights = np.zeros(0)
    if weights.ndim != 1 or not len(weights):
        raise InputError(
            f"prior: {prior!r} is none of {', '.join(map(repr, PRIORS))}, nor a weight a layer"
        )
    if not (np.isfinite(weights) & (weights > 0.0)).all():
        raise InputError(
            "prior: has weights that are not finite and > 0; leave out layers by `layers` instead"
        )
    return tuple(weights.tolist())


# "frot-paper": the paper's reading; "scot": the framework it builds on, its OT-HPF; "hpf":
# hyperpixel flow, which that extends. They match the cells of the first layer of a ResNet, whose
# stride is 4; that of other networks may be 2, and four times as many cells sixteen times the work.
PRESETS: dict[str, Settings] = {
    "frot": Settings(),
    "frot-paper": Settings(
        eta=0.3,
        steps=3,
        prior="uniform",
        mass="cam-top",
        exponent=1.0,
        transfer="boxes",
        side=300,
        stride=4,
    ),
    "scot": Settings(
        method="scot",
        eps=0.05,
        mass="cam",
        exponent=1.0,
        transfer="boxes",
        side=300,
        stride=4,
    ),
    "hpf": Settings(
        method="hpf",
        transfer="boxes",
        side=300,
        enlarge=False,
        stride=4,
        edges=False,
    ),
}
