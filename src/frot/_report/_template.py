"""The page's skeleton, its style and the few lines of script that sort its table."""

from __future__ import annotations

from frot._report._shell import shell

__all__ = ["PAGE", "SCRIPT", "STYLE"]

STYLE = """
:root { --ink: #1c2733; --soft: #5b6875; --line: #dfe4ea; --ground: #f6f8fa; --blue: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 1.7rem; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 12px; }
section { background: #fff; border: 1px solid var(--line); border-radius: 8px;
  padding: 20px 24px; margin-top: 20px; }
p { margin: 0 0 12px; } .soft { color: var(--soft); }
.value { font-size: 2.4rem; font-weight: 650; line-height: 1.15; color: var(--blue);
  overflow-wrap: anywhere; }
.badge { display: inline-block; border-radius: 999px; padding: 1px 12px; font-weight: 600;
  font-size: .85rem; color: #fff; background: #00795a; }
.badge.open { background: #b34700; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 8px 28px;
  margin: 16px 0 0; }
dl div { border-top: 1px solid var(--line); padding-top: 6px; }
dl div.wide { grid-column: 1 / -1; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 0 0 20px; text-align: center; } figure:last-child { margin-bottom: 0; }
.number { white-space: nowrap; }
img { max-width: 100%; height: auto; }
.scroll { overflow: auto; max-height: 640px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { position: sticky; top: 0; background: #fff; text-align: right; padding: 0; }
th:nth-child(2), td:nth-child(2) { text-align: left; }
th button { all: unset; cursor: pointer; padding: 6px 10px; font-weight: 600; }
th button:focus-visible { outline: 2px solid var(--blue); }
th[aria-sort=ascending] button::after { content: " \\2191"; }
th[aria-sort=descending] button::after { content: " \\2193"; }
td { border-top: 1px solid var(--line); padding: 4px 10px; text-align: right;
  overflow-wrap: anywhere; }
tbody tr:hover { background: var(--ground); }
pre { background: var(--ground); border: 1px solid var(--line); border-radius: 6px; padding: 12px;
  overflow-x: auto; font-size: .88rem; }
footer { color: var(--soft); font-size: .85rem; margin-top: 20px; }
@media print { body { background: #fff; } section { break-inside: avoid; }
  .scroll { max-height: none; } }
"""

# A stable sort of the rows by the column clicked; a second click turns it around.
SCRIPT = """
const table = document.querySelector("table"), body = table.tBodies[0];
table.querySelectorAll("th").forEach((head, column) => head.addEventListener("click", () => {
  const down = head.getAttribute("aria-sort") !== "descending" && head.dataset.kind === "number"
    || head.getAttribute("aria-sort") === "ascending";
  const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const order = head.dataset.kind === "number" ? (a, b) => key(a) - key(b)
    : (a, b) => key(a).localeCompare(key(b), undefined, {numeric: true});
  const rows = Array.from(body.rows).sort((a, b) => down ? order(b, a) : order(a, b));
  table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows);
}));
"""

_BODY = """<section>
<h2>Answer</h2>
<div class="value">$value</div>
<p>is the objective of the plan found; the optimum is proven to lie in
<strong>[$lower,&nbsp;$upper]</strong>, a relative gap of
<span class="number">$gap</span>.</p>
<p><span class="badge$badge">$status</span> $sentence</p>
<dl>
$facts
</dl>
</section>
<section>
<h2>Pictures</h2>
$pictures
</section>
<section>
<h2>Groups</h2>
<p class="soft">$groups_note</p>
<div class="scroll">
<table>
<thead><tr>$heads</tr></thead>
<tbody>
$rows
</tbody>
</table>
</div>
</section>
$calls"""

PAGE = shell(STYLE, SCRIPT, _BODY)
