"""One look at A, or a second at A mirrored: votes of cells, which way things face, scores.

Mostly one look is enough. Where its votes leave open whether things face opposite ways, A is looked
at a second time, mirrored: the network sees the mirrored photograph, and votes are those of A's own
cells all the same. On things that face opposite ways both looks find a reflection. What is its own
mirror image has, mirrored, the votes of the first look the other way round: as much as the one
finds for a reflection the other finds against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from frot.correspondence.agreement import (
    AUTO,
    NARROW,
    RULE,
    Matches,
    hough,
    reflection,
    rigidity,
    suited_strength,
)
from frot.correspondence.layers import PairFeatures
from frot.correspondence.methods import Outcome
from frot.correspondence.settings import Settings
from frot.correspondence.transfer import Transferring


@dataclass(frozen=True, eq=False)
class Look:
    """The votes of one look.

    Attributes
    ----------
    pair : PairFeatures
        The photographs whose own cells vote.
    votes : array of shape (n, m)
        Before Hough matching.
    """

    pair: PairFeatures
    votes: Any

    @cached_property
    def matches(self) -> Matches:
        """The cells' best matches."""
        layers = self.pair.layers
        return Matches.of(self.votes, layers.source_grid, layers.target_grid, layers.home)

    @cached_property
    def reflection(self) -> float:
        """What speaks for things that face opposite ways."""
        sizes = self.pair.source.size, self.pair.target.size
        return reflection(self.votes, self.matches, *sizes, self.pair.layers.home)


@dataclass(frozen=True, eq=False)
class Looks:
    r"""All looks at two photographs.

    Things face opposite ways if :math:`R_1 + R_2 > 1`, with R the evidence for a reflection of the
    first look and of the second. Then votes are those of both, :math:`\sqrt{V_1 V_2}`.

    Attributes
    ----------
    outcome : Outcome
        What the method made of the first.
    first : Look
        At A as it is.
    mirrored : Look, optional
        At A mirrored, where there was such a look.
    """

    outcome: Outcome
    first: Look
    mirrored: Look | None = None

    def facing_matters(self, settings: Settings) -> bool:
        """Return whether it matters which way things face."""
        source, target = self.first.pair.source, self.first.pair.target
        blank = source.blank or target.blank
        return settings.agreement == AUTO and not blank

    @property
    def open(self) -> bool:
        """Whether the first look leaves open which way things face."""
        return self.mirrored is None and self.first.reflection > RULE.open

    @property
    def evidence(self) -> tuple[float, ...]:
        """What speaks for a reflection, look by look."""
        looks = (self.first, self.mirrored)
        return tuple(look.reflection for look in looks if look is not None)

    @property
    def reflected(self) -> bool:
        """Whether things face opposite ways, by all there is to know."""
        return sum(self.evidence) > (RULE.reflected if self.mirrored is None else RULE.confirmed)

    @property
    def combined(self) -> Look:
        """The votes that all looks have in common: their geometric mean."""
        if self.mirrored is None:
            return self.first
        xp = self.first.pair.layers.home.xp
        return Look(self.first.pair, xp.sqrt(self.first.votes * self.mirrored.votes))


def read_off(looks: Looks, settings: Settings) -> tuple[Transferring, dict[str, Any]]:
    """Return scores, ready to be read off at points, and what a match says about them.

    Scores are votes after Hough matching where that is asked for, of a reflection where things
    face opposite ways.
    """
    pair, asked = looks.first.pair, looks.facing_matters(settings)
    reflected = asked and looks.reflected
    look = looks.combined if reflected else looks.first
    layers = pair.layers
    rigid = rigidity(look.matches, layers.home, reflected)
    blank = pair.source.blank or pair.target.blank
    strength = _strength(settings, blank, rigid)
    smoothing = RULE.wide if settings.agreement == AUTO else NARROW
    scores = _agreeing(look, strength, smoothing, reflected) if strength else look.votes
    ready = Transferring(
        scores, layers.source_grid, layers.target_grid, layers.home,
        settings.transfer, blank, reflected,
    )  # fmt: skip
    return ready, {
        "agreement": strength,
        "rigidity": rigid,
        "looks": looks.evidence if asked else (),
    }


def _strength(settings: Settings, blank: bool, rigid: float) -> float:
    """The power of the agreement; 0 is without Hough matching."""
    if settings.agreement != AUTO:
        return float(settings.agreement)
    return 0.0 if blank else suited_strength(rigid)


def _agreeing(look: Look, strength: float, smoothing: tuple[float, int], reflected: bool) -> Any:
    """Votes after Hough matching, (n, m)."""
    pair, layers = look.pair, look.pair.layers
    return hough(
        look.votes, layers.source_grid, layers.target_grid, pair.source.size, pair.target.size,
        layers.home, strength, smoothing, reflected,
    )  # fmt: skip
