// Only what changed: entries get their new numbers, blocks where more than numbers changed come anew; both light up.

const LIT = 900; // milliseconds

export function patch(view, { cells, blocks }) {
  const changed = [];
  for (const [number, html] of Object.entries(blocks)) {
    const block = view.querySelector(`[data-block="${number}"]`);
    block.innerHTML = html; // made by headwork: formulas and numbers
    changed.push(block);
  }
  const found = new Map();
  for (const [number, place, html] of cells) {
    if (!found.has(number)) found.set(number, view.querySelectorAll(`[data-block="${number}"] mtd`));
    const cell = found.get(number)[place];
    cell.innerHTML = html;
    changed.push(cell);
  }
  light(changed);
}

function light(changed) {
  for (const one of changed) one.classList.add("changed");
  setTimeout(() => changed.forEach((one) => one.classList.remove("changed")), LIT);
}
