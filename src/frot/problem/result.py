"""`Result` and `Status`: the answer, a proven interval around the optimum, why the solver stopped.

Answers go into files as plain arrays by name (`arrays_of`) and come back (`rebuilt`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field, replace
from enum import Enum
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from frot._base.arrays import Array, Home, read_only, to_numpy
from frot._base.contract import gap_floor, relative_gap
from frot._base.errors import require
from frot._base.files import write_archive
from frot._base.stopping import Interrupted
from frot.groups.groups import Groups
from frot.plans.plan import Plan, bring_plan, is_sparse, plan_kind
from frot.problem.out_of_sample import transported
from frot.problem.problem import Problem
from frot.problem.unregularised import interval_without_eps

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Status(Enum):
    """Named reasons for stopping; ``status.sentence`` says what each one means.

    Examples
    --------
    >>> Status.CONVERGED.ok
    True
    >>> print(Status.MAX_ITER.sentence)
    Stopped at max_iter before the interval was within the tolerance.
    """

    CONVERGED = "The interval is within the tolerance."
    STALLED = "The interval cannot be narrowed further, by this algorithm or in double precision."
    MAX_ITER = "Stopped at max_iter before the interval was within the tolerance."
    TIME_LIMIT = "Stopped at time_limit before the interval was within the tolerance."
    STOPPED = "Stopped by the callback; this is the best certified answer found until then."
    INTERRUPTED = "Interrupted; this is the best certified answer found until then."
    LOWER_BOUND = (
        "The search is not convex: the value is a lower bound of the truth, and the best one found."
    )
    ESTIMATE = (
        "The value is a mean over random directions, an estimate; the interval is proven, and wide."
    )

    @property
    def sentence(self) -> str:
        """What the status means, in a sentence."""
        return self.value

    @property
    def ok(self) -> bool:
        """Whether the result meets the tolerance that was asked for."""
        return self is Status.CONVERGED

    def __repr__(self) -> str:
        return f"Status.{self.name}"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Chosen:
    """What the adversary chose: weights, a subspace, a direction or costs.

    Parameters
    ----------
    kind : {"weights", "subspace", "direction", "costs"}
        Weights of groups; orthonormal directions; one direction (or the parameters of a defining
        function); the share of mass that each cost carries.
    array : array
        Of shape (L,), (d, s), (d,) or (L,), in this order. NumPy's is read-only.
    names : tuple of str
        Names of what the entries, or the features of directions, stand for.
    weights : array of shape (s,), optional
        What each direction of a subspace counts, in [0, 1].

    Examples
    --------
    >>> Chosen("weights", np.array([0.25, 0.75]), ("red", "blue")).describe()
    'weights: blue 0.75, red 0.25'
    """

    kind: Literal["weights", "subspace", "direction", "costs"]
    array: np.ndarray
    names: tuple[str, ...] = ()
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("array", "weights"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickle does not keep that an array is read-only.
        self.__dict__.update(state)
        self.__post_init__()

    def moved(self, bring: Callable[[Any], Any]) -> Chosen:
        """The same choice with its arrays moved to another library or device.

        Examples
        --------
        >>> Chosen("weights", np.ones(1)).moved(lambda array: array.astype("float32")).array.dtype
        dtype('float32')
        """
        weights = None if self.weights is None else bring(self.weights)
        return replace(self, array=bring(self.array), weights=weights)

    def describe(self) -> str:
        """Return the choice in one line: the heaviest entries by name."""
        array = to_numpy(self.array)
        if self.kind == "subspace":
            weights = np.ones(array.shape[1]) if self.weights is None else to_numpy(self.weights)
            # A feature's share of the subspace is its squared projection.
            shares = array**2 @ weights
            head = f"{self.kind} of dimension {weights.sum():.3g} in {len(weights)} directions"
            return f"{head}: {self._heaviest(shares)}"
        return f"{self.kind}: {self._heaviest(np.ravel(array))}"

    def _heaviest(self, values: np.ndarray) -> str:
        order = np.argsort(-np.abs(values), kind="stable")
        shown = [index for index in order[:3] if values[index] != 0.0] or list(order[:1])
        named = len(self.names) == len(values)
        text = ", ".join(
            f"{self.names[index] if named else index} {values[index]:.3g}"
            for index in map(int, shown)
        )
        left = int(np.count_nonzero(values)) - len(shown)
        return f"{text} and {left} more" if left > 0 else text


@dataclass(frozen=True)
class Progress:
    """The state of a solver after an iteration, as callbacks receive it.

    Examples
    --------
    >>> Progress(iteration=1, elapsed=0.1, lower=1.0, upper=2.0, gap=0.5)
    Progress(iteration=1, elapsed=0.1, lower=1.0, upper=2.0, gap=0.5)
    """

    iteration: int
    elapsed: float
    lower: float
    upper: float
    gap: float


def package_version() -> str:
    """The version of the package, which is whole before any result is made."""
    return sys.modules["frot"].__version__


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    r"""A certified answer: the optimum is proven to be between ``lower`` and ``upper``.

    Arrays are of the library and on the device of the arguments, and no part of these: NumPy's are
    read-only (``np.array(result.alpha)`` is a copy to work on), other libraries' copies.

    The truth is the optimum of

    .. math::
        \min_{\Pi \in U(a, b)} \max_{\alpha \in \mathcal A}
        \sum_l \alpha_l \langle \Pi, C_l \rangle - \eta \sum_l \alpha_l \log \alpha_l

    with :math:`\mathcal A` the simplex, or the set that was given as ``adversary``.

    Attributes
    ----------
    value : float
        Objective of `plan`, which is feasible; without entropy on the plan, `upper` but for
        rounding. Where a time limit left no time for a pass over many costs, a bound of it from
        above. With `sliced` it is an estimate, as `status` says.
    lower, upper : float
        The interval that is proven to hold the optimum.
    gap : float
        (upper - lower) over the larger of the two in size, or over 1e-6 of the mean cost where
        that is more.
    status : Status
        Why the solver stopped; ``status.sentence`` says it in words.
    alpha : array of shape (L,)
        Weights of the groups: those that prove `lower`. (With ``FrankWolfe(step="paper")`` those
        that answer `plan`, as in the paper.)
    phi : array of shape (L,)
        Cost of `plan` in each group.
    plan : Plan of shape (n, m)
        The transport plan; sparse where it is. ``np.asarray(plan)`` makes it dense.
    potentials : pair of arrays of shapes (n,) and (m,)
        Dual potentials f and g of the mixed cost at `alpha`, feasible to rounding.
    names : tuple of str
        Names of the groups.
    solver : str
        The solver that ran.
    iterations : int
    time : float
        Seconds.
    history : tuple of Progress
        Bounds over the run.
    eta, eps : float
        As they were asked for.
    tau, penalty, totals : pair of floats, str, pair of floats
        Prices of mass that is not kept, as they were asked for, infinite where it is; how it is
        measured; and what a and b sum to.
    fixed_mass : float, optional
        The mass of plans, where it was asked for.
    metric, p, normalise : str, float, str
        What the costs are made of, as asked for; the metric is empty where costs were given.
    adversary : str
        The set of weights with its parameters, or what chooses in a related method.
    tol : float, optional
        The `gap` at which the solver was to stop; of `FRWDLoss` its `gradient_tol`.
    version : str
        Of frot.
    points, groups :
        The points and the groups of their features, where the costs came from points.
    weights : pair of arrays of shapes (n,) and (m,), optional
        The weights a and b.
    chosen : Chosen, optional
        What the adversary chose, in related methods (`srw`, ...).
    rate : callable, optional
        Of `FrankWolfe` with the paper's steps or a line search: ``rate(t)`` is the bound of
        proposition 3 on how far the plan of step t is from the optimum. It needs the costs, which
        it keeps; a result read from a pickle has none.

    Examples
    --------
    >>> import frot
    >>> res = frot.solve([[0.0, 0.0]], [[1.0, 2.0]], groups="each")
    >>> res.value, res.lower <= 4.0 <= res.upper, res.status
    (4.0, True, Status.CONVERGED)
    """

    value: float
    lower: float
    upper: float
    status: Status
    alpha: np.ndarray
    phi: np.ndarray
    plan: Plan
    potentials: tuple[np.ndarray, np.ndarray]
    mean_cost: float
    names: tuple[str, ...]
    solver: str
    iterations: int
    time: float
    history: tuple[Progress, ...] = ()
    eta: float = 0.0
    eps: float = 0.0
    points: tuple[np.ndarray, np.ndarray] | None = None
    groups: Groups | None = None
    # With eps > 0 what `unregularised` is computed from, and what it is once it has been.
    problem: Problem | None = None
    plain: tuple[float, float] | None = None
    chosen: Chosen | None = None
    rate: Callable[[Any], np.ndarray] | None = None
    tau: tuple[float, float] = (inf, inf)
    penalty: str = "kl"
    totals: tuple[float, float] = (1.0, 1.0)
    fixed_mass: float | None = None
    metric: str = ""
    p: float = 1.0
    normalise: str = "none"
    adversary: str = ""
    tol: float | None = None
    weights: tuple[np.ndarray, np.ndarray] | None = None
    version: str = field(default_factory=package_version)

    def __post_init__(self) -> None:
        for name in ("alpha", "phi"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        for name in ("potentials", "points", "weights"):
            if (pair := getattr(self, name)) is not None:
                object.__setattr__(self, name, (read_only(pair[0]), read_only(pair[1])))

    def __getstate__(self) -> dict[str, Any]:
        # The costs may be far larger than the answer.
        return {**self.__dict__, "rate": None, "problem": None, "plain": self._known()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickle does not keep that an array is read-only.
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def unregularised(self) -> tuple[float, float]:
        """The interval that holds the optimum of the problem without eps.

        With the `Entropic` solver `lower` and `upper` are about the problem with eps; this is
        what its plan and potentials prove about the one without, which takes a pass over the costs
        when it is first asked for. Otherwise they are the same.
        """
        return self._known() or (self.lower, self.upper)

    def _known(self) -> tuple[float, float] | None:
        """The interval without eps; None where there is no other."""
        if self.plain is None and self.problem is not None:
            answer = interval_without_eps(self.problem, self.alpha, self.potentials[1], self.plan)
            object.__setattr__(self, "plain", answer)
        return self.plain

    unregularized = unregularised

    @property
    def mass(self) -> float:
        """The mass that the plan moves: one, unless `tau` allows less or another was asked for."""
        return float(self.plan.sum())

    @property
    def keeps_all(self) -> bool:
        """Whether the plan keeps all of a and of b, rather than what `tau` or a mass allows."""
        return self.tau == (inf, inf) and self.fixed_mass is None

    @property
    def marginals(self) -> tuple[np.ndarray, np.ndarray]:
        """What the plan keeps of a and of b, (n,) and (m,): its row and column sums.

        Examples
        --------
        >>> import frot
        >>> res = frot.solve([[0.0], [9.0]], [[0.0]], tau=1.0, penalty="tv")
        >>> res.marginals, res.mass
        ((array([0.5, 0. ]), array([0.5])), 0.5)
        """
        return self.plan.sum(axis=1), self.plan.sum(axis=0)

    @property
    def gap(self) -> float:
        """Relative width of the interval."""
        floor = gap_floor(self.mean_cost, self.eta, self.eps, *self.tau)
        return relative_gap(self.lower, self.upper, floor * min(self.totals))

    @property
    def perplexity(self) -> float:
        """Effective number of groups that alpha uses: exp of its entropy."""
        alpha = to_numpy(self.alpha)
        on = alpha[alpha > 0.0]
        return float(np.exp(-(on @ np.log(on))))

    def ranking(self) -> np.ndarray:
        """Return the groups by weight, ties by cost: the indices, heaviest first.

        Weights are compared to nine digits, since below that they are rounding.
        """
        return np.lexsort((-to_numpy(self.phi), -to_numpy(self.alpha).round(9)))

    def numpy(self) -> Result:
        """Return the same result with its arrays as NumPy's, on the host.

        Examples
        --------
        >>> import frot
        >>> res = frot.solve([[0.0]], [[1.0]])
        >>> res.numpy().alpha
        array([1.])
        """
        if isinstance(self.alpha, np.ndarray) and isinstance(self.potentials[0], np.ndarray):
            return self
        return self._moved(lambda array: np.array(to_numpy(array)), bring_plan(self.plan, None))

    def at(self, home: Home | None) -> Result:
        """Return the same result with its arrays where the user's are."""
        if home is None:
            return self

        def bring(array: Array) -> Array:
            # Copies both: of read-only arrays, and of those that the plan, or the user, has too.
            if isinstance(array, np.ndarray):
                return home.bring(array)
            return home.xp.astype(array, home.dtype)

        return self._moved(bring, bring_plan(self.plan, home))

    def _moved(self, bring: Callable[[Any], Any], plan: Plan) -> Result:
        """The same result with every array brought elsewhere."""
        (f, g), points, weights = self.potentials, self.points, self.weights
        return replace(
            self,
            alpha=bring(self.alpha),
            phi=bring(self.phi),
            potentials=(bring(f), bring(g)),
            plan=plan,
            points=None if points is None else (bring(points[0]), bring(points[1])),
            weights=None if weights is None else (bring(weights[0]), bring(weights[1])),
            chosen=None if self.chosen is None else self.chosen.moved(bring),
        )

    def transport(self, X_new: Any, metric: Any = None) -> Array:
        r"""Return the images of new source points, which need not have been there.

        With eps > 0 that is the mean of the target points under the row of the plan that the
        potentials give a point, wherever it is (Seguy et al. 2018; Pooladian and Niles-Weed 2021):

        .. math::
            T(x) = \sum_j p_j(x)\, y_j, \qquad
            p_j(x) \propto b_j\, e^{(g_j - c_\alpha(x, y_j)) / \varepsilon}, \qquad
            c_\alpha = \sum_l \alpha_l C_l .

        For eps = 0 a point moves as the nearest source point does, by that cost (Courty et al.
        2017), from where it is to the mean of its row of the plan; points that move no mass are
        passed over:

        .. math::
            T(x) = x + \frac{\sum_j \pi_{ij}\, y_j}{\sum_j \pi_{ij}} - x_i, \qquad
            i = \arg\min_k c_\alpha(x, x_k) .

        Of the source points themselves it is the mean of their rows of the plan (for eps > 0 to
        the tolerance). Features that are in no group move along.

        Parameters
        ----------
        X_new : array of shape (k, d) or DataFrame
            Points of the features that X has.
        metric : callable, optional
            The function that the problem was solved with, where the metric was one: results do not
            keep it.

        Returns
        -------
        array of shape (k, d)
            Of the library and on the device of `X_new`.

        Raises
        ------
        InputError
            If the result is of cost matrices, or of another method than `frot.solve`.

        Examples
        --------
        >>> import frot
        >>> res = frot.solve([[0.0], [1.0]], [[5.0], [8.0]])
        >>> res.transport([[0.25], [1.25]])
        array([[5.25],
               [8.25]])
        """
        return transported(self, X_new, metric)

    def summary(self, top: int = 10) -> str:
        """Return the answer as text: value, interval, status and the heaviest groups."""
        n, m = self.plan.shape
        alpha, phi = to_numpy(self.alpha), to_numpy(self.phi)
        # Lazy plans come back from a file as dense ones.
        plan = plan_kind(self.plan) if is_sparse(self.plan) else "dense"
        title = f"Feature-robust transport of {n} to {m} points in {_groups(len(self.names))}"
        if self.chosen is not None:
            title = f"Transport of {n} to {m} points by {self.solver.partition('(')[0]}"
        lines = [
            title,
            f"  value     {self.value:.10g}",
            f"  interval  [{self.lower:.10g}, {self.upper:.10g}]  (gap {self.gap:.1e})",
            f"  status    {self.status}: {self.status.sentence}",
            f"  problem   {self.describe_problem()}",
            f"  solver    {self.describe_run()}",
            f"  plan      {plan}, mass {self.plan.sum():.6g}",
            *self._plain_line(),
            *self._mass_line(),
        ]
        if self.chosen is not None:
            return "\n".join([*lines, f"  chosen    {self.chosen.describe()}"])
        lines.append(f"  groups    {self.perplexity:.3g} in effect; the heaviest:")
        shown = self.ranking()[:top]
        width = max((len(self.names[i]) for i in shown), default=0)
        lines += [
            f"    {self.names[i]:<{width}}  alpha {alpha[i]:.6f}  phi {phi[i]:.6g}" for i in shown
        ]
        if len(alpha) > top:
            lines.append(f"    ... and {len(alpha) - top} more")
        return "\n".join(lines)

    def describe_problem(self) -> str:
        """Return what was solved in a line: costs, eta, eps, tau and the set of weights.

        Examples
        --------
        >>> import frot
        >>> frot.solve([[0.0]], [[1.0]], eta=0.1).describe_problem()
        'metric sqeuclidean, p 1, normalise none, eta 0.1, eps 0, tau none, adversary Simplex'
        """
        costs = f"metric {self.metric}, p {self.p:g}" if self.metric else "costs as given"
        tau = "none" if self.tau == (inf, inf) else " and ".join(f"{part:.6g}" for part in self.tau)
        if self.fixed_mass is not None:
            tau = f"none, mass {self.fixed_mass:.6g}"
        chosen = f", adversary {self.adversary}" if self.adversary else ""
        return (
            f"{costs}, normalise {self.normalise}, eta {self.eta:.6g}, eps {self.eps:.6g}, "
            f"tau {tau}{chosen}"
        )

    def describe_run(self) -> str:
        """Return how it was solved in a line: solver, tolerance, iterations, time and version."""
        steps = "1 iteration" if self.iterations == 1 else f"{self.iterations} iterations"
        tol = "" if self.tol is None else f", tol {self.tol:g} of the gap"
        return f"{self.solver}{tol}, {steps}, {self.time:.3g} s, frot {self.version}"

    def _plain_line(self) -> list[str]:
        if (known := self._known()) is None:
            return []
        low, high = known
        return [f"  without eps (= {self.eps:.3g}) the optimum is in [{low:.10g}, {high:.10g}]"]

    def _mass_line(self) -> list[str]:
        if self.keeps_all:
            return []
        (tau_a, tau_b), (of_a, of_b), mass = self.tau, self.totals, self.mass
        how = f"tau {tau_a:.4g} and {tau_b:.4g}, {self.penalty}"
        if self.fixed_mass is not None:
            how = f"mass {self.fixed_mass:.6g}"
        return [f"  kept      {mass / of_a:.4g} of a, {mass / of_b:.4g} of b  ({how})"]

    def plot(self, kind: str | None = None, **options: Any) -> Figure:
        """Draw the plan, the weights and the convergence, or just one of them.

        Parameters
        ----------
        kind : {"plan", "alpha", "convergence"}, optional
            None draws all three.
        **options
            Passed on to the function that draws `kind`.

        Returns
        -------
        matplotlib.figure.Figure
            It shows itself in a notebook. In a script import ``matplotlib.pyplot as plt`` first
            and call ``plt.show()``, or use its ``savefig(path)``.
        """
        from frot.show import plot_result

        return plot_result(self.numpy(), kind, **options)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but arrays of points, as numbers and text ready for JSON.

        Infinite numbers are None.

        Examples
        --------
        >>> import frot
        >>> found = frot.solve([[0.0, 0.0]], [[1.0, 2.0]], groups="each").to_dict()
        >>> found["value"], found["status"], found["groups"][1]
        (4.0, 'CONVERGED', {'name': 'x1', 'alpha': 1.0, 'phi': 4.0})
        """
        n, m = self.plan.shape
        alpha, phi = to_numpy(self.alpha).tolist(), to_numpy(self.phi).tolist()
        numbers = ("value", "lower", "upper", "gap", "eta", "eps", "mass", "mean_cost", "time")
        low, high = self.unregularised
        return {
            **{name: _finite(getattr(self, name)) for name in numbers},
            "status": self.status.name,
            "sentence": self.status.sentence,
            "solver": self.solver,
            "iterations": self.iterations,
            "points": [n, m],
            "arcs": len(self.plan.arcs()[2]) if is_sparse(self.plan) else None,
            "unregularised": [_finite(low), _finite(high)],
            "tau": [_finite(price) for price in self.tau],
            "fixed_mass": self.fixed_mass,
            "metric": self.metric,
            "p": self.p,
            "normalise": self.normalise,
            "adversary": self.adversary,
            "tol": self.tol,
            "version": self.version,
            "penalty": self.penalty,
            "chosen": None if self.chosen is None else self.chosen.describe(),
            "groups": [
                {"name": name, "alpha": weight, "phi": _finite(cost)}
                for name, weight, cost in zip(self.names, alpha, phi, strict=True)
            ],
        }

    def to_frame(self) -> Any:
        """Return the groups as a pandas DataFrame: name, alpha and phi, heaviest first.

        Examples
        --------
        >>> import frot
        >>> print(frot.solve([[0.0, 0.0]], [[1.0, 2.0]], groups="each").to_frame())
          group  alpha  phi
        1    x1    1.0  4.0
        0    x0    0.0  1.0
        """
        order = self.ranking()
        columns = {"group": self.names, "alpha": to_numpy(self.alpha), "phi": to_numpy(self.phi)}
        return require("pandas", "tables").DataFrame(columns).iloc[order]

    def _repr_html_(self) -> str:
        from frot.show.page import Bar, card

        n, m = self.plan.shape
        alpha, phi = to_numpy(self.alpha), to_numpy(self.phi)
        facts = [
            ("value", f"{self.value:.8g}"),
            ("interval", f"[{self.lower:.8g}, {self.upper:.8g}], gap {self.gap:.1e}"),
            ("status", f"{self.status}: {self.status.sentence}"),
            ("problem", self.describe_problem()),
            ("solver", self.describe_run()),
        ]
        if self.chosen is not None:
            facts.append(("chosen", self.chosen.describe()))
            return card(f"Transport of {n:,} to {m:,} points", facts)
        title = f"Feature-robust transport of {n:,} to {m:,} points in {_groups(len(alpha))}"
        shown = self.ranking()[:8]
        rows = [[self.names[index], Bar(alpha[index]), float(phi[index])] for index in shown]
        left = len(alpha) - len(shown)
        note = f"and {left:,} more" if left else ""
        return card(title, facts, ["group", "alpha", "phi"], rows, note)

    def save(self, path: str | Path) -> Path:
        """Write the answer to an .npz file: arrays by their names here, the plan as arcs.

        A plan that is dense is one array. `frot.load` reads all of it back but `rate`.

        Examples
        --------
        >>> import frot, tempfile, pathlib
        >>> res = frot.solve([[0.0]], [[1.0]])
        >>> path = res.save(pathlib.Path(tempfile.mkdtemp()) / "res.npz")
        >>> with np.load(path) as data:
        ...     float(data["value"])
        1.0
        """
        return write_archive(path, "result", arrays_of(self))

    def __repr__(self) -> str:
        return (
            f"Result(value={self.value:.10g}, lower={self.lower:.10g}, upper={self.upper:.10g}, "
            f"gap={self.gap:.1e}, status={self.status!r}, solver={self.solver!r})"
        )


def handed_out(result: Result, whole: Any = None) -> Any:
    """Return a result, or the whole that it is a part of; after Ctrl-C raise `Interrupted` with it.

    What works on results on their way out need not know: only doors call this, last of all.

    Examples
    --------
    >>> import frot
    >>> res = frot.solve([[0.0]], [[1.0]])
    >>> handed_out(res) is res
    True
    >>> try:
    ...     handed_out(replace(res, status=Status.INTERRUPTED))
    ... except frot.Interrupted as stop:
    ...     stop.result.value
    1.0
    """
    answer = result if whole is None else whole
    if result.status is Status.INTERRUPTED:
        raise Interrupted(answer)
    return answer


def _groups(count: int) -> str:
    return "1 group" if count == 1 else f"{count:,} groups"


def _finite(value: float) -> float | None:
    """Return a number as JSON has it: None where it is infinite."""
    return float(value) if isfinite(value) else None


# What `Result.save` writes, and `frot.load` reads, besides what has a name of its own there.
SAVED = {
    "numbers": ("value", "lower", "upper", "mean_cost", "time", "eta", "eps", "p"),
    "numbers or none": ("tol", "fixed_mass"),
    "pairs": ("tau", "totals", "plain"),
    "texts": ("solver", "penalty", "metric", "normalise", "adversary", "version"),
    "of groups": ("flat", "offsets", "n_features", "listed"),
    "names of groups": ("names", "dropped"),
}


def arrays_of(result: Result, *, plan: bool = True) -> dict[str, Any]:
    """Return all of a result but `rate` as arrays by name; None for what it has not."""
    host = result.numpy()
    nothing = (None, None)
    kinds = ("numbers", "numbers or none", "pairs", "texts")
    fields = [name for kind in kinds for name in SAVED[kind]]
    pairs = {("f", "g"): host.potentials, ("x", "y"): host.points or nothing}
    pairs[("a", "b")] = host.weights or nothing
    arrays: dict[str, Any] = {
        "gap": host.gap,
        "status": host.status.name,
        "alpha": host.alpha,
        "phi": host.phi,
        "names": _texts(host.names),
        "iterations": host.iterations,
        "history": np.array([astuple(part) for part in host.history]).reshape(-1, 5),
        **{name: getattr(host, name) for name in fields},
        "plain": result._known(),
        **{name: part for names, pair in pairs.items() for name, part in zip(names, pair)},  # noqa: B905
    }
    if plan and is_sparse(host.plan):
        rows, cols, mass = host.plan.arcs()
        arrays |= {"plan_rows": rows, "plan_cols": cols, "plan_mass": mass}
        arrays["plan_shape"] = host.plan.shape
    elif plan:
        arrays["plan"] = host.plan.dense()
    if host.groups is not None:
        arrays |= arrays_of_groups(host.groups)
    if (chosen := host.chosen) is not None:
        arrays |= {"chosen_kind": chosen.kind, "chosen_array": chosen.array}
        arrays |= {"chosen_names": _texts(chosen.names), "chosen_weights": chosen.weights}
    return arrays


def rebuilt(arrays: Mapping[str, np.ndarray], plan: Plan | None = None) -> Result:
    """Make the result that `arrays_of` took apart; its plan is among the arrays, or given."""
    if plan is None:
        plan = _plan(arrays)
    chosen = None
    if "chosen_kind" in arrays:
        kind: Any = str(arrays["chosen_kind"])
        names = _words(arrays["chosen_names"])
        chosen = Chosen(kind, arrays["chosen_array"], names, arrays.get("chosen_weights"))
    numbers: dict[str, Any] = {name: float(arrays[name]) for name in SAVED["numbers"]}
    numbers |= {name: float(arrays[name]) for name in SAVED["numbers or none"] if name in arrays}
    numbers |= {name: str(arrays[name]) for name in SAVED["texts"]}
    numbers |= {name: tuple(arrays[name].tolist()) for name in SAVED["pairs"] if name in arrays}
    return Result(
        **numbers,
        status=Status[str(arrays["status"])],
        alpha=arrays["alpha"],
        phi=arrays["phi"],
        plan=plan,
        potentials=(arrays["f"], arrays["g"]),
        names=_words(arrays["names"]),
        iterations=int(arrays["iterations"]),
        history=tuple(Progress(int(row[0]), *row[1:].tolist()) for row in arrays["history"]),
        points=(arrays["x"], arrays["y"]) if "x" in arrays else None,
        weights=(arrays["a"], arrays["b"]) if "a" in arrays else None,
        groups=groups_in(arrays) if "groups_flat" in arrays else None,
        chosen=chosen,
    )


def arrays_of_groups(groups: Groups) -> dict[str, Any]:
    """Return groups as arrays by name."""
    arrays = {f"groups_{name}": getattr(groups, name) for name in SAVED["of groups"]}
    return arrays | {
        f"groups_{name}": _texts(getattr(groups, name)) for name in SAVED["names of groups"]
    }


def groups_in(arrays: Mapping[str, np.ndarray]) -> Groups:
    """Make the groups that `arrays_of_groups` took apart."""
    parts: dict[str, Any] = {name: arrays[f"groups_{name}"] for name in SAVED["of groups"]}
    parts |= {"n_features": int(parts["n_features"]), "listed": parts["listed"].tolist()}
    parts |= {name: _words(arrays[f"groups_{name}"]) for name in SAVED["names of groups"]}
    return Groups(**parts)


def _plan(arrays: Mapping[str, np.ndarray]) -> Plan:
    if "plan" in arrays:
        return Plan(arrays["plan"], copy=False)
    rows, cols, mass = (arrays[f"plan_{name}"] for name in ("rows", "cols", "mass"))
    n, m = arrays["plan_shape"].tolist()
    return Plan.from_arcs(rows, cols, mass, (n, m))


def _texts(names: Any) -> np.ndarray:
    return np.array(names, dtype=str)


def _words(array: np.ndarray) -> tuple[str, ...]:
    return tuple(array.tolist())
