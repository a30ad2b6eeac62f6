// The tools above the grid, the run and what it changed, and the start of it all.
const filterButtons = {};
let progress = null;

function tools() {
  const place_ = byId("tools"), search = el("input", { type: "search", id: "search", placeholder: sources ? "Search id or source" : "Search id", "aria-label": "Search" });
  search.addEventListener("input", () => { wanted.words = search.value; arrange(); });
  for (const [name, [words]] of Object.entries(FILTERS)) {
    const button = el("button", { type: "button", "data-filter": name, "aria-pressed": String(name === "all") }, words);
    button.addEventListener("click", () => { wanted.filter = name; for (const [other, b] of Object.entries(filterButtons)) b.setAttribute("aria-pressed", String(other === name)); arrange(); });
    filterButtons[name] = button;
  }
  const sort = el("select", { id: "sort", "aria-label": "Sort" });
  const fillSorts = () => sort.replaceChildren(...Object.entries(SORTS).filter(([name]) => (returns || !["high", "low"].includes(name)) && (run || !["sure", "doubt"].includes(name))).map(([name, [words]]) => el("option", { value: name, selected: name === wanted.sort ? "" : null }, words)));
  fillSorts();
  tools.sorts = fillSorts;
  sort.addEventListener("change", () => { wanted.sort = sort.value; arrange(); });
  const parts = [search, ...Object.values(filterButtons), sort];
  if (sources && data.source_names.length > 1) {
    const which = el("select", { id: "source", "aria-label": "Source" }, [el("option", { value: "" }, "Every source"), ...data.source_names.map((name, k) => el("option", { value: k }, name || "(no name)"))]);
    which.addEventListener("change", () => { wanted.source = which.value; arrange(); });
    parts.push(which);
  }
  const closer = el("button", { type: "button", id: "look-picked", hidden: "" }, "Look closer");
  closer.addEventListener("click", () => look(chosen()));
  place_.append(...parts, el("span", { class: "note", id: "shown" }), el("span", { class: "note", id: "picked" }), closer);
  const states = data.small.filter((c) => c < data.states).length;
  byId("curves").append(...data.small.map((c, k) => el("span", {}, [el("i", { class: "cv" + (k < states ? k : 2 + k - states) }), data.curves[c]])));
}

function showVerdict() {
  const box = byId("verdict");
  box.hidden = !run;
  if (!run) return;
  let kept = 0, came = 0, went = 0;
  for (let i = 0; i < N; i++) { kept += run.keep[i]; if (changed(i)) { if (run.keep[i]) came += 1; else went += 1; } }
  const words = [`${run.title}: kept ${told(kept)} of ${told(N)}`, run.sentence];
  const list = [];
  if (run.before) list.push(el("span", { id: "changes" }, came || went ? `Since ${run.before_name}: ${told(came)} came in, ${told(went)} went out.` : `The same as ${run.before_name}.`));
  if (came || went) {
    const button = el("button", { type: "button" }, "Show what changed");
    button.addEventListener("click", () => { filterButtons.changed.click(); byId("all").scrollIntoView(); });
    list.push(button);
  }
  const unsure = run.unsure.reduce((sum, value) => sum + value, 0);
  if (unsure) list.push(el("span", { class: "soft" }, `${told(unsure)} ${unsure === 1 ? "is" : "are"} unsure.`));
  box.className = "verdict " + run.tone;
  box.replaceChildren(el("strong", {}, words[0]), el("p", {}, words[1]), ...(run.sound ? [] : run.advice.slice(0, 2).map((sentence) => el("p", { class: "note" }, sentence))), el("div", { class: "changed" }, list));
}

function showProgress(now) {
  const was = progress;
  progress = now;
  const running = now.state === "running", last = now.rounds[now.rounds.length - 1];
  byId("command").textContent = now.command;
  byId("stop").hidden = !running;
  byId("working").textContent = running ? (last ? `Round ${last.round}: ${told(last.kept)} kept, ${share(last.changed)} changed` : "Getting ready …") : "";
  byId("run").firstChild.textContent = now.state === "interrupted" ? "Go on " : "Run ";
  if (now.state === "failed" && was && was.state === "running") trouble(now.error);
  if (now.run && (!run || run.name !== now.run.name || !was)) { readRun(now.run); tools.sorts(); showVerdict(); }
  document.documentElement.dataset.run = `${now.state} ${now.number}`;
  count();
  if (was && was.state === "running" && !running) { kept_.clear(); arrange(); refresh(); if (now.state === "finished") propose(); }
  if (running) setTimeout(poll, 400);
}
async function poll() {
  try { showProgress(await ask("run")); } catch (error) { trouble(lost(error)); setTimeout(poll, 2000); }
}
async function startRun() {
  if (byId("run").disabled) return;
  byId("run").disabled = true;
  await waiting;
  try { trouble(""); showProgress(await ask("run", {})); } catch (error) { trouble(lost(error)); count(); }
}

readPalette();
tools();
showProgress(data.progress);
byId("labels").textContent = data.labels;
arrange();
window.addEventListener("scroll", () => later(false), { passive: true });
window.addEventListener("resize", () => { later(true); seen.forEach(drawClose); });
for (const place_ of [grid, byId("next-cards")]) {
  place_.addEventListener("click", clicked);
  place_.addEventListener("dblclick", (event) => { if (!event.target.closest("button") && event.target.closest(".ep")) look(chosen()); });
}
const recolour = () => { readPalette(); seen.forEach(drawClose); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
byId("theme").addEventListener("click", () => setTimeout(recolour));
byId("run").addEventListener("click", startRun);
byId("stop").addEventListener("click", () => ask("stop", {}).then(showProgress, (error) => trouble(lost(error))));
byId("undo").addEventListener("click", undo);
byId("keys").addEventListener("click", help);
byId("more").addEventListener("click", propose);
byId("close").addEventListener("click", closeLook);
byId("play").addEventListener("click", () => play(!playing));
scrub.addEventListener("input", () => { play(false); moveTo(Number(scrub.value)); });
window.addEventListener("beforeunload", (event) => { if (pending.length) event.preventDefault(); });
start();
requestAnimationFrame(propose);
