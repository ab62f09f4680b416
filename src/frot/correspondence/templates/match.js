// A point is chosen in A, and shown in B with its heat map.
const data = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
const A = data.a, B = data.b, grid = data.grid;
const places = new Uint16Array(bytes(data.places).buffer), sure = bytes(data.sure);
const surest = Math.max(sure.reduce((a, b) => Math.max(a, b), 0), 1) / 255;
const raw = bytes(data.cells).buffer, scores = bytes(data.scores), rest = bytes(data.rest);
const shares = new Float32Array(bytes(data.shares).buffer);
const cells = data.wide ? new Uint32Array(raw) : new Uint16Array(raw);
const heat = at("heat"), picture = at("photo-a");
// Written pixel by pixel, so it had better not live on the graphics card.
const ink = heat.getContext("2d", {willReadFrequently: true});
heat.width = B.w; heat.height = B.h;
const colours = new Uint8ClampedArray(4 * 256);
for (let level = 0; level < 256; level++) {
  const share = level / 255, place = share * (data.colours.length - 1);
  const low = Math.min(Math.floor(place), data.colours.length - 2), part = place - low;
  for (let c = 0; c < 3; c++) colours[4 * level + c] =
    (1 - part) * data.colours[low][c] + part * data.colours[low + 1][c];
  colours[4 * level + 3] = 255 * 0.8 * Math.sqrt(share);
}
const clip = (value, most) => Math.min(Math.max(value, 0), most);
const put = (marker, x, y, photo) => {
  marker.style.left = 100 * (x + 0.5) / photo.width + "%";
  marker.style.top = 100 * (y + 0.5) / photo.height + "%";
  marker.dataset.x = x; marker.dataset.y = y;
};
// The cells of A within a stride of a point that have votes, or else the nearest that have.
function around(x, y) {
  const near = [];
  let nearest = [], least = Infinity;
  for (let row = 0, cell = 0; row < A.h; row++) for (let col = 0; col < A.w; col++, cell++) {
    if (!shares[cell]) continue;
    const u = x * A.ratio - col * A.stride, v = y * A.ratio - row * A.stride;
    const apart = Math.sqrt(u * u + v * v);
    if (apart <= A.stride) near.push(cell);
    if (apart < least) { least = apart; nearest = []; }
    if (apart === least) nearest.push(cell);
  }
  return near.length ? near : nearest;
}
let drawn = "";
function paint(x, y) {
  const near = around(x, y), key = near.join();
  if (key === drawn) return;
  drawn = key;
  const count = B.w * B.h, sum = new Float32Array(count), one = new Uint8Array(count);
  const blocks = Math.ceil(B.w / data.block);
  for (const cell of near) {
    const first = cell * data.blocks;
    for (let row = 0, k = 0; row < B.h; row++) for (let col = 0; col < B.w; col++, k++)
      one[k] = rest[first + Math.floor(row / data.block) * blocks + Math.floor(col / data.block)];
    for (let k = cell * data.kept; k < (cell + 1) * data.kept; k++) one[cells[k]] = scores[k];
    for (let k = 0; k < count; k++) sum[k] += shares[cell] * one[k];
  }
  const most = sum.reduce((a, b) => Math.max(a, b), 0) || 1, image = ink.createImageData(B.w, B.h);
  for (let k = 0; k < count; k++) {
    const level = Math.round(255 * sum[k] / most);
    image.data.set(colours.subarray(4 * level, 4 * level + 4), 4 * k);
  }
  ink.putImageData(image, 0, 0);
}
const digits = value => value.toFixed(1).replace(/[.]0(?![0-9])/, "");
const near = (x, y) => [clip(Math.round(x / grid.step), grid.across - 1),
  clip(Math.round(y / grid.step), grid.down - 1)];
// A point of the grid, or one of the list, which is kept exactly.
function point(column, row) {
  const k = row * grid.across + column;
  const [u, v] = [0, 1].map(c =>
    data.low[c] + places[2 * k + c] / 65535 * (data.high[c] - data.low[c]));
  return {x: column * grid.step, y: row * grid.step, u, v, sure: sure[k] / 255};
}
function show(now) {
  put(at("mark-a"), now.x, now.y, A); put(at("mark-b"), now.u, now.v, B);
  at("mark-b").dataset.confidence = now.sure;
  at("mark-b").style.opacity = 0.55 + 0.45 * now.sure / surest;
  paint(now.x, now.y);
  const beyond = now.u < -0.5 || now.v < -0.5 || now.u > B.width - 0.5 || now.v > B.height - 0.5;
  at("said-a").textContent = digits(now.x) + ", " + digits(now.y);
  at("said-b").textContent = now.u.toFixed(1) + ", " + now.v.toFixed(1) +
    (beyond ? " (beyond the edge)" : "");
  at("said-c").textContent = Math.round(100 * now.sure) + " %";
  at("sure").style.width = 100 * now.sure + "%";
}
let pinned = null, over = false;
const lines = Array.from(document.querySelectorAll("#points tr[data-x]"));
function pin(now, line) {
  pinned = now;
  show(now);
  const said = ["said-a", "said-b", "said-c"].map(id => at(id).textContent);
  at("aloud").textContent =
    "Point " + said[0] + " of A is at " + said[1] + " of B, confidence " + said[2];
  lines.forEach(other => other.classList.toggle("on", other === line));
}
const pinLine = line => pin(Object.fromEntries(
  ["x", "y", "u", "v", "sure"].map(name => [name, Number(line.dataset[name])])), line);
function under(event) {
  const box = picture.getBoundingClientRect();
  return point(...near((event.clientX - box.left) / box.width * A.width - 0.5,
    (event.clientY - box.top) / box.height * A.height - 0.5));
}
picture.addEventListener("click", event => pin(under(event)));
let waiting = null;
picture.addEventListener("pointermove", event => {
  if (event.pointerType === "touch" || !at("follow").checked) return;
  over = true;
  if (waiting === null) requestAnimationFrame(() => {
    if (over) show(waiting);
    waiting = null;
  });
  waiting = under(event);
});
picture.addEventListener("pointerleave", () => { over = false; show(pinned); });
picture.addEventListener("keydown", event => {
  const steps = event.shiftKey ? 10 : 1, [column, row] = near(pinned.x, pinned.y);
  const next = {ArrowLeft: [column - steps, row], ArrowRight: [column + steps, row],
    ArrowUp: [column, row - steps], ArrowDown: [column, row + steps], Home: [0, row],
    End: [grid.across - 1, row], PageUp: [column, 0], PageDown: [column, grid.down - 1]}[event.key];
  if (!next || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  pin(point(clip(next[0], grid.across - 1), clip(next[1], grid.down - 1)));
});
at("warm").addEventListener("change", event => { heat.hidden = !event.target.checked; });
lines.forEach(line => line.querySelector("button").addEventListener("click", () => pinLine(line)));
pinLine(lines[data.start]);
