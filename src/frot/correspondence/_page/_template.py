"""The page's skeleton and its style."""

from __future__ import annotations

from frot._report._shell import shell
from frot.correspondence._page._script import SCRIPT

__all__ = ["PAGE"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #566270; --line: #dfe4ea;
  --ground: #f4f6f9; --card: #fff; --blue: #0a67a8; --mark: #e3f0fa; --good: #00714f;
  --open: #a84300; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf1; --soft: #a3afbc; --line: #333d49;
  --ground: #12171d; --card: #1b222a; --blue: #6cb6f0; --mark: #1f3345; --good: #1c7f60;
  --open: #a8532a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 6px; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 0 0 10px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 20px 24px; margin-top: 20px; }
p { margin: 0 0 12px; max-width: 84ch; } .soft { color: var(--soft); }
.photos { display: flex; flex-wrap: wrap; gap: 20px; align-items: flex-start; }
.photos figure { margin: 0; flex: 1 1 340px; min-width: 0;
  max-width: calc(68vh * var(--shape)); }
figcaption { color: var(--soft); font-size: .9rem; margin-top: 6px; overflow-wrap: anywhere; }
figcaption b { color: var(--ink); }
.photo { position: relative; touch-action: manipulation; }
.photo img { display: block; width: 100%; height: auto; border-radius: 6px; }
#photo-a { cursor: crosshair; }
#photo-a:focus-visible, button:focus-visible, input:focus-visible {
  outline: 3px solid var(--blue); outline-offset: 2px; border-radius: 6px; }
.clip { position: absolute; inset: 0; overflow: hidden; border-radius: 6px; pointer-events: none; }
#heat { position: absolute; }
.mark { position: absolute; width: 26px; height: 26px; margin: -13px 0 0 -13px; z-index: 2;
  pointer-events: none; border-radius: 50%; border: 2px solid #00d5ff;
  box-shadow: 0 0 0 1.5px #000, inset 0 0 0 1.5px #000; }
.mark::before, .mark::after { content: ""; position: absolute; background: #00d5ff; }
.mark::before { left: 10px; top: 3px; width: 2px; height: 16px; }
.mark::after { left: 3px; top: 10px; width: 16px; height: 2px; }
.said { display: flex; flex-wrap: wrap; gap: 8px 34px; align-items: center; margin: 16px 0 0;
  font-variant-numeric: tabular-nums; }
.said span { color: var(--soft); font-size: .85rem; display: block; }
.said b { font-size: 1.15rem; font-weight: 650; }
.said label { font-size: .92rem; cursor: pointer; }
.track { width: 110px; height: 8px; border-radius: 4px; background: var(--line); overflow: hidden; }
.track div { height: 100%; background: var(--blue); border-radius: 4px; }
.aloud { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.halves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr));
  gap: 0 20px; align-items: start; }
.scroll { overflow: auto; max-height: 560px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums;
  font-size: .92rem; }
th { text-align: right; font-weight: 600; color: var(--soft); padding: 4px 10px; }
td { border-top: 1px solid var(--line); padding: 3px 10px; text-align: right; white-space: nowrap; }
th.text, td.text { text-align: left; }
td.name { text-align: left; overflow-wrap: anywhere; white-space: normal; }
td.bar { width: 45%; padding-left: 0; } td.bar div { height: 11px; background: var(--blue);
  border-radius: 2px; min-width: 1px; }
tr.on { background: var(--mark); }
td button { font: inherit; color: var(--blue); background: none; border: 0; padding: 1px 4px;
  cursor: pointer; text-decoration: underline; text-underline-offset: 2px; }
.number { white-space: nowrap; }
.value { font-size: 1.9rem; font-weight: 650; line-height: 1.2; color: var(--blue); }
.badge { display: inline-block; border-radius: 999px; padding: 1px 11px; font-weight: 600;
  font-size: .8rem; color: #fff; background: var(--good); vertical-align: 1px; }
.badge.open { background: var(--open); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 260px), 1fr));
  gap: 8px 28px; margin: 0; }
dl div { border-top: 1px solid var(--line); padding-top: 6px; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; overflow-wrap: anywhere; }
pre { background: var(--ground); border: 1px solid var(--line); border-radius: 7px; padding: 12px;
  overflow-x: auto; font-size: .88rem; margin: 0 0 14px; }
footer { color: var(--soft); font-size: .85rem; margin-top: 20px; }
@media (max-width: 600px) { section { padding: 14px 12px; } main { padding: 20px 10px 48px; }
  th, td { padding: 3px 5px; font-size: .85rem; } td.bar { width: 25%; } }
@media print { body { background: #fff; } section { break-inside: avoid; } }
"""

_BODY = """<section>
<h2>Click a point of A to see it in B</h2>
<div class="photos">
<figure style="--shape: $shape_a">
<div class="photo" id="photo-a" tabindex="0" role="application" aria-roledescription="point picker"
 aria-label="Photograph A, $name_a. Arrow keys move the point, with Shift ten times as far."
 aria-describedby="aloud"><img src="$source_a" alt="$name_a" width="$width_a" height="$height_a">
<div class="mark" id="mark-a"></div></div>
<figcaption><b>A</b> &nbsp;$name_a, $width_a × $height_a</figcaption>
</figure>
<figure style="--shape: $shape_b">
<div class="photo" id="photo-b"><img src="$source_b" alt="$name_b" width="$width_b"
 height="$height_b"><div class="clip"><canvas id="heat" style="$heat_box" role="img"
 aria-label="Heat map of where the point may be"></canvas></div>
<div class="mark" id="mark-b"></div></div>
<figcaption><b>B</b> &nbsp;$name_b, $width_b × $height_b</figcaption>
</figure>
</div>
<noscript><p>The points below need no script; clicking does.</p></noscript>
<div class="said">
<div><span>x, y in A</span><b id="said-a"></b></div>
<div><span>x, y in B</span><b id="said-b"></b></div>
<div><span>confidence</span><b id="said-c"></b></div>
<div class="track" aria-hidden="true"><div id="sure"></div></div>
<label><input type="checkbox" id="warm" checked autocomplete="off"> heat map</label>
<label><input type="checkbox" id="follow" checked autocomplete="off"> follow the pointer</label>
</div>
<div class="aloud" id="aloud" role="status" aria-live="polite"></div>
</section>
<div class="halves">
$points
$layers
</div>
$answer
$calls
<script type="application/json" id="data">$data</script>"""

PAGE = shell(_STYLE, SCRIPT, _BODY)
