// What is taken along: the link, TOML, answers, Markdown, LaTeX, SVG, PNG, print; and the keys, for who looks for them.

import { ask } from "./dialog.js";

const FILES = {
  toml: ["sheet.toml", "application/toml"],
  markdown: ["sheet.md", "text/markdown"],
  latex: ["sheet.tex", "application/x-tex"],
  svg: ["figure.svg", "image/svg+xml"],
};
const SAYS = {
  link: "the link to this page", toml: "the sheet (TOML)", answers: "an empty file of answers (TOML)",
  markdown: "the page (Markdown)", latex: "the page (LaTeX)", svg: "the figure (SVG)", png: "the figure (PNG)", print: "print",
};
const SHARP = 3; // pixels of the PNG for each of the figure

export function download(content, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function png(svg) {
  const image = new Image();
  const drawn = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  const [width, height] = ["width", "height"].map((side) => Number(drawn.getAttribute(side)) * SHARP);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const pen = canvas.getContext("2d");
  pen.fillStyle = "white";
  pen.fillRect(0, 0, width, height);
  pen.drawImage(image, 0, 0, width, height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

async function take(form, bench) {
  if (form === "print") return window.print();
  if (form === "link") {
    await navigator.clipboard?.writeText(location.href).catch(() => {});
    return ask("The whole page is in this link", [{ key: "link", label: "link", value: location.href, rows: 5 }], "");
  }
  const reply = await bench.askAbout({ do: "out", form: form === "png" ? "svg" : form });
  if (reply.error) return bench.say(reply.error.message, "bad");
  if (form === "png") return download(await png(reply.text), "figure.png");
  const [name, type] = FILES[form] ?? ["answers.toml", "application/toml"];
  return download(reply.text, name, type);
}

const KEYS = [
  ["arrows, Tab, Enter", "go from number to number"],
  ["Shift + arrows", "take several; Ctrl+C copies them, Delete makes them 0"],
  ["drag, PageUp and PageDown, Alt + arrows", "change a number; with Shift in tenths"],
  ["Ctrl+V", "a matrix from Excel, CSV, NumPy, torch, MATLAB or LaTeX"],
  ["Ctrl+Z, Ctrl+Y", "undo, redo"],
  ["point at a result, Enter or a click", "its arithmetic; pin it; Escape lets go"],
  ["Steps: → ← F", "on, back, full screen"],
];

function keys() {
  const list = document.createElement("dl");
  list.className = "keys";
  for (const [key, does] of KEYS) {
    const term = document.createElement("dt");
    const text = document.createElement("dd");
    term.textContent = key;
    text.textContent = does;
    list.append(term, text);
  }
  return ask("Keys", [], "", [list]);
}

export function listen(bench) {
  document.getElementById("out").addEventListener("click", async () => {
    const said = await ask("Take it along", [{ key: "form", label: "as", value: "link", options: Object.keys(SAYS), says: SAYS }], "Take it");
    if (said) await take(said.form, bench);
  });
  document.getElementById("keys").addEventListener("click", keys);
}
