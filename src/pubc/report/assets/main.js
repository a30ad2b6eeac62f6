// Several runs side by side, policies, and the start of it all.
function showComparison(all) {
  all.runs.forEach((run, k) => chart("histogram-" + k, (width) => roundChart(run.last, width, 220, false)));
  if (!all.same) return;
  const n = all.count, runs = all.runs.map((run) => ({ name: run.name, threshold: run.threshold, confidence: unpack(run.confidence), kept: unpackBits(run.kept, n) }));
  const returns = unpack(all.returns), lengths = unpack(all.lengths);
  const id = (i) => (all.ids ? all.ids[i] : String(i));
  const differ = (i) => runs.some((run) => run.kept[i] !== runs[0].kept[i]);
  const marked = [];
  for (let i = 0; i < n && marked.length < 500; i++) if (differ(i)) marked.push(i);
  const [a, b] = runs;
  chart("versus", (width, place) => pointChart(width, Math.min(460, Math.max(280, width * 0.5)), { x: a.confidence, y: b.confidence, marked, groups: [{ colour: "--other", has: (i) => !a.kept[i] && !b.kept[i] }, { colour: "--accent", has: (i) => a.kept[i] && b.kept[i] }, { colour: "--seed", has: differ }] }, place, {
    xLabel: a.name, yLabel: b.name, cutX: a.threshold, cutY: b.threshold, empty: "No confidences to draw.",
    say: (i) => [id(i)].concat(runs.map((run) => `${run.name}: ${told(run.confidence[i])}, ${run.kept[i] ? "kept" : "dropped"}`)).join("\n"),
  }));
  const columns = [{ key: "id", words: "Trajectory", width: "minmax(72px, 1.6fr)", sort: id, show: id }];
  runs.forEach((run, k) => {
    columns.push({ key: "keep-" + k, words: run.name, help: "Label in " + run.name, width: "minmax(62px, 0.8fr)", sort: (i) => run.kept[i], show: (i) => (run.kept[i] ? "kept" : "dropped") });
    columns.push({ key: "confidence-" + k, words: "Confidence", help: "Confidence in " + run.name, width: "minmax(80px, 1fr)", right: true, optional: true, sort: (i) => run.confidence[i], show: (i) => told(run.confidence[i]) });
  });
  columns.push({ key: "return", words: "Return", width: "minmax(76px, 1fr)", right: true, optional: true, sort: (i) => (returns ? returns[i] : NaN), show: (i) => told(returns ? returns[i] : null) });
  columns.push({ key: "length", words: "Steps", width: "minmax(54px, 0.8fr)", right: true, optional: true, sort: (i) => lengths[i], show: (i) => told(lengths[i]) });
  bigTable(byId("table"), columns, n, { sort: 2, down: true, collator, marked: (i) => !!a.kept[i], searches: "id", text: id, filters: [["Disagree", differ], ["All", () => true]] });
}

function showPolicies(policies) {
  let metric = policies.metrics[0];
  const group = byId("metrics");
  policies.metrics.forEach((name) => {
    const button = el("button", { type: "button", "aria-pressed": String(name === metric) }, name);
    button.addEventListener("click", () => { metric = name; group.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(b === button))); repaint("learning"); });
    group.append(button);
  });
  chart("learning", (width, place) => {
    const drawn = policies.curves.filter((c) => c.metric === metric);
    legend(place, drawn.map((c, k) => ["s" + (k % 6), c.name + (c.seeds > 1 ? ` (${c.seeds} seeds)` : "")]));
    return lineChart(width, Math.min(360, Math.max(240, width * 0.4)), drawn.map((c, k) => ({ name: c.name, x: c.x, y: c.mean, low: c.seeds > 1 ? c.low : null, high: c.seeds > 1 ? c.high : null, mark: "s" + (k % 6) + (k >= 6 ? " d1" : "") })), { xLabel: policies.xLabel, xWord: policies.xLabel, empty: "Nothing to draw." });
  });
  chart("scores", (width) => {
    const rows = policies.scores, height = rows.length * 34 + 44;
    const r = range(rows.flatMap((row) => [row.mean, row.low, row.high]));
    if (!r) return nothing("Nothing to draw.");
    const pad = (r[1] - r[0]) * 0.06 || 1, left = Math.min(240, width * 0.34);
    const f = frame(width, height, [Math.min(r[0] - pad, 0), r[1] + pad], [0, rows.length], { left, yMarks: [], xLabel: "return" });
    rows.forEach((row, k) => {
      const y = f.o.top + (k + 0.5) * (f.tall / rows.length);
      const name = row.name.length > left / 7 ? "…" + row.name.slice(-Math.floor(left / 7) + 1) : row.name;
      f.root.append(svg("text", { class: "strong", x: left - 12, y: y + 4, "text-anchor": "end" }, name));
      f.root.append(svg("line", { class: "line", x1: f.px(row.low), x2: f.px(row.high), y1: y, y2: y }), svg("circle", { class: "point", cx: f.px(row.mean), cy: y, r: 5.5 }));
      f.root.append(hover(svg("rect", { class: "hit", x: left, width: f.inner, y: y - 15, height: 30 }), `${row.name}\n${row.environment}\nmean ${told(row.mean)}\n95 %: ${told(row.low)} to ${told(row.high)}`));
    });
    return f.root;
  });
}

if (data.run) showRun(data.run);
if (data.comparison) showComparison(data.comparison);
if (data.policies) showPolicies(data.policies);
start();
