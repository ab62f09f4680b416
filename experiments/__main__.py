"""Run the experiments that there is data for, and join what they found: ``python experiments``.

With names, only those: ``python experiments fig1 fig2``. What is finished is kept, and not done
again. Writes the results of each script, ``verdicts.md`` and ``index.html`` to the folder ``out``.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from _report import Entry, write_markdown, write_page
from _runner import Experiment, parse, say
from frot._base.errors import InputError, MissingDependencyError, SolverError
from frot._base.files import make_folder
from frot.show.page import check_page

# In the order of the paper; then what is ours.
NAMES = (
    "fig1", "fig2", "selection", "correspondence", "robustness", "noise_layers", "calibration",
    "shape",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run what the command line asks for; 1 if some experiment failed, 2 for bad input."""
    experiments = {name: import_module(name).EXPERIMENT for name in NAMES}
    parser = parse("Run the experiments that there is data for.", experiments.values())
    every = ", ".join(NAMES)
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help=f"of {every}; all")
    parser.add_argument("--verdicts", type=Path, help="a copy of the table of verdicts")
    options = vars(parser.parse_args(arguments))
    names, verdicts = options.pop("names"), options.pop("verdicts", None)
    if unknown := sorted({*names} - {*NAMES}):
        parser.error(f"{unknown[0]} is none of {every}")
    command = command_of(names, options)
    # Before the work of an hour.
    page = check_page(make_folder(options["out"]) / "index.html")
    entries = [run(experiments[name], options) for name in NAMES if not names or name in names]
    for path in filter(None, (options["out"] / "verdicts.md", verdicts)):
        write_markdown(entries, path, command)
    write_page(entries, page, command)
    print((options["out"] / "verdicts.md").read_text(encoding="utf-8"))
    say(f"wrote {page}")
    return int(any(entry.failed for entry in entries))


def command_of(names: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return the command line, with what the results depend on."""
    words = ["python", "experiments", *names]
    for name, value in options.items():
        if name in ("out", "data", "workers"):
            continue
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", ",".join(value) if isinstance(value, tuple) else str(value)]
    return shlex.join(words)


def run(experiment: Experiment, options: Mapping[str, Any]) -> Entry:
    """Run an experiment; one that fails costs no other."""
    name, start = experiment.name, time.monotonic()
    try:
        experiment.needs(experiment.complete(options))
    except (InputError, MissingDependencyError) as error:
        say(f"{name}: skipped: {error}")
        return Entry(experiment, skipped=str(error))
    say(f"{name}: {experiment.about}")
    try:
        made = experiment(**options)
    except (InputError, MissingDependencyError, SolverError) as error:
        say(f"{name}: failed: {error}")
        return Entry(experiment, failed=str(error))
    say(f"{name}: done in {time.monotonic() - start:.0f} s")
    return Entry(experiment, made)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except InputError as error:
        say(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
