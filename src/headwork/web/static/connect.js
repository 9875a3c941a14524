// Who answers: native Python behind this page's own server, or the same Python in a worker of this browser.

import { inWorker } from "./python.js";

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
