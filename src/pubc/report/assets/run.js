// The page of one run.
function showRun(run) {
  const n = run.count;
  const confidence = unpack(run.confidence), votes = unpack(run.votes), flags = unpack(run.flags);
  const returns = unpack(run.returns), lengths = unpack(run.lengths), sources = unpack(run.sources);
  const id = (i) => (run.ids ? run.ids[i] : String(i));
  const kept = (i) => (flags[i] & 1) === 1, seed = (i) => (flags[i] & 2) === 2, unsure = (i) => (flags[i] & 4) === 4;
  const source = (i) => (sources ? run.source_names[sources[i]] : "");
  const about = (i) => [id(i) + (seed(i) ? " (seed)" : ""), `confidence ${told(confidence[i])}`, returns ? `return ${told(returns[i])}` : "", `${told(lengths[i])} steps, ${kept(i) ? "kept" : "dropped"}`, source(i)].filter(Boolean).join("\n");
  let chosen = run.decisive;

  if (run.rounds.length) {
    chart("histogram", (width, place) => {
      const round = run.rounds[chosen];
      legend(place, [["k", "kept"], ["o", "dropped"]].concat(round.curve.length ? [["c", "fitted curve"]] : [], round.threshold === null ? [] : [["t", "cut"]]));
      return roundChart(round, width, Math.min(330, Math.max(220, width * 0.42)), false);
    });
    const strip = byId("rounds");
    const tries = new Set(run.rounds.map((r) => r.attempt)).size;
    run.rounds.forEach((round, k) => {
      const button = el("button", { type: "button", "aria-pressed": String(k === chosen), "data-round": round.number }, [el("b", {}, "Round " + round.number), roundChart(round, 96, 40, true), el("small", {}, told(round.kept) + " kept" + (tries > 1 ? `, try ${round.attempt}` : "") + (k === run.decisive && k < run.rounds.length - 1 ? ", the result" : ""))]);
      button.addEventListener("click", () => {
        chosen = k;
        strip.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
        repaint("histogram"); repaint("loss");
      });
      strip.append(button);
    });
    const numbers = run.rounds.map((r) => r.number);
    const counted = { xLabel: "round", xWord: "round", xTicks: numbers.length > 14 ? null : numbers, whole: true, zero: true };
    chart("kept", (width) => lineChart(width, 200, [{ name: "kept", x: numbers, y: run.rounds.map((r) => r.kept), mark: "line", dots: true }], counted));
    chart("changed", (width) => lineChart(width, 200, [{ name: "changed", x: numbers, y: run.rounds.map((r) => r.changed), mark: "line", dots: true }], Object.assign({ percent: true }, counted)));
    chart("loss", (width) => {
      const lines = run.rounds[chosen].losses.map(([name, values], k) => ({ name, x: values.map((_, i) => i + 1), y: values, mark: "s" + (k % 6) + (k >= 6 ? " d1" : "") }));
      return lineChart(width, 220, lines, { xLabel: "progress of the training", xWord: "point", whole: true, empty: "No network was trained in this round." });
    });
    chart("ribbon", (width) => ribbon(run, confidence, width));
  }

  const sides = (values, whole, width, words) => {
    const b = bins(values, 40, whole);
    if (!b) return nothing("Unknown: the dataset does not say.");
    if (b.same !== null) return nothing(`The same for all: ${told(b.same)}.`);
    return groupChart(width, 220, b, [
      { name: "dropped", counts: tally(values, b, (i) => !kept(i)), area: "area dropped", line: "line dropped" },
      { name: "kept", counts: tally(values, b, kept), area: "area", line: "line" },
    ], { xLabel: words });
  };
  const both = [["k", "kept"], ["o", "dropped"]];
  chart("returns", (width, place) => { if (!returns) return nothing("Unknown: the dataset has no rewards."); legend(place, both); return sides(returns, false, width, "return"); });
  chart("lengths", (width, place) => { legend(place, both); return sides(lengths, true, width, "steps"); });
  const seeds = [];
  for (let i = 0; i < n && seeds.length < 500; i++) if (seed(i)) seeds.push(i);
  chart("scatter", (width, place) => {
    if (!returns) return nothing("Unknown: the dataset has no rewards.");
    legend(place, both.concat([["q", "seed"], ["t", "cut"]]));
    return pointChart(width, Math.min(400, Math.max(260, width * 0.45)), { x: confidence, y: returns, marked: seeds, groups: [{ colour: "--other", has: (i) => !kept(i) }, { colour: "--accent", has: kept }] }, place, { xLabel: "confidence", yLabel: "return", cutX: run.threshold, say: about, empty: "No confidences to draw." });
  });

  showBorderline(run, { n, id, unsure, kept, seed, source, confidence, returns, lengths });
  if (sources) showSources(run, confidence, sources, kept);
  const columns = [
    { key: "id", words: "Trajectory", width: "minmax(88px, 2fr)", sort: id, show: id },
    { key: "confidence", words: "Confidence", width: "minmax(84px, 1.2fr)", right: true, sort: (i) => confidence[i], show: (i) => told(confidence[i]) },
    { key: "votes", words: "Votes", width: "minmax(50px, 0.7fr)", right: true, optional: true, sort: (i) => votes[i], show: (i) => told(votes[i]) },
    { key: "return", words: "Return", width: "minmax(76px, 1.2fr)", right: true, sort: (i) => (returns ? returns[i] : NaN), show: (i) => told(returns ? returns[i] : null) },
    { key: "length", words: "Steps", width: "minmax(54px, 0.8fr)", right: true, optional: true, sort: (i) => lengths[i], show: (i) => told(lengths[i]) },
    { key: "keep", words: "Label", width: "minmax(62px, 0.9fr)", sort: (i) => (kept(i) ? 1 : 0), show: (i) => (kept(i) ? "kept" : "dropped") },
    { key: "notes", words: "Notes", width: "minmax(80px, 1.2fr)", optional: true, sort: (i) => (flags[i] >> 1) & 3, show: (i) => [seed(i) ? "seed" : "", unsure(i) ? "borderline" : ""].filter(Boolean).join(", ") },
  ];
  if (sources) columns.push({ key: "source", words: "Source", width: "minmax(80px, 1.4fr)", optional: true, sort: source, show: source });
  bigTable(byId("table"), columns, n, {
    sort: 1, down: true, collator, marked: kept, searches: sources ? "id or source" : "id", text: (i) => id(i) + " " + source(i),
    filters: [["All", () => true], ["Kept", kept], ["Dropped", (i) => !kept(i)], ["Borderline", unsure], ["Seeds", seed]],
    choices: sources && run.source_names.length <= 200 ? run.source_names : null, choiceWord: "Every source", choice: (i) => sources[i],
  });
}

