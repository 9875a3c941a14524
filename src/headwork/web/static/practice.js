// Practice: empty grids, every entry marked as it is left, hints in steps. Answers are kept in this browser alone.

import { ask as askIn } from "./dialog.js";
import { pack, writeLink } from "./state.js";
import { download } from "./out.js";

const SIGNS = { right: "✓", follows: "→", wrong: "✗", nonsense: "?", blank: "" };
const LEVELS = ["The formula", "The row and the column", "The arithmetic"];
const KEPT = "headwork practice";
const MOST_KEPT = 40; // sheets

let on = false;
let every = false;
let worked = 0;
let level = 0;
let last = null; // the cell that a hint is about
let marking = 0; // what is asked last is shown, of marks and of pages
let showing = 0;
let key = null; // under which the answers on the page are kept; nothing where there are none

const grids = (bench) => [...bench.view.querySelectorAll("table[data-practice]")];
const rowsOf = (grid) => [...grid.rows].map((row) => [...row.querySelectorAll("input")].map((one) => one.value));

// Answers by part and name; `all` of them, or those that the sheet itself asks for.
function answers(bench, all = true) {
  const found = {};
  for (const grid of grids(bench)) {
    if (!all && grid.dataset.asked !== "true") continue;
    (found[grid.dataset.part] ??= {})[grid.dataset.name] = rowsOf(grid);
  }
  return found;
}

function put(bench, kept) {
  for (const grid of grids(bench)) {
    const rows = kept?.[grid.dataset.part]?.[grid.dataset.name];
    if (grid.dataset.practice !== "open" || !Array.isArray(rows)) continue;
    [...grid.rows].forEach((row, i) => row.querySelectorAll("input").forEach((input, j) => {
      input.value = String(rows[i]?.[j] ?? "").slice(0, 80);
    }));
  }
}

function shelf() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

const sheetKey = (bench) => JSON.stringify([bench.worked.title, bench.worked.problem.map((one) => one.given)]);

function keep(bench) {
  if (!key) return; // the empty grids are still to come: what was kept stays
  const kept = shelf();
  delete kept[key];
  kept[key] = answers(bench);
  for (const key of Object.keys(kept).slice(0, -MOST_KEPT)) delete kept[key];
  try {
    localStorage.setItem(KEPT, JSON.stringify(kept));
  } catch { /* a browser that keeps nothing */ }
}

async function show(bench, given = null) {
  const turn = ++showing;
  marking++;
  key = null;
  const reply = await bench.askAbout({ do: "practice", every, worked });
  if (turn !== showing) return; // another sheet has come, or another mode
  if (reply.error) return bench.say(reply.error.message, "bad");
  bench.replace(reply, []);
  bar(bench, reply.grids);
  key = sheetKey(bench);
  put(bench, given ?? shelf()[key]);
  await mark(bench);
}

function bar(bench, total) {
  const made = document.createElement("div");
  made.className = "practice-bar";
  const steps = document.createElement("input");
  Object.assign(steps, { type: "range", min: 0, max: total, value: worked, id: "worked" });
  const said = document.createElement("output");
  said.textContent = `${worked} of ${total}`;
  steps.addEventListener("input", () => { said.textContent = `${steps.value} of ${total}`; });
  steps.addEventListener("change", () => { worked = Number(steps.value); keep(bench); show(bench); });
  const all = document.createElement("input");
  Object.assign(all, { type: "checkbox", checked: every, id: "every" });
  all.addEventListener("change", () => { every = all.checked; worked = 0; keep(bench); show(bench); });
  const label = (text, ...inside) => {
    const one = document.createElement("label");
    one.append(text, ...inside);
    return one;
  };
  const button = (text, act) => {
    const one = document.createElement("button");
    one.type = "button";
    one.textContent = text;
    one.addEventListener("click", act);
    return one;
  };
  const score = document.createElement("output");
  score.className = "score";
  score.setAttribute("aria-live", "polite");
  const hinted = document.createElement("div");
  hinted.className = "hint";
  hinted.setAttribute("role", "status");
  const note = document.createElement("p");
  note.className = "note";
  note.textContent = "Your answers are kept in this browser, on this machine, and nowhere else.";
  const helping = button("Hint", () => hint(bench));
  helping.className = "hint-button";
  made.append(
    score, label("worked for you ", steps, said), label("", all, " every step on the way"),
    helping, button("New sheet of this kind", () => another(bench)),
    button("Hand in …", () => handIn(bench)), button("Forget my answers", () => forget(bench)), hinted, note,
  );
  document.getElementById("side").replaceChildren(made);
  document.getElementById("side").hidden = false;
}

export async function mark(bench) {
  const turn = ++marking;
  const reply = await bench.askAbout({ do: "mark", every, answers: answers(bench) });
  if (turn !== marking || !on) return;
  if (reply.error) return bench.say(reply.error.message, "bad");
  for (const grid of grids(bench)) {
    const found = reply.parts[grid.dataset.part]?.[grid.dataset.name];
    if (found) showMark(grid, found);
  }
  document.querySelector(".score").textContent = `${reply.done} of ${reply.of} entries`;
}

