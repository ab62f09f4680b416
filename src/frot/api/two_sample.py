"""`two_sample_test`: whether two samples differ, and in which groups of features."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from frot._base.arrays import UNIT, adopt, find_home, to_numpy
from frot._base.contract import check_cost_range, check_eps_range, check_not_beyond, refuse_masked
from frot._base.errors import DataWarning, InputError, brief, warn_caller
from frot._base.fingerprint import fingerprint
from frot._base.stopping import Interrupted, check_limits
from frot._base.validate import (
    check_choice,
    check_count,
    check_metric,
    check_number,
    check_two_clouds,
    second_names,
)
from frot.api.permutations import check_blocks, permutation_p, permuted_labels
from frot.api.pooled_sample import (
    Factors,
    PooledSample,
    Statistics,
    chunk_size,
    works_on_points,
)
from frot.api.solve import warn_of_fourth_powers
from frot.api.tasks import check_run, run_chunks
from frot.api.two_sample_result import LEVEL, TwoSampleTest
from frot.costs import MEMORY_BUDGET, METRICS, build_costs
from frot.costs.build import factored_metric
from frot.costs.stack import stack_of
from frot.groups.groups import Groups
from frot.problem.options import NORMALISATIONS, Relative, amount_at, check_amount

# Statistics of groups this close, as a share of the mean cost, are the same: what is left is
# rounding.
TIES = 1e-9
DEFAULT_EPS = Relative(0.2)


@second_names
def two_sample_test(
    X: Any,
    Y: Any,
    groups: Any = None,
    *,
    permutations: int = 999,
    block: Any = None,
    eta: float | Relative = 0.0,
    eps: float | Relative = DEFAULT_EPS,
    metric: str | Callable[[np.ndarray, np.ndarray], float] = "sqeuclidean",
    p: float = 1.0,
    normalise: str = "mean",
    tol: float = 1e-5,
    max_iter: int = 2_000,
    memory_budget: float = MEMORY_BUDGET,
    n_jobs: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | None = 0,
) -> TwoSampleTest:
    r"""Test whether two samples differ, and in which groups of features, by permuting labels.

    Statistics are computed for the samples as they are and for B relabellings of the pooled points.
    The overall one is the optimum of `solve`, F, less the mean potentials h of the pool with
    itself, which depend on no labels (with n = m they change nothing):

    .. math::
        T = \min_\Pi \max_\alpha \sum_l \alpha_l \langle \Pi, C_l \rangle
        + \varepsilon\,\mathrm{KL}(\Pi | a b^\top)
        - \tfrac1n \sum_i h(x_i) - \tfrac1m \sum_j h(y_j), \qquad
        p = \frac{1 + \#\{b : T^{(b)} \ge T\}}{1 + B}.

    A group's own is the Sinkhorn divergence of its costs alone,
    :math:`S_l = W_l(X, Y) - \frac12 W_l(X, X) - \frac12 W_l(Y, Y)`, and with mean and standard
    deviation over all labellings (Westfall and Young 1993, single step)

    .. math::
        z_l = \frac{S_l - \operatorname{mean}_b S_l^{(b)}}{\operatorname{sd}_b S_l^{(b)}}, \qquad
        p_l = \frac{1 + \#\{b : \max_k z_k^{(b)} \ge z_l\}}{1 + B}.

    Under exchangeable labels p is exact (Phipson and Smyth 2010), and so are the adjusted
    :math:`p_l` together: the chance that any group which does not differ has
    :math:`p_l \le .05` is at most .05, whatever other groups do, where those that do not differ are
    jointly distributed alike in both samples.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), or DataFrames
        Two points at least each. Tensors are read to the host.
    groups : optional
        What `Groups.parse` reads; the default is one group per feature.
    permutations : int
        B.
    block : array of shape (n + m,) or pair of arrays of shapes (n,) and (m,), optional
        Batch, donor, site...: labels are permuted within each block only.
    eta : float or `relative`
        Entropy of the overall statistic's weights.
    eps : float or `relative`
        Entropy of the plans, in units of cost. With ``eps=0`` both statistics are transport costs
        without entropy, solved one by one: some 15 times as slow.
    metric, p :
        As in `solve`. Costs have to be symmetric.
    normalise : {"mean", "none"}
        "mean" divides a group's costs by their mean over all pairs of pooled points, which labels
        do not change.
    tol, max_iter :
        Relative gap of F at which two labellings are the same, and iterations at most. A labelling
        is solved no further than it takes to prove on which side of the samples it is. It counts
        for p unless it is *proven* to be below, so that runs that end early make p larger and never
        smaller; ``p_interval`` says by how much they could.
    memory_budget : float
        Bytes that the costs among the pooled points may take.
    n_jobs : int, optional
        Workers, as joblib counts them. The answer does not depend on it.
    progress : bool
        Show a bar.
    checkpoint : path, optional
        A file for finished labellings; a run that was stopped resumes from it.
    random_state : int, optional
        Labelling b is drawn from this and b. None draws a seed, and allows no checkpoint.

    Returns
    -------
    TwoSampleTest
        ``p``, ``p_groups``, effect sizes, the observed `Result`, ``plot()``.

    Raises
    ------
    InputError
        If an argument cannot be used, before any work; or if `checkpoint` is of other data.
    KeyboardInterrupt
        On Ctrl-C; the same call with the same `checkpoint` goes on from there.

    Warns
    -----
    ConvergenceWarning
        If labellings ended before their tolerance.
    DataWarning
        If a block holds points of one sample only, or there are too few labellings to reject.

    Notes
    -----
    The overall statistic sees what no group shows alone, such as features of different groups that
    depend on each other; a difference in one group of many is found more often by ``p_groups``.
    Which test has which power is on the page "Two samples" of the documentation.

    Examples
    --------
    >>> import numpy as np, frot
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(40, 6)), rng.normal(size=(30, 6))
    >>> Y[:, :2] += 1.0
    >>> test = frot.two_sample_test(X, Y, groups=[2, 2, 2], permutations=199)
    >>> print(test)
    Two-sample test of 40 and 30 points in 3 groups, 199 permutations
      overall  p = 0.005, z = 8.94, effect 0.195
      groups   1 with p <= 0.05, adjusted for all 3
        g0  p = 0.005   z = 9.59    effect 0.468
        g2  p = 0.79    z = 0.08    effect 0.00318
        g1  p = 1       z = -1.48   effect -0.044
      asked for  metric sqeuclidean, p 1, normalise mean, eta 0, eps 0.2, ...
    """
    X, Y = adopt(X, "X"), adopt(Y, "Y")
    # Refuses tensors that are no points.
    find_home(X=X, Y=Y)
    X, Y, columns = check_two_clouds(X, Y)
    parsed = Groups.parse(groups, X.shape[1], columns)
    n, m = _check_sizes(X, Y)
    count = check_count(permutations, "permutations")
    codes = np.repeat([0, 1], [n, m])
    blocks = _check_pooled_blocks(block, codes)
    metric = check_metric(metric, METRICS)
    p = check_number(p, "p", strict=True)
    warn_of_fourth_powers(metric, p)
    if check_choice(normalise, "normalise", NORMALISATIONS) == "regret":
        raise InputError(
            "normalise: 'regret' subtracts what the pair itself costs, which changes with labels; "
            "use 'mean', or none"
        )
    eta, eps = check_amount(eta, "eta"), check_amount(eps, "eps")
    limits = check_limits(tol, max_iter, None)
    budget = check_number(memory_budget, "memory_budget")
    seed = check_run(n_jobs, progress, checkpoint, random_state)
    if (needed := 8.0 * len(parsed) * (n + m) ** 2) > budget:
        raise InputError(
            f"X, Y: costs among {n + m:,} points in {len(parsed):,} groups take {needed:.1e} "
            "bytes; give fewer points or groups, or a larger memory_budget"
        )
    pool = np.concatenate([to_numpy(X).astype(float), to_numpy(Y).astype(float)])
    sample = _pooled(pool, parsed, metric, p, normalise, eta, eps, limits, budget)
    work = partial(
        fingerprint, work="two samples", pool=pool, codes=codes, blocks=blocks, seed=seed,
        metric=metric, p=p, groups=(parsed.flat, parsed.offsets), normalise=normalise,
        amounts=(sample.eta, sample.eps), limits=tuple(limits),
    )  # fmt: skip
    try:
        sample.prepare()
        observed = Statistics.of(sample.statistics(codes[None])[0])
        own = (float(observed.lower), float(observed.upper))
        null = run_chunks(
            partial(_permuted, sample, codes, blocks, seed, own),
            count,
            chunk=chunk_size(n, m),
            n_jobs=n_jobs,
            progress=progress,
            what="permutations",
            checkpoint=checkpoint,
            fingerprint=work,
        )
    except Interrupted:
        # The answer of one labelling is none of the test.
        raise KeyboardInterrupt from None
    settings = {
        "metric": metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric)),
        "p": p,
        "normalise": normalise,
        "eta": sample.eta,
        "eps": sample.eps,
        "tol": limits.tol,
        "blocks": int(blocks.max()) + 1,
        "random_state": seed,
    }
    test = assemble(sample, codes, observed, Statistics.of(np.stack(null)), settings)
    _warn(test, limits.tol)
    return test


def _permuted(
    sample: PooledSample,
    codes: np.ndarray,
    blocks: np.ndarray,
    seed: int,
    own: tuple[float, float],
    indices: list[int],
) -> list[np.ndarray]:
    """Return the statistics of some labellings, each drawn from the seed and its own number."""
    return list(sample.statistics(permuted_labels(codes, blocks, seed, indices), own))


def _check_sizes(X: Any, Y: Any) -> tuple[int, int]:
    for points, name in ((X, "X"), (Y, "Y")):
        if points.shape[0] < 2:
            raise InputError(f"{name}: has a single point; a test needs two at least on each side")
    return X.shape[0], Y.shape[0]


def _check_pooled_blocks(block: Any, codes: np.ndarray) -> np.ndarray:
    """Return the block of each pooled point as a number; say which blocks are of no use."""
    numbers = np.zeros(len(codes), dtype=int)
    if block is not None:
        labels = _pooled_labels(block, codes)
        numbers = check_blocks(labels, codes)
        for number in range(int(numbers.max()) + 1):
            own = codes[numbers == number]
            if own.min() == own.max():
                name = brief(labels[numbers == number][0].item())
                warn_caller(
                    f"block: {name} holds points of {'XY'[own[0]]} alone, whose labels are never "
                    "moved",
                    category=DataWarning,
                )
    # With fewer labellings no test of this level rejects.
    if (ways := _labellings(codes, numbers)) * LEVEL < 1.0:
        warn_caller(
            f"{'X, Y' if block is None else 'block'}: allow {ways} different labellings, so that p "
            f"is about {1.0 / ways:.2g} at least",
            category=DataWarning,
        )
    return numbers


def _pooled_labels(block: Any, codes: np.ndarray) -> np.ndarray:
    """Return the labels of blocks of all points, given as one vector or as one of each sample."""
    refuse_masked(block, "block")
    if not (isinstance(block, tuple | list) and len(block) == 2):
        return _labels(block, "block")
    parts = [_labels(part, f"block[{side}]") for side, part in enumerate(block)]
    for part, size, name in zip(parts, np.bincount(codes), "XY", strict=True):
        if part.shape != (size,):
            raise InputError(f"block: has labels of shape {part.shape} for {size} points of {name}")
    return np.concatenate(parts)


def _labels(labels: Any, name: str) -> np.ndarray:
    """Return labels as an array that can be sorted."""
    try:
        array = np.asarray(to_numpy(labels))
        np.unique(array)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name}: cannot be read as labels ({brief(error)})") from None
    return array


def _labellings(codes: np.ndarray, numbers: np.ndarray) -> int:
    """Return how many labellings there are."""
    sizes = np.bincount(numbers).tolist()
    ones = np.bincount(numbers, weights=codes).astype(int).tolist()
    return math.prod(math.comb(size, some) for size, some in zip(sizes, ones, strict=True))


def _pooled(
    pool: np.ndarray,
    groups: Groups,
    metric: Any,
    p: float,
    normalise: str,
    eta: Any,
    eps: Any,
    limits: Any,
    budget: float,
) -> PooledSample:
    """Compute the costs among all points, in comparable units where asked."""
    factored, shares = factored_metric(metric, p), np.full(len(pool), 1.0 / len(pool))
    with np.errstate(over="ignore", invalid="ignore"):
        made = build_costs(pool, pool, groups, metric, p, budget, (shares, shares))
        costs = stack_of(made).C
        means = costs.sum(axis=(1, 2)) / (len(pool) * (len(pool) - 1.0))
        check_cost_range(float(means.mean()), float(np.abs(costs).max()))
    turned = costs.transpose(0, 2, 1)
    if not np.allclose(costs, turned, rtol=1e-9, atol=1e-9 * float(costs.max())):
        raise InputError(
            "metric: has another cost from x to y than from y to x; a test needs one that does not "
            "depend on the order"
        )
    costs = 0.5 * (costs + turned)
    scale = np.ones(len(groups))
    if normalise == "mean":
        scale = np.divide(1.0, means, out=scale, where=means > 0.0)
        costs *= scale[:, None, None]
    level = float((means * scale).mean())
    eta, eps = amount_at(eta, level), amount_at(eps, level or 1.0)
    check_eps_range(level, eps)
    check_not_beyond("eta", eta, level)
    factors = None
    if factored is not None and works_on_points(groups, factored):
        factors = Factors(pool, factored, scale)
    return PooledSample(costs, groups, eta, eps, limits.tol, limits.max_iter, factors)


def assemble(
    sample: PooledSample,
    codes: np.ndarray,
    observed: Statistics,
    null: Statistics,
    settings: dict[str, Any],
) -> TwoSampleTest:
    """Make the test of the samples' statistics and those under B labellings."""
    count = len(null.lower)
    at_least = null.upper >= observed.lower
    # What is known as closely as was asked for, and no further apart, is the same.
    tied = at_least & null.proven & observed.proven
    surely = tied | (null.lower >= observed.upper)
    p_low, p_high = ((1.0 + side.sum()) / (1.0 + count) for side in (surely, at_least))
    # Where an interval is wide the optimum is near its lower end: what the weights are off by
    # enters that squared.
    own = float(observed.lower)
    every = np.append(null.lower, own)
    groups = np.vstack([observed.groups, null.groups])
    # Where nothing costs anything the statistic is a mean of logarithms, each right to some units.
    tie = TIES * sample.means + 64.0 * UNIT * sample.eps
    spread = groups.std(axis=0)
    # A group whose statistic rounding alone moves does not stand out.
    moves = spread > tie
    z = np.divide(groups - groups.mean(axis=0), spread, out=np.zeros_like(groups), where=moves)
    slack = np.divide(tie, spread, out=np.zeros_like(tie), where=moves)
    most = z[1:].max(axis=1)
    first, second = np.flatnonzero(codes == 0), np.flatnonzero(codes == 1)
    group_lower, group_upper = sample.group_intervals(first, second)
    unit = np.where(sample.means > 0.0, sample.means, 1.0)
    return TwoSampleTest(
        names=sample.groups.names,
        sizes=(len(first), len(second)),
        result=sample.between(first, second),
        p=float(p_high),
        p_interval=(float(p_low), float(p_high)),
        z=float((own - every.mean()) / (every.std() or 1.0)),
        effect=float((own - null.lower.mean()) / (float(sample.means.mean()) or 1.0)),
        statistic=own,
        null=null.lower,
        p_groups=permutation_p(z[0] - slack, most[:, None]),
        p_single=permutation_p(groups[0] - tie, groups[1:]),
        z_groups=z[0],
        effect_groups=(groups[0] - groups[1:].mean(axis=0)) / unit,
        divergence=0.5 * (group_lower + group_upper),
        divergence_interval=(group_lower, group_upper),
        null_groups=null.groups,
        short=int((~null.proven).sum()) + int(not observed.proven),
        settings=settings,
    )


def _warn(test: TwoSampleTest, tol: float) -> None:
    low, high = test.p_interval
    if test.short:
        warn_caller(
            f"two_sample_test: {test.short} of {1 + len(test.null)} problems did not reach "
            f"{tol:.1e}; p is between {low:.3g} and {high:.3g}, and the larger one is reported. "
            "Raise max_iter or eps"
        )
