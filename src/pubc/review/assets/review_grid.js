// All trajectories as a grid that draws only what is in view, and the eight to look at next.
const TALL = 154, GAP = 12, NARROWEST = 196;
// Cards that may appear in one frame; the others follow in the next.
const NEW = 14;
const grid = byId("grid"), everything = Uint32Array.from({ length: N }, (_, i) => i);
const picked = new Set(), here = { list: "all", at: -1 };
const alive = new Map(), spare = [];
const numbers = new Intl.Collator("en", { numeric: true });
let order = everything, columns = 1, wide = 200, next = [], nextNodes = [];

const FILTERS = {
  all: ["All", () => true], open: ["Unmarked", (i) => !marks.has(i)], good: ["Good", (i) => marksOf(i).some((m) => m.label === "good")], bad: ["Bad", (i) => marksOf(i).some((m) => m.label === "bad")],
  kept: ["Kept", (i) => run && run.keep[i]], dropped: ["Dropped", (i) => run && !run.keep[i]], unsure: ["Unsure", (i) => run && run.unsure[i]], changed: ["Changed", changed],
};
const SORTS = {
  given: ["Order of the dataset", () => 0], name: ["Name", null], long: ["Longest first", (i) => -lengths[i]], short: ["Shortest first", (i) => lengths[i]],
  high: ["Highest return first", (i) => (returns ? -returns[i] : 0)], low: ["Lowest return first", (i) => (returns ? returns[i] : 0)],
  sure: ["Surest first", (i) => (run ? -run.confidence[i] : 0)], doubt: ["Closest to the cut first", (i) => (run && run.threshold !== null ? Math.abs(run.confidence[i] - run.threshold) : 0)],
};
const wanted = { filter: "all", sort: "given", words: "", source: "" };

let ranks = null;
function rankOf(i) {
  if (!ranks) {
    const sorted = Array.from(everything).sort((a, b) => numbers.compare(id(a), id(b)));
    ranks = new Uint32Array(N);
    sorted.forEach((at, k) => { ranks[at] = k; });
  }
  return ranks[i];
}
function arrange() {
  const has = FILTERS[wanted.filter][1], words = wanted.words.trim().toLowerCase(), chosen = wanted.source === "" ? -1 : Number(wanted.source);
  order = everything.filter((i) => has(i) && (chosen < 0 || sources[i] === chosen) && (!words || (id(i) + " " + source(i)).toLowerCase().includes(words)));
  const key = wanted.sort === "name" ? rankOf : SORTS[wanted.sort][1];
  if (wanted.sort !== "given") {
    order.sort((a, b) => {
      const x = key(a), y = key(b);
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
      return x - y || a - b;
    });
  }
  byId("shown").textContent = `${told(order.length)} of ${told(N)}`;
  for (const [name, button] of Object.entries(filterButtons)) button.hidden = !run && ["kept", "dropped", "unsure", "changed"].includes(name) || (name === "changed" && !(run && run.before));
  measure();
  draw(true);
}
function measure() {
  const width = grid.clientWidth;
  columns = Math.max(1, Math.floor((width + GAP) / (NARROWEST + GAP)));
  wide = (width - GAP * (columns - 1)) / columns;
  grid.style.height = Math.ceil(order.length / columns) * (TALL + GAP) + "px";
}
let frameAsked = 0;
const later = (force) => { cancelAnimationFrame(frameAsked); frameAsked = requestAnimationFrame(() => { if (force) measure(); draw(force); }); };
function draw(force) {
  const top = -grid.getBoundingClientRect().top, high = window.innerHeight, row = TALL + GAP;
  const clip = (rows) => Math.max(0, Math.min(order.length, rows * columns));
  const first = clip(Math.floor(top / row)), last = clip(Math.ceil((top + high) / row)), seen = new Map();
  // In view first, then the rows around it: a fast scroll meets cards that are there already.
  for (let k = first; k < last; k++) seen.set(order[k], k);
  for (let k = last; k < clip(last / columns + 2); k++) seen.set(order[k], k);
  for (let k = first - 1; k >= clip(first / columns - 2); k--) seen.set(order[k], k);
  let left = force ? Infinity : NEW;
  for (const [at, node] of alive) if (!seen.has(at)) { alive.delete(at); spare.push(node); }
  for (const [at, k] of seen) {
    let node = alive.get(at);
    const fresh = !node;
    if (fresh && left-- <= 0) { later(false); continue; }
    if (fresh) {
      node = spare.pop() || card();
      node.list = "all";
      alive.set(at, node);
      if (!node.isConnected) grid.append(node);
    }
    if (fresh || force) {
      node.style.transform = `translate(${(k % columns) * (wide + GAP)}px, ${Math.floor(k / columns) * row}px)`;
      node.style.width = wide + "px";
      node.hidden = false;
      if (fresh) node.parts.paths.forEach((line) => line.setAttribute("d", ""));
      dress(node, at);
    }
  }
  for (const node of spare) if (!node.hidden) node.hidden = true;
}
function chunkReady(number) {
  for (const [at, node] of alive) if (Math.floor(at / data.chunk) === number) drawCard(node);
  for (const node of nextNodes) if (Math.floor(node.at / data.chunk) === number) drawCard(node);
}
function refresh(list) {
  const which = list ? new Set(list) : null;
  for (const [at, node] of alive) if (!which || which.has(at)) dress(node, at);
  for (const node of nextNodes) if (!which || which.has(node.at)) dress(node, node.at);
}

