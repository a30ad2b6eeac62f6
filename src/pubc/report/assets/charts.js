// Axes, histograms, lines and points.
function ticks(low, high, wanted) {
  const span = high - low || 1;
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const out = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) out.push(Math.abs(v) < step * 1e-9 ? 0 : +v.toPrecision(12));
  return out;
}

function frame(width, height, x, y, options) {
  const o = Object.assign({ left: 52, right: 12, top: 10, bottom: 38, xLabel: "", yTicks: 4, xTicks: null, xNames: null, whole: false }, options);
  const [x0, x1] = x[0] === x[1] ? [x[0] - 0.5, x[1] + 0.5] : x;
  const [y0, y1] = y[0] === y[1] ? [y[0] - 0.5, y[1] + 0.5] : y;
  const inner = width - o.left - o.right, tall = height - o.top - o.bottom;
  const px = (v) => o.left + ((v - x0) / (x1 - x0)) * inner;
  const py = (v) => o.top + tall - ((v - y0) / (y1 - y0)) * tall;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
  for (const t of o.yMarks || ticks(y0, y1, o.yTicks)) {
    root.append(svg("line", { class: "rule", x1: o.left, x2: width - o.right, y1: py(t), y2: py(t) }));
    root.append(svg("text", { x: o.left - 8, y: py(t) + 4, "text-anchor": "end" }, o.percent ? short(100 * t) + " %" : short(t)));
  }
  let marks = o.xTicks || ticks(x0, x1, Math.max(3, Math.min(8, Math.floor(inner / 62))));
  if (o.whole) marks = marks.filter(Number.isInteger);
  for (const t of marks) {
    root.append(svg("text", { x: px(t), y: height - o.bottom + 17, "text-anchor": "middle" }, short(t)));
  }
  root.append(svg("line", { class: "axis", x1: o.left, x2: width - o.right, y1: py(y0), y2: py(y0) }));
  if (o.yLabel) root.append(svg("text", { x: o.left, y: 13, "text-anchor": "start" }, o.yLabel));
  if (o.xLabel) root.append(svg("text", { x: width - o.right, y: height - 3, "text-anchor": "end" }, o.xLabel));
  return { root, px, py, width, height, x: [x0, x1], y: [y0, y1], o, inner, tall, from: (p) => x0 + ((p - o.left) / inner) * (x1 - x0) };
}

function path(points) {
  let out = "", pen = false;
  for (const [x, y] of points) {
    if (!Number.isFinite(x) || !Number.isFinite(y)) { pen = false; continue; }
    out += (pen ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1);
    pen = true;
  }
  return out;
}
const nothing = (words) => el("p", { class: "note" }, words);

function legend(place, entries) {
  const old = place.parentNode.querySelector(".legend");
  const list = el("div", { class: "legend" }, entries.map(([mark, words]) => el("span", {}, [el("i", { class: mark }), words])));
  if (old) old.replaceWith(list); else place.after(list);
}

// The histogram of a round with the curve that was fitted to it and the cut: Figure 3.
function roundChart(round, width, height, small) {
  const c = round.centres;
  if (!c.length) return nothing("This round left no confidences to draw.");
  const step = c.length > 1 ? c[1] - c[0] : 1;
  const top = Math.max(1, ...round.counts);
  const f = frame(width, height, [c[0] - step / 2, c[c.length - 1] + step / 2], [0, top * 1.06], small ? { left: 0, right: 0, top: 2, bottom: 1, yMarks: [], xTicks: [] } : { xLabel: "confidence" });
  const wide = Math.max(0.6, (f.inner / c.length) * 0.88);
  c.forEach((centre, i) => {
    const x = f.px(centre) - wide / 2, kept = round.kept_counts[i], rest = round.counts[i] - kept;
    // One trajectory among thousands is still there to be seen.
    const tall = (count) => (count ? Math.max(small ? 0.5 : 2, f.py(0) - f.py(count)) : 0);
    if (rest) f.root.append(svg("rect", { class: "dropped", x, width: wide, y: f.py(0) - tall(rest), height: tall(rest) }));
    if (kept) f.root.append(svg("rect", { class: "kept", x, width: wide, y: f.py(0) - tall(rest) - tall(kept), height: tall(kept) }));
  });
  const inside = (v) => Math.max(0, Math.min(f.y[1], v));
  if (round.curve.length) f.root.append(svg("path", { class: "curve", d: path(c.map((v, i) => [f.px(v), round.curve[i] === null ? NaN : f.py(inside(round.curve[i]))])) }));
  if (round.threshold !== null) {
    const x = f.px(round.threshold);
    f.root.append(svg("line", { class: "cut", x1: x, x2: x, y1: f.o.top, y2: f.py(0) }));
    if (round.curve.length && !small) {
      let near = 0;
      c.forEach((v, i) => { if (Math.abs(v - round.threshold) < Math.abs(c[near] - round.threshold)) near = i; });
      if (round.curve[near] !== null) f.root.append(svg("circle", { class: "cutdot", cx: x, cy: f.py(inside(round.curve[near])), r: 5 }));
    }
    if (!small) f.root.append(svg("text", { class: "strong", x: x + (x > width - 150 ? -8 : 8), y: f.o.top + 11, "text-anchor": x > width - 150 ? "end" : "start" }, "cut at " + told(round.threshold)));
  }
  if (small) f.root.setAttribute("preserveAspectRatio", "none");
  else c.forEach((centre, i) => {
    const words = `${told(centre - step / 2)} to ${told(centre + step / 2)}\n${told(round.counts[i])} trajectories, ${told(round.kept_counts[i])} kept` + (round.curve.length && round.curve[i] !== null ? `\ncurve ${told(round.curve[i])}` : "");
    f.root.append(hover(svg("rect", { class: "hit", x: f.px(centre) - f.inner / c.length / 2, width: f.inner / c.length, y: f.o.top, height: f.tall }), words));
  });
  return f.root;
}

