// An entry pointed at, by mouse, touch or keyboard: its arithmetic, the entries it was made of, and those behind them
// back to the givens. A click, Enter or the space bar pins it; Escape lets go.

const panel = document.getElementById("panel");
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
let pinned = null;
let mouse = null; // where it was last
let place = null; // of what is pinned: its block may come anew
let shown = null;
let asked = 0; // what is asked last is shown: numbers may have changed under one entry

const entryAt = (target) => {
  const cell = target.closest?.("#view .block mtd[data-row]");
  return cell && isResult(cell) ? cell : null;
};

// The last matrix of a block is what it works out; the others are what it is made of.
function isResult(cell) {
  const block = cell.closest(".block");
  const table = cell.closest("mtable");
  return block.dataset.step === table.dataset.role && block.dataset.head === table.dataset.head && !!table.dataset.own;
}

// Entries that can be pointed at: one stop for Tab in every matrix, the arrow keys inside it.
function prepare(blocks) {
  for (const block of blocks) {
    const matrices = [...block.querySelectorAll("mtable[data-role]")].filter(
      (one) => one.dataset.role === block.dataset.step && one.dataset.head === block.dataset.head,
    );
    const own = matrices.at(-1);
    if (!own || own.dataset.own || matrices.length === 0) continue;
    own.dataset.own = "true";
    own.querySelectorAll("mtd").forEach((cell, i) => {
      cell.classList.add("pointable");
      cell.setAttribute("tabindex", i ? "-1" : "0");
    });
  }
}

// What goes on behind an edge says so, and can be reached by keys. Everything is read before anything is written: a page
// that is read and written by turns is laid out as often.
function widen(root) {
  const all = [...root.querySelectorAll(".scroll")].map((one) => [one, one.scrollWidth > one.clientWidth]);
  for (const [one, wide] of all) {
    one.classList.toggle("wide", wide);
    if (wide && !one.querySelector("[tabindex='0']")) one.tabIndex = 0;
  }
}

export function clear() {
  for (const lit of document.querySelectorAll(".lit, .own, .behind")) lit.classList.remove("lit", "own", "behind");
  panel.hidden = true;
  shown = null;
}

// Wherever an entry stands: in the grid where it is given, in the equation that makes it, in those that use it.
export function everywhere(section, role, head, row, column) {
  const matrix = `[data-role="${CSS.escape(role)}"][data-head="${CSS.escape(String(head))}"]`;
  return section.querySelectorAll(`${matrix} [data-row="${row}"][data-column="${column}"]`);
}

async function show(cell, bench) {
  const block = cell.closest(".block");
  const { row, column } = cell.dataset;
  shown = cell;
  const about = { do: "entry", block: Number(block.dataset.block), row: Number(row), column: Number(column) };
  const turn = ++asked;
  const reply = await bench.askAbout(about);
  if (turn !== asked || shown !== cell || reply.error || !cell.isConnected) return;
  clear();
  shown = cell;
  cell.classList.add("own");
  const section = block.closest(".problem");
  for (const spot of reply.behind) everywhere(section, ...spot).forEach((one) => one.classList.add("behind"));
  for (const spot of reply.from) everywhere(section, ...spot).forEach((one) => one.classList.add("lit"));
  panel.innerHTML = reply.html; // made by headwork: formulas and numbers
  if (pinned === cell) {
    const note = document.createElement("p");
    note.className = "pinned";
    note.textContent = "Pinned: Escape or a click lets go.";
    panel.append(note);
  }
  panel.hidden = !reply.html;
}

function pin(cell, bench) {
  pinned = pinned === cell ? null : cell;
  place = { block: cell.closest(".block"), row: cell.dataset.row, column: cell.dataset.column };
  show(cell, bench);
}

// What is pinned follows the numbers; while they are dragged, those who hear the page are told once, at the end.
function follow(bench, now) {
  if (!pinned) return;
  const { block, row, column } = place;
  if (!pinned.isConnected) pinned = block.querySelector(`mtable[data-own] mtd[data-row="${row}"][data-column="${column}"]`);
  panel.setAttribute("aria-live", now ? "polite" : "off");
  if (pinned) show(pinned, bench);
  else letGo();
}

function letGo() {
  pinned = null;
  clear();
}

// What the keys show stays while the mouse rests, though the page brings another entry under it.
function resting({ type, clientX, clientY }) {
  return type === "pointerover" && shown !== null && shown === document.activeElement && mouse?.[0] === clientX && mouse[1] === clientY;
}

function neighbour(cell, [down, right]) {
  const row = Number(cell.dataset.row) + down, column = Number(cell.dataset.column) + right;
  return cell.closest("mtable").querySelector(`mtd[data-row="${row}"][data-column="${column}"]`);
}

export function listen(bench) {
  bench.addEventListener("replaced", () => {
    letGo();
    prepare(bench.view.querySelectorAll(".block[data-step]"));
    widen(bench.view);
  });
  bench.addEventListener("worked", ({ detail }) => {
    prepare(detail.anew?.filter((one) => one.dataset.step) ?? []);
    follow(bench, !document.body.classList.contains("dragging"));
  });
  bench.addEventListener("settled", () => {
    widen(bench.view);
    if (panel.getAttribute("aria-live") === "off") follow(bench, true);
  });
  for (const [come, go] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    document.addEventListener(come, (event) => {
      const cell = entryAt(event.target);
      if (cell && pinned === null && shown !== cell && !resting(event)) show(cell, bench);
    });
    // The page may move away under the mouse from one entry while the keys show another.
    document.addEventListener(go, ({ target }) => {
      if (shown !== null && entryAt(target) === shown && pinned === null) clear();
    });
  }
  document.addEventListener("pointermove", ({ clientX, clientY }) => (mouse = [clientX, clientY]));
  document.addEventListener("click", ({ target }) => {
    const cell = entryAt(target);
    if (cell) pin(cell, bench);
    else if (target.closest?.("#view") && !target.closest("table.cells, .tools")) letGo(); // numbers change under a pin
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") letGo();
    const cell = entryAt(event.target);
    if (!cell) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pin(cell, bench);
    } else if (event.key in MOVES) {
      event.preventDefault();
      event.stopPropagation();
      const next = neighbour(cell, MOVES[event.key]);
      if (!next) return;
      cell.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    }
  });
}
