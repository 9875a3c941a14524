// Grids of numbers, edited like a spreadsheet: arrows, Tab, Enter, Delete, Shift for several; dragged and stepped.

import { paste } from "./paste.js";
import { stepped } from "./numbers.js";

const DRAG = 7; // pixels a step
const START = 4; // pixels until a press is a drag

export function findCell(root, { problem, part, name, row, column }) {
  for (const grid of root.querySelectorAll("table.cells")) {
    const data = grid.dataset;
    if (data.problem === String(problem) && (data.part || "") === (part ?? "") && data.name === name) {
      return grid.querySelector(`input[data-row="${row}"][data-column="${column}"]`);
    }
  }
  return null;
}

export const at = (grid, row, column) =>
  grid.querySelector(`input[data-row="${row}"][data-column="${column}"]`);
const gridOf = (input) => input.closest("table.cells");
const rowOf = (input) => Number(input.dataset.row);
const columnOf = (input) => Number(input.dataset.column);
const isCell = (element) => element instanceof HTMLInputElement && gridOf(element) !== null;
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

let anchor = null; // where a selection of several cells began
let extending = false;

export function picked(input) {
  if (!anchor || gridOf(anchor) !== gridOf(input)) return [input];
  const [top, bottom] = [rowOf(anchor), rowOf(input)].sort((a, b) => a - b);
  const [left, right] = [columnOf(anchor), columnOf(input)].sort((a, b) => a - b);
  return [...gridOf(input).querySelectorAll("input")].filter(
    (one) => rowOf(one) >= top && rowOf(one) <= bottom && columnOf(one) >= left && columnOf(one) <= right,
  );
}

function showPicked(input) {
  for (const one of document.querySelectorAll("input.picked")) one.classList.remove("picked");
  const several = picked(input);
  if (several.length > 1) several.forEach((one) => one.classList.add("picked"));
}

// Put texts into cells and say so: the bench works them, practice marks them.
export function fill(cells, hold = null) {
  for (const [input, text] of cells) {
    input.value = text;
    input.size = Math.max(2, text.length);
  }
  if (cells.length) {
    const detail = { cells: cells.map(([input]) => input), hold };
    gridOf(cells[0][0]).dispatchEvent(new CustomEvent("filled", { bubbles: true, detail }));
  }
}

export function nudge(input, steps, fine, hold = null) {
  const text = stepped(input.value, steps, fine);
  if (text !== null) fill([[input, text]], hold);
  return text !== null;
}

function move(input, [down, right], extend) {
  const next = at(gridOf(input), rowOf(input) + down, columnOf(input) + right);
  if (!next) return false;
  extending = extend;
  next.focus();
  return true;
}

// The caret is inside a number that is being typed: arrows belong to the text.
function typing(input, key) {
  if (key === "ArrowUp" || key === "ArrowDown") return false;
  const { selectionStart: start, selectionEnd: end, value } = input;
  if (start === 0 && end === value.length) return false;
  return key === "ArrowLeft" ? start > 0 : end < value.length;
}

function down(input) {
  const grid = gridOf(input);
  return at(grid, rowOf(input) + 1, columnOf(input)) ?? at(grid, 0, columnOf(input) + 1);
}

function pressed(event, bench) {
  const input = event.target;
  const command = event.ctrlKey || event.metaKey;
  if (command && input.closest?.("[data-practice], dialog")) return;
  if (command && event.key.toLowerCase() === "z") {
    event.preventDefault();
    if (event.shiftKey) bench.redo();
    else bench.undo();
  } else if (command && event.key.toLowerCase() === "y") {
    event.preventDefault();
    bench.redo();
  } else if (!isCell(input)) {
    return;
  } else if (event.key in MOVES && event.altKey) {
    event.preventDefault();
    const way = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
    nudge(input, way, event.shiftKey);
  } else if (event.key === "PageUp" || event.key === "PageDown") {
    event.preventDefault();
    nudge(input, event.key === "PageUp" ? 1 : -1, event.shiftKey);
  } else if (event.key in MOVES && !command && (event.shiftKey || !typing(input, event.key))) {
    event.preventDefault();
    move(input, MOVES[event.key], event.shiftKey);
  } else if (event.key === "Enter") {
    event.preventDefault();
    const next = event.shiftKey ? at(gridOf(input), rowOf(input) - 1, columnOf(input)) : down(input);
    next?.focus();
  } else if (event.key === "Escape") {
    input.value = input.dataset.was ?? input.value;
    fill([[input, input.value]]);
    input.select();
  } else if ((event.key === "Delete" || event.key === "Backspace") && whole(input)) {
    event.preventDefault();
    const nothing = gridOf(input).dataset.practice ? "" : "0";
    fill(picked(input).map((one) => [one, nothing]));
    input.select();
  }
}

