// The script of a published page. All texts reach the document as text nodes, never as markup.
// It reads the published file, which the page holds, and computes intervals from its description
// by `noise.js`, which comes before it.

const held = JSON.parse(document.getElementById("data").textContent);
const facts = JSON.parse(held.description).geomdp;
const CONFIDENCES = held.confidences;
const ROWS_A_PAGE = 50;

// The published file

/** The rows of a CSV file. */
function parsed(text) {
  const rows = [];
  let row = [];
  let at = 0;
  while (at < text.length) {
    let cell = "";
    if (text[at] === '"') {
      let end = at + 1;
      while (text[end] !== '"' || text[end + 1] === '"') end += text[end] === '"' ? 2 : 1;
      cell = text.slice(at + 1, end).replaceAll('""', '"');
      at = end + 1;
    } else {
      let end = at;
      while (end < text.length && text[end] !== "," && text[end] !== "\r") end += 1;
      cell = text.slice(at, end);
      at = end;
    }
    row.push(cell);
    if (text[at] === ",") {
      at += 1;
      if (text[at] === "\r" || at === text.length) row.push("");
    }
    if (text[at] === "\r" || at >= text.length) {
      rows.push(row);
      row = [];
      at += 2;
    }
  }
  return rows;
}

/** The text of a cell, which has an apostrophe more where spreadsheets would run it. */
function unescaped(cell) {
  return /^'+[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(cell) ? cell.slice(1) : cell;
}

const [header, ...lines] = parsed(held.csv);
const names = header.map(unescaped);
const labels = names.slice(0, -1);
// What readers see of the nodes of each column, by their codes in the file.
const seen = labels.map((name) => {
  const { nodes = [], labels: given = [] } = facts.axes[name];
  const text = (node) => (node !== null && typeof node === "object" ? Object.values(node)[0] : node);
  return new Map(given.flatMap((label, at) => (label ? [[String(text(nodes[at])), label]] : [])));
});

// The sum over a column of numbers or dates has an empty cell, which no level has then.
const summed = labels.map((name) => (facts.axes[name].margin ?? []).includes(null));

/** A level, as readers see it. */
function shownLevel(cell, place) {
  const label = seen[place].get(cell) ?? seen[place].get(String(Number(cell)));
  return label ? `${label} (${cell})` : cell || (summed[place] ? "all" : "(none)");
}

const rows = lines.map((cells, place) => ({
  place,
  texts: cells.slice(0, -1).map((cell, at) => shownLevel(unescaped(cell), at)),
  count: Number(cells.at(-1)),
  // As a number, a large count is rounded.
  exact: BigInt(cells.at(-1)),
  cell: held.cells === null || held.cells[place] === "1",
}));
const ranked = facts.top !== null;
// The least that a true value may be.
const least = facts.values !== null && facts.values[0] < 0 ? -Infinity : 0;
// The first column with a hierarchy, if all its rows are here, which are then shown as a tree.
const axes = ranked || facts.at_least !== null ? [] : labels.map((name) => facts.axes[name]);
const column = axes.findIndex((axis) => axis.parents);
const tops = [];
if (column >= 0) {
  const rest = axes.slice(column + 1);
  const size = ({ parents, levels, other, margin }) =>
    parents ? parents.length : levels.length + other.length + margin.length;
  const step = rest.reduce((product, axis) => product * size(axis), 1);
  const { parents } = axes[column];
  // A row comes after the one above it.
  for (const row of rows) {
    const node = Math.floor(row.place / step) % parents.length;
    const above = parents[node] < 0 ? null : rows[row.place - (node - parents[node]) * step];
    Object.assign(row, { above, below: [], depth: above ? above.depth + 1 : 0 });
    (above ? above.below : tops).push(row);
  }
}

/** Whether the noise has a say in which rows come first. */
const byCount = () => !ranked && state.sort === labels.length;

