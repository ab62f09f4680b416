"""`Matcher.tune`: layers and the strength of votes from a handful of labelled pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError, collect_warnings
from frot._base.validate import check_count, check_number
from frot.correspondence.datasets.pair_set import Pair, PairSet
from frot.correspondence.evaluation.scores import Estimate, mean_of, pck
from frot.correspondence.layers import PairFeatures
from frot.solvers.progress import counting_bar

if TYPE_CHECKING:
    from frot.correspondence._matcher import Matcher
    from frot.correspondence.methods import Outcome

# Layers by their numbers (None is all), and the strength of votes.
Choice = tuple[tuple[int, ...] | None, Any]


@dataclass(frozen=True, eq=False)
class Tuned:
    """What labelled pairs say about layers and the strength of votes.

    Attributes
    ----------
    matcher : Matcher
        The one to use: with what was chosen, if that was better on pairs that it was not chosen on
        by more than a standard error; else as it was.
    layers : tuple of str
        The layers that match the labelled pairs best, all of them where no choice is better.
    agreement : float or "auto"
        The strength of votes that does with these.
    score : float
        PCK per photograph of the choice on the pairs it was made on: a maximum, and more than to
        expect on others.
    gain : Estimate
        What choosing so brings on pairs that are not looked at: the same search on all folds of
        the pairs but one, scored on that one, less the matcher as it was.
    """

    matcher: Matcher
    layers: tuple[str, ...]
    agreement: Any
    score: float
    gain: Estimate

    @property
    def better(self) -> bool:
        """Whether the gain on held-out pairs is more than its standard error."""
        return self.gain.value > self.gain.standard_error

    def __repr__(self) -> str:
        gain = f"{100 * self.gain.value:+.1f} ± {100 * self.gain.standard_error:.1f}"
        if not self.better:
            return f"Tuned(nothing gained: {gain} on held-out pairs; the matcher stays as it was)"
        layers = ", ".join(self.layers)
        return f"Tuned({gain} on held-out pairs; layers {layers}; agreement {self.agreement!r})"


def tune(
    matcher: Matcher,
    pairs: PairSet,
    most: int = 4,
    beam: int = 1,
    agreements: Sequence[Any] = (0.0, 0.25, 0.5, 1.0, "auto"),
    folds: int = 4,
    threshold: float = 0.1,
    progress: bool = False,
) -> Tuned:
    """Choose layers and the strength of votes; see `Matcher.tune`."""
    most, beam = check_count(most, "most"), check_count(beam, "beam")
    folds = check_count(folds, "folds", least=2)
    check_number(threshold, "threshold", strict=True)
    if not isinstance(pairs, PairSet):
        raise InputError(f"pairs: is a {type(pairs).__name__}; use load_pairs or make a PairSet")
    if pairs.score != "points":
        raise InputError(f"pairs: {pairs.name} is scored by masks; give a set with points")
    if len(pairs) < 2:
        raise InputError(f"pairs: {len(pairs)} are too few; some are held out, so give 2 or more")
    names = matcher.backbone.layers
    count = len(pairs)
    # About: folds look at some choices that the whole does not.
    tried = count * len(names) * (1 + beam * (most - 1))
    with counting_bar("choices", tried, tried, enabled=progress) as show:
        scores = _Scores(matcher, pairs.pairs, threshold, show)
        everyone = list(range(count))
        best = _search(scores, everyone, len(names), most, beam, agreements)
        gains = np.zeros(count)
        for fold in np.array_split(everyone, min(folds, count)):
            others = [one for one in everyone if one not in fold]
            chosen = _search(scores, others, len(names), most, beam, agreements)
            for one in fold:
                gains[one] = scores(chosen, one) - scores(scores.given, one)
    layers, agreement = best
    gain = mean_of(gains)
    tuned = matcher if layers is None else matcher.with_layers(layers)
    found = Tuned(
        tuned.with_settings(agreement=agreement),
        names if layers is None else tuple(names[k] for k in layers),
        agreement,
        float(np.mean([scores(best, one) for one in everyone])),
        gain,
    )
    if found.better:
        return found
    return Tuned(matcher, found.layers, agreement, found.score, gain)


class _Scores:
    """PCK of choices on single pairs, each worked out once."""

    def __init__(
        self, matcher: Matcher, pairs: Sequence[Pair], threshold: float,
        show: Callable[[int, float], None],
    ) -> None:  # fmt: skip
        self.matcher, self.pairs, self.threshold, self.show = matcher, pairs, threshold, show
        self.given: Choice = (None, matcher.settings.agreement)
        self._known: dict[tuple[Choice, int], float] = {}
        self._matched: dict[tuple[Any, int], tuple[PairFeatures, Outcome]] = {}

    def __call__(self, choice: Choice, number: int) -> float:
        """Return the share of right points of one pair."""
        key = (choice, number)
        if key not in self._known:
            layers, agreement = choice
            pair = self.pairs[number]
            way = self.matcher if layers is None else self.matcher.with_layers(layers)
            # What stops at its limit is scored as it is.
            with collect_warnings():
                features = way.pair_features(pair.source, pair.target)
                outcome = self._solved(way, layers, number, features)
                errors = way.with_settings(agreement=agreement).errors(features, outcome, pair)
            self._known[key] = pck([errors], self.threshold).value
            self.show(1, 1.0)
        return self._known[key]

    def _solved(self, way: Matcher, layers: Any, number: int, features: PairFeatures) -> Outcome:
        """Return what the method makes of a pair; of the last choice it is remembered."""
        key = (layers, number)
        if key not in self._matched:
            if any(other != layers for other, _ in self._matched):
                self._matched.clear()
            self._matched[key] = (features, way.solve(features))
        return self._matched[key][1]

    def mean(self, choice: Choice, some: Sequence[int]) -> float:
        """Return the mean over some pairs, without a rounding between sums of the same hits."""
        return round(float(np.mean([self(choice, one) for one in some])), 12)


def _search(
    scores: _Scores,
    some: Sequence[int],
    count: int,
    most: int,
    beam: int,
    agreements: Sequence[Any],
) -> Choice:
    """Return the best choice on some pairs: layers by the beam search of Min et al. 2019a.

    Every layer alone; the `beam` best are joined by every other, and so on up to `most`, as long
    as the best gets better. Then the strength of votes with these. Of equals the given one stays,
    then the one with fewest layers, then the first in the network.
    """
    agreement = scores.given[1]
    best: Choice = scores.given
    kept: list[tuple[int, ...]] = [()]
    last = -1.0
    for _ in range(min(most, count)):
        choices = sorted(
            {tuple(sorted((*old, k))) for old in kept for k in range(count) if k not in old}
        )
        values = np.array([scores.mean((choice, agreement), some) for choice in choices])
        order = np.argsort(-values, kind="stable")[:beam]
        kept = [choices[k] for k in order]
        if values[order[0]] <= last:
            break
        last = float(values[order[0]])
        if last > scores.mean(best, some):
            best = (kept[0], agreement)
    for other in agreements:
        if scores.mean((best[0], other), some) > scores.mean(best, some):
            best = (best[0], other)
    return best
