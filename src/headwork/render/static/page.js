// Point at an entry, or move to it with Tab and the arrow keys: the entries it came from light up and its
// arithmetic is shown. A click, Enter or the space bar pins it; Escape lets go.
"use strict";

const how = JSON.parse(document.getElementById("how").textContent);
const panel = document.createElement("output");
panel.id = "panel";
panel.hidden = true;
panel.setAttribute("aria-live", "polite");
panel.tabIndex = 0; // long arithmetic can be scrolled by keyboard
document.body.append(panel);

const hint = document.createElement("p");
hint.className = "hint";
hint.textContent = "Point at a number that was worked out, or go to it with Tab and the arrow keys: this shows how it came about.";
document.querySelector("h1").after(hint);

let pinned = null;

function show(id) {
  clear();
  const entry = document.getElementById(id);
  entry.classList.add("own");
  for (const source of how[id].from) document.getElementById(source)?.classList.add("lit");
  panel.innerHTML = how[id].shown + (pinned === id ? '<p class="pinned">Pinned: Escape or a click lets go.</p>' : "");
  panel.hidden = false;
}

function clear() {
  for (const lit of document.querySelectorAll("mtd.lit, mtd.own")) lit.classList.remove("lit", "own");
  panel.hidden = true;
}

function pin(id) {
  pinned = pinned === id ? null : id;
  show(id);
}

const entryAt = (target) => target.closest?.("mtd.pointable") ?? null;

// One stop for the Tab key in every matrix; the arrow keys move inside it.
const stops = new Set();
for (const id of Object.keys(how)) {
  const entry = document.getElementById(id);
  const matrix = id.slice(0, id.indexOf("-"));
  entry.classList.add("pointable");
  entry.setAttribute("tabindex", stops.has(matrix) ? "-1" : "0");
  stops.add(matrix);
}

function neighbour(id, key) {
  const [matrix, row, column] = id.split("-");
  const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key];
  return document.getElementById(`${matrix}-${Number(row) + down}-${Number(column) + right}`);
}

document.addEventListener("pointerover", (event) => {
  const entry = entryAt(event.target);
  if (entry && pinned === null) show(entry.id);
});
document.addEventListener("pointerout", (event) => {
  if (entryAt(event.target) && pinned === null) clear();
});
document.addEventListener("focusin", (event) => {
  const entry = entryAt(event.target);
  if (entry && pinned === null) show(entry.id);
});
document.addEventListener("focusout", (event) => {
  if (entryAt(event.target) && pinned === null) clear();
});
document.addEventListener("click", (event) => {
  const entry = entryAt(event.target);
  if (entry) pin(entry.id);
  else if (!panel.contains(event.target)) { pinned = null; clear(); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { pinned = null; clear(); return; }
  const entry = entryAt(event.target);
  if (!entry) return;
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pin(entry.id); }
  if (!event.key.startsWith("Arrow")) return;
  event.preventDefault();
  const next = neighbour(entry.id, event.key);
  if (!next) return;
  entry.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
});

// What is too wide for the window can be scrolled by keyboard too.
for (const wide of document.querySelectorAll(".scroll")) {
  if (wide.scrollWidth > wide.clientWidth && !wide.querySelector("[tabindex='0']")) wide.tabIndex = 0;
}
