"""Fill the page's skeleton from a result and write it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from frot._errors import InputError, brief
from frot._files import check_path, replacing
from frot._group_arrays import GroupArrays
from frot._report._parts import calls, definitions, group_heads, group_rows, images
from frot._report._template import PAGE
from frot._validate import check_feature_names, check_text

if TYPE_CHECKING:
    from frot._result import Result

__all__ = ["write_report"]

MAX_GROUPS = 1_000


def write_report(
    result: Result,
    path: str | os.PathLike[str],
    call: str = "",
    title: str = "Feature-robust optimal transport",
    *,
    command: str = "",
    groups: GroupArrays | None = None,
    feature_names: Sequence[str] | None = None,
) -> Path:
    """Write a result as one web page: numbers, pictures, groups and how to get them again.

    The page holds its pictures and style itself and asks nothing of the network. It replaces an
    existing file only once it is complete.

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
    from frot._result import Result

    if not isinstance(result, Result):
        raise InputError(f"result: {brief(result)} is no Result; pass what frot.solve returned")
    if groups is not None and not isinstance(groups, GroupArrays):
        raise InputError("groups: are no Groups; pass frot.Groups.parse(...)")
    if groups is not None and len(groups) != len(result.names):
        raise InputError(f"groups: are {len(groups)}, but the result has {len(result.names)}")
    features = None if result.points is None else result.points[0].shape[1]
    if feature_names is not None and features is not None:
        feature_names = check_feature_names(feature_names, features)
    path = check_path(path)
    for name, text in (("call", call), ("title", title), ("command", command)):
        check_text(text, name)
    page = render(result.numpy(), call, title, command, groups, feature_names)
    with replacing(path) as draft:
        draft.write_text(page, encoding="utf-8")
    return path


def render(
    result: Result,
    call: str,
    title: str,
    command: str,
    groups: GroupArrays | None,
    feature_names: Sequence[str] | None,
) -> str:
    """Return the page as text; all that users wrote is escaped."""
    n, m = result.plan.shape
    count = len(result.alpha)
    if groups is None:
        groups = getattr(result, "groups", None)
    facts = [
        ("Points", f"{n:,} to {m:,}"),
        ("Groups", f"{count:,}, of which {result.perplexity:.3g} in effect (exp of the entropy)"),
        ("Plan", f"{result.plan.nnz:,} arcs carrying mass {result.plan.sum():.6g}"),
        ("Run", f"{result.iterations} iterations in {result.time:.3g} s"),
        ("Entropy of α, η", f"{result.eta:g}"),
        ("Entropy of the plan, ε", f"{result.eps:g}"),
        ("Solver", result.solver),
    ]
    shown = min(count, MAX_GROUPS)
    note = (
        "α weighs the groups so as to prove the lower bound; φ is what the plan costs in each. "
        "Click a heading to sort."
    )
    if shown < count:
        note = f"The heaviest {shown:,} of {count:,} groups. {note}"
    return PAGE.substitute(
        title=escape(title),
        subtitle=f"{n:,} to {m:,} points in {count:,} group{'' if count == 1 else 's'} of features",
        value=f"{result.value:.10g}",
        lower=f"{result.lower:.10g}",
        upper=f"{result.upper:.10g}",
        gap=f"{result.gap:.1e}",
        badge="" if result.status.ok else " open",
        status=escape(str(result.status)),
        sentence=escape(result.status.sentence),
        facts=definitions(facts, wide=("Solver",)),
        pictures=images(result, groups, feature_names),
        groups_note=note,
        heads=group_heads(groups),
        rows=group_rows(result, groups, shown),
        calls=calls(call, command),
        footer=f"frot {version('frot')} · {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
    )
