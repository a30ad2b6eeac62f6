// The closer look: several trajectories at once, films and curves on one clock.
const MOST = 6, LEFT = 0, BAND = 92;
const sheet = byId("look"), scrub = byId("scrub");
let seen = [], clock = 0, playing = 0, chosenStretch = null;
const kept_ = new Map();

async function look(list) {
  const wantedNow = list.slice(0, MOST);
  if (!wantedNow.length) return;
  sheet.hidden = false;
  chosenStretch = null;
  if (seen.length && seen.map((s) => s.at).join() === wantedNow.join()) return;
  seen = wantedNow.map((at) => ({ at, node: el("article", { class: "closer", "data-at": at }, [el("header", {}, [el("b", {}, id(at)), el("span", { class: "tag" })])]), films: [] }));
  byId("look-list").replaceChildren(...seen.map((s) => s.node));
  scrub.max = Math.max(1, ...wantedNow.map((at) => lengths[at] - 1));
  moveTo(0);
  lookMarks();
  reveal();
  await Promise.all(seen.map(fill));
  sheet.dataset.shown = wantedNow.join();
}
async function fill(one) {
  try {
    if (!kept_.has(one.at)) kept_.set(one.at, await ask(`episode/${one.at}`));
  } catch (error) { trouble(lost(error)); return; }
  if (kept_.size > 60) kept_.delete(kept_.keys().next().value);
  const view = kept_.get(one.at);
  one.steps = unpack(view.steps);
  one.curves = view.curves.map(unpack);
  one.evidence = unpack(view.evidence);
  if (view.clips.length) {
    const films = el("div", { class: "films" });
    for (const clip of view.clips) {
      const film = el("video", { muted: "", playsinline: "", preload: "auto", src: `video/${one.at}/${clip.camera}`, "aria-label": data.cameras[clip.camera], title: data.cameras[clip.camera] });
      film.muted = true;
      film.addEventListener("loadedmetadata", () => place(one, film, clip), { once: true });
      film.addEventListener("error", () => noFilm(film), { once: true });
      if (data.drawn) waitFor(film, films);
      one.films.push([film, clip]);
      films.append(film);
    }
    one.node.append(films);
  }
  one.canvas = el("canvas");
  one.node.append(one.canvas, el("p", { class: "note" }, [`States above, actions below${one.evidence ? ", what each step adds to the confidence at the bottom" : ""}. Drag to choose a stretch.`]));
  dragOn(one);
  drawClose(one);
}
function waitFor(film, films) {
  const note = el("p", { class: "note", role: "status" }, "Drawing the film …");
  films.append(note);
  for (const name of ["loadeddata", "error"]) film.addEventListener(name, () => note.remove(), { once: true });
}
async function noFilm(film) {
  let said = "The browser cannot show this film.";
  try {
    const answer = await fetch(film.src);
    if (!answer.ok) said = (await answer.json()).error;
  } catch (error) { said = lost(error); }
  film.replaceWith(el("p", { class: "note no-film" }, said));
}
function place(one, film, clip) {
  const step_ = Math.min(clock, lengths[one.at] - 1), end = clip.stop === null ? Infinity : clip.stop - 0.5 / data.fps;
  const wish = Math.min(clip.start + (step_ + 0.5) / data.fps, end);
  if (Number.isFinite(wish) && Math.abs(film.currentTime - wish) > 0.25 / data.fps) film.currentTime = wish;
}
function moveTo(step_) {
  clock = Math.max(0, Math.min(Number(scrub.max), Math.round(step_)));
  scrub.value = clock;
  byId("step").textContent = `step ${told(clock)}`;
  for (const one of seen) {
    for (const [film, clip] of one.films) place(one, film, clip);
    drawClose(one);
  }
}
function play(on) {
  cancelAnimationFrame(playing);
  playing = 0;
  const button = byId("play");
  button.setAttribute("aria-pressed", String(on));
  button.textContent = on ? "Pause" : "Play";
  if (!on) return;
  if (clock >= Number(scrub.max)) moveTo(0);
  const began = performance.now(), from = clock, rate = data.fps || 50;
  const tick = (now) => {
    const to = from + ((now - began) / 1000) * rate;
    if (to >= Number(scrub.max)) { moveTo(Number(scrub.max)); play(false); return; }
    moveTo(to);
    playing = requestAnimationFrame(tick);
  };
  playing = requestAnimationFrame(tick);
}
function closeLook() { play(false); sheet.hidden = true; seen = []; chosenStretch = null; byId("look-list").replaceChildren(); delete sheet.dataset.shown; }

