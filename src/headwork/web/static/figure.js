// The figure and the equations are one thing: a box lights up with its step, and leads to it.

const KEY = "[data-role]";

const boxAt = (target) => target.closest?.(`#view figure.picture ${KEY}`) ?? null;
const stepAt = (target) => target.closest?.("#view .block[data-step], #view .matrix table[data-role]") ?? null;
const same = (role, head) => `[data-role="${CSS.escape(role)}"][data-head="${CSS.escape(head ?? "")}"]`;

function stepsOf(box) {
  const section = box.closest(".problem");
  const { role, head = "" } = box.dataset;
  const step = `.block[data-step="${CSS.escape(role)}"][data-head="${CSS.escape(head)}"]`;
  return [...section.querySelectorAll(`${step}, table.cells${same(role, head)}`)];
}

function boxesOf(step) {
  const role = step.dataset.step ?? step.dataset.role;
  const section = step.closest(".problem");
  return section.querySelectorAll(`figure.picture ${same(role, step.dataset.head)}`);
}

function unlight() {
  for (const one of document.querySelectorAll(".together")) one.classList.remove("together");
}

function go(box) {
  const [step] = stepsOf(box);
  if (!step) return;
  step.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion)").matches ? "auto" : "smooth" });
  step.querySelector("[tabindex='0'], input")?.focus({ preventScroll: true });
}

export function listen(bench) {
  bench.addEventListener("replaced", () => {
    for (const box of bench.view.querySelectorAll(`figure.picture g${KEY}`)) {
      if (!stepsOf(box).length) continue;
      box.closest("svg").setAttribute("role", "group"); // no longer one image: its boxes can be reached
      box.setAttribute("tabindex", "0");
      box.setAttribute("role", "link");
      box.setAttribute("aria-label", `to the step ${box.dataset.role}${box.dataset.head ? `, head ${box.dataset.head}` : ""}`);
      box.classList.add("leads");
    }
  });
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, ({ target }) => {
      unlight();
      const box = boxAt(target);
      if (box) [box, ...stepsOf(box)].forEach((one) => one.classList.add("together"));
      const step = stepAt(target);
      if (step) boxesOf(step).forEach((one) => one.classList.add("together"));
    });
  }
  bench.view.addEventListener("click", ({ target }) => {
    const box = boxAt(target);
    if (box) go(box);
  });
  bench.view.addEventListener("keydown", (event) => {
    const box = boxAt(event.target);
    if (box && event.key === "Enter") go(box);
  });
}
