"""What a network has to offer to be matched with."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from frot.correspondence._feature_map import FeatureMap

__all__ = ["Backbone", "Classifying", "state_of"]


class Backbone(Protocol):
    """Anything that turns an image into named maps of features.

    One whose weights may change while it is used can have a `state` as well: a key that costs
    little and is another after a change, so that no features are remembered that are out of date.
    """

    @property
    def name(self) -> str:
        """A short name for tables and pictures."""
        ...

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in the order of the network."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides what comes out: weights, layers, preprocessing."""
        ...

    def extract(self, image: np.ndarray) -> list[FeatureMap]:
        """Return one map a layer.

        Parameters
        ----------
        image : array of shape (h, w, 3)
            Red, green and blue in [0, 1], single precision, already of the size to be matched at.
            Mean, standard deviation, layout and order of colours are the backbone's own affair.
        """
        ...


@runtime_checkable
class Classifying(Protocol):
    """A backbone that has kept its classifier, and can say where it looked."""

    def class_maps(self, image: np.ndarray, classes: int) -> np.ndarray:
        r"""Return class activation maps of the most probable classes, shape (classes, h, w).

        .. math:: \mathrm{CAM}_c(y, x) = \sum_k W_{ck}\, F_k(y, x)

        with F the maps that the classifier averages (after their last activation) and W its
        weights, without bias. The most probable class comes first.
        """
        ...


def state_of(backbone: Any) -> Any:
    """Return the state of a backbone, or of the one inside it; None where it has none.

    Examples
    --------
    >>> state_of(object()) is None
    True
    """
    while (inside := getattr(backbone, "backbone", None)) is not None:
        backbone = inside
    return getattr(backbone, "state", None)
