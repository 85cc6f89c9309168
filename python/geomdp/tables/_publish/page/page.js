// The script of a published page. The page is whole without it: this adds search, order, other
// confidences, pictures, and sums with intervals by `noise.js`, which comes before it. Texts reach
// the document as text nodes, never as markup.

const held = JSON.parse(document.getElementById("data").textContent);
const FEW = 100;
const state = {
  confidence: 95, query: "", cellsOnly: false, size: FEW, sort: null, down: false,
  group: 0, groups: [new Set(), new Set()], picking: false,
  // Whether rows of a group were ticked in the order of their counts.
  chosen: false,
  folded: new Set(),
};

const at = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const shown = (value, format = whole) => format.format(value).replace("-", "\u2212");
const possible = (value) => (held.signed ? value : Math.max(value, 0));

function element(name, attributes = {}, ...inside) {
  const made = ["svg", "line"].includes(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...inside);
  return made;
}

// Rows, in the order of the page

const tables = [...document.querySelectorAll("table")];
const rows = [];
for (const table of tables) {
  let lead = null;
  for (const tr of table.tBodies[0].rows) {
    const cells = tr.querySelectorAll("th");
    const texts = [...cells].map((cell) => cell.textContent);
    const place = rows.length;
    const row = {
      place, tr, table, texts,
      depth: held.depths?.[place],
      node: cells[held.tree],
      count: held.counts[place],
      estimate: (held.estimates ?? held.counts)[place],
      cell: held.cells === null || held.cells[place] === "1",
      interval: tr.querySelector("td + td"),
    };
    // All rows of one node of a tree fold as its first.
    if (lead?.node?.textContent !== row.node?.textContent) lead = row;
    row.lead = lead;
    rows.push(row);
  }
}

const byCount = () => !held.ranked && state.sort !== null && state.sort.matches(".n");

/** The ends of the interval of a row; by count, of intervals that hold all at once. */
function ends(row) {
  const { length } = held.confidences;
  const kind = 2 * (held.confidences.indexOf(state.confidence) + (byCount() ? length : 0));
  const widths = held.widths[held.kinds === null ? 0 : held.kinds[row.place]];
  const [below, above] = widths.slice(kind, kind + 2).map((width) => width ?? Infinity);
  // Around the number shown: below 0, the interval is that of a noisy count of 0.
  const middle = possible(row.estimate);
  return [possible(middle - below), middle + above];
}

function between([lower, upper]) {
  if (lower === -Infinity) return upper === Infinity ? "any number" : `${shown(upper)} or less`;
  return upper === Infinity ? `${shown(lower)} or more` : `${shown(lower)} to ${shown(upper)}`;
}

// Sums

/** The reach of a sum of n cells; if they were chosen by count, one that holds for any n cells. */
function reachOf(n, alpha) {
  // Rounding moves each count by at most half a step.
  const off = n * Math.floor(held.step / 2);
  const all = rows.filter((row) => row.cell).length;
  const noise = state.chosen ? reach(held.rate, 1, alpha / all) : reach(held.rate, n, alpha);
  return noise === null ? null : off + (state.chosen ? n * noise : noise);
}

/** The sum of some cells and its interval, or null if its numbers are too large for a browser. */
function sum(places, parts = 1) {
  const total = places.reduce((sofar, place) => sofar + rows[place].count, 0);
  const t = reachOf(places.length, (100 - state.confidence) / 100 / parts);
  if (t === null || !Number.isSafeInteger(total)) return null;
  const estimate = possible(total);
  return { total, estimate, reach: t, lower: possible(total - t), upper: estimate + t };
}

/** The difference of two sums and its interval; cells of both leave no noise. */
function difference(one, other) {
  const [first, second] = [new Set(one), new Set(other)];
  const [more, less] = [one.filter((x) => !second.has(x)), other.filter((x) => !first.has(x))];
  const both = sum([...more, ...less]);
  if (both === null) return null;
  const estimate = sum(more).total - sum(less).total;
  return { estimate, lower: estimate - both.reach, upper: estimate + both.reach };
}

