// A point is chosen in A or B, and shown in the other with its heat map.
const data = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
const colours = new Uint8ClampedArray(4 * 256);
for (let level = 0; level < 256; level++) {
  const share = level / 255, place = share * (data.colours.length - 1);
  const low = Math.min(Math.floor(place), data.colours.length - 2), part = place - low;
  for (let c = 0; c < 3; c++) colours[4 * level + c] =
    (1 - part) * data.colours[low][c] + part * data.colours[low + 1][c];
  colours[4 * level + 3] = 255 * 0.8 * Math.sqrt(share);
}
// Each photograph, with where its points go in the other one.
const sides = data.sides.map((one, number) => {
  const raw = bytes(one.cells).buffer, sure = bytes(one.sure), letter = "ab"[number];
  return Object.assign({}, one, {
    number, sure, letter, name: letter.toUpperCase(), picture: at("photo-" + letter),
    mark: at("mark-" + letter), said: at("said-" + letter), heat: at(["heat-a", "heat"][number]),
    places: new Uint16Array(bytes(one.places).buffer), scores: bytes(one.scores),
    rest: bytes(one.rest), shares: new Float32Array(bytes(one.shares).buffer),
    cells: one.wide ? new Uint32Array(raw) : new Uint16Array(raw),
    surest: Math.max(sure.reduce((a, b) => Math.max(a, b), 0), 1) / 255, drawn: "",
  });
});
for (const side of sides) {
  side.other = sides[1 - side.number];
  // Written pixel by pixel, so it had better not live on the graphics card.
  side.ink = side.heat.getContext("2d", {willReadFrequently: true});
  side.heat.width = side.photo.w; side.heat.height = side.photo.h;
}
const clip = (value, most) => Math.min(Math.max(value, 0), most);
const put = (marker, x, y, photo) => {
  marker.style.left = 100 * (x + 0.5) / photo.width + "%";
  marker.style.top = 100 * (y + 0.5) / photo.height + "%";
  marker.dataset.x = x; marker.dataset.y = y;
};
// The cells within a stride of a point that have votes, or else the nearest that have.
function around(side, x, y) {
  const near = [], photo = side.photo, [down, across] = photo.strides, [top, left] = photo.start;
  let nearest = [], least = Infinity;
  for (let row = 0, cell = 0; row < photo.h; row++)
    for (let col = 0; col < photo.w; col++, cell++) {
      if (!side.shares[cell]) continue;
      const u = x * photo.ratio - left - col * across, v = y * photo.ratio - top - row * down;
      const apart = Math.sqrt(u * u + v * v);
      if (apart <= Math.max(down, across)) near.push(cell);
      if (apart < least) { least = apart; nearest = []; }
      if (apart === least) nearest.push(cell);
    }
  return near.length ? near : nearest;
}
function paint(side, x, y) {
  const near = around(side, x, y), key = near.join(), {photo, ink} = side.other;
  if (key === side.drawn) return;
  side.drawn = key;
  const count = photo.w * photo.h, sum = new Float32Array(count), one = new Uint8Array(count);
  const block = side.block, blocks = Math.ceil(photo.w / block);
  for (const cell of near) {
    const first = cell * side.blocks;
    for (let row = 0, k = 0; row < photo.h; row++) for (let col = 0; col < photo.w; col++, k++)
      one[k] = side.rest[first + Math.floor(row / block) * blocks + Math.floor(col / block)];
    for (let k = cell * side.kept; k < (cell + 1) * side.kept; k++)
      one[side.cells[k]] = side.scores[k];
    for (let k = 0; k < count; k++) sum[k] += side.shares[cell] * one[k];
  }
  const most = sum.reduce((a, b) => Math.max(a, b), 0) || 1;
  const image = ink.createImageData(photo.w, photo.h);
  for (let k = 0; k < count; k++) {
    const level = Math.round(255 * sum[k] / most);
    image.data.set(colours.subarray(4 * level, 4 * level + 4), 4 * k);
  }
  ink.putImageData(image, 0, 0);
}
const digits = value => value.toFixed(1).replace(/[.]0(?![0-9])/, "");
const near = ({grid}, x, y) => [clip(Math.round(x / grid.step), grid.across - 1),
  clip(Math.round(y / grid.step), grid.down - 1)];