// The eight to look at next.
const WORDS = {
  group: "Nothing is marked yet. These stand for groups of episodes that move and act alike: mark the ones that do what you want good, others bad.",
  marks: "Mark these and run: each tells the filter something that it does not know yet.",
  sound: "The result is sound. If you want to be surer still, these are the ones to check.",
  none: "Everything that would help is marked.",
};
async function propose() {
  byId("next-words").textContent = "Looking for what would help most …";
  try {
    next = await ask("proposals");
  } catch (error) {
    byId("next-words").textContent = "";
    trouble(lost(error));
    return;
  }
  byId("next-title").textContent = next.length ? `Look at these ${["none", "one", "two", "three", "four", "five", "six", "seven", "eight"][next.length] || next.length} next` : "Nothing left to look at";
  byId("next-words").textContent = next.length ? WORDS[run && run.sound ? "sound" : marks.size ? "marks" : "group"] : WORDS.none;
  nextNodes = next.map((p) => { const node = card(p.words); node.list = "next"; return node; });
  byId("next-cards").replaceChildren(...nextNodes);
  nextNodes.forEach((node, k) => { dress(node, next[k].at); });
  if (next.length) go("next", next[0].at, false);
  document.documentElement.dataset.proposed = String(Number(document.documentElement.dataset.proposed || 0) + 1);
}

// The frame: one trajectory that keys speak of.
const listed = (list) => (list === "next" ? next.map((p) => p.at) : order);
function go(list, at, show) {
  const old = here.at;
  here.list = list;
  here.at = at;
  refresh([old, at]);
  if (show !== false) reveal();
  if (!byId("look").hidden && !picked.size) look([at]);
}
function step(by) {
  const list = listed(here.list), k = list.indexOf(here.at);
  if (!list.length) return;
  go(here.list, list[Math.max(0, Math.min(list.length - 1, k < 0 ? 0 : k + by))]);
}
function reveal() {
  const bar = document.querySelector(".bar").offsetHeight + 10, sheet = byId("look").hidden ? 0 : byId("look").offsetHeight;
  let top, bottom;
  if (here.list === "all") {
    const k = order.indexOf(here.at);
    if (k < 0) return;
    top = grid.getBoundingClientRect().top + Math.floor(k / columns) * (TALL + GAP);
    bottom = top + TALL;
  } else {
    const node = nextNodes.find((n) => n.at === here.at);
    if (!node) return;
    ({ top, bottom } = node.getBoundingClientRect());
  }
  const room = window.innerHeight - sheet - 10;
  if (top < bar) window.scrollBy({ top: top - bar, behavior: "instant" });
  else if (bottom > room) window.scrollBy({ top: Math.min(bottom - room, top - bar), behavior: "instant" });
  draw(false);
}
const chosen = () => (picked.size ? [...picked] : here.at >= 0 ? [here.at] : []);
function pick(at, on) {
  if (on === undefined ? picked.has(at) : !on) picked.delete(at); else picked.add(at);
  refresh([at]);
  tellPicked();
}
function tellPicked() {
  byId("picked").textContent = picked.size ? `${told(picked.size)} selected` : "";
  byId("look-picked").hidden = !picked.size;
}
function pickNone() { const list = [...picked]; picked.clear(); refresh(list); tellPicked(); }
function pickAll() { for (const i of order) picked.add(i); refresh(); tellPicked(); }
function clicked(event) {
  const node = event.target.closest(".ep");
  if (!node) return;
  const at = node.at, button = event.target.closest("button");
  if (button) {
    const label = button.classList.contains("yes") ? "good" : "bad", same = labelOf(at) === label;
    go(node.list, at, false);
    mark(picked.has(at) ? [...picked] : [at], same ? null : label);
    return;
  }
  if (event.shiftKey && here.at >= 0 && here.list === node.list) {
    const list = listed(node.list), a = list.indexOf(here.at), b = list.indexOf(at);
    for (let k = Math.min(a, b); k <= Math.max(a, b); k++) picked.add(list[k]);
    refresh();
    tellPicked();
  } else if (event.ctrlKey || event.metaKey) pick(at);
  else if (here.at === at && here.list === node.list) look(chosen());
  else go(node.list, at, false);
}
