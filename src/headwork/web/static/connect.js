// Who answers: native Python behind this page's own server, or the same Python in a worker of this browser.

const SILENT = "This arithmetic takes too long and was stopped. The numbers on the page are the last that were worked out.";

export function connect() {
  const server = document.querySelector('meta[name="headwork-server"]');
  return server ? atServer(server.content) : inWorker();
}

function atServer(address) {
  async function ask(request) {
    try {
      const reply = await fetch(address, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(request),
      });
      return await reply.json();
    } catch {
      return { error: { message: "The server does not answer. Is `headwork open` still running?" } };
    }
  }
  return { ask, ready: Promise.resolve() };
}

// One worker at a time. It says {ready} when it can answer and {id, reply} for every {id, request}; when it is silent
// for too long it is ended, and a new one takes its place.
const PATIENCE = 3000;

function inWorker() {
  let worker, ready, last = 0;
  const waiting = new Map();

  function start() {
    worker = new Worker(new URL("worker.js", document.baseURI), { type: "module" });
    ready = new Promise((resolve) => {
      worker.onmessage = ({ data }) => {
        if (data.ready) resolve();
        else settle(data.id, JSON.parse(data.reply));
      };
    });
  }

  function settle(id, reply) {
    const one = waiting.get(id);
    if (!one) return;
    clearTimeout(one.timer);
    waiting.delete(id);
    one.resolve(reply);
  }

  function stop() {
    worker.terminate();
    for (const id of [...waiting.keys()]) settle(id, { error: { message: SILENT, stopped: true } });
    start();
  }

  async function ask(request) {
    await ready;
    return new Promise((resolve) => {
      const id = ++last;
      waiting.set(id, { resolve, timer: setTimeout(stop, PATIENCE) });
      worker.postMessage({ id, request: JSON.stringify(request) });
    });
  }

  start();
  return { ask, get ready() { return ready; } };
}