// One line of cells per round; a cell is a stretch of trajectories in order of confidence.
function ribbon(run, confidence, width) {
  const n = run.count, order = Array.from({ length: n }, (_, i) => i).sort((a, b) => (confidence[a] || 0) - (confidence[b] || 0));
  const cells = Math.min(n, Math.floor((width - 60) / 3)), rowHeight = Math.max(10, Math.min(26, 220 / run.rounds.length));
  const height = run.rounds.length * (rowHeight + 3) + 24, left = 52, inner = width - left - 12;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
  run.rounds.forEach((round, r) => {
    const selected = unpackBits(round.selected, n), y = r * (rowHeight + 3);
    root.append(svg("text", { x: left - 8, y: y + rowHeight / 2 + 4, "text-anchor": "end" }, round.number));
    root.append(svg("rect", { class: "dropped", x: left, y, width: inner, height: rowHeight, opacity: 0.28 }));
    let from = 0, level = -1;
    const flush = (to) => { if (level > 0) root.append(svg("rect", { class: "kept", x: left + (from / cells) * inner, y, width: ((to - from) / cells) * inner, height: rowHeight, opacity: level })); };
    for (let c = 0; c < cells; c++) {
      const a = Math.floor((c * n) / cells), b = Math.floor(((c + 1) * n) / cells);
      let inside = 0;
      for (let k = a; k < b; k++) inside += selected[order[k]];
      const now = Math.round((inside / (b - a)) * 8) / 8;
      if (now !== level) { flush(c); from = c; level = now; }
    }
    flush(cells);
    const hit = svg("rect", { class: "chart-hit", fill: "transparent", x: left, y, width: inner, height: rowHeight });
    root.append(hover(hit, (event) => {
      const box = root.getBoundingClientRect(), p = (((event.clientX - box.left) / box.width) * width - left) / inner;
      const a = Math.max(0, Math.min(n - 1, Math.floor(p * n)));
      return `round ${round.number}: ${told(round.kept)} of ${told(n)} in\nrank ${told(a + 1)}: ${selected[order[a]] ? "in" : "out"}`;
    }));
  });
  root.append(svg("text", { x: left, y: height - 4 }, "least like the expert"), svg("text", { x: width - 12, y: height - 4, "text-anchor": "end" }, "most"));
  return root;
}