/**
 * The estimate of a row and the ends of its interval.
 *
 * By count, the first rows are those whose noise was greatest, so all intervals hold at once.
 */
function answer(row, confidence) {
  const kind = byCount() ? held.together : held.ends;
  const [lower, upper] = kind[CONFIDENCES.indexOf(confidence)];
  const estimate = held.estimates === null ? row.count : held.estimates[row.place];
  return [estimate, lower[row.place] ?? -Infinity, upper[row.place] ?? Infinity];
}

/** The reach of a sum of n cells; if they were chosen by count, one that holds for any n cells. */
function reachOf(n, alpha) {
  // Rounding moves each count by at most half a step.
  const off = n * Math.floor((facts.rounded ?? 0) / 2);
  const all = rows.filter((row) => row.cell).length;
  const noise = state.chosen ? reach(held.rate, 1, alpha / all) : reach(held.rate, n, alpha);
  return noise === null ? null : off + (state.chosen ? n * noise : noise);
}

/** The sum of some cells and its interval, or the reason why there is none. */
function sum(places, confidence, parts = 1) {
  if (held.sums !== null) return { why: held.sums };
  if (places.some((place) => !rows[place].cell)) {
    return { why: "rows that are sums themselves cannot be added: choose cells" };
  }
  const total = places.reduce((whole, place) => whole + rows[place].count, 0);
  const t = reachOf(places.length, (100 - confidence) / 100 / parts);
  if (t === null || !Number.isSafeInteger(total)) {
    return { why: "these numbers are too large for a browser: ask the Python library" };
  }
  const [lower, upper] = [total - t, total + t].map((end) => Math.max(end, least));
  return { estimate: total, reach: t, lower, upper };
}

/** The difference of two sums and its interval; cells of both leave no noise. */
function difference(one, other, confidence) {
  const [first, second] = [new Set(one), new Set(other)];
  const [more, less] = [one.filter((x) => !second.has(x)), other.filter((x) => !first.has(x))];
  const whole = sum([...more, ...less], confidence);
  if (whole.why) return whole;
  const estimate = sum(more, confidence).estimate - sum(less, confidence).estimate;
  return { estimate, lower: estimate - whole.reach, upper: estimate + whole.reach };
}

/** The percentage of some cells in all, by an interval for them and one for all others. */
function share(places, confidence) {
  const chosen = new Set(places);
  const others = rows.filter((row) => row.cell && !chosen.has(row.place)).map((row) => row.place);
  const [part, rest] = [sum(places, confidence, 2), sum(others, confidence, 2)];
  if (part.why || rest.why) return part.why ? part : rest;
  const whole = part.estimate + rest.estimate;
  const percent = (one, all) => (all > 0 ? (100 * one) / all : null);
  return {
    estimate: percent(part.estimate, whole),
    lower: percent(part.lower, part.lower + rest.upper) ?? 0,
    upper: percent(part.upper, part.upper + rest.lower) ?? 100,
  };
}

// The document

function element(name, attributes = {}, ...inside) {
  const svg = ["svg", "line", "circle", "polyline", "polygon", "text", "title", "g"].includes(name);
  const made = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...inside);
  return made;
}

const at = (id) => document.getElementById(id);
const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const state = {
  confidence: 95, query: "", depth: "all", page: 0, sort: null, down: false, size: ROWS_A_PAGE,
  a: new Set(), b: new Set(),
  // Whether rows of A or B were chosen in the order of their counts.
  chosen: false,
  // Rows whose rows below are hidden.
  folded: new Set(),
};

const shown = (value) => (value === null || Number.isNaN(value) ? "unknown" : plain.format(value));
/** The ends of an interval, rounded outwards. */
function between(found, unit = "") {
  const [lower, upper] = [Math.floor(10 * found.lower) / 10, Math.ceil(10 * found.upper) / 10];
  return `${shown(lower)}${unit} to ${shown(upper)}${unit}`;
}

