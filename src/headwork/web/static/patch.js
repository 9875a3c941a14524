// Only what changed: entries, heat maps and notes get their new content, blocks where more changed come anew; entries
// light up, and fade together once nothing has changed for a while.

const PLACES = ":is(mtd, figure.heat, p.note)";
const LIT = 900; // milliseconds
const FADE = 500;

// Returns the blocks that came anew.
export function patch(view, { cells, blocks }) {
  const changed = [], anew = [];
  const all = new Map([...view.querySelectorAll("[data-block]")].map((one) => [one.dataset.block, one]));
  for (const [number, html] of Object.entries(blocks)) {
    const block = all.get(number);
    block.innerHTML = html; // made by headwork: formulas and numbers
    anew.push(block);
    changed.push(...block.querySelectorAll("mtd"));
  }
  const found = new Map();
  for (const [number, place, html] of cells) {
    if (!found.has(number)) found.set(number, all.get(String(number)).querySelectorAll(PLACES));
    const cell = found.get(number)[place];
    if (!plainly(cell, html)) cell.innerHTML = html;
    if (cell.localName === "mtd") changed.push(cell);
  }
  light(changed);
  return anew;
}

// A number for a number: its text alone, which costs less than an element.
function plainly(cell, html) {
  const text = /^<mn>([\d.]+)<\/mn>$/.exec(html);
  const [only] = cell.children;
  if (!text || cell.children.length !== 1 || only.localName !== "mn") return false;
  only.firstChild.data = text[1];
  return true;
}

const lit = new Set();
let timer;

function light(changed) {
  for (const one of changed) {
    one.classList.remove("fading");
    one.classList.add("changed");
    lit.add(one);
  }
  clearTimeout(timer);
  timer = setTimeout(fade, LIT);
}

function fade() {
  const all = [...lit];
  lit.clear();
  for (const one of all) one.classList.add("fading");
  setTimeout(() => all.filter((one) => !lit.has(one)).forEach((one) => one.classList.remove("changed", "fading")), FADE);
}