function bins(values, count, whole) {
  const r = range(values);
  if (!r) return null;
  let [low, high] = r;
  const same = low === high ? low : null;
  if (low === high) { low -= 0.5; high += 0.5; }
  if (whole) count = Math.max(1, Math.min(count, Math.round(high - low) + 1));
  return { low, high, same, count, at: (v) => Math.min(count - 1, Math.floor(((v - low) / (high - low)) * count)), edge: (i) => low + ((high - low) * i) / count };
}
function tally(values, b, filter) {
  const out = new Float64Array(b.count);
  for (let i = 0; i < values.length; i++) if (Number.isFinite(values[i]) && filter(i)) out[b.at(values[i])]++;
  return out;
}

// Several groups over one axis, each as the share of its own trajectories.
function groupChart(width, height, b, groups, options) {
  const shares = groups.map((g) => { const n = g.counts.reduce((a, v) => a + v, 0); return g.counts.map((v) => (n ? v / n : 0)); });
  const top = Math.max(1e-9, ...shares.map((s) => Math.max(...s)));
  const f = frame(width, height, [b.low, b.high], [0, top * 1.08], Object.assign({ percent: true }, options));
  groups.forEach((g, k) => {
    const points = [[f.px(b.low), f.py(0)]];
    for (let i = 0; i < b.count; i++) points.push([f.px(b.edge(i)), f.py(shares[k][i])], [f.px(b.edge(i + 1)), f.py(shares[k][i])]);
    points.push([f.px(b.high), f.py(0)]);
    const d = path(points);
    f.root.append(svg("path", { class: g.area, d }), svg("path", { class: g.line, d }));
  });
  if (options.cut !== null && options.cut !== undefined && options.cut >= b.low && options.cut <= b.high) f.root.append(svg("line", { class: "cut", x1: f.px(options.cut), x2: f.px(options.cut), y1: f.o.top, y2: f.py(0) }));
  for (let i = 0; i < b.count; i++) {
    const words = [`${told(b.edge(i))} to ${told(b.edge(i + 1))}`].concat(groups.map((g) => `${g.name}: ${told(g.counts[i])}`)).join("\n");
    f.root.append(hover(svg("rect", { class: "hit", x: f.px(b.edge(i)), width: f.inner / b.count, y: f.o.top, height: f.tall }), words));
  }
  return f.root;
}

// Lines over x with optional bands; hover names every line at the nearest x.
function lineChart(width, height, lines, options) {
  const xs = lines.flatMap((l) => l.x), ys = lines.flatMap((l) => l.y.concat(l.low || [], l.high || [])).filter((v) => v !== null);
  const xr = range(xs), yr = range(ys);
  if (!xr || !yr) return nothing(options.empty || "Nothing to draw.");
  const low = options.zero ? Math.min(0, yr[0]) : yr[0];
  const pad = (yr[1] - low) * 0.06 || Math.abs(yr[1]) * 0.1 || 1;
  const f = frame(width, height, xr, [options.zero ? low : low - pad, yr[1] + pad], options);
  for (const l of lines) {
    if (l.low) f.root.append(svg("path", { class: "band " + l.mark, d: path(l.x.map((v, i) => [f.px(v), f.py(l.low[i])]).concat(l.x.map((v, i) => [f.px(v), f.py(l.high[i])]).reverse())) + "Z" }));
    f.root.append(svg("path", { class: l.mark.startsWith("s") ? "series " + l.mark : l.mark, d: path(l.x.map((v, i) => [f.px(v), l.y[i] === null ? NaN : f.py(l.y[i])])) }));
    if (l.x.length < 25) l.x.forEach((v, i) => { if (l.y[i] !== null && l.dots) f.root.append(svg("circle", { class: "point", cx: f.px(v), cy: f.py(l.y[i]), r: 4 })); });
  }
  if (options.dot) f.root.append(svg("circle", { class: "cutdot", cx: f.px(options.dot[0]), cy: f.py(options.dot[1]), r: 5 }));
  const all = [...new Set(xs)].sort((a, b) => a - b);
  const guide = svg("line", { class: "rule", y1: f.o.top, y2: f.py(f.y[0]), visibility: "hidden" });
  const hit = svg("rect", { class: "chart-hit", fill: "transparent", x: f.o.left, width: f.inner, y: f.o.top, height: f.tall });
  hover(hit, (event) => {
    const box = f.root.getBoundingClientRect();
    const at = f.from(((event.clientX - box.left) / box.width) * width);
    const near = all.reduce((a, b) => (Math.abs(b - at) < Math.abs(a - at) ? b : a));
    guide.setAttribute("x1", f.px(near)); guide.setAttribute("x2", f.px(near)); guide.setAttribute("visibility", "visible");
    const said = [`${options.xWord || "x"} ${told(near)}`];
    for (const l of lines) {
      const i = l.x.indexOf(near);
      if (i >= 0 && l.y[i] !== null) said.push(`${l.name}${l.name ? ": " : ""}${options.percent ? share(l.y[i]) : told(l.y[i])}` + (l.low ? ` (${told(l.low[i])} to ${told(l.high[i])})` : ""));
    }
    return said.slice(0, 14).join("\n");
  });
  hit.addEventListener("pointerleave", () => guide.setAttribute("visibility", "hidden"));
  f.root.append(guide, hit);
  return f.root;
}

