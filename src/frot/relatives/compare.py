"""`compare`: feature-robust transport and its relatives on the same points, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError, brief, require
from frot._base.stopping import Interrupted
from frot._base.validate import check_count, check_number, second_names
from frot.api.solve import solve
from frot.groups.groups import Groups
from frot.problem.result import Chosen, Result
from frot.relatives.equitable import equitable
from frot.relatives.max_min import max_min
from frot.relatives.max_sliced import max_sliced
from frot.relatives.pair import check_pair
from frot.relatives.sliced import sliced
from frot.relatives.srw import srw
from frot.relatives.wasserstein import wasserstein

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("frot", "srw", "max_sliced", "sliced", "max_min", "wasserstein", "equitable")
COLUMNS = ("method", "value", "lower", "upper", "status", "seconds", "chose")


@second_names
def compare(
    X: Any,
    Y: Any,
    groups: Any = None,
    *,
    methods: Sequence[str] | str = ("frot", "srw", "max_sliced", "max_min", "wasserstein"),
    k: int = 2,
    a: Any = None,
    b: Any = None,
    normalise_weights: bool = False,
    tol: float | None = None,
    time_limit: float | None = None,
) -> Comparison:
    r"""Run feature-robust transport and related methods on the same points.

    All values are squared costs, :math:`\min_\Pi \sum_{ij} \pi_{ij} \|x_i - y_j\|^2` for
    "wasserstein", and for the others the part of it that their adversary counts, so that they can
    be compared; max_min <= frot <= wasserstein and max_sliced <= srw <= wasserstein always hold.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), or DataFrames
    groups : optional
        For "frot", "max_min" and "equitable": what `Groups.parse` reads; each feature if left out.
    methods : sequence of str
        Of "frot", "srw", "max_sliced", "sliced", "max_min", "wasserstein" and "equitable".
    k : int
        Dimension of the subspace of "srw".
    a, b, normalise_weights :
        As in `solve`.
    tol : float, optional
        Relative gap for "frot", "srw", "wasserstein" and "equitable"; each method's own if left
        out.
    time_limit : float, optional
        Seconds for each method.

    Returns
    -------
    Comparison
        A table of the methods, ``results`` by name, and ``plot()``.

    Raises
    ------
    Interrupted
        On Ctrl-C; its `result` is the comparison of the methods so far.

    Examples
    --------
    >>> import numpy as np, frot
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(20, 4)), rng.normal(size=(20, 4)) + [2.0, 0.0, 0.0, 0.0]
    >>> table = frot.compare(X, Y, methods=["frot", "max_sliced", "wasserstein"])
    >>> table["frot"].value < table["max_sliced"].value < table["wasserstein"].value
    True
    >>> table.chosen("frot").describe()
    'weights: x0 1'
    """
    names = _check_methods(methods)
    pair = check_pair(X, Y, a, b, normalise_weights)
    features = pair.X.shape[1]
    parsed = Groups.parse(groups, features, pair.columns)
    k = check_count(k, "k", most=features, of=" (the number of features)")
    weights = {"a": a, "b": b, "normalise_weights": normalise_weights}
    if time_limit is not None:
        time_limit = check_number(time_limit, "time_limit", strict=True)
    limits: dict[str, Any] = {**weights, "time_limit": time_limit}
    proven = limits if tol is None else {**limits, "tol": check_number(tol, "tol")}

    def split() -> Result:
        # Imported here, since it would make `import frot` wait.
        from scipy.spatial.distance import cdist

        costs = [cdist(pair.X[:, part], pair.Y[:, part], "sqeuclidean") for part in parsed.indices]
        return equitable(np.stack(costs), names=parsed.names, **proven)

    calls: dict[str, Callable[[], Result]] = {
        "frot": lambda: solve(X, Y, parsed, **proven),
        "srw": lambda: srw(X, Y, k, **proven),
        "max_sliced": lambda: max_sliced(X, Y, **limits),
        "sliced": lambda: sliced(X, Y, **weights),
        "max_min": lambda: max_min(X, Y, parsed, **limits),
        "wasserstein": lambda: wasserstein(X, Y, **proven),
        "equitable": split,
    }
    results: dict[str, Result] = {}
    columns = pair.columns or tuple(f"x{feature}" for feature in range(features))
    for name in names:
        try:
            results[name] = calls[name]().numpy()
        except Interrupted as stop:
            results[name] = stop.result.numpy()
            raise Interrupted(Comparison(results, parsed, columns)) from stop
    return Comparison(results, parsed, columns)


def _check_methods(methods: Any) -> list[str]:
    names = [methods] if isinstance(methods, str) else methods
    if not isinstance(names, list | tuple) or not names:
        raise InputError(f"methods: {brief(methods)} is no list of names of {', '.join(METHODS)}")
    for name in names:
        if name not in METHODS:
            raise InputError(f"methods: {brief(name)} is none of {', '.join(METHODS)}")
    return list(dict.fromkeys(names))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Methods on the same points, as `frot.compare` returns them.

    Attributes
    ----------
    results : mapping of str to Result
        What each method returned, in the order asked for; also ``comparison["srw"]``.
    groups : Groups
    feature_names : tuple of str, length d

    Examples
    --------
    >>> import frot
    >>> print(frot.compare([[0.0, 0.0]], [[3.0, 4.0]], methods=["frot", "wasserstein"]))
    method       value  lower  upper  status     seconds ...
    frot            16     16     16  CONVERGED ...  weights: x1 1
    wasserstein     25     25     25  CONVERGED ...  all features
    """

    results: Mapping[str, Result]
    groups: Groups
    feature_names: tuple[str, ...]

    def __getitem__(self, method: str) -> Result:
        """Return the result of a method by its name."""
        if method not in self.results:
            raise InputError(f"{method!r} was not compared; there are {', '.join(self.results)}")
        return self.results[method]

    def chosen(self, method: str) -> Chosen:
        """Return what the adversary of a method chose: weights of groups, or directions."""
        result = self[method]
        if result.chosen is None:
            return Chosen("weights", np.asarray(result.alpha), result.names)
        return result.chosen

    def shares(self, method: str) -> np.ndarray:
        r"""Return how much of the choice falls on each feature, (d,), of sum one.

        The weight of a group is shared by its features; of a direction these are the squares, of
        a subspace the diagonal of :math:`\Omega / k`.

        Examples
        --------
        >>> import frot
        >>> both = frot.compare([[0.0, 0.0]], [[3.0, 4.0]], methods=["frot", "srw"], k=1)
        >>> both.shares("frot"), both.shares("srw").round(2)
        (array([0., 1.]), array([0.36, 0.64]))
        """
        chosen = self.chosen(method)
        array = np.asarray(chosen.array)
        if method in ("wasserstein", "sliced"):
            shares = np.ones(len(self.feature_names))
        elif chosen.kind == "subspace":
            shares = array**2 @ np.asarray(chosen.weights)
        elif chosen.kind == "direction":
            shares = array**2
        else:
            sizes = self.groups.sizes
            each = np.repeat(array / sizes, sizes)
            shares = np.bincount(self.groups.flat, each, len(self.feature_names))
        return shares / shares.sum()

    def _cells(self, method: str) -> tuple[str, ...]:
        result = self.results[method]
        chose = "all features" if method == "wasserstein" else self.chosen(method).describe()
        if method == "sliced":
            chose = "all directions alike"
        numbers = [f"{number:.6g}" for number in (result.value, result.lower, result.upper)]
        return method, *numbers, str(result.status), f"{result.time:.3g}", chose

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row for each method.

        Examples
        --------
        >>> import frot
        >>> both = frot.compare([[0.0, 0.0]], [[3.0, 4.0]], methods=["frot", "wasserstein"])
        >>> both.to_frame()["value"].tolist()
        [16.0, 25.0]
        """
        rows = [
            (
                name,
                result.value,
                result.lower,
                result.upper,
                str(result.status),
                result.time,
                self._cells(name)[-1],
            )
            for name, result in self.results.items()
        ]
        return require("pandas", "tables").DataFrame(rows, columns=COLUMNS)

    def __str__(self) -> str:
        rows = [COLUMNS, *map(self._cells, self.results)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for row in rows:
            cells = [
                cell.rjust(width) if head in ("value", "lower", "upper") else cell.ljust(width)
                for head, cell, width in zip(COLUMNS, row, widths, strict=True)
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from frot.show.page import card

        title = f"{len(self.results)} transports of the same points"
        note = "Values are squared transport costs, in the squared unit of the features."
        return card(title, [], COLUMNS, map(self._cells, self.results), note)

    def plot(self, top: int = 12) -> Figure:
        """Draw values with their intervals, and beside them on which features the choice falls.

        Parameters
        ----------
        top : int
            Features at most, those that are chosen most.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from frot.show.style import BLUE, ORANGE, colour_bar, new_figure, plain, shorten, tidy

        names = list(self.results)
        rows = np.arange(len(names))
        figure = new_figure(11.0, 1.6 + 0.4 * len(names))
        values, chosen = figure.subplots(1, 2, sharey=True)
        for row, result in enumerate(self.results.values()):
            values.hlines(row, result.lower, result.upper, color=BLUE, linewidth=6, alpha=0.4)
            values.plot(result.value, row, "|", color=ORANGE, markersize=15, markeredgewidth=2.5)
        values.set_yticks(rows, names)
        values.set_xlim(left=0.0)
        values.set_xlabel("squared transport cost: value and interval")
        tidy(values)
        shares = np.stack([self.shares(name) for name in names])
        # The features that some method chooses most, in the order in which they came.
        heaviest = np.sort(
            np.argsort(-shares.max(axis=0), kind="stable")[: check_count(top, "top")]
        )
        image = chosen.imshow(shares[:, heaviest], cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        labels = [plain(shorten(self.feature_names[feature], 16)) for feature in heaviest]
        chosen.set_xticks(range(len(heaviest)), labels, rotation=45, ha="right")
        tidy(chosen)
        left = len(self.feature_names) - len(heaviest)
        chosen.set_xlabel(f"features ({left} more are not shown)" if left else "features")
        colour_bar(image, chosen, "share of the choice")
        values.set_ylim(len(names) - 0.5, -0.5)
        return figure