const whole = (input) =>
  picked(input).length > 1 || (input.selectionStart === 0 && input.selectionEnd === input.value.length);

// A press that moves sideways changes the number, one step for every few pixels; Shift makes the steps fine.
function drag(event) {
  const input = event.target;
  if (!isCell(input) || event.button !== 0 || gridOf(input).dataset.practice) return;
  const start = { x: event.clientX, text: input.value, hold: `drag ${event.timeStamp}` };
  let dragging = false, last = 0;
  const moved = (now) => {
    const far = now.clientX - start.x;
    if (!dragging && Math.abs(far) < START) return;
    if (!dragging) {
      dragging = true;
      document.body.classList.add("dragging");
      input.setPointerCapture(event.pointerId);
    }
    now.preventDefault();
    const steps = Math.trunc(far / DRAG);
    if (steps === last) return;
    last = steps;
    const text = stepped(start.text, steps, now.shiftKey);
    if (text !== null) fill([[input, text]], start.hold);
  };
  const done = () => {
    if (dragging) input.select(); // not on the way: a selection has the page laid out at once
    removeEventListener("pointermove", moved);
    removeEventListener("pointerup", done);
    removeEventListener("pointercancel", done);
    document.body.classList.remove("dragging");
  };
  addEventListener("pointermove", moved);
  addEventListener("pointerup", done);
  addEventListener("pointercancel", done);
}

export function listen(bench) {
  document.addEventListener("keydown", (event) => pressed(event, bench));
  document.addEventListener("pointerdown", drag);
  document.addEventListener("dragstart", (event) => {
    if (isCell(event.target) || isCell(event.target.parentNode)) event.preventDefault(); // the text itself stays
  });
  document.addEventListener("focusin", ({ target }) => {
    if (!isCell(target)) return;
    target.dataset.was = target.value;
    target.select();
    if (!extending) anchor = target;
    extending = false;
    showPicked(target);
  });
  document.addEventListener("input", ({ target }) => {
    if (isCell(target)) fill([[target, target.value]]);
  });
  document.addEventListener("paste", (event) => {
    if (isCell(event.target)) paste(event, bench);
  });
  document.addEventListener("copy", (event) => {
    if (!isCell(event.target) || picked(event.target).length < 2) return;
    event.preventDefault();
    const rows = Map.groupBy(picked(event.target), rowOf);
    const text = [...rows.values()].map((row) => row.map((one) => one.value).join("\t")).join("\n");
    event.clipboardData.setData("text/plain", text);
  });
  bench.view.addEventListener("filled", ({ target, detail }) => {
    if (target.dataset.practice) return;
    bench.edit((table) => detail.cells.forEach((input) => enter(table, target.dataset, input)), detail.hold);
  });
}

// The place of a grid's matrix in the sheet.
export function given(table, { problem, part, name }) {
  const whose = table.problem[Number(problem)];
  return (part ? whose.part.find((one) => one.label === part) : whose).given[name];
}

// Where two tables of one sheet have other texts in their grids, and the texts that the second has there.
export function differences(before, after) {
  const found = [];
  const compare = (was, is, where) => {
    for (const [name, rows] of Object.entries(is.given ?? {})) {
      rows.forEach((texts, row) => texts.forEach((text, column) => {
        if (was.given[name]?.[row]?.[column] !== text) found.push([{ ...where, name, row, column }, text]);
      }));
    }
  };
  after.problem.forEach((whose, problem) => {
    const old = before.problem[problem];
    compare(old, whose, { problem, part: null });
    whose.part?.forEach((part, i) => compare(old.part[i], part, { problem, part: part.label }));
  });
  return found;
}

function enter(table, data, input) {
  given(table, data)[rowOf(input)][columnOf(input)] = input.value;
}