/** Whether the rows are shown as a tree. */
const nested = () =>
  column >= 0 && state.sort === null && state.query === "" && state.depth === "all";

/** These rows, each before those below it, unless it is folded; paper shows all. */
function unfolded(some) {
  const folded = (row) => state.folded.has(row.place) && state.size === ROWS_A_PAGE;
  return some.flatMap((row) => [row, ...(folded(row) ? [] : unfolded(row.below))]);
}

function fold() {
  for (const row of rows) if (row.below.length) state.folded.add(row.place);
}

function selected() {
  if (nested()) return unfolded(tops);
  const query = state.query.toLocaleLowerCase();
  const kept = rows.filter(
    (row) =>
      (state.depth === "all" || row.cell) &&
      row.texts.some((text) => text.toLocaleLowerCase().includes(query)),
  );
  if (state.sort !== null) {
    const key = (row) => (state.sort < labels.length ? row.texts[state.sort] : row.count);
    const order = new Intl.Collator("en", { numeric: true }).compare;
    kept.sort((x, y) => {
      const [one, other] = [key(x), key(y)];
      const found = typeof one === "number" ? one - other : order(one, other);
      return state.down ? -found : found;
    });
  }
  return kept;
}

const intervals = () => `${state.confidence}% intervals${byCount() ? ", all at once" : ""}`;

function heading() {
  const cells = names.map((name, place) =>
    element(
      "th",
      {
        scope: "col",
        class: place < labels.length ? "" : "number",
        "aria-sort": state.sort !== place ? "none" : state.down ? "descending" : "ascending",
      },
      element(
        "button",
        {
          type: "button",
          onclick: () => {
            // One way, the other way, and back to the order of the file.
            const first = place === labels.length && !ranked;
            if (state.sort !== place) [state.sort, state.down] = [place, first];
            else if (state.down === first) state.down = !first;
            else state.sort = null;
            state.page = 0;
            draw();
            // The heading was made anew: the keyboard stays where it was.
            at("head").querySelectorAll("button")[place].focus();
          },
        },
        place < labels.length || held.estimates === null ? name : `${name}, estimate`,
      ),
    ),
  );
  if (!ranked) {
    cells.push(element("th", { scope: "col", class: "number" }, intervals()));
    cells.push(element("th", { scope: "col", class: "wide" }, "picture"));
  }
  if (held.sums === null) {
    cells.push(element("th", { scope: "col", class: "screen" }, "A"));
    cells.push(element("th", { scope: "col", class: "screen" }, "B"));
  }
  return element("tr", {}, ...cells);
}

