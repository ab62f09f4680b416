"""``frot evaluate``: a data set of pairs in, the paper's per-class table out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from frot._base.errors import InputError, require
from frot.cli.command import (
    FAILED,
    Progress,
    Writes,
    bar,
    check_files,
    command,
    console,
    numbers,
    remark,
    say,
    warn,
    wrote,
)
from frot.cli.match import make_matcher, option, split_options, takes_matcher

if TYPE_CHECKING:
    from frot.correspondence.evaluation import Evaluation, ResultTable

LAYERS_SHOWN = 5


DataSet = Literal["pf-willow", "spair", "pf-pascal", "caltech", "birds"]
Split = Literal["test", "val", "trn"]
ROOT = "Folder of the data set; by default looked for below FROT_DATA."
STORE = "SQLite file of finished pairs; by default named after set, method and settings."
LIMIT = "Number of pairs, spread over the set."


@command(
    "frot evaluate pf-willow --verify",
    "frot evaluate pf-willow --limit 50 --workers 2 --out table.csv",
    "frot evaluate spair --resume --json - | jq .rows",
    writes=[
        Writes("csv", (".csv",), "table.csv"),
        Writes("latex", (".tex",), "table.tex"),
    ],
    options={"resume": "--resume", "layout": "--layout"},
)
@takes_matcher
def evaluate(
    data: Annotated[DataSet, typer.Argument(help="The data set.")],
    root: Annotated[Path | None, option("Data", ROOT, "FOLDER")] = None,
    split: Annotated[
        Split, option("Data", "Part of spair and pf-pascal; test by default.")
    ] = "test",
    limit: Annotated[int | None, option("Data", LIMIT, "COUNT", min=1)] = None,
    verify: Annotated[bool, option("Data", "Say what is missing.", None, "--verify")] = False,
    *,
    matching: dict[str, Any],
    workers: Annotated[int, option("Run", "Processes; -1 for all cores.", "COUNT")] = 1,
    dask: Annotated[
        str | None, option("Run", "Use the Dask cluster with this scheduler.", "ADDRESS")
    ] = None,
    store: Annotated[Path | None, option("Run", STORE, "FILE")] = None,
    resume: Annotated[bool, option("Run", "Go on from the store.", None, "--resume")] = False,
    retry_failed: Annotated[
        bool, option("Run", "Do failed pairs again.", None, "--retry-failed")
    ] = False,
    csv: Annotated[Path | None, option("Output", "Write the table, .csv.", "FILE")] = None,
    latex: Annotated[Path | None, option("Output", "Write the table, .tex.", "FILE")] = None,
    every: Annotated[bool, option("Output", "Show every published row.", None, "--every")] = False,
    progress: Progress = None,
) -> None:
    """Match every pair of a data set and score them by class, beside the published figures.

    Every finished pair is kept: whatever ends the run, the same command with --resume goes on.

    Exit codes: 0 every pair was matched, 1 some failed, 2 bad input, 130 interrupted.
    """
    from frot.correspondence.datasets import load_pairs, verify_pairs
    from frot.correspondence.evaluation import evaluate as run

    if verify:
        found = verify_pairs(data, root, split)
        say(str(found))
        raise typer.Exit(0 if found.complete else FAILED)
    check_files((csv, ()), (latex, ()))
    split_options(matching)
    pairs = load_pairs(data, root, split)
    matcher = make_matcher(matching)
    label = matching.get("method") or matching.get("preset") or "frot"
    if store is None:
        part = [] if split == "test" else [split]
        name = "-".join([data, *part, label, matcher.fingerprint[:8]])
        store = Path(f"{name}.sqlite")
    for note in pairs.notes:
        warn(f"{pairs.name} is {note}")
    remark(f"{len(pairs.first(limit))} pairs of {pairs.name}, kept in {store}")
    with _cluster(dask) as backend:
        try:
            found = run(
                pairs,
                matcher,
                store,
                workers=workers,
                backend=backend,
                resume=resume,
                retry_failed=retry_failed,
                limit=limit,
                progress=bar(progress),
            )
        except KeyboardInterrupt as stopped:
            said = str(stopped).replace("call with resume=True", "command with --resume")
            remark(said or f"finished pairs are kept in {store}; --resume goes on from there")
            raise
    table = found.table(label=label, every=every)
    _show(found, table)
    numbers(
        {
            "title": table.title,
            "rows": [asdict(row) for row in table.rows],
            "notes": list(table.notes),
            "layers": found.alpha,
            "pairs": len(found.records),
            "failed": len(found.failed),
        }
    )
    if csv is not None:
        wrote(table.write_csv(csv))
    if latex is not None:
        wrote(table.write_latex(latex))
    raise typer.Exit(FAILED if found.failed else 0)


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Yield the name of the backend, with a client of the cluster open where there is one."""
    if address is None:
        yield "loky"
        return
    distributed: Any = require("distributed", "dask")
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"dask: no scheduler answers at {address} ({error})") from None
    with client:
        yield "dask"


def _show(found: Evaluation, table: ResultTable) -> None:
    screen = console()
    for part in table.rich(screen.width):
        screen.print(part)
    for note in (*table.notes, *table.sources):
        say(note)
    if layers := sorted(found.alpha.items(), key=lambda item: -item[1])[:LAYERS_SHOWN]:
        said = ", ".join(f"{name} {weight:.3f}" for name, weight in layers)
        say(f"Layers by their mean weight: {said}")
    if found.failed:
        count = f"{len(found.failed)} of {len(found.records)}"
        warn(f"{count} pairs failed; --retry-failed does them again")
