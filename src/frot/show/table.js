"use strict";
// Tables that sort, boxes that search in them, tabs. Without it everything is there, in order.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
  const text = (row, at) => row.cells[at].dataset.value ?? row.cells[at].textContent;
  heads.forEach((head, at) => head.querySelector("button").addEventListener("click", () => {
    const now = head.getAttribute("aria-sort"), first = head.dataset.first;
    const turned = first === "ascending" ? "descending" : "ascending";
    const way = now === first ? turned : first, sign = way === "ascending" ? 1 : -1;
    const number = head.dataset.kind === "number";
    const keyed = Array.from(body.rows, row => {
      const key = text(row, at);
      return {row, key: number ? (key === "" ? NaN : Number(key)) : key};
    });
    keyed.sort((a, b) => {
      if (!number) return sign * a.key.localeCompare(b.key, undefined, {numeric: true});
      // What is no number is last whichever way round.
      const none = Number.isNaN(a.key) - Number.isNaN(b.key);
      return none || (Number.isNaN(a.key) ? 0 : sign * (a.key - b.key));
    });
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", way);
    body.append(...keyed.map(one => one.row));
  }));
}
for (const box of document.querySelectorAll("input[type=search]")) {
  const rows = Array.from(document.getElementById(box.dataset.table).tBodies[0].rows);
  const count = document.getElementById(box.dataset.count);
  const show = () => {
    const words = box.value.toLowerCase().split(/[\s,;]+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const name = row.querySelector("td.text").textContent.toLowerCase();
      row.hidden = words.length > 0 && !words.some(word => name.includes(word));
      shown += !row.hidden;
    }
    count.textContent = words.length ? shown + " of " + rows.length + " rows match" : "";
  };
  box.addEventListener("input", show);
  show();
}
for (const list of document.querySelectorAll("[role=tablist]")) {
  const tabs = Array.from(list.querySelectorAll("[role=tab]"));
  const panel = tab => document.getElementById(tab.getAttribute("aria-controls"));
  const choose = chosen => tabs.forEach(tab => {
    tab.setAttribute("aria-selected", tab === chosen);
    tab.tabIndex = tab === chosen ? 0 : -1;
    panel(tab).hidden = tab !== chosen;
  });
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", event => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      const next = tabs[(at + step + tabs.length) % tabs.length];
      choose(next);
      next.focus();
    });
  });
  list.hidden = false;
  choose(tabs[0]);
}