// A point of the grid, or one of the list, which is kept exactly.
function point(side, column, row) {
  const {grid, low, high} = side, k = row * grid.across + column;
  const [u, v] = [0, 1].map(c => low[c] + side.places[2 * k + c] / 65535 * (high[c] - low[c]));
  return {side, x: column * grid.step, y: row * grid.step, u, v, sure: side.sure[k] / 255};
}
function show(now) {
  const here = now.side, there = here.other, photo = there.photo;
  put(here.mark, now.x, now.y, here.photo); put(there.mark, now.u, now.v, photo);
  there.mark.dataset.confidence = now.sure;
  here.mark.style.opacity = 1;
  there.mark.style.opacity = 0.55 + 0.45 * now.sure / here.surest;
  here.heat.hidden = true; there.heat.hidden = !at("warm").checked;
  paint(here, now.x, now.y);
  const beyond = now.u < -0.5 || now.v < -0.5 || now.u > photo.width - 0.5 ||
    now.v > photo.height - 0.5;
  here.said.textContent = digits(now.x) + ", " + digits(now.y);
  there.said.textContent = now.u.toFixed(1) + ", " + now.v.toFixed(1) +
    (beyond ? " (beyond the edge)" : "");
  at("said-c").textContent = Math.round(100 * now.sure) + " %";
  at("sure").style.width = 100 * now.sure + "%";
}
let pinned = null, over = false;
const lines = Array.from(document.querySelectorAll("#points tr[data-x]"));
function pin(now, line) {
  pinned = now;
  show(now);
  const here = now.side, there = here.other;
  at("aloud").textContent = "Point " + here.said.textContent + " of " + here.name + " is at " +
    there.said.textContent + " of " + there.name +
    (data.telling ? ", confidence " + at("said-c").textContent : "");
  lines.forEach(other => other.classList.toggle("on", other === line));
}
const pinLine = line => pin(Object.assign({side: sides[0]}, Object.fromEntries(
  ["x", "y", "u", "v", "sure"].map(name => [name, Number(line.dataset[name])]))), line);
function under(side, event) {
  const box = side.picture.getBoundingClientRect(), photo = side.photo;
  return point(side, ...near(side, (event.clientX - box.left) / box.width * photo.width - 0.5,
    (event.clientY - box.top) / box.height * photo.height - 0.5));
}
let waiting = null;
for (const side of sides) {
  side.picture.addEventListener("click", event => pin(under(side, event)));
  side.picture.addEventListener("pointermove", event => {
    if (event.pointerType === "touch" || !at("follow").checked) return;
    over = true;
    if (waiting === null) requestAnimationFrame(() => {
      if (over) show(waiting);
      waiting = null;
    });
    waiting = under(side, event);
  });
  side.picture.addEventListener("pointerleave", () => { over = false; show(pinned); });
  side.picture.addEventListener("keydown", event => {
    const {grid} = side, steps = event.shiftKey ? 10 : 1;
    // From where the marker is, whichever photograph the point was chosen in.
    const [x, y] = pinned.side === side ? [pinned.x, pinned.y] : [pinned.u, pinned.v];
    const [column, row] = near(side, x, y);
    const next = {ArrowLeft: [column - steps, row], ArrowRight: [column + steps, row],
      ArrowUp: [column, row - steps], ArrowDown: [column, row + steps], Home: [0, row],
      End: [grid.across - 1, row], PageUp: [column, 0],
      PageDown: [column, grid.down - 1]}[event.key];
    if (!next || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    pin(point(side, clip(next[0], grid.across - 1), clip(next[1], grid.down - 1)));
  });
}
at("warm").addEventListener("change", () => show(pinned));
at("slide").addEventListener("input", event => {
  at("warped").style.clipPath = "inset(0 " + (100 - event.target.value) + "% 0 0)";
  at("edge").style.left = event.target.value + "%";
});
lines.forEach(line => line.querySelector("button").addEventListener("click", () => pinLine(line)));
pinLine(lines[data.start]);
