// Steps one by one, for a lecturer: → and ← go on and back, F fills the screen, O leaves the next result open until
// the next key.

let at = 0; // how many steps are shown
let open = false; // whether the last of them still keeps its result back
let ask = true; // whether results are kept back at all
let bar = null;

// What is shown one after the other: questions, equations, answers.
const stops = (bench) =>
  [...bench.view.querySelectorAll(".part > .question, .part > .block, .part > .answer, .part > .matrix")];
const withResult = (stop) => stop?.querySelector("mtable[data-own]") !== null && stop?.matches(".block[data-step]");

function show(bench, scroll = true) {
  const all = stops(bench);
  at = Math.max(1, Math.min(at, all.length));
  all.forEach((stop, i) => {
    stop.classList.toggle("later", i >= at);
    stop.classList.toggle("now", i === at - 1);
    stop.classList.toggle("open", i === at - 1 && open && withResult(stop));
  });
  bar.querySelector("output").textContent = `${at} of ${all.length}${open && withResult(all[at - 1]) ? ": what comes out?" : ""}`;
  if (scroll) all[at - 1]?.scrollIntoView({ block: "center", behavior: "auto" });
  light(bench, all[at - 1]);
}

function light(bench, stop) {
  for (const one of bench.view.querySelectorAll("figure .together")) one.classList.remove("together");
  if (!stop?.dataset.step) return;
  const { step, head } = stop.dataset;
  const box = `figure.picture [data-role="${CSS.escape(step)}"][data-head="${CSS.escape(head)}"]`;
  stop.closest(".problem").querySelectorAll(box).forEach((one) => one.classList.add("together"));
}

function go(bench, way) {
  const all = stops(bench);
  if (way > 0 && open && withResult(all[at - 1])) {
    open = false;
  } else {
    const before = at;
    at = Math.max(1, Math.min(at + way, all.length));
    open = way > 0 && ask && at !== before && withResult(all[at - 1]);
  }
  show(bench);
}

function made(bench) {
  const made = document.createElement("nav");
  made.className = "steps-bar";
  made.setAttribute("aria-label", "Steps");
  const button = (text, label, act) => {
    const one = document.createElement("button");
    one.type = "button";
    one.textContent = text;
    one.setAttribute("aria-label", label);
    one.title = label;
    one.addEventListener("click", act);
    return one;
  };
  const kept = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = ask;
  box.addEventListener("change", () => { ask = box.checked; open = open && ask; show(bench, false); });
  kept.append(box, " leave results open");
  made.append(
    button("←", "back", () => go(bench, -1)),
    document.createElement("output"),
    button("→", "on", () => go(bench, 1)),
    kept,
    button("full screen", "full screen", fullScreen),
  );
  return made;
}

function fullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen().catch(() => {});
}

export function enter(bench) {
  bar = made(bench);
  document.body.append(bar);
  at = 1;
  open = false;
  show(bench);
}

export function leave(bench) {
  bar?.remove();
  bar = null;
  for (const stop of stops(bench)) stop.classList.remove("later", "now", "open");
  if (document.fullscreenElement) document.exitFullscreen();
}

const KEYS = { ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1 };

export function listen(bench) {
  document.addEventListener("keydown", (event) => {
    if (!bar || event.target.closest?.("input, select, textarea, dialog, mtd, button")) return;
    if (event.key in KEYS) go(bench, KEYS[event.key]);
    else if (event.key === "Home") { at = 1; show(bench); }
    else if (event.key === "End") { at = stops(bench).length; open = false; show(bench); }
    else if (event.key.toLowerCase() === "f") fullScreen();
    else return;
    event.preventDefault();
  });
  bench.addEventListener("worked", () => { if (bar) show(bench, false); });
  document.addEventListener("fullscreenchange", () => {
    document.body.classList.toggle("full", document.fullscreenElement !== null);
    if (bar) show(bench);
  });
}
