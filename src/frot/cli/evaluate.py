"""``frot evaluate``: a data set of pairs in, the paper's per-class table out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from frot.cli.command import (
    Exit,
    Json,
    Output,
    Quiet,
    as_options,
    check_files,
    examples,
    option,
    output,
    warn,
)
from frot.cli.match import (
    Device,
    Layers,
    Method,
    Network,
    Preset,
    Side,
    Weights,
    heaviest_layers,
    make_matcher,
)

if TYPE_CHECKING:
    from frot.correspondence.evaluation import Evaluation, ResultTable

EXAMPLES = examples(
    "frot evaluate pf-willow --limit 50 --workers 2 --table table.csv",
    "frot evaluate spair --network torchvision:resnet101 --weights r101.pth --preset frot-paper",
    "frot evaluate spair --resume --json | jq .rows",
)
DataSet = Literal["pf-willow", "spair", "pf-pascal", "caltech", "birds"]
Split = Literal["test", "val", "trn"]


def evaluate(
    data: Annotated[DataSet, typer.Argument(help="The data set.")],
    root: Annotated[
        Path | None,
        option("Data", "Folder of the data set; by default looked for below FROT_DATA.", "FOLDER"),
    ] = None,
    split: Annotated[Split, option("Data", "Part of spair and pf-pascal.")] = "test",
    limit: Annotated[
        int | None,
        typer.Option(
            help="Number of pairs, spread over the set.",
            metavar="COUNT",
            min=1,
            rich_help_panel="Data",
        ),
    ] = None,
    backbone: Network = None,
    weights: Weights = None,
    layers: Layers = None,
    method: Method = None,
    preset: Preset = None,
    side: Side = None,
    device: Device = None,
    workers: Annotated[int, option("Run", "Processes; -1 for all cores.", "COUNT")] = 1,
    store: Annotated[
        Path | None,
        option(
            "Run",
            "SQLite file of finished pairs; by default named after set, method and settings.",
            "FILE",
        ),
    ] = None,
    resume: Annotated[
        bool, option("Run", "Go on from the store; failed pairs are tried again.", None, "--resume")
    ] = False,
    table: Annotated[Path | None, output("Write the table, .csv.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Match every pair of a data set, beside published figures.

    Every finished pair is kept: whatever ends the run, the same command with --resume goes on.

    Exit codes: 0 every pair was matched, 1 some failed, 2 bad input, 130 interrupted.
    """
    from frot.correspondence.datasets import load_pairs
    from frot.correspondence.evaluation import evaluate as run

    check_files(csv=table)
    out = Output(json, quiet)
    pairs = load_pairs(data, root, split)
    matcher = make_matcher(backbone, weights, layers, method, preset, side, device)
    label = method or preset or "frot"
    if store is None:
        part = [] if split == "test" else [split]
        name = "-".join([data, *part, label, matcher.fingerprint[:8]])
        store = Path(f"{name}.sqlite")
    for note in pairs.notes:
        warn(f"{pairs.name} is {note}")
    out.remark(f"{len(pairs.first(limit))} pairs of {pairs.name}, kept in {store}")
    try:
        evaluation = run(
            pairs,
            matcher,
            store,
            workers=workers,
            resume=resume,
            retry_failed=resume,
            limit=limit,
            # Lines where there is no terminal: a run takes hours.
            progress=not quiet,
        )
    except KeyboardInterrupt as stopped:
        out.remark(as_options(str(stopped)))
        raise
    found = evaluation.table(label=label)
    _show(out, evaluation, found)
    out.numbers(
        {
            "title": found.title,
            "rows": [asdict(row) for row in found.rows],
            "notes": list(found.notes),
            "layers": evaluation.alpha,
            "pairs": len(evaluation.records),
            "failed": len(evaluation.failed),
        }
    )
    if table is not None:
        out.wrote(found.write_csv(table))
    raise typer.Exit(Exit.FAILED if evaluation.failed else 0)


def _show(out: Output, evaluation: Evaluation, table: ResultTable) -> None:
    screen = out.console()
    for part in table.rich(screen.width):
        screen.print(part)
    for note in (*table.notes, *table.sources):
        out.say(note)
    if evaluation.alpha:
        out.say(f"Layers by their mean weight: {heaviest_layers(evaluation.alpha)}")
    if evaluation.failed:
        count = f"{len(evaluation.failed)} of {len(evaluation.records)}"
        warn(f"{count} pairs failed; --resume tries them again")