function picture([estimate, lower, upper], [low, high]) {
  const within = (value) => Math.min(Math.max(value, low), high);
  const x = (value) => (100 * (within(value) - low)) / (high - low || 1);
  const [left, right] = [x(lower), Math.max(x(upper), x(lower) + 0.5)];
  return element(
    "svg",
    { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    element("line", { x1: x(0), x2: x(estimate), y1: 5, y2: 5, class: "bar" }),
    element("line", { x1: left, x2: right, y1: 5, y2: 5, class: "ends" }),
  );
}

/** A level, with a button before it that shows the rows below. */
function node(row, text) {
  const open = !state.folded.has(row.place);
  const toggle = () => {
    if (open) state.folded.add(row.place);
    else state.folded.delete(row.place);
    draw();
    at(`fold-${row.place}`).focus();
  };
  const button = element(
    "button",
    {
      type: "button",
      id: `fold-${row.place}`,
      onclick: toggle,
      "aria-label": `rows below ${row.texts.join(", ")}`,
      "aria-expanded": open,
    },
    open ? "−" : "+",
  );
  const inside = element("div", { class: "node" }, row.below.length ? button : "", text);
  inside.style.paddingInlineStart = `${row.depth + (row.below.length ? 0 : 2)}rem`;
  return inside;
}

function line(row, range) {
  const level = (text, place) => (nested() && place === column ? node(row, text) : text);
  const cells = row.texts.map((text, place) =>
    element(place ? "td" : "th", place ? {} : { scope: "row" }, level(text, place)),
  );
  if (ranked) cells.push(element("td", { class: "number" }, shown(row.count)));
  else {
    const found = answer(row, state.confidence);
    cells.push(element("td", { class: "number" }, shown(held.estimates === null ? row.exact : found[0])));
    cells.push(element("td", { class: "number" }, between({ lower: found[1], upper: found[2] })));
    cells.push(element("td", { class: "wide" }, picture(found, range)));
  }
  if (held.sums === null) {
    for (const [name, chosen] of [["A", state.a], ["B", state.b]]) {
      const box = element("input", {
        type: "checkbox",
        "aria-label": `${row.texts.join(", ")} in ${name}`,
        onchange: (event) => {
          if (event.target.checked) chosen.add(row.place);
          else chosen.delete(row.place);
          state.chosen ||= byCount();
          told();
        },
      });
      box.checked = chosen.has(row.place);
      box.disabled = !row.cell;
      cells.push(element("td", { class: "screen" }, box));
    }
  }
  return element("tr", row.cell ? {} : { class: "sum" }, ...cells);
}

function draw() {
  const kept = selected();
  const pages = Math.max(1, Math.ceil(kept.length / state.size));
  state.page = Math.min(state.page, pages - 1);
  const now = kept.slice(state.page * state.size, (state.page + 1) * state.size);
  const ends = ranked ? [] : now.flatMap((row) => answer(row, state.confidence));
  const finite = ends.filter(Number.isFinite);
  const range = [least < 0 ? Math.min(0, ...finite) : 0, Math.max(0, ...finite)];
  at("head").replaceChildren(heading());
  at("body").replaceChildren(...now.map((row) => line(row, range)));
  const [some, all] = [kept.length, rows.length].map((number) => plain.format(number));
  const changed = byCount()
    ? `. In this order, the intervals are wider: all ${all} contain their true counts at once with ` +
      `${state.confidence}% confidence, those of the first rows too.`
    : "";
  at("where").textContent = `${some} of ${all} rows, page ${state.page + 1} of ${pages}${changed}`;
  at("back").disabled = state.page === 0;
  at("forth").disabled = state.page === pages - 1;
  at("confidence-text").textContent = `${state.confidence}%`;
  at("confidence").setAttribute("aria-valuetext", `${state.confidence}%`);
  at("fold").textContent = state.folded.size ? "Unfold all rows" : "Fold all rows";
  at("chart").replaceChildren(...chart());
  told();
}

/** A line with a band, if the levels of the only column are ordered numbers or dates. */
function chart() {
  const places = rows.map((row) => (held.ordered ? Number(held.ordered[row.place]) : NaN));
  if (!held.ordered || rows.length < 3) return [];
  const found = rows.map((row) => answer(row, state.confidence));
  const [first, last] = [places[0], places.at(-1)];
  const finite = found.flat().filter(Number.isFinite);
  const [low, high] = [least < 0 ? Math.min(0, ...finite) : 0, Math.max(1, ...finite)];
  const x = (value) => 60 + (730 * (value - first)) / (last - first);
  const y = (value) => 190 - (180 * (Math.min(Math.max(value, low), high) - low)) / (high - low);
  const point = (place, value) => `${x(place).toFixed(1)},${y(value).toFixed(1)}`;
  const path = (end) => places.map((place, n) => point(place, found[n][end]));
  const svg = element("svg", { viewBox: "0 0 800 220", role: "img" });
  svg.append(
    element("title", {}, `${names.at(-1)} by ${labels[0]}, with ${intervals()}`),
    element("polygon", { class: "band", points: [...path(2), ...path(1).reverse()].join(" ") }),
    element("polyline", { class: "line", points: path(0).join(" ") }),
    element("line", { class: "axis", x1: 60, x2: 790, y1: y(0), y2: y(0) }),
    element("text", { x: 55, y: 18, "text-anchor": "end" }, shown(high)),
    element("text", { x: 55, y: 194, "text-anchor": "end" }, shown(low)),
    element("text", { x: 60, y: 210 }, rows[0].texts[0]),
    element("text", { x: 790, y: 210, "text-anchor": "end" }, rows.at(-1).texts[0]),
  );
  return [svg];
}

/** Says what the chosen cells add up to. */
function told() {
  if (held.sums !== null) {
    at("answers").replaceChildren(element("p", {}, held.sums));
    return;
  }
  const [a, b] = [[...state.a], [...state.b]];
  const said = [];
  const say = (what, found, unit = "") =>
    said.push(
      found.why
        ? `${what}: ${found.why}`
        : `${what}: ${shown(found.estimate)}${unit}, interval ${between(found, unit)}`,
    );
  if (a.length) {
    say(`A, ${a.length} rows`, sum(a, state.confidence));
    if (least === 0) say("A in all", share(a, state.confidence), "%");
    const people = Number(at("population").value);
    const found = sum(a, state.confidence);
    if (people > 0 && !found.why) {
      const per = (name) => [name, (found[name] * 100000) / people];
      say("A per 100,000", Object.fromEntries(["estimate", "lower", "upper"].map(per)));
    }
  }
  if (b.length) say(`B, ${b.length} rows`, sum(b, state.confidence));
  if (a.length && b.length) say("A minus B", difference(a, b, state.confidence));
  if (!said.length) said.push("Choose rows for A and B in the table.");
  else if (state.chosen) said.push("Chosen by count: these intervals hold for any choice of rows.");
  at("answers").replaceChildren(...said.map((text) => element("p", {}, text)));
}

function download(text, name, type) {
  const href = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href, download: name }).click();
  URL.revokeObjectURL(href);
}

