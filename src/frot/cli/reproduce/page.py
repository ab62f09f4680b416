"""All experiments of a run on one web page: claims and verdicts first, then tables and pictures."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from frot._base.files import make_folder, replacing
from frot.cli.reproduce.experiment import Experiment, Reproduction, Table, Verdict

__all__ = ["Entry", "write_page"]

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #8886; text-align: left; }
td + td { font-variant-numeric: tabular-nums; }
img { max-width: 100%; background: white; }
.reproduced { color: #1a7f37; } .partly { color: #b07700; } .not { color: #cf222e; }
.skipped, .failed, .note { opacity: .75; }
"""


@dataclass(frozen=True, eq=False)
class Entry:
    """What became of an experiment: what it found, or why it was skipped or failed."""

    experiment: Experiment
    made: Reproduction | None = None
    skipped: str = ""
    failed: str = ""

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Every claim with its verdict."""
        if self.made is not None:
            return [(verdict.claim, verdict.outcome) for verdict in self.made.verdicts]
        why = f"skipped: {self.skipped}" if self.skipped else f"failed: {self.failed}"
        return [(self.experiment.about, why)]


def write_page(entries: Sequence[Entry], path: Path) -> Path:
    """Write one page, complete or not at all, with the pictures inside; returns the path.

    Pictures are those that `Reproduction.write` left in the same folder.
    """
    rows = [
        f"<tr><td><a href='#{escape(entry.experiment.name)}'>{escape(entry.experiment.name)}</a>"
        f"</td><td>{escape(claim)}</td>{_outcome(outcome)}</tr>"
        for entry in entries
        for claim, outcome in entry.rows
    ]
    body = "\n".join(
        [
            "<h1>Feature-robust optimal transport, computed anew</h1>",
            "<table><tr><th>experiment</th><th>claim</th><th>verdict</th></tr>",
            *rows,
            "</table>",
            *(_section(entry, path.parent) for entry in entries),
        ]
    )
    make_folder(path.parent)
    with replacing(path) as draft:
        draft.write_text(
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
            "<meta name='viewport' content='width=device-width'>"
            f"<title>frot reproduce</title><style>{STYLE}</style></head>\n"
            f"<body>{body}</body></html>\n",
            "utf-8",
        )
    return path


def _section(entry: Entry, folder: Path) -> str:
    experiment, made = entry.experiment, entry.made
    name = escape(experiment.name)
    parts = [f"<h2 id='{name}'>{name}</h2>", f"<p>{escape(experiment.about)}</p>"]
    if made is None:
        ((_, why),) = entry.rows
        return "\n".join([*parts, f"<p class='note'>{escape(why)}</p>"])
    parts += [_verdict(verdict) for verdict in made.verdicts]
    picture = folder / f"{made.name}.png"
    if picture.is_file():
        content = b64encode(picture.read_bytes()).decode()
        parts.append(f"<img alt='{name}' src='data:image/png;base64,{content}'>")
    parts += [_table(table) for table in made.tables]
    parts += [f"<p class='note'>{escape(note)}</p>" for note in made.notes]
    return "\n".join(parts)


def _verdict(verdict: Verdict) -> str:
    checks = "".join(f"<li>{escape(line)}</li>" for line in verdict.lines)
    colour = verdict.outcome.split()[0]
    heading = f"<b class='{colour}'>{escape(verdict.heading)}</b>"
    return f"<p>{heading}: {escape(verdict.claim)}</p><ul>{checks}</ul>"


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    note = f"<p class='note'>{escape(table.note)}</p>" if table.note else ""
    return f"<h3>{escape(table.title)}</h3>{note}<table><tr>{head}</tr>{rows}</table>"


def _outcome(text: str) -> str:
    return f"<td class='{escape(text.split()[0].rstrip(':'))}'>{escape(text)}</td>"
