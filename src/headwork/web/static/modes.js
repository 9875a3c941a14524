// Work, Steps, What if, Practice: one at a time.

import * as steps from "./steps.js";
import * as whatif from "./whatif.js";
import * as practice from "./practice.js";

const MODES = { work: { enter() {}, leave() {} }, steps, whatif, practice };
let current = "work";

export async function change(name, bench) {
  if (name === current) return;
  MODES[current].leave(bench);
  const back = current === "practice";
  current = name;
  document.body.dataset.mode = name;
  for (const button of document.querySelectorAll("[data-mode]")) {
    if (button !== document.body) button.setAttribute("aria-pressed", String(button.dataset.mode === name));
  }
  if (back) await bench.whole({ do: "show", table: bench.worked });
  if (current === name) await MODES[name].enter(bench);
}

export function listen(bench) {
  for (const button of document.querySelectorAll("nav [data-mode]")) {
    button.addEventListener("click", () => change(button.dataset.mode, bench));
  }
  for (const mode of [steps, whatif, practice]) mode.listen?.(bench);
  bench.addEventListener("handed-in", () => change("practice", bench));
  bench.mode = () => current;
  bench.change = (name) => change(name, bench);
}