function choose(set) {
  for (const row of selected()) if (row.cell) set.add(row.place);
  draw();
}

at("confidence").max = String(CONFIDENCES.length - 1);
at("confidence").value = String(CONFIDENCES.indexOf(state.confidence));
at("confidence").addEventListener("input", (event) => {
  state.confidence = CONFIDENCES[Number(event.target.value)];
  draw();
});
at("search").addEventListener("input", (event) => {
  state.query = event.target.value;
  state.page = 0;
  draw();
});
at("depth").addEventListener("change", (event) => {
  state.depth = event.target.value;
  state.page = 0;
  draw();
});
at("population").addEventListener("input", told);
for (const [id, step] of [["back", -1], ["forth", 1]]) {
  at(id).addEventListener("click", () => {
    state.page += step;
    draw();
  });
}
at("all-a").addEventListener("click", () => choose(state.a));
at("all-b").addEventListener("click", () => choose(state.b));
at("clear").addEventListener("click", () => {
  state.a.clear();
  state.b.clear();
  state.chosen = false;
  draw();
});
at("fold").addEventListener("click", () => {
  if (state.folded.size) state.folded.clear();
  else fold();
  draw();
});
at("csv").addEventListener("click", () => download(held.csv, held.name, "text/csv"));
at("json").addEventListener("click", () =>
  download(held.description, `${held.name}.json`, "application/json"),
);
addEventListener("beforeprint", () => {
  state.size = Infinity;
  draw();
});
addEventListener("afterprint", () => {
  state.size = ROWS_A_PAGE;
  draw();
});
at("depth-choice").hidden = rows.every((row) => row.cell);
at("fold").hidden = column < 0;
if (column >= 0 && rows.length > ROWS_A_PAGE) fold();
for (const each of document.querySelectorAll(".sums")) each.hidden = held.sums !== null;
at("confidence-choice").hidden = ranked;
draw();