/** The percentage of some cells in all, by an interval for them and one for all others. */
function share(places) {
  const ticked = new Set(places);
  const others = rows.filter((row) => row.cell && !ticked.has(row.place)).map((row) => row.place);
  const [part, rest] = [sum(places, 2), sum(others, 2)];
  if (part === null || rest === null) return null;
  const percent = (one, all, none) => (all > 0 ? (100 * one) / all : none);
  const middle = percent(part.total, part.total + rest.total, 0);
  return {
    estimate: Math.min(Math.max(middle, 0), 100),
    lower: percent(part.lower, part.lower + rest.upper, 0),
    upper: percent(part.upper, part.upper + rest.lower, 100),
  };
}

function told() {
  const [a, b] = state.groups.map((group) => [...group]);
  const said = [];
  const say = (what, found, format = whole, unit = "") => {
    // Outwards, so that rounding loses no confidence.
    const step = format === whole ? 1 : 10;
    const [low, high] = found === null
      ? []
      : [Math.floor(step * found.lower) / step, Math.ceil(step * found.upper) / step];
    said.push(
      found === null
        ? `${what}: too large for a browser; the Python library geomdp can compute it.`
        : `${what}: ${shown(found.estimate, format)}${unit}, ${state.confidence}% interval ` +
            `${shown(low, format)}${unit} to ${shown(high, format)}${unit}`,
    );
  };
  const named = (name, some) => `${name} (${some.length === 1 ? "1 row" : `${shown(some.length)} rows`})`;
  if (a.length) {
    const found = sum(a);
    say(named("A", a), found);
    if (!held.signed) say("A as a share of the total", share(a), tenth, "%");
    const people = Number(at("population").value);
    if (people > 0 && found !== null) {
      const per = (name) => [name, (found[name] * 100000) / people];
      say("A per 100,000 people", Object.fromEntries(["estimate", "lower", "upper"].map(per)), tenth);
    }
  }
  if (b.length) say(named("B", b), sum(b));
  if (a.length && b.length) say("A minus B", difference(a, b));
  if (!said.length) said.push("No rows ticked yet.");
  else if (state.chosen) said.push("The rows were sorted by count: these intervals hold for any choice of rows.");
  at("answers").replaceChildren(...said.map((text) => element("p", {}, text)));
}

function tick(row, on) {
  const group = state.groups[state.group];
  if (on) group.add(row.place);
  else group.delete(row.place);
  // Taking a row away is a choice, too.
  state.chosen ||= byCount();
}

/** The boxes of all rows, made when somebody first asks for them. */
function boxes() {
  if (!rows.some((row) => row.box)) {
    for (const table of tables) {
      table.tHead.rows[0].append(element("td", { class: "a" }));
    }
    for (const row of rows) {
      const cell = element("td", { class: "a" });
      if (row.cell) {
        const change = (event) => {
          tick(row, event.target.checked);
          told();
        };
        row.box = element("input", { type: "checkbox", onchange: change });
        cell.append(row.box);
      }
      row.tr.append(cell);
    }
  }
  const name = "AB"[state.group];
  for (const row of rows) {
    if (!row.box) continue;
    row.box.checked = state.groups[state.group].has(row.place);
    row.box.setAttribute("aria-label", `${row.texts.join(", ")} in group ${name}`);
  }
  for (const cell of document.querySelectorAll("thead .a")) cell.textContent = name;
  for (const cell of document.querySelectorAll(".a")) cell.hidden = !state.picking;
  told();
}

// The table

const flat = () => state.sort !== null || state.query !== "" || state.cellsOnly;

/** Rows in the order in which they are shown, and whether each is. */
function ordered() {
  const query = state.query.toLocaleLowerCase();
  let cut = Infinity;
  for (const row of rows) {
    row.kept =
      (!state.cellsOnly || row.cell) &&
      row.texts.some((text) => text.toLocaleLowerCase().includes(query));
    row.under = held.depths !== null && !flat() && row.depth > cut;
    if (!row.under) cut = state.folded.has(row.lead) ? row.depth : Infinity;
  }
  if (state.sort === null) return rows;
  const table = state.sort.closest("table");
  const column = [...state.sort.parentNode.cells].indexOf(state.sort);
  const order = new Intl.Collator("en", { numeric: true }).compare;
  const sign = state.down ? -1 : 1;
  const number = state.sort.matches(".n");
  const key = number
    ? (x, y) => sign * (x.estimate - y.estimate)
    : (x, y) => sign * order(x.texts[column], y.texts[column]);
  return [
    ...rows.filter((row) => row.table !== table),
    ...rows.filter((row) => row.table === table).sort(key),
  ];
}

