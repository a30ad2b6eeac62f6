// Keys. They speak of the chosen stretch, else of what is selected, else of the one in the frame.
function say(label) {
  if (chosenStretch) {
    const { at, start, stop } = chosenStretch;
    chosenStretch = null;
    mark([at], label, label === null ? undefined : [start, stop]);
  } else mark(chosen(), label);
}
const KEYS = {
  g: () => say("good"), b: () => say("bad"), c: () => say(null), u: undo, n: () => step(1), p: () => step(-1), ArrowRight: () => step(1), ArrowLeft: () => step(-1),
  ArrowDown: () => step(here.list === "all" ? columns : nextColumns()), ArrowUp: () => step(-(here.list === "all" ? columns : nextColumns())),
  x: () => here.at >= 0 && pick(here.at), a: pickAll, e: propose, r: () => byId("run").click(), "/": () => byId("search").focus(), "?": help,
  Enter: () => look(chosen()), " ": () => { if (!sheet.hidden) play(!playing); else look(chosen()); },
  Escape: () => { if (!sheet.hidden) closeLook(); else pickNone(); },
};
function nextColumns() {
  const tops = nextNodes.map((node) => node.offsetTop);
  return Math.max(1, tops.filter((top) => top === tops[0]).length);
}
function help() {
  const now = byId("help").hidden;
  byId("help").hidden = !now;
  byId("keys").setAttribute("aria-expanded", String(now));
}
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=range]), select, textarea");
  if (typing) { if (event.key === "Escape") event.target.blur(); return; }
  if ((event.ctrlKey || event.metaKey) && event.key === "z") { event.preventDefault(); undo(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if ((event.key === "Enter" || event.key === " ") && event.target.closest("button")) return;
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
