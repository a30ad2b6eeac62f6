// A card: the curves of one trajectory, who it is, what was said of it.
const chunks = new Map();
const COLOURS = ["--s0", "--s3", "--s5", "--s4"];
let palette = {};
function readPalette() {
  const style = getComputedStyle(document.documentElement);
  palette = { curves: COLOURS.map((name) => style.getPropertyValue(name)), line: style.getPropertyValue("--line"), good: style.getPropertyValue("--good"), bad: style.getPropertyValue("--bad"), ink: style.getPropertyValue("--ink"), accent: style.getPropertyValue("--accent"), soft: style.getPropertyValue("--soft") };
}
function curvesOf(i, ready) {
  const number = Math.floor(i / data.chunk), kept = chunks.get(number);
  if (kept instanceof Uint8Array) return kept.subarray((i % data.chunk) * data.small.length * data.points, ((i % data.chunk) + 1) * data.small.length * data.points);
  if (!kept) {
    chunks.set(number, fetch(`plots/${number}`).then((answer) => answer.arrayBuffer()).then((raw) => { chunks.set(number, new Uint8Array(raw)); ready(number); }, () => chunks.delete(number)));
  }
  return null;
}

function drawn() {
  const states = data.small.filter((c) => c < data.states).length, middle = FLOOR + SPACE / 2;
  return svg("svg", { viewBox: `0 0 ${data.points - 1} ${2 * FLOOR + SPACE}`, preserveAspectRatio: "none", "aria-hidden": "true" }, [
    svg("g"), svg("line", { class: "rule", x1: 0, x2: data.points - 1, y1: middle, y2: middle }), ...data.small.map((_, k) => svg("path", { class: "curve cv" + (k < states ? k : 2 + k - states) })),
  ]);
}
function card(reason) {
  const node = el("article", { class: "ep" }, [
    el("header", {}, [el("b"), el("span", { class: "tag" })]),
    drawn(),
    ...(reason ? [el("p", { class: "why" }, reason)] : []),
    el("footer", {}, [el("span", { class: "steps" }), el("button", { type: "button", class: "yes", tabindex: "-1", title: "Good (g)", "aria-label": "Good" }, "✓"), el("button", { type: "button", class: "no", tabindex: "-1", title: "Bad (b)", "aria-label": "Bad" }, "✗")]),
  ]);
  node.parts = { name: node.querySelector("b"), tag: node.querySelector(".tag"), paths: node.querySelectorAll("path"), spans: node.querySelector("g"), steps: node.querySelector(".steps") };
  return node;
}
function dress(node, i) {
  node.at = i;
  node.dataset.at = i;
  const { name, tag, steps } = node.parts, [words, kind] = verdictOf(i), label = labelOf(i);
  name.textContent = id(i);
  name.title = source(i) ? `${id(i)}, ${source(i)}` : id(i);
  tag.textContent = words;
  tag.className = "tag " + kind;
  const earned = returns && Number.isFinite(returns[i]);
  steps.textContent = `${told(lengths[i])} steps` + (earned ? ` · ${short(+returns[i].toPrecision(4))}` : "");
  steps.title = earned ? `return ${told(returns[i])}` : "";
  node.dataset.label = label;
  node.classList.toggle("picked", picked.has(i));
  node.classList.toggle("here", here.at === i && here.list === node.list);
  drawCard(node);
}
// Curves are drawn after the words, some each frame, so that a fast scroll never waits for them.
const undrawn = new Set();
let drawing = 0;
function drawCard(node) {
  undrawn.add(node);
  if (!drawing) drawing = requestAnimationFrame(drawSome);
}
function drawSome() {
  const began = performance.now();
  drawing = 0;
  for (const node of undrawn) {
    undrawn.delete(node);
    if (!node.hidden) drawNow(node);
    if (performance.now() - began > 6) break;
  }
  if (undrawn.size) drawing = requestAnimationFrame(drawSome);
}
// Paths instead of canvases: hundreds of canvases are hundreds of layers to put together each frame.
const FLOOR = 254, SPACE = 16;
function drawNow(node) {
  const i = node.at, values = curvesOf(i, chunkReady), { paths, spans } = node.parts;
  const parts_ = marksOf(i).filter((m) => m.start !== null);
  if (parts_.length || spans.childNodes.length) {
    const unit = (data.points - 1) / lengths[i];
    spans.replaceChildren(...parts_.map((m) => svg("rect", { class: "span " + m.label, x: m.start * unit, width: Math.max(0.4, (m.stop - m.start) * unit), y: 0, height: 2 * FLOOR + SPACE })));
  }
  for (let c = 0; c < paths.length; c++) {
    if (!values) { paths[c].setAttribute("d", ""); continue; }
    const base = (data.small[c] < data.states ? 0 : FLOOR + SPACE) + FLOOR, first = c * data.points;
    let d = "", down = false;
    for (let p = 0; p < data.points; p++) {
      const v = values[first + p];
      if (v === 255) { down = false; continue; }
      d += (down ? "L" : "M") + p + " " + (base - v);
      down = true;
    }
    paths[c].setAttribute("d", d);
  }
}
function stretches(pen, list, steps, left, width, height) {
  for (const m of list) {
    if (m.start === null) continue;
    pen.globalAlpha = 0.22;
    pen.fillStyle = m.label === "good" ? palette.good : palette.bad;
    pen.fillRect(left + (m.start / steps) * width, 0, Math.max(1.5, ((m.stop - m.start) / steps) * width), height);
  }
  pen.globalAlpha = 1;
}
