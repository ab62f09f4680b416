"""The page of a result."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from frot._base.errors import InputError, brief
from frot._base.validate import check_feature_names
from frot.groups.groups import Groups
from frot.problem.result import Result
from frot.show.page import (
    Cell,
    Column,
    PageTable,
    check_page,
    number,
    picture,
    plural,
    render,
    save_page,
)
from frot.show.plan import plot_plan
from frot.show.result import plot_alpha, plot_convergence

__all__ = ["kept_mass", "write_report"]

MAX_GROUPS = 1_000


def write_report(
    result: Result,
    path: str | os.PathLike[str],
    call: str = "",
    title: str = "Feature-robust optimal transport",
    *,
    command: str = "",
    groups: Groups | None = None,
    feature_names: Sequence[str] | None = None,
) -> Path:
    """Write a result as one web page: numbers, pictures, groups and how to get them again.

    The page holds its pictures and style itself and asks nothing of the network. It replaces an
    existing file only once it is complete. Needs the extra ``frot[plot]``.

    Parameters
    ----------
    result : Result
    path : path
        The .html file to write.
    call : str
        Python code that reproduces the result, shown as it is.
    title : str
    command : str
        The same as a command line.
    groups : Groups, optional
        Which features are in which group, where the result does not know.
    feature_names : sequence of str, length d, optional
        For the axes of the plan's picture.

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> import frot, tempfile
    >>> call = "frot.solve([[0.0, 0.0]], [[1.0, 2.0]])"
    >>> page = write_report(eval(call), Path(tempfile.mkdtemp()) / "page.html", call)
    >>> call in page.read_text(encoding="utf-8")
    True
    """
    if not isinstance(result, Result):
        raise InputError(f"result: {brief(result)} is not a Result; pass what frot.solve returned")
    if groups is not None and not isinstance(groups, Groups):
        raise InputError("groups: are no Groups; pass frot.Groups.parse(...)")
    if groups is not None and len(groups) != len(result.names):
        raise InputError(f"groups: are {len(groups)}, but the result has {len(result.names)}")
    features = None if result.points is None else result.points[0].shape[1]
    if feature_names is not None and features is not None:
        feature_names = check_feature_names(feature_names, features)
    path = check_page(path, title=title, call=call, command=command)
    result = result.numpy()
    if groups is None:
        groups = result.groups
    n, m = result.plan.shape
    count = len(result.alpha)
    page = render(
        "result.html",
        title=title,
        subtitle=f"{n:,} to {m:,} points in {plural(count, 'group')} of features",
        call=call,
        command=command,
        result=result,
        facts=[
            ("Points", f"{n:,} to {m:,}"),
            (
                "Groups",
                f"{count:,}, of which {result.perplexity:.3g} in effect (exp of the entropy)",
            ),
            ("Plan", f"{result.plan.nnz:,} arcs carrying mass {result.plan.sum():.6g}"),
            *kept_mass(result),
            ("Run", f"{plural(result.iterations, 'iteration')} in {result.time:.3g} s"),
            ("Entropy of α, η", f"{result.eta:g}"),
            ("Entropy of the plan, ε", f"{result.eps:g}"),
            ("Solver", result.solver),
        ],
        pictures=[
            picture(
                lambda: plot_plan(result, groups=groups, feature_names=feature_names),
                "The transport plan",
            ),
            picture(lambda: plot_alpha(result), "Weights and costs of the heaviest groups"),
            picture(lambda: plot_convergence(result), "Bounds and gap over the iterations"),
        ],
        groups=_group_table(result, groups),
    )
    return save_page(path, page)


def kept_mass(result: Result, sides: tuple[str, str] = ("a", "b")) -> list[tuple[str, str]]:
    """Return the fact of how much of both sides' mass moves, where that is not all of it."""
    if result.tau == (np.inf, np.inf):
        return []
    shares = [f"{result.mass / total:.1%} of {name}"
              for name, total in zip(sides, result.totals, strict=True)]  # fmt: skip
    prices = " and ".join(f"{price:.4g}" for price in result.tau)
    return [("Mass kept", f"{', '.join(shares)} (τ {prices}, {result.penalty})")]


def _group_table(result: Result, groups: Groups | None) -> PageTable:
    """The groups by weight, with their sizes where these are known."""
    columns = [Column("Rank", first="ascending"), Column("Group", "text"), Column("α"), Column("φ")]
    if groups is not None:
        columns.insert(2, Column("Features"))
    rows = []
    for rank, group in enumerate(result.ranking()[:MAX_GROUPS].tolist(), start=1):
        row = [number(rank, ".0f"), Cell(result.names[group])]
        if groups is not None:
            row.append(number(groups.sizes[group], ".0f"))
        rows.append([*row, number(result.alpha[group], ".6f"), number(result.phi[group], ".6g")])
    return PageTable(columns, rows, "Groups", "groups", search="group names")
