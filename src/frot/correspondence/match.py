"""`Match`: what matching two photographs gives, in memory and in a file."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot._base.errors import InputError, require
from frot._base.files import load, write_archive
from frot._base.validate import check_choice, check_count, check_number
from frot.correspondence._features import Grid
from frot.correspondence._photo import Photo
from frot.correspondence.chance import chance
from frot.correspondence.flow import Flow, Warped, flow_of, look_up
from frot.correspondence.transfer import Transfer, Transferring
from frot.plans.plan import Plan
from frot.problem import result as result_file
from frot.problem.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What files have as it is.
_PLAIN = (
    "alpha", "phi", "prior", "method", "seconds", "agreement", "rigidity", "reflected", "looks",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Match:
    """Two matched photographs: moves points from A to B, with a confidence each.

    Attributes
    ----------
    source, target : Photo
        A and B.
    source_grid, target_grid : Grid
        Their n and m cells, in pixels of the resized photographs.
    source_ratio, target_ratio : float
        Pixels of the resized photograph a pixel of the one on disk.
    a, b : arrays of shape (n,) and (m,)
        Weights of the cells.
    alpha, phi : dicts
        Weights of the layers by name, and what the plan costs in each.
    prior : dict, optional
        The weights that the adversary started from, where it had some.
    result : Result, optional
        The transport: interval, status, potentials. None for methods without one.
    method : str
    seconds : float
        For everything, features included.
    source_cam, target_cam : arrays of shape (H, W), optional
        Where the network's classifier looks, from 0 to 1, over the photographs' own pixels.
    agreement : float
        The strength of Hough matching that the scores were made with; 0 where there was none.
    rigidity : float
        The chance that two of the mutual best matches move alike, before Hough matching.
    looks : tuple of floats
        What speaks for a reflection at each look at A: as it is and, where that left it open,
        mirrored. Two looks have to have more than 1 together. Empty where it was not asked for.
        Layers, plan and transport are those of the first look, scores those of both.
    """

    source: Photo
    target: Photo
    source_grid: Grid
    target_grid: Grid
    source_ratio: float
    target_ratio: float
    a: np.ndarray
    b: np.ndarray
    alpha: dict[str, float]
    phi: dict[str, float] | None
    prior: dict[str, float] | None
    result: Result | None
    method: str
    seconds: float
    source_cam: np.ndarray | None
    target_cam: np.ndarray | None
    transferring: Transferring
    raw_plan: Any
    agreement: float = 0.0
    rigidity: float = 0.0
    looks: tuple[float, ...] = ()

    @property
    def reflected(self) -> bool:
        """Whether matches were taken for a reflection, since A and B face opposite ways.

        Hough matching then looks for what reflections have in common, and points are read off so.
        """
        return self.transferring.reflected

    @property
    def home(self) -> Home:
        """Where the scores live."""
        return self.transferring.home

    @cached_property
    def scores(self) -> np.ndarray:
        """How strongly cells are matched, after Hough matching where asked, (n, m)."""
        return to_numpy(self.transferring.scores).astype(np.float32, copy=False)

    @cached_property
    def plan(self) -> np.ndarray | None:
        """The transport plan between cells, (n, m); None for methods without one."""
        return None if self.raw_plan is None else to_numpy(self.raw_plan)

    def transfer(self, points: Any) -> Transfer:
        """Move points of A to B.

        Parameters
        ----------
        points : array of shape (k, 2)
            x and y in pixels of A as it is on disk, upright, counted from zero.

        Returns
        -------
        Transfer
            ``points``, (k, 2), in pixels of B, within it; ``confidence``, (k,), the chance that
            they are within a tenth of the object's size of where they belong; ``share``, (k,), of
            the votes.
        """
        here = self.source_ratio * self.source.check_points(points)
        moved = self.transferring.moved(here)
        height, width = self.target.size
        inside = np.clip(moved / self.target_ratio, 0.0, [width - 1.0, height - 1.0])
        return Transfer(inside, *self.sure(here, moved))

    def sure(self, points: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the chance that points, (k, 2), belong where they went, and the share of votes.

        All in pixels of the resized photographs.
        """
        share = self.transferring.confidence(points, moved)
        return chance(self.transferring.support(points, moved), share, self.rigidity), share

    def heatmap(self, point: Any) -> np.ndarray:
        """Return how strongly every pixel of B is matched with a point of A, (H, W), at most 1."""
        at = self.source_ratio * self.source.check_points([point])[0]
        return self.transferring.heatmap(at, self.target.size, self.target_ratio)

    @cached_property
    def inverse(self) -> Match:
        """The match of B with A that the same scores and the same plan give.

        Its own `inverse` is this match again.
        """
        result = self.result
        if result is not None:
            f, g = result.potentials
            result = replace(result, plan=result.plan.T, potentials=(g, f))
        plan = None if self.raw_plan is None else self.home.xp.matrix_transpose(self.raw_plan)
        turned = Match(
            self.target, self.source, self.target_grid, self.source_grid,
            self.target_ratio, self.source_ratio, self.b, self.a,
            self.alpha, self.phi, self.prior, result, self.method, self.seconds,
            self.target_cam, self.source_cam, self.transferring.inverse, plan,
            self.agreement, self.rigidity, self.looks,
        )  # fmt: skip
        vars(turned)["inverse"] = self
        return turned

    def flow(self, cycle: float | None = None) -> Flow:
        """Return where every pixel of A lies in B.

        Points are moved as by `transfer`, at every pixel of A, or of larger photographs on a
        lattice of up to 150,000 of them, with the displacement bilinear in between; the certainty
        is their confidence, read off twice a stride.

        Parameters
        ----------
        cycle : float, optional
            Pixels of A: where a pixel that goes to B and back ends further than this from where
            it began, the flow is not valid. Without it only pixels off a mask and those that go
            beyond B are not.

        Returns
        -------
        Flow
            ``displacement``, (H, W, 2), ``certainty`` and ``valid``, (H, W); see `Flow.save`.

        Examples
        --------
        >>> from frot.correspondence import Matcher
        >>> from skimage.data import chelsea
        >>> flow = Matcher(side=96)(chelsea(), chelsea()).flow()
        >>> flow.displacement.shape, bool(abs(flow.displacement[20:-20, 20:-20]).max() < 8)
        ((300, 451, 2), True)
        """
        there = flow_of(self)
        if cycle is None:
            return there
        check_number(cycle, "cycle", strict=True)
        back = there.displacement + look_up(self.inverse.flow().displacement, there)
        return replace(there, valid=there.valid & (np.hypot(*np.moveaxis(back, -1, 0)) <= cycle))

    def mutual(self) -> tuple[np.ndarray, Transfer]:
        """Return centres of A's cells, (k, 2), that have a best match whose best they are, moved.

        These pairs are what other methods for two photographs work on, such as RANSAC.

        Examples
        --------
        >>> from frot.correspondence import Matcher
        >>> from skimage.data import chelsea
        >>> points, moved = Matcher(side=64)(chelsea(), chelsea()).mutual()
        >>> points.shape == moved.points.shape
        True
        """
        scores = self.transferring.scores
        there, back = (to_numpy(self.home.xp.argmax(scores, axis=axis)) for axis in (1, 0))
        both = (back[there] == np.arange(len(there))) & self.transferring.voting
        h, w = self.source.size
        centres = self.source_grid.centres[both] / self.source_ratio
        points = np.clip(centres, 0.0, [w - 1.0, h - 1.0])
        return points, self.transfer(points)

    def cycle_error(self, points: Any) -> np.ndarray:
        """Return how far points of A, (k, 2), end from where they began if they go to B and back.

        In pixels of A, (k,). Where it is large, A's point and B's do not have each other.
        """
        back = self.inverse.transfer(self.transfer(points).points).points
        return np.linalg.norm(back - np.asarray(points, dtype=float), axis=1)

    def warp(self, onto: str = "target") -> Warped:
        """Return one photograph in the frame of the other.

        Parameters
        ----------
        onto : {"target", "source"}
            "target" gives A as B's frame sees it: every pixel of B has the colour of A where it
            comes from, by the flow of `inverse`. "source" gives B in the frame of A, by `flow`.

        Returns
        -------
        Warped
            ``pixels``, float32 in [0, 1] of shape (H, W, 3), and ``valid``, (H, W), with H and W
            those of the photograph that it is warped onto.
        """
        check_choice(onto, "onto", ("target", "source"))
        match = self.inverse if onto == "target" else self
        flow = match.flow()
        return Warped(look_up(match.target.pixels, flow), flow.valid)

    def transfer_labels(self, labels: Any, fill: int = 0) -> np.ndarray:
        """Return the labels of B's pixels, (H, W) of B, from those of A's.

        Every pixel of B takes the label of the pixel of A that it comes from, by the flow of
        `inverse`.

        Parameters
        ----------
        labels : integer or bool array of shape (H, W)
            A label for each pixel of A.
        fill : int
            The label of pixels that come from nowhere.
        """
        found = self._per_pixel(labels, "labels", "biu")
        kind = np.iinfo(np.uint8 if found.dtype.kind == "b" else found.dtype)
        fill = check_count(fill, "fill", least=kind.min, most=kind.max, of=f" ({found.dtype})")
        flow = self.inverse.flow()
        return np.where(flow.valid, look_up(found, flow, nearest=True), found.dtype.type(fill))

    def transfer_mask(self, mask: Any) -> np.ndarray:
        """Return where an object of A, bool of shape (H, W), is in B; see `transfer_labels`."""
        return self.transfer_labels(self._per_pixel(mask, "mask", "biuf") > 0) > 0

    def _per_pixel(self, values: Any, name: str, kinds: str) -> np.ndarray:
        """Return an array with a number of one of the kinds for each pixel of A."""
        found = to_numpy(values)
        if found.shape != self.source.size or found.dtype.kind not in kinds:
            numbers = "numbers" if "f" in kinds else "whole numbers"
            raise InputError(
                f"{name}: has shape {found.shape} of {found.dtype}; give {numbers} or bool of "
                f"shape {self.source.size}, one per pixel of {self.source.name}"
            )
        return found

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the match to an ``.npz`` file that `load_match` reads.

        Both photographs, the scores, the plan and the interval. The file is complete or not there.
        It holds arrays and one text in JSON, and no pickles, so that reading one from elsewhere
        runs no code. Photographs of 8 or 16 bits take as many.

        Examples
        --------
        >>> import tempfile
        >>> from frot.correspondence import Matcher
        >>> from skimage.data import chelsea
        >>> match = Matcher(side=64)(chelsea(), chelsea())
        >>> again = load_match(match.save(Path(tempfile.mkdtemp()) / "cats.npz"))
        >>> bool((again.transfer([[220, 100]]).points == match.transfer([[220, 100]]).points).all())
        True
        """
        read, result = self.transferring, self.result
        about: dict[str, Any] = {
            "names": [self.source.name, self.target.name],
            "grids": [asdict(self.source_grid), asdict(self.target_grid)],
            "ratios": [self.source_ratio, self.target_ratio],
            "transfer": [read.mode, read.blank],
        }
        about |= {name: getattr(self, name) for name in _PLAIN}
        arrays = {
            "source": _packed(self.source.pixels),
            "target": _packed(self.target.pixels),
            "scores": to_numpy(read.scores),
        }
        kept = ("a", "b", "plan", "source_cam", "target_cam")
        arrays |= {name: getattr(self, name) for name in kept}
        if result is not None:
            known = result_file.arrays_of(result, plan=False)
            arrays |= {f"result_{name}": array for name, array in known.items()}
        arrays["about"] = np.array(json.dumps(about, default=float))
        return write_archive(path, "match", arrays)

    def plot(self, points: Any = None, **options: Any) -> Figure:
        """Draw the photographs side by side with points and where they go."""
        from frot.correspondence.match_picture import plot_matches

        return plot_matches(self, points, **options)

    def write_page(self, path: str | Path, **options: Any) -> Path:
        """Write a page where one clicks a point in A and sees it in B."""
        from frot.correspondence.page import write_match_page

        return write_match_page(self, path, **options)

    def to_dict(self) -> dict[str, Any]:
        """Return layers, sizes and the interval as numbers and text ready for JSON."""
        result = self.result
        return {
            **{
                side: {"name": photo.name, "size": list(photo.size)}
                for side, photo in (("source", self.source), ("target", self.target))
            },
            "alpha": {name: float(weight) for name, weight in self.alpha.items()},
            "phi": {name: float(cost) for name, cost in (self.phi or {}).items()},
            "method": self.method,
            "agreement": float(self.agreement),
            "reflected": self.reflected,
            "looks": [float(look) for look in self.looks],
            "seconds": float(self.seconds),
            "result": None
            if result is None
            else {
                name: value
                for name, value in result.to_dict().items()
                if name in ("value", "lower", "upper", "gap", "eta", "eps", "status", "solver")
            },
        }

    def to_frame(self) -> Any:
        """Return the layers as a pandas DataFrame: layer, alpha and phi, in their order."""
        phi = self.phi or {}
        rows = [(name, weight, phi.get(name, np.nan)) for name, weight in self.alpha.items()]
        return require("pandas", "tables").DataFrame(rows, columns=["layer", "alpha", "phi"])

    def _repr_html_(self) -> str:
        from frot.show.page import Bar, card

        n, m = self.source_grid.count, self.target_grid.count
        facts = [("method", f"{self.method}, {n:,} to {m:,} cells, {self.seconds:.3g} s")]
        if (result := self.result) is not None:
            interval = f"[{result.lower:.6g}, {result.upper:.6g}], gap {result.gap:.1e}"
            facts += [("interval", interval), ("status", str(result.status))]
        phi = self.phi or {}
        heaviest = sorted(self.alpha.items(), key=lambda item: -item[1])[:6]
        rows = [[name, Bar(weight), phi.get(name, np.nan)] for name, weight in heaviest]
        left = len(self.alpha) - len(rows)
        note = f"and {left} more layers" if left else ""
        title = f"{self.source.name} matched with {self.target.name}"
        return card(title, facts, ["layer", "alpha", "phi"], rows, note)

    def __repr__(self) -> str:
        top = sorted(self.alpha.items(), key=lambda item: -item[1])[:3]
        layers = ", ".join(f"{name} {weight:.2f}" for name, weight in top)
        return f"Match({self.source.name} -> {self.target.name}, {self.method}; {layers})"


def load_match(path: str | os.PathLike[str]) -> Match:
    """Read a match that `Match.save` wrote; see `frot.load`.

    Its arrays are NumPy's, whatever device it was made on.
    """
    return load(path, "match")


def rebuilt(arrays: dict[str, np.ndarray]) -> Match:
    """Make the match that `Match.save` took apart; ValueError if its parts do not fit."""
    about = json.loads(str(arrays["about"]))
    source_grid, target_grid = (
        Grid(**{**grid, "start": tuple(grid["start"])}) for grid in about["grids"]
    )
    scores, plan = arrays["scores"], arrays.get("plan")
    n, m = source_grid.count, target_grid.count
    first, second = about["names"]
    source = Photo(_unpacked(arrays["source"]), str(first))
    target = Photo(_unpacked(arrays["target"]), str(second))
    shapes = {
        "scores": (n, m), "plan": (n, m), "a": (n,), "b": (m,),
        "source": (*source.size, 3), "source_cam": source.size,
        "target": (*target.size, 3), "target_cam": target.size,
    }  # fmt: skip
    for name, shape in shapes.items():
        if name in arrays and arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape}, which should be {shape}")
    known = {name.partition("_")[2]: x for name, x in arrays.items() if name[:7] == "result_"}
    result = result_file.rebuilt(known, Plan(plan, copy=False)) if known else None
    (here, there), (mode, blank) = about["ratios"], about["transfer"]
    reading = Transferring(
        scores, source_grid, target_grid, Home.of(scores), mode, blank,
        bool(about["reflected"]),
    )  # fmt: skip
    phi, prior = (about[name] and _floats(about[name]) for name in ("phi", "prior"))
    return Match(
        source, target, source_grid, target_grid, float(here), float(there),
        arrays["a"], arrays["b"], _floats(about["alpha"]), phi, prior,
        result, str(about["method"]), float(about["seconds"]),
        arrays.get("source_cam"), arrays.get("target_cam"), reading, plan,
        float(about["agreement"]), float(about["rigidity"]), tuple(map(float, about["looks"])),
    )  # fmt: skip


def _floats(values: dict[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def _packed(pixels: np.ndarray) -> np.ndarray:
    """Pixels as the whole numbers that they were read from, where they are such."""
    for kind in (np.uint8, np.uint16):
        whole = np.rint(pixels * np.float32(np.iinfo(kind).max)).astype(kind)
        if np.array_equal(_unpacked(whole), pixels):
            return whole
    return pixels


def _unpacked(stored: np.ndarray) -> np.ndarray:
    if stored.dtype.kind != "u":
        return stored
    return stored.astype(np.float32) / np.float32(np.iinfo(stored.dtype).max)
