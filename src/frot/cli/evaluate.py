"""``frot evaluate``: a data set of pairs in, the paper's per-class table out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from frot._base.errors import InputError
from frot._base.fingerprint import fingerprint
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
    Network,
    Side,
    Weights,
    heaviest_layers,
    make_matcher,
)

if TYPE_CHECKING:
    from frot.correspondence import Matcher
    from frot.correspondence.evaluation import Evaluation, ResultTable

EXAMPLES = examples(
    "frot evaluate pf-willow --limit 50 --workers 2 --table table.csv",
    "frot evaluate pf-willow --methods frot,weighted,uniform,frot-paper,scot,hpf,nn",
    "frot evaluate spair --network torchvision:resnet101 --weights r101.pth --methods frot-paper",
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
    methods: Annotated[
        str,
        option(
            "Matching",
            "With commas: frot, weighted, uniform, ot, nn, and presets: frot-paper, scot, hpf.",
            "NAMES",
        ),
    ] = "frot",
    side: Side = None,
    device: Device = None,
    workers: Annotated[int, option("Run", "Processes; -1 for all cores.", "COUNT")] = 1,
    store: Annotated[
        Path | None,
        option(
            "Run",
            "SQLite file of finished pairs; by default named after set, methods and settings.",
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

    Of several methods, those behind the first are compared with it pair by pair. Every finished
    pair is kept: whatever ends the run, the same command with --resume goes on.

    Exit codes: 0 every pair was matched, 1 some failed, 2 bad input, 130 interrupted.
    """
    from frot.correspondence.datasets import load_pairs
    from frot.correspondence.evaluation import evaluate as run
    from frot.correspondence.evaluation import result_table

    check_files(csv=table)
    out = Output(json, quiet)
    pairs = load_pairs(data, root, split)
    matchers = make_matchers(methods, backbone, weights, layers, side, device)
    if store is None:
        part = [] if split == "test" else [split]
        settings = fingerprint(matchers=[one.fingerprint for one in matchers.values()])
        store = Path(f"{'-'.join([data, *part, '+'.join(matchers), settings[:8]])}.sqlite")
    for note in pairs.notes:
        warn(f"{pairs.name} is {note}")
    out.remark(f"{len(pairs.first(limit))} pairs of {pairs.name}, kept in {store}")
    try:
        found = run(
            pairs,
            matchers,
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
    # Of several methods, a row for each way to average.
    thresholds = (0.05, 0.1, 0.15) if len(found) == 1 else (0.1,)
    made = result_table(found, thresholds)
    failed = sum(len(one.failed) for one in found.values())
    _show(out, found, made)
    out.numbers(
        {
            "title": made.title,
            "rows": [asdict(row) for row in made.rows],
            "notes": list(made.notes),
            "layers": {name: one.alpha for name, one in found.items()},
            "pairs": sum(len(one.records) for one in found.values()),
            "failed": failed,
        }
    )
    if table is not None:
        out.wrote(made.write_csv(table))
    raise typer.Exit(Exit.FAILED if failed else 0)


def make_matchers(
    methods: str,
    backbone: str | None,
    weights: Path | None,
    layers: str | None,
    side: int | None,
    device: str | None,
) -> dict[str, Matcher]:
    """Return a matcher for each method or preset, of one network that is loaded once."""
    from frot.correspondence import PRESETS, Matcher
    from frot.correspondence.methods import METHODS

    names = list(dict.fromkeys(name for word in methods.split(",") if (name := word.strip())))
    if not names:
        raise InputError("methods: none are given; write names such as frot,weighted")
    known = [*METHODS, *(name for name in PRESETS if name not in METHODS)]
    if wrong := [name for name in names if name not in known]:
        raise InputError(f"methods: {wrong[0]!r} is not known; give some of {', '.join(known)}")
    first = make_matcher(backbone, weights, layers, None, None, side, device)
    return {
        name: Matcher(first.backbone, preset=name, side=side, device=device)
        if name in PRESETS and name != "frot"
        else first.with_settings(method=name)
        for name in names
    }


def _show(out: Output, found: dict[str, Evaluation], table: ResultTable) -> None:
    screen = out.console()
    for part in table.rich(screen.width):
        screen.print(part)
    for note in (*table.notes, *table.sources):
        out.say(note)
    for name, one in found.items():
        if one.alpha and len(found) == 1:
            out.say(f"Layers by their mean weight: {heaviest_layers(one.alpha)}")
        if one.failed:
            count = f"{len(one.failed)} of {len(one.records)}"
            warn(f"{name}: {count} pairs failed; --resume tries them again")