function picture(row, [low, high]) {
  // A dot at either end is whole.
  const x = (value) => 2 + (96 * (Math.min(Math.max(value, low), high) - low)) / (high - low || 1);
  const [lower, upper] = ends(row);
  const middle = x(possible(row.estimate));
  const line = (kind, from, to) => element("line", { class: kind, x1: from, x2: to, y1: 4, y2: 4 });
  return element(
    "svg",
    { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    line("range", x(lower), x(upper)),
    line("dot", middle, middle),
  );
}

function draw() {
  const found = ordered();
  const counts = new Map(tables.map((table) => [table, 0]));
  const now = [];
  const places = new Map(tables.map((table) => [table, table.tBodies[0].firstElementChild]));
  for (const row of found) {
    const before = counts.get(row.table);
    const seen = row.kept && !row.under;
    row.tr.hidden = !row.kept;
    // Paper shows these.
    row.tr.classList.toggle("later", row.under || before >= state.size);
    if (seen) counts.set(row.table, before + 1);
    if (seen && before < state.size) now.push(row);
    // What moves loses the keyboard, so only rows in another place do.
    const here = places.get(row.table);
    if (here !== row.tr) row.table.tBodies[0].insertBefore(row.tr, here);
    else places.set(row.table, row.tr.nextElementSibling);
  }
  for (const table of tables) table.classList.toggle("flat", flat());
  if (!held.ranked) {
    const kind = `${state.confidence}% interval${byCount() ? ", all at once" : ""}`;
    for (const cell of document.querySelectorAll("thead .i")) cell.textContent = kind;
    for (const row of rows) {
      row.interval.textContent = between(ends(row));
    }
    const all = now.flatMap(ends).filter(Number.isFinite);
    const range = [Math.min(0, ...all), Math.max(0, ...all)];
    for (const cell of document.querySelectorAll("thead .p")) {
      const ticks = range.map((value) => element("span", {}, shown(value)));
      cell.replaceChildren(element("div", {}, ...ticks));
    }
    for (const row of now) {
      row.picture ??= row.interval.nextElementSibling?.matches(".p")
        ? row.interval.nextElementSibling
        : element("td", { class: "p", "aria-hidden": "true" });
      if (!row.picture.parentNode) row.interval.after(row.picture);
      row.picture.replaceChildren(picture(row, range));
    }
  }
  now.forEach((row, place) => {
    const [head] = row.tr.getElementsByTagName("th");
    const before = now[place - 1]?.tr.getElementsByTagName("th");
    head.classList.toggle("again", row.texts.length > 1 && before?.length > 1 && row.texts[0] === now[place - 1].texts[0]);
  });
  const kept = found.filter((row) => row.kept && !row.under).length;
  const said = [];
  if (flat() && kept < rows.length) said.push(`${shown(kept)} of ${shown(rows.length)} rows.`);
  if (byCount()) {
    said.push(
      `Because the rows are sorted by count, the intervals are wider: with ${state.confidence}% ` +
        `confidence, all ${shown(rows.length)} contain their true counts, including those at the top.`,
    );
  }
  at("where").textContent = said.join(" ");
  at("where").hidden = !said.length;
  const later = kept - now.length;
  at("more").hidden = later === 0;
  const [next, all] = at("more").children;
  next.textContent = `Show ${shown(Math.min(FEW, later))} more rows`;
  all.textContent = `Show all ${shown(kept)}`;
  at("fold").textContent = state.folded.size ? "Open all levels" : "Close all levels";
  for (const row of rows) row.knob?.setAttribute("aria-expanded", !state.folded.has(row));
  for (const row of rows) if (row.knob) row.knob.textContent = state.folded.has(row) ? "+" : "\u2212";
}

function change(set) {
  return (event) => {
    set(event);
    state.size = FEW;
    draw();
  };
}

/** A button beside the name of each column: one way, the other way, and back. */
function sorter(head) {
  const number = head.matches(".n");
  const press = change(() => {
    const first = number && !held.ranked;
    if (state.sort !== head) [state.sort, state.down] = [head, first];
    else if (state.down === first) state.down = !first;
    else state.sort = null;
    for (const each of document.querySelectorAll("thead th")) {
      const now = each === state.sort ? (state.down ? "descending" : "ascending") : "none";
      if (each.querySelector("button")) {
        each.setAttribute("aria-sort", now);
        each.querySelector("button").textContent = { none: "\u2195", ascending: "\u2191", descending: "\u2193" }[now];
      }
    }
  });
  const label = `Sort by ${head.textContent}`;
  head.append(element("button", { type: "button", "aria-label": label, onclick: press }, "\u2195"));
}

/** A button before each node of a tree that has parts. */
function knobs() {
  const leads = rows.filter((row) => row.lead === row);
  leads.forEach((row, place) => {
    if (!(leads[place + 1]?.depth > row.depth)) return;
    const press = () => {
      if (state.folded.has(row)) state.folded.delete(row);
      else state.folded.add(row);
      draw();
    };
    const label = `parts of ${row.node.textContent}`;
    row.knob = element("button", { type: "button", class: "knob", "aria-label": label, onclick: press });
    if (row.depth && rows.length > FEW) state.folded.add(row);
  });
  for (const row of rows) {
    row.node.classList.add("k");
    if (row.knob) row.node.prepend(row.knob);
  }
}

for (const table of tables) {
  const heads = [...table.tHead.rows[0].cells];
  if (!held.ranked && table.tBodies[0].rows.length > 2) heads.filter((each) => !each.matches(".i") && each.textContent).forEach(sorter);
  if (!held.ranked) heads.at(-1).after(element("td", { class: "p", "aria-hidden": "true" }));
}
if (held.depths) knobs();
for (const each of held.confidences) at("confidence").append(element("option", { value: each }, `${each}%`));
at("confidence").value = "95";
at("confidence").addEventListener("change", (event) => {
  state.confidence = Number(event.target.value);
  draw();
  if (state.picking) told();
});
at("search").addEventListener("input", change((event) => { state.query = event.target.value; }));
at("depth").addEventListener("change", change((event) => { state.cellsOnly = event.target.value === "cells"; }));
at("fold").addEventListener("click", change(() => {
  if (state.folded.size) state.folded.clear();
  else for (const row of rows) if (row.knob) state.folded.add(row);
}));
at("add").addEventListener("click", () => {
  state.picking = !state.picking;
  at("add").setAttribute("aria-expanded", state.picking);
  at("sums").hidden = !state.picking;
  boxes();
});
for (const each of document.querySelectorAll("[name=group]")) {
  each.addEventListener("change", () => {
    state.group = Number(each.value);
    boxes();
  });
}
at("tick").addEventListener("click", () => {
  for (const row of rows) if (row.kept && !row.under && row.cell) tick(row, true);
  boxes();
});
at("clear").addEventListener("click", () => {
  for (const group of state.groups) group.clear();
  state.chosen = false;
  boxes();
});
at("population").addEventListener("input", told);
at("more").children[0].addEventListener("click", () => { state.size += FEW; draw(); });
at("more").children[1].addEventListener("click", () => { state.size = Infinity; draw(); });

// Paper shows the notes, in browsers whose style cannot open them.
addEventListener("beforeprint", () => { document.querySelector("details:last-of-type").open = true; });

at("find").hidden = rows.length <= 20;
at("level").hidden = held.ranked;
at("kinds").hidden = rows.every((row) => row.cell);
at("fold").hidden = !held.depths;
at("add").hidden = !held.sums;
at("tools").open = innerWidth > 640;
at("tools").hidden = ["find", "level", "kinds", "fold", "add"].every((id) => at(id).hidden);
draw();
