"""The page's skeleton and its style."""

from __future__ import annotations

from frot._report._shell import shell
from frot.selection._report._script import SCRIPT

__all__ = ["PAGE"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #566270; --line: #dfe4ea;
  --ground: #f4f6f9; --card: #fff; --blue: #0a67a8; --mark: #e3f0fa; --good: #00714f;
  --open: #a84300; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf1; --soft: #a3afbc; --line: #333d49;
  --ground: #12171d; --card: #1b222a; --blue: #6cb6f0; --mark: #1f3345; --good: #2aa57d;
  --open: #d9733a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 36px 20px 64px; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 6px; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 0 0 10px; }
h3 { font-size: 1.02rem; margin: 28px 0 2px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 22px 26px; margin-top: 20px; }
p { margin: 0 0 12px; max-width: 78ch; } .soft { color: var(--soft); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr));
  gap: 14px 28px; margin: 4px 0 18px; }
.figures b { display: block; font-size: 1.9rem; line-height: 1.15; font-weight: 650;
  color: var(--blue); font-variant-numeric: tabular-nums; }
.figures span { color: var(--soft); font-size: .9rem; }
.badge { display: inline-block; border-radius: 999px; padding: 1px 11px; font-weight: 600;
  font-size: .8rem; color: #fff; background: var(--good); vertical-align: 1px; }
.badge.open { background: var(--open); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 8px 28px;
  margin: 0; }
dl div { border-top: 1px solid var(--line); padding-top: 6px; }
dl div.wide { grid-column: 1 / -1; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 10px 0 0; background: #fff; border-radius: 8px; padding: 6px; text-align: center; }
img { max-width: 100%; height: auto; display: block; margin: 0 auto; }
.tools { display: flex; flex-wrap: wrap; align-items: center; gap: 10px 18px; margin: 0 0 12px; }
.tools label { font-weight: 600; font-size: .9rem; }
input[type=search] { font: inherit; color: inherit; background: var(--ground); padding: 6px 12px;
  border: 1px solid var(--line); border-radius: 7px; width: min(320px, 60vw); margin-left: 8px; }
input[type=search]:focus-visible, button:focus-visible, summary:focus-visible {
  outline: 2px solid var(--blue); outline-offset: 1px; }
.scroll { overflow: auto; max-height: 620px; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums;
  font-size: .92rem; }
th { position: sticky; top: 0; background: var(--card); text-align: right; padding: 0;
  box-shadow: inset 0 -1px var(--line); white-space: nowrap; z-index: 1; }
th.text, td.text { text-align: left; }
th button { all: unset; cursor: pointer; padding: 8px 12px; font-weight: 600; }
th button::after { content: " \\2195"; color: var(--soft); opacity: .55; font-weight: 400; }
th[aria-sort=ascending] button::after { content: " \\2191"; opacity: 1; }
th[aria-sort=descending] button::after { content: " \\2193"; opacity: 1; }
td { border-top: 1px solid var(--line); padding: 4px 12px; text-align: right; white-space: nowrap; }
td.text { white-space: normal; overflow-wrap: anywhere; min-width: 9em; }
td.plain { text-align: left; white-space: normal; }
tbody tr:first-child td { border-top: 0; }
tr.kept td:first-child { box-shadow: inset 3px 0 var(--blue); }
tbody tr:hover { background: var(--mark); }
.tabs { display: flex; flex-wrap: wrap; gap: 6px; margin: 4px 0 14px; }
.tabs button { font: inherit; font-size: .92rem; color: inherit; background: var(--ground);
  border: 1px solid var(--line); border-radius: 7px; padding: 5px 14px; cursor: pointer; }
.tabs button[aria-selected=true] { background: var(--blue); border-color: var(--blue);
  color: var(--card); font-weight: 600; }
details { margin-top: 14px; } summary { cursor: pointer; font-weight: 600; margin-bottom: 8px; }
ul { margin: 0; padding-left: 1.2em; max-width: 80ch; } li { margin-bottom: 8px; }
pre { background: var(--ground); border: 1px solid var(--line); border-radius: 7px; padding: 12px;
  overflow-x: auto; font-size: .88rem; margin: 0 0 14px; }
footer { color: var(--soft); font-size: .85rem; margin-top: 20px; }
@media print { body { background: #fff; } .scroll { max-height: none; }
  .tools, .tabs { display: none; } [role=tabpanel][hidden] { display: block !important; }
  figure, tr { break-inside: avoid; } }
"""

PAGE = shell(_STYLE, SCRIPT, "$body")
