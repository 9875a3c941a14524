// The same Python in a worker of this browser. One worker at a time: it says {ready} when it can answer, {reply} for
// every request, {slow} before something that takes long for once. When it is silent for too long it is ended, and a
// new one takes its place.

import { file, inOneFile, json } from "./files.js";

const PATIENCE = 2500; // milliseconds for one answer
const STARTING = 60_000; // for what nobody waits for yet
const HELD = ["pyodide.asm.wasm", "python.bin", "mpmath.bin", "headwork.bin", "sympy.bin"];
const STOPPED = "This arithmetic takes too long and was stopped. The numbers on the page are the last that were worked"
  + " out: make the sheet smaller, or its numbers simpler.";
const FAILED = "Python could not be started in this browser";

export function inWorker() {
  let worker, ready, timer, failure, broken, own;
  const waiting = []; // in the order they were asked; the first is being answered
  const prepared = json("prepared/sheets.json").catch(() => null);

  async function start() {
    const files = inOneFile() ? await (own ??= held()) : null;
    worker = new Worker(files ? files.script : new URL("worker.js", document.baseURI));
    const started = new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => {
        if (data.ready) resolve();
        else if (data.failed) broken(data.failed);
        else if (data.slow) listen(data.slow);
        else answered(JSON.parse(data.reply));
      };
      worker.onerror = (event) => broken(event.message || "the worker cannot be loaded");
      broken = (message) => reject(new Error(message));
    });
    worker.postMessage({ files: files?.archives ?? null });
    await started;
    broken = (message) => restart(`Python failed here and was started anew (${message}).`);
  }

  function begin() {
    failure = null;
    ready = start().catch((error) => { failure = `${FAILED}: ${error.message}. Load the page again.`; });
  }

  function listen(patience) {
    clearTimeout(timer);
    if (waiting.length) timer = setTimeout(() => restart(STOPPED), patience);
  }

  function answered(reply) {
    waiting.shift()?.resolve(reply);
    post();
  }

  function post() {
    listen(waiting[0]?.patience);
    if (waiting.length) worker.postMessage({ request: JSON.stringify(waiting[0].request) });
  }

  // What was being answered is stopped; what was asked after it is asked again.
  function restart(message) {
    clearTimeout(timer);
    worker.onmessage = worker.onerror = null; // what it may have said last is no answer to what is asked next
    worker.terminate();
    waiting.shift()?.resolve({ error: { message, stopped: true } });
    begin();
    if (waiting.length) next();
  }

  async function next() {
    await ready;
    if (failure) {
      for (const { resolve } of waiting.splice(0)) resolve({ error: { message: failure } });
    } else {
      post();
    }
  }

  // Sheets that the site was built with are answered without Python.
  async function fromSite({ do: what, name, exact }) {
    const known = what === "sheets" || what === "open" ? await prepared : null;
    if (!known || exact) return null;
    if (what === "sheets") return known;
    if (!known.sheets.some(([one]) => one === name)) return null;
    const reply = await json(`prepared/${name}.json`).catch(() => null);
    if (reply) tell(reply.table);
    return reply;
  }

  // Python has not worked what the site has prepared; told of it in time, it knows what an edit changes.
  const tell = (table) => queue({ do: "know", table }, STARTING);

  function queue(request, patience = PATIENCE) {
    return new Promise((resolve) => {
      waiting.push({ request, patience, resolve });
      if (waiting.length === 1) next();
    });
  }

  async function ask(request) {
    return (await fromSite(request)) ?? queue(request);
  }

  begin();
  const first = document.getElementById("first");
  if (first) tell(JSON.parse(first.textContent).table);
  keepForOffline(() => ready);
  return { ask, get ready() { return ready; } };
}

async function held() {
  const names = ["worker.js", ...HELD];
  const [script, ...archives] = await Promise.all(names.map(file));
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  return { script: address, archives: Object.fromEntries(HELD.map((name, i) => [name, archives[i]])) };
}

// Once everything is here, a copy stays in the browser for days without a network.
async function keepForOffline(ready) {
  await ready();
  if (inOneFile() || !window.isSecureContext) return;
  await navigator.serviceWorker?.register(new URL("service.js", document.baseURI)).catch(() => null);
}
