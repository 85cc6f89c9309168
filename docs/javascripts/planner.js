"use strict";
// The planner: errors of a table before it is released, by noise.js, which comes before this script.

const field = (id) => document.getElementById(`plan-${id}`);
const written = new Intl.NumberFormat("en");

/**
 * The numbers that a visitor chose; epsilon is 10 to a power, since the slider is logarithmic. A
 * region or an individual has no more cells than the table.
 */
function chosen() {
  const number = (id, most = Infinity) => Math.min(Math.max(1, Math.round(Number(field(id).value)) || 1), most);
  const cells = number("cells");
  return {
    cells,
    region: number("region", cells),
    l0: number("l0", cells),
    linf: number("linf"),
    epsilon: Number((10 ** Number(field("epsilon").value)).toPrecision(2)),
    confidence: Number(field("confidence").value),
  };
}

/** The errors of a cell, of a sum of cells, of the total, and of all cells at once. */
function errors({ cells, region, l0, linf, epsilon, confidence }) {
  const rate = epsilon / (l0 * linf);
  const alpha = 1 - confidence / 100;
  return {
    cell: reach(rate, 1, alpha),
    region: reach(rate, region, alpha),
    total: reach(rate, cells, alpha),
    all: reach(rate, 1, -Math.expm1(Math.log1p(-alpha) / cells)),
  };
}

function drawn(rate, error) {
  const q = Math.exp(-rate);
  const ends = Math.max(5, Math.ceil(error * 1.6));
  const step = Math.max(1, Math.floor(ends / 60));
  const bars = [];
  const last = step * Math.floor(ends / step);
  for (let z = -last; z <= last; z += step) {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const x = 400 + (380 * z) / ends;
    const set = { x1: x, x2: x, y1: 150, y2: 150 - 140 * q ** Math.abs(z) };
    for (const [key, value] of Object.entries(set)) bar.setAttribute(key, value.toFixed(1));
    bar.setAttribute("class", Math.abs(z) <= error ? "inside" : "outside");
    bars.push(bar);
  }
  for (const z of [-error, 0, error]) {
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    text.setAttribute("x", String(400 + (380 * z) / ends));
    text.setAttribute("y", "170");
    text.setAttribute("text-anchor", "middle");
    text.textContent = z > 0 ? `+${written.format(z)}` : written.format(z);
    bars.push(text);
  }
  field("picture").replaceChildren(...bars);
}

function planned() {
  const given = chosen();
  const found = errors(given);
  field("epsilon-text").textContent = String(given.epsilon);
  for (const [name, error] of Object.entries(found)) {
    field(`${name}-error`).textContent = error === null ? "too wide for a browser" : `± ${written.format(error)}`;
  }
  drawn(given.epsilon / (given.l0 * given.linf), found.cell);
  const one = given.l0 * given.linf > 1 ? `, individual="person", l0=${given.l0}, linf=${given.linf}` : "";
  field("python").textContent = [
    "import geomdp",
    "",
    `levels = {"group": [...]}  # ${written.format(given.cells)} cells in all`,
    `design = geomdp.tables.Design(levels${one})`,
    `design.accuracy(epsilon="${given.epsilon}", alpha="${Number((1 - given.confidence / 100).toPrecision(3))}")`,
    `design.count(records).release(epsilon="${given.epsilon}", save="table.html")`,
  ].join("\n");
}

field("form").addEventListener("input", planned);
planned();
