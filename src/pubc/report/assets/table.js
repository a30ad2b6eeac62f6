// A table that holds any number of rows and draws only those in view.
const ROW = 34;
function bigTable(place, columns, count, options) {
  const state = { column: options.sort, down: options.down, rows: new Uint32Array(0) };
  const everything = Uint32Array.from({ length: count }, (_, i) => i);
  const search = el("input", { type: "search", placeholder: "Search " + options.searches, "aria-label": "Search" });
  const told_ = el("span", { class: "note", id: "shown" });
  const buttons = options.filters.map(([words, has], k) => {
    const button = el("button", { type: "button", "aria-pressed": k === 0 ? "true" : "false" }, words);
    button.addEventListener("click", () => { buttons.forEach((b) => b.setAttribute("aria-pressed", b === button)); state.has = has; update(); });
    return button;
  });
  state.has = options.filters[0][1];
  const pick = options.choices ? el("select", { "aria-label": options.choiceWord }, [el("option", { value: "" }, options.choiceWord)].concat(options.choices.map((name, k) => el("option", { value: k }, name || "(no name)")))) : null;
  const heads = columns.map((column, k) => {
    const head = el("button", { type: "button", class: (column.right ? "right" : "") + (column.optional ? " optional" : ""), "data-column": column.key, title: column.help || column.words }, column.words);
    head.addEventListener("click", () => { state.down = state.column === k ? !state.down : column.right !== undefined; state.column = k; update(); });
    return head;
  });
  const body = el("div", { class: "vbody", tabindex: "0" }), tall = el("div");
  body.append(tall);
  place.append(el("div", { class: "tools" }, [search, ...buttons, ...(pick ? [pick] : []), told_]), el("div", { class: "vtable" }, [el("div", { class: "vhead" }, heads), body]));
  const narrow = matchMedia("(max-width: 720px)");
  function layout() {
    const widths = columns.filter((c) => !(narrow.matches && c.optional)).map((c) => c.width);
    place.style.setProperty("--columns", widths.join(" "));
  }
  // Words are compared once; after that their ranks sort like any other number.
  function ranked(column) {
    if (!count || typeof column.sort(0) !== "string") return column.sort;
    if (!column.ranks) {
      const words = Array.from(everything, column.sort), order = Array.from(everything).sort((a, b) => options.collator.compare(words[a], words[b]));
      column.ranks = new Uint32Array(count);
      order.forEach((i, k) => { column.ranks[i] = k && !options.collator.compare(words[i], words[order[k - 1]]) ? column.ranks[order[k - 1]] : k; });
    }
    return (i) => column.ranks[i];
  }
  function update() {
    const words = search.value.trim().toLowerCase();
    const chosen = pick && pick.value !== "" ? +pick.value : null;
    let rows = everything.filter((i) => state.has(i) && (chosen === null || options.choice(i) === chosen) && (!words || options.text(i).toLowerCase().includes(words)));
    const column = columns[state.column], key = ranked(column), sign = state.down ? -1 : 1;
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
      return sign * (x - y) || a - b;
    });
    state.rows = rows;
    heads.forEach((head, k) => head.setAttribute("aria-sort", k === state.column ? (state.down ? "descending" : "ascending") : "none"));
    told_.textContent = `${told(rows.length)} of ${told(count)}`;
    tall.style.height = rows.length * ROW + "px";
    body.style.height = Math.min(460, Math.max(3, rows.length) * ROW) + "px";
    body.scrollTop = 0;
    draw(true);
  }
  let first = -1, last = -1;
  function draw(force) {
    const from = Math.max(0, Math.floor(body.scrollTop / ROW) - 6), to = Math.min(state.rows.length, from + Math.ceil(body.clientHeight / ROW) + 14);
    if (!force && from === first && to === last) return;
    first = from; last = to;
    const parts = [];
    for (let k = from; k < to; k++) {
      const i = state.rows[k];
      const row = el("div", { class: "vrow" + (options.marked(i) ? " keep" : ""), "data-row": i }, columns.map((c) => el("span", { class: (c.right ? "right" : "") + (c.optional ? " optional" : "") }, c.show(i))));
      row.style.top = k * ROW + "px";
      parts.push(row);
    }
    tall.replaceChildren(...parts);
  }
  body.addEventListener("scroll", () => draw(false), { passive: true });
  search.addEventListener("input", update);
  if (pick) pick.addEventListener("change", update);
  narrow.addEventListener("change", () => { layout(); draw(true); });
  window.addEventListener("beforeprint", () => { body.scrollTop = 0; draw(true); });
  layout();
  update();
}
const collator = new Intl.Collator("en", { numeric: true });