function showBorderline(run, t) {
  const place = byId("cards");
  if (!place) return;
  const sparks = new Map(run.sparks.map((s) => [s.at, s]));
  const cut = run.threshold, all = [];
  for (let i = 0; i < t.n; i++) if (t.unsure(i)) all.push(i);
  if (cut !== null) all.sort((a, b) => Math.abs(t.confidence[a] - cut) - Math.abs(t.confidence[b] - cut) || a - b);
  let shown = 0;
  const card = (i) => {
    const tag = el("span", { class: "tag" + (t.kept(i) ? " yes" : "") }, t.kept(i) ? "kept" : "dropped");
    const facts = [`confidence ${told(t.confidence[i])}`, t.returns ? `return ${told(t.returns[i])}` : null, `${told(t.lengths[i])} steps`, t.source(i) || null, t.seed(i) ? "seed" : null];
    const box = el("article", { class: "card", "data-row": i }, [el("header", {}, [el("b", {}, t.id(i)), tag]), el("dl", {}, facts.filter(Boolean).map((f) => el("dd", {}, f)))]);
    if (sparks.has(i)) box.append(spark(unpack(sparks.get(i).values), t.lengths[i]));
    return box;
  };
  const more = byId("more");
  const grow = () => {
    const next = all.slice(shown, shown + (shown ? 60 : 12));
    place.append(...next.map(card));
    shown += next.length;
    more.hidden = shown >= all.length;
    more.textContent = `Show more (${told(all.length - shown)} left)`;
  };
  more.addEventListener("click", grow);
  grow();
}

function spark(values, steps) {
  const r = range(values), w = 240, h = 54;
  const root = svg("svg", { viewBox: `0 0 ${w} ${h}`, preserveAspectRatio: "none", class: "spark" });
  if (!r) return root;
  const span = r[1] - r[0] || 1;
  const y = (v) => 4 + (1 - (v - r[0]) / span) * (h - 8), x = (i) => ((i + 0.5) / values.length) * w;
  const points = Array.from(values, (v, i) => [x(i), y(v)]);
  root.append(svg("path", { class: "area", d: path([[x(0), h], ...points, [x(values.length - 1), h]]) + "Z" }), svg("path", { class: "line", d: path(points), "vector-effect": "non-scaling-stroke" }));
  return hover(root, (event) => {
    const box = root.getBoundingClientRect();
    const i = Math.max(0, Math.min(values.length - 1, Math.floor(((event.clientX - box.left) / box.width) * values.length)));
    return `steps ${told(Math.floor((i * steps) / values.length) + 1)} to ${told(Math.max(1, Math.floor(((i + 1) * steps) / values.length)))}\n${told(values[i])} per step`;
  });
}

function showSources(run, confidence, sources, kept) {
  const names = run.source_names, most = 6;
  chart("sources", (width, place) => {
    const b = bins(confidence, 60, false);
    if (!b) return nothing("No confidences to draw.");
    const groups = names.slice(0, most).map((name, k) => ({ name: name || "(no name)", counts: tally(confidence, b, (i) => sources[i] === k), area: "band s" + k, line: "series s" + k + (k ? " d" + (k % 4) : "") }));
    if (names.length > most) groups.push({ name: `${names.length - most} others`, counts: tally(confidence, b, (i) => sources[i] >= most), area: "area dropped", line: "line dropped" });
    legend(place, groups.map((g, k) => [k < most ? "s" + k : "o", g.name]).concat(run.threshold === null ? [] : [["t", "cut"]]));
    return groupChart(width, 260, b, groups, { xLabel: "confidence", cut: run.threshold });
  });
  chart("roc", (width) => {
    if (!run.roc) return nothing("Not to be had: one of the two kinds is absent.");
    const lines = [{ name: "chance", x: [0, 1], y: [0, 1], mark: "diagonal" }, { name: "true positive rate", x: run.roc.x, y: run.roc.y, mark: "line" }];
    return lineChart(width, Math.min(width, 360) * 0.8, lines, { xLabel: "false positive rate", xWord: "false positive rate", zero: true, dot: run.roc_cut });
  });
}
