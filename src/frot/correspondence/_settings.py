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
        entropy), or a user's.
    power : float
        What coherences are raised to.
    normalise : {"none", "mean", "regret"}
        As in `frot.solve`.
    mass : {"uniform", "cam", "cam-top"}
        Weights of the cells; see `frot.correspondence`.
    exponent : float
        Votes are :math:`(n \Pi)^e`.
    transfer : {"median", "near", "boxes", "argmax", "soft"}
        How points are read off.
    radius : float, optional
        Pixels of the resized photograph within which cells are near; a stride if None (for
        "median" the standard deviation of their weights; one and a half strides).
    side : int
        Longer side that photographs are resized to.
    enlarge : bool
        Whether smaller photographs grow.
    stride : float or "first"
        The grid of cells is that of the first layer with this stride or more (of this stride
        where all layers are finer), or of the very first layer.
    rank : int
        Directions of "srw".
    """

    method: str = "frot"
    hough: bool = True
    eta: float = 0.3
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
    side: int = 320
    enlarge: bool = True
    stride: float | str = 8
    rank: int = 50

    def having(self, **changes: Any) -> Settings:
        """Return the settings with those that are not None replaced."""
        return replace(self, **{name: x for name, x in changes.items() if x is not None})

    def check(self) -> Settings:
        """Return checked settings, or raise with the one that is wrong."""
        check_choice(self.method, "method", tuple(METHODS))
        check_choice(self.normalise, "normalise", NORMALISATIONS)
        check_choice(self.mass, "mass", MASSES)
        check_choice(self.transfer, "transfer", TRANSFERS)
        if isinstance(self.prior, str):
            check_choice(self.prior, "prior", PRIORS)
        for name in ("eps", "tol", "exponent", "power"):
            check_number(getattr(self, name), name, strict=True)
        check_number(self.eta, "eta")
        if self.radius is not None:
            check_number(self.radius, "radius")
        for name, least in (("steps", 0), ("side", 32), ("rank", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise InputError(f"{name}: must be a whole number >= {least}, got {value!r}")
        if self.stride != "first":
            check_number(self.stride, "stride", strict=True)
        return self

    @property
    def parts(self) -> dict[str, Any]:
        """All settings by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


# "frot-paper": the paper's reading; "scot": the framework it builds on, its OT-HPF.
PRESETS: dict[str, Settings] = {
    "frot": Settings(),
    "frot-paper": Settings(
        steps=3,
        prior="uniform",
        mass="cam-top",
        exponent=1.0,
        transfer="boxes",
        side=300,
        stride="first",
    ),
    "scot": Settings(
        method="scot",
        eps=0.05,
        mass="cam",
        exponent=1.0,
        transfer="boxes",
        side=300,
        stride="first",
    ),
}