function showMark(grid, { verdict, entries, said }) {
  [...grid.rows].forEach((row, i) => row.querySelectorAll("input").forEach((input, j) => {
    const mark = entries[i]?.[j] ?? "blank";
    input.dataset.mark = grid.dataset.practice === "worked" ? "blank" : mark;
    input.parentElement.dataset.sign = grid.dataset.practice === "worked" ? "" : SIGNS[mark];
    if (mark === "nonsense") input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
    input.setAttribute("aria-description", mark === "nonsense" ? "not a number" : mark === "blank" ? "" : mark);
  }));
  const line = grid.closest(".answer-grid").querySelector(".verdict");
  line.textContent = grid.dataset.practice === "worked" ? "" : said;
  line.dataset.verdict = verdict;
}

async function hint(bench) {
  const grid = last?.closest("table[data-practice]");
  const place = document.querySelector(".hint");
  if (!grid) {
    place.textContent = "Go to an entry first: the hint is about it.";
    return;
  }
  level = Math.min(level + 1, 3);
  const cell = last, deep = level;
  const [part] = grid.dataset.part.split(".").slice(-1);
  const { row, column } = cell.dataset;
  const about = { do: "hint", problem: Number(grid.dataset.problem), part, name: grid.dataset.name };
  const reply = await bench.askAbout({ ...about, row: Number(row), column: Number(column), level: deep });
  if (cell !== last || deep !== level) return; // a later hint, or another entry
  const head = document.createElement("b");
  head.textContent = `${LEVELS[deep - 1]} (hint ${deep} of 3)`;
  const body = document.createElement("div");
  if (reply.error) body.textContent = reply.error.message;
  else body.innerHTML = reply.html; // made by headwork: formulas and numbers
  place.replaceChildren(head, body);
  cell.focus();
}

// Other numbers, the same shapes and questions: drawn to be worked by hand where that can be done.
async function another(bench) {
  const problem = bench.worked.problem.at(-1);
  const seed = Math.floor(Math.random() * 1e6);
  const turn = bench.asked;
  const reply = await bench.ask({ do: "another", table: bench.worked, problem: bench.worked.problem.indexOf(problem), seed });
  if (!on || turn !== bench.asked) return; // another sheet was asked for meanwhile
  if (reply.error) return bench.say(reply.error.message, "bad");
  keep(bench);
  bench.asked++; // what was asked about the sheet before comes too late
  bench.remember(structuredClone(bench.table));
  bench.table = reply.table;
  bench.worked = structuredClone(reply.table);
  writeLink(bench);
  await show(bench);
}

async function handIn(bench) {
  const note = document.createElement("p");
  note.className = "note";
  note.textContent = "The link and the file carry your answers, not a mark. Your teacher runs: headwork mark SHEET LINK";
  const said = await askIn("Hand in", [
    { key: "student", label: "your name", value: "" },
    { key: "how", label: "as", value: "link", options: ["link", "file"], says: { link: "a link to copy", file: "a file (.json)" } },
  ], "Make it", [note]);
  if (!said) return;
  const own = { student: said.student.slice(0, 100), ...answers(bench, false) };
  if (said.how === "file") {
    download(`${JSON.stringify(own, null, 1)}\n`, "answers.json", "application/json");
    return;
  }
  const { student, ...parts } = own;
  const packed = await pack({ student, answers: parts, table: bench.worked });
  const link = `${location.href.split("#")[0]}#answers=${packed}`;
  navigator.clipboard?.writeText(link).catch(() => {});
  await askIn("Your link (copied where the browser allows it)", [{ key: "link", label: "link", value: link, rows: 5 }], "");
}

function forget(bench) {
  const kept = shelf();
  delete kept[key];
  localStorage.setItem(KEPT, JSON.stringify(kept));
  for (const grid of grids(bench)) {
    if (grid.dataset.practice === "open") grid.querySelectorAll("input").forEach((input) => { input.value = ""; });
  }
  mark(bench);
}

export async function enter(bench) {
  on = true;
  const given = bench.handedIn ?? null;
  bench.handedIn = null;
  await show(bench, given);
}

export function leave(bench) {
  if (!bench.handedIn) keep(bench);
  on = false;
  showing++;
  marking++;
  key = last = null;
  document.getElementById("side").hidden = true;
  document.getElementById("side").replaceChildren();
}

export function listen(bench) {
  bench.addEventListener("replaced", () => { key = null; }); // no longer the page with the grids
  bench.addEventListener("worked", ({ detail }) => {
    if (on && detail.table) show(bench);
  });
  bench.addEventListener("handed-in", () => { if (on) enter(bench); }); // while another is practised
  bench.view.addEventListener("filled", ({ target }) => {
    if (!on || !target.dataset.practice) return;
    for (const input of target.querySelectorAll("input")) {
      if (input === document.activeElement) input.parentElement.dataset.sign = "";
    }
  });
  document.addEventListener("focusin", ({ target }) => {
    if (!on || !target.closest?.("table[data-practice]") || target === last) return;
    last = target;
    level = 0;
  });
  bench.view.addEventListener("change", async ({ target }) => {
    if (!on || !target.closest("table[data-practice]")) return;
    keep(bench);
    await mark(bench);
  });
}