function drawClose(one) {
  if (!one.canvas || !one.canvas.isConnected) return;
  const bands = one.evidence ? 3 : 2, width = one.canvas.clientWidth || 320, height = bands * BAND, scale = Math.min(2, window.devicePixelRatio || 1);
  one.canvas.style.height = height + "px";
  one.canvas.width = Math.round(width * scale);
  one.canvas.height = Math.round(height * scale);
  const pen = one.canvas.getContext("2d"), steps = lengths[one.at], x = (s) => LEFT + ((s + 0.5) / steps) * (width - LEFT);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  stretches(pen, marksOf(one.at), steps, LEFT, width - LEFT, height);
  if (chosenStretch && chosenStretch.at === one.at) {
    pen.globalAlpha = 0.2;
    pen.fillStyle = palette.accent;
    pen.fillRect(LEFT + (chosenStretch.start / steps) * (width - LEFT), 0, ((chosenStretch.stop - chosenStretch.start) / steps) * (width - LEFT), height);
    pen.globalAlpha = 1;
  }
  pen.strokeStyle = palette.line;
  pen.lineWidth = 1;
  for (let b = 1; b < bands; b++) { pen.beginPath(); pen.moveTo(0, b * BAND); pen.lineTo(width, b * BAND); pen.stroke(); }
  pen.lineJoin = "round";
  const line = (values, at, low, high, band) => {
    pen.beginPath();
    let down = false;
    for (let k = 0; k < values.length; k++) {
      const v = values[k];
      if (!Number.isFinite(v)) { down = false; continue; }
      const y = band * BAND + 5 + (1 - Math.max(0, Math.min(1, (v - low) / (high - low || 1)))) * (BAND - 10);
      if (down) pen.lineTo(x(at(k)), y); else pen.moveTo(x(at(k)), y);
      down = true;
    }
    pen.stroke();
  };
  one.curves.forEach((values, c) => {
    const state = c < data.states, place_ = state ? c : c - data.states;
    pen.globalAlpha = place_ < 2 ? 1 : 0.45;
    pen.lineWidth = place_ < 2 ? 1.6 : 1;
    pen.strokeStyle = palette.curves[(state ? 0 : 2) + (place_ % 2)];
    line(values, (k) => one.steps[k], data.low[c], data.high[c], state ? 0 : 1);
  });
  pen.globalAlpha = 1;
  if (one.evidence) {
    const r = range(one.evidence) || [0, 1];
    pen.strokeStyle = palette.accent;
    pen.lineWidth = 1.4;
    line(one.evidence, (k) => k, r[0], r[1], 2);
  }
  pen.strokeStyle = palette.ink;
  pen.lineWidth = 1;
  const now = x(Math.min(clock, steps - 1));
  pen.beginPath();
  pen.moveTo(now, 0);
  pen.lineTo(now, height);
  pen.stroke();
}
function dragOn(one) {
  const stepAt = (event) => {
    const box = one.canvas.getBoundingClientRect();
    return Math.max(0, Math.min(lengths[one.at], ((event.clientX - box.left - LEFT) / (box.width - LEFT)) * lengths[one.at]));
  };
  let from = null;
  one.canvas.addEventListener("pointerdown", (event) => { from = stepAt(event); one.canvas.setPointerCapture(event.pointerId); play(false); moveTo(from - 0.5); });
  one.canvas.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const to = stepAt(event), a = Math.floor(Math.min(from, to)), b = Math.ceil(Math.max(from, to));
    chosenStretch = b - a >= 2 ? { at: one.at, start: a, stop: b } : null;
    moveTo(to - 0.5);
    tellStretch();
  });
  one.canvas.addEventListener("pointerup", () => { from = null; here.at = one.at; refresh([one.at]); });
}
function tellStretch() {
  byId("stretch").textContent = chosenStretch ? `Steps ${told(chosenStretch.start)} to ${told(chosenStretch.stop - 1)} of ${id(chosenStretch.at)}: g or b marks them` : "";
}
function lookMarks() {
  for (const one of seen) {
    one.node.dataset.label = labelOf(one.at);
    const parts = marksOf(one.at).filter((m) => m.start !== null).map((m) => `${m.label} ${m.start}–${m.stop - 1}`);
    one.node.querySelector(".tag").textContent = [labelOf(one.at) === "part" ? "" : labelOf(one.at), ...parts, verdictOf(one.at)[0], returns ? `return ${told(returns[one.at])}` : "", `${told(lengths[one.at])} steps`].filter(Boolean).join(" · ");
    drawClose(one);
  }
  tellStretch();
}
