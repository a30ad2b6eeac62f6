// What the page knows: the trajectories, the marks, the last run. Everything is told to the server
// before it counts as saved; addresses are relative, so the token comes along by itself.
const N = data.count;
const lengths = unpack(data.lengths), returns = unpack(data.returns), sources = unpack(data.sources);
const id = (i) => (data.ids ? data.ids[i] : String(i));
const source = (i) => (sources ? data.source_names[sources[i]] : "");
const marks = new Map(Object.entries(data.marks).map(([at, list]) => [Number(at), list]));
const marksOf = (i) => marks.get(i) || [];
let run = null;

async function ask(path, body) {
  const answer = await fetch(path, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
  const told_ = await answer.json();
  if (!answer.ok) throw new Error(told_.error || "The server said no.");
  return told_;
}
function trouble(words) {
  byId("trouble").hidden = !words;
  byId("trouble").textContent = words || "";
}
const lost = (error) => (error instanceof TypeError ? "The server does not answer. Start pubc review again; everything that was saved is kept." : error.message);

function readRun(view) {
  run = view && {
    ...view, confidence: unpack(view.confidence), keep: unpackBits(view.keep, N), unsure: unpackBits(view.unsure, N),
    seed: unpackBits(view.seed, N), before: view.before ? unpackBits(view.before, N) : null,
  };
}
const changed = (i) => !!run && !!run.before && run.before[i] !== run.keep[i];
function labelOf(i) {
  let label = "";
  for (const mark of marksOf(i)) label = mark.start === null ? mark.label : label || "part";
  return label;
}
function verdictOf(i) {
  if (!run) return ["", ""];
  if (changed(i)) return [run.keep[i] ? "now kept" : "now dropped", "new"];
  if (run.unsure[i]) return [run.keep[i] ? "kept, unsure" : "dropped, unsure", "unsure"];
  return run.keep[i] ? ["kept", "yes"] : ["dropped", ""];
}

// Marks: each change is one request, in order; a refused one is taken back, and is nothing to undo.
const past = [], pending = [];
let waiting = Promise.resolve(), refused = false;
const put = (i, list) => (list.length ? marks.set(i, list) : marks.delete(i));
function change(entries, remember) {
  const before = entries.map(([i]) => [i, marksOf(i)]);
  for (const [i, list] of entries) put(i, list);
  if (remember) past.push(before);
  pending.push(before);
  marked(entries.map(([i]) => i));
  waiting = waiting.then(() => ask("marks", { episodes: entries.map(([at, list]) => ({ at, marks: list })) })).then(() => { refused = false; trouble(""); }, (error) => {
    refused = true;
    takeBack(before);
    if (!remember) past.push(entries);
    trouble("Not saved. " + lost(error));
    marked(entries.map(([i]) => i));
  }).finally(() => { pending.shift(); count(); });
  return waiting;
}
function takeBack(before) {
  for (const [i, list] of before) {
    const later = pending.slice(1).flat().find(([other]) => other === i);
    if (later) later[1] = list; else put(i, list);
  }
  if (past.includes(before)) past.splice(past.indexOf(before), 1);
}
function mark(list, label, stretch) {
  if (!list.length) return;
  change(list.map((i) => {
    if (label === null) return [i, []];
    if (!stretch) return [i, [{ label, start: null, stop: null }]];
    const [start, stop] = stretch;
    return [i, marksOf(i).filter((m) => m.start !== start || m.stop !== stop).concat([{ label, start, stop }])];
  }), true);
}
function undo() {
  const before = past.pop();
  if (before) change(before, false);
}
function count() {
  let good = 0, bad = 0;
  for (const list of marks.values()) { if (list.some((m) => m.label === "good")) good += 1; if (list.some((m) => m.label === "bad")) bad += 1; }
  byId("count-good").textContent = `${told(good)} good`;
  byId("count-bad").textContent = `${told(bad)} bad`;
  byId("saved").textContent = pending.length ? "Saving …" : refused ? "Last mark not saved" : marks.size ? "All marks saved" : "";
  byId("undo").disabled = !past.length;
  byId("run").disabled = !good || (progress && progress.state === "running");
}
function marked(list) { refresh(list); lookMarks(); count(); }