// Many points on a canvas below the SVG that holds the axes, the marks and the hover.
function pointChart(width, height, points, place, options) {
  const xr = range(points.x), yr = range(points.y);
  if (!xr || !yr) return nothing(options.empty);
  const pad = (r) => { const p = (r[1] - r[0]) * 0.04 || 1; return [r[0] - p, r[1] + p]; };
  const f = frame(width, height, pad(xr), pad(yr), Object.assign({ top: 24 }, options));
  const sharp = window.devicePixelRatio || 1;
  const canvas = place.querySelector("canvas") || place.insertBefore(el("canvas"), place.firstChild);
  canvas.width = width * sharp; canvas.height = height * sharp;
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  pen.scale(sharp, sharp);
  const many = points.x.length > 20000, size = many ? 1.4 : points.x.length > 2000 ? 2.4 : 3.6;
  for (const group of points.groups) {
    pen.fillStyle = style.getPropertyValue(group.colour).trim();
    pen.globalAlpha = many ? 0.5 : 0.75;
    for (let i = 0; i < points.x.length; i++) {
      if (!group.has(i) || !Number.isFinite(points.x[i]) || !Number.isFinite(points.y[i])) continue;
      const x = f.px(points.x[i]), y = f.py(points.y[i]);
      if (many) pen.fillRect(x - size / 2, y - size / 2, size, size);
      else { pen.beginPath(); pen.arc(x, y, size / 1.4, 0, 7); pen.fill(); }
    }
  }
  points.marked.slice(0, 500).forEach((i) => {
    if (!Number.isFinite(points.x[i]) || !Number.isFinite(points.y[i])) return;
    const x = f.px(points.x[i]), y = f.py(points.y[i]);
    f.root.append(svg("path", { class: "seedmark", d: `M${x} ${y - 6}l6 6l-6 6l-6 -6Z` }));
  });
  const shows = (cut, [low, high]) => Number.isFinite(cut) && cut >= low && cut <= high;
  if (shows(options.cutX, f.x)) f.root.append(svg("line", { class: "cut", x1: f.px(options.cutX), x2: f.px(options.cutX), y1: f.o.top, y2: f.py(f.y[0]) }));
  if (shows(options.cutY, f.y)) f.root.append(svg("line", { class: "cut", x1: f.o.left, x2: width - f.o.right, y1: f.py(options.cutY), y2: f.py(options.cutY) }));
  const ring = svg("circle", { r: 6, fill: "none", stroke: "currentColor", visibility: "hidden" });
  const hit = svg("rect", { class: "chart-hit", fill: "transparent", x: f.o.left, width: f.inner, y: f.o.top, height: f.tall });
  hit.addEventListener("pointermove", (event) => {
    const box = f.root.getBoundingClientRect(), scale = width / box.width;
    const mx = (event.clientX - box.left) * scale, my = (event.clientY - box.top) * scale;
    let best = -1, near = 14 * 14;
    for (let i = 0; i < points.x.length; i++) {
      const dx = f.px(points.x[i]) - mx, dy = f.py(points.y[i]) - my, d = dx * dx + dy * dy;
      if (d < near) { near = d; best = i; }
    }
    ring.setAttribute("visibility", best < 0 ? "hidden" : "visible");
    if (best < 0) return hideTip();
    ring.setAttribute("cx", f.px(points.x[best])); ring.setAttribute("cy", f.py(points.y[best]));
    showTip(event, options.say(best));
  });
  hit.addEventListener("pointerleave", () => { hideTip(); ring.setAttribute("visibility", "hidden"); });
  f.root.append(ring, hit);
  return f.root;
}
