// Switches of a problem, rows and columns, the mask to click, the list of sheets, a new sheet.

import { nudge } from "./grid.js";
import { ask as askIn } from "./dialog.js";

function where(input) {
  const { problem, part, name } = input.closest("table.cells").dataset;
  return { problem: Number(problem), part: part || null, name, row: Number(input.dataset.row), column: Number(input.dataset.column) };
}

async function switched(select, bench) {
  const problem = Number(select.form.dataset.problem);
  let value = select.value;
  if (value === "other") {
    value = await askIn("Divide the scores by", [{ key: "by", label: "a number: 3, 1/2, sqrt(5)", value: "2" }]).then((said) => said?.by);
  }
  const key = select.name;
  const reply = value === undefined || await bench.inTurn(() => ({ do: "switch", table: bench.table, problem, key, value }));
  if (reply === true || reply.error) await bench.whole({ do: "show", table: bench.worked });
}

// The tools of the grid in which the reader is: they stand under it and never take the focus.
const tools = document.createElement("div");
tools.className = "tools";
tools.setAttribute("role", "toolbar");
tools.setAttribute("aria-label", "This cell, its row and its column");
for (const [act, label, says] of [
  ["less", "−", "one less"], ["more", "+", "one more"],
  ["row+", "+ row", "add a row"], ["row-", "− row", "remove this row"],
  ["column+", "+ column", "add a column"], ["column-", "− column", "remove this column"],
]) {
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.act = act;
  button.textContent = label;
  button.title = says;
  button.setAttribute("aria-label", says);
  tools.append(button);
}
let current = null; // the cell that they are about

function act(name, bench) {
  if (!current?.isConnected) return;
  current.focus();
  if (name === "less" || name === "more") {
    nudge(current, name === "more" ? 1 : -1);
    return;
  }
  const axis = name.startsWith("row") ? 0 : 1;
  const cell = where(current);
  bench.inTurn(() => ({ do: "resize", table: bench.table, where: cell, axis, add: name.endsWith("+") }));
}

function showTools(input) {
  const grid = input.closest("table.cells");
  if (grid.dataset.practice) return;
  current = input;
  grid.closest(".matrix").append(tools);
}

function clicked(button, bench) {
  const { problem } = button.closest("table.mask").dataset;
  const { row, column } = button.dataset;
  button.id = `mask-${problem}-${row}-${column}`; // by which the page finds it again when it comes anew
  bench.edit((table) => {
    const entries = table.problem[Number(problem)].mask[Number(row)];
    const hides = String(entries[Number(column)]) === "0";
    entries[Number(column)] = hides ? "-inf" : "0";
    button.setAttribute("aria-pressed", String(hides));
    button.textContent = hides ? "−∞" : "0";
  });
}

const SIZES = [
  { key: "formula", label: "formula", value: "multi_head", options: ["multi_head", "multi_head_blocks", "single_head", "scaled_dot_product", "dot_product", "blockwise"] },
  { key: "tokens", label: "tokens", value: 3, type: "number", min: 1, max: 12 },
  { key: "d_model", label: "d_model", value: 4, type: "number", min: 1, max: 48 },
  { key: "heads", label: "heads", value: 2, type: "number", min: 1, max: 8 },
  { key: "mask", label: "mask", value: "none", options: ["none", "causal"] },
  { key: "fill", label: "numbers", value: "seeded", options: ["seeded", "zeros", "drawn"], says: { seeded: "small, from a seed", zeros: "zeros", drawn: "drawn to be worked with a pencil" } },
  { key: "seed", label: "seed", value: 7, type: "number", min: 0, max: 999999 },
];

async function anew(bench) {
  const said = await askIn("A new sheet", SIZES, "Make it");
  if (said) await bench.whole({ do: "new", ...said }, true);
}

async function fromFile(bench) {
  const said = await askIn("Open a sheet", [{ key: "toml", label: "TOML, pasted or from a file", type: "file" }], "Open it");
  if (said?.toml) await bench.whole({ do: "open", toml: said.toml }, true);
}

function list(sheets, bench) {
  const select = document.getElementById("sheets");
  const add = (value, text) => select.append(new Option(text, value));
  add("", bench.table?.title ?? "this sheet");
  for (const [name] of sheets) add(name, name);
  add("+file", "a file …");
  if (sheets.some(([name]) => name === bench.name) && !location.hash) select.value = bench.name;
}

export function listen(bench) {
  bench.view.addEventListener("change", ({ target }) => {
    if (target.form?.classList.contains("switches")) switched(target, bench);
  });
  bench.view.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("focusin", ({ target }) => {
    if (target.closest?.("table.cells") && target instanceof HTMLInputElement) showTools(target);
    else if (!tools.contains(target)) tools.remove();
  });
  tools.addEventListener("mousedown", (event) => event.preventDefault()); // the cell keeps the focus
  tools.addEventListener("click", ({ target }) => target.dataset.act && act(target.dataset.act, bench));
  bench.view.addEventListener("click", ({ target }) => {
    if (target.closest("table.mask") && target instanceof HTMLButtonElement) clicked(target, bench);
  });
  document.getElementById("exact").addEventListener("change", async ({ target }) => {
    bench.exact = target.checked;
    const reply = await bench.whole({ do: "show", table: bench.worked });
    if (reply.error) bench.setExact(!bench.exact); // the page is as it was
  });
  document.getElementById("new").addEventListener("click", () => anew(bench));
  bench.addEventListener("sheets", ({ detail }) => list(detail, bench));
  document.getElementById("sheets").addEventListener("change", async ({ target }) => {
    const name = target.value;
    if (name === "+file") {
      target.value = "";
      await fromFile(bench);
    } else if (name) {
      await bench.whole({ do: "open", name }, true);
    }
  });
}
