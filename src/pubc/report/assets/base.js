"use strict";
// Small tools that everything else on the page is made of. Text from data only ever becomes
// a text node: nothing here parses HTML.
const SVG = "http://www.w3.org/2000/svg";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);

function make(space, name, attributes, children) {
  const node = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  }
  for (const child of [].concat(children === undefined ? [] : children)) {
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}
const el = (name, attributes, children) => make(null, name, attributes, children);
const svg = (name, attributes, children) => make(SVG, name, attributes, children);

const ARRAYS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u1: Uint8Array };
function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}
const unpack = (packed) => (packed ? new ARRAYS[packed.type](bytes(packed.data).buffer) : null);
function unpackBits(text, count) {
  const raw = bytes(text);
  const out = new Uint8Array(count);
  for (let i = 0; i < count; i++) out[i] = (raw[i >> 3] >> (i & 7)) & 1;
  return out;
}

// The same rules as `told` in page.py, so that a number reads alike wherever it stands.
const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
function told(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value)) return grouped.format(value).replace("-", "\u2212");
  const size = Math.abs(value);
  let text;
  if (size >= 1e6 || size < 1e-4) text = value.toExponential(3);
  else if (size >= 1000) text = tenths.format(value);
  else text = value.toFixed(size >= 100 ? 2 : size >= 1 ? 3 : 4);
  return text.replaceAll("-", "\u2212");
}
const share = (value) => (value === null || Number.isNaN(value) ? "–" : (100 * value).toFixed(1) + " %");
const digits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 }), tenths = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(0).replace("-", "\u2212").replace("e\u2212", "e-").replace("e+", "e");
  return digits.format(value).replace("-", "\u2212");
}

const tip = byId("tip");
function showTip(event, text) {
  tip.textContent = text;
  tip.hidden = false;
  const width = document.documentElement.clientWidth;
  const box = tip.getBoundingClientRect();
  let left = event.clientX + 14;
  if (left + box.width > width - 8) left = Math.max(8, event.clientX - box.width - 14);
  tip.style.left = left + window.scrollX + "px";
  tip.style.top = event.clientY + window.scrollY + 16 + "px";
}
const hideTip = () => { tip.hidden = true; };
function hover(node, text) {
  node.addEventListener("pointermove", (event) => showTip(event, typeof text === "function" ? text(event) : text));
  node.addEventListener("pointerleave", hideTip);
  return node;
}

function range(values, filter) {
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (v === null || !Number.isFinite(v) || (filter && !filter(i))) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low > high ? null : [low, high];
}

// Charts are functions of a width, drawn again when their place changes size or colours.
const charts = [];
function chart(name, draw) {
  for (const place of document.querySelectorAll(`[data-chart="${name}"]`)) charts.push({ place, draw, width: 0 });
}
function paint(entry, given) {
  const width = given || Math.max(240, Math.round(entry.place.clientWidth));
  entry.width = given ? 0 : width;
  const old = entry.place.querySelector("svg, p");
  const drawn = entry.draw(width, entry.place);
  if (old) old.replaceWith(drawn); else entry.place.append(drawn);
}
const repaint = (name) => charts.forEach((entry) => { if (!name || entry.place.dataset.chart === name) paint(entry); });
function start() {
  repaint();
  let waiting = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => charts.forEach((entry) => { if (entry.place.clientWidth !== entry.width) paint(entry); }));
  });
  // Paper has one width, whatever the window had.
  window.addEventListener("beforeprint", () => charts.forEach((entry) => paint(entry, entry.place.closest(".wide") ? 680 : 330)));
  window.addEventListener("afterprint", () => repaint());
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => repaint());
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    repaint();
  });
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", () => {
      const text = button.closest(".command").querySelector("pre");
      getSelection().selectAllChildren(text);
      document.execCommand("copy");
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
  document.documentElement.dataset.ready = "yes";
}
