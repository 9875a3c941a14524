// The bench: one sheet as data, who answers for it, and what of the page follows when it changes.

import { connect } from "./connect.js";
import { listen as listenToGrids, differences, fill, findCell } from "./grid.js";
import { listen as listenToPointing } from "./point.js";
import { listen as listenToFigure } from "./figure.js";
import { listen as listenToSwitches } from "./switches.js";
import { listen as listenToModes } from "./modes.js";
import { listen as listenToOut } from "./out.js";
import { readLink, writeLink } from "./state.js";
import { patch } from "./patch.js";

const MOST_STEPS_BACK = 300;
const PAUSE = 400; // milliseconds after the last key until a half-typed number is called wrong
const ANOTHER = new Set(["open", "new"]); // sheets into which nothing is carried that was typed into the one before
const QUIET = 700; // milliseconds without a change until the page has settled

class Bench extends EventTarget {
  constructor() {
    super();
    this.view = document.getElementById("view");
    this.status = document.getElementById("status");
    this.said = document.getElementById("said"); // for those who hear the page
    this.connection = connect();
    this.table = null; // the sheet as the reader has it
    this.worked = null; // the sheet as the page shows it worked
    this.exact = false;
    this.past = [];
    this.future = [];
    this.busy = false;
    this.asked = 0; // pages that were asked for
    this.opened = 0; // those of them that are another sheet
  }

  ask(request) {
    return this.connection.ask(request);
  }

  // Ask about the sheet as it is worked on the page.
  askAbout(request) {
    return this.ask({ table: this.worked, exact: this.exact, ...request });
  }

  say(message, kind = "note") {
    this.status.hidden = !message;
    this.status.className = `status ${kind}`;
    this.status.textContent = message ?? "";
    clearTimeout(this.silence);
    if (message && kind === "note") this.silence = setTimeout(() => this.say(""), 5000);
  }

  // A change of numbers. Changes with the same `hold` (a drag) are undone together.
  edit(change, hold = null) {
    const before = structuredClone(this.table);
    change(this.table);
    if (JSON.stringify(before) === JSON.stringify(this.table)) return;
    if (!hold || this.held !== hold) this.remember(before);
    this.held = hold;
    this.follow();
  }

  remember(before) {
    this.past.push({ table: before, exact: this.exact });
    if (this.past.length > MOST_STEPS_BACK) this.past.shift();
    this.future = [];
    this.showHistory();
  }

  showHistory() {
    document.getElementById("undo").disabled = !this.past.length;
    document.getElementById("redo").disabled = !this.future.length;
  }

  async step(from, to) {
    if (!from.length) return;
    to.push({ table: structuredClone(this.table), exact: this.exact });
    const there = from.pop();
    this.held = null;
    this.table = there.table;
    this.setExact(there.exact);
    this.showHistory();
    await this.whole({ do: "show", table: this.table });
  }

  setExact(exact) {
    this.exact = exact;
    document.getElementById("exact").checked = exact;
  }

  undo() { return this.step(this.past, this.future); }
  redo() { return this.step(this.future, this.past); }

  // The page follows the numbers; while one change is worked out, later ones wait as one.
  async follow() {
    this.waiting = true;
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.waiting) {
        this.waiting = false;
        const table = structuredClone(this.table), turn = this.asked;
        const reply = await this.ask({ do: "edit", table, was: this.worked, exact: this.exact });
        if (turn === this.asked) this.followed(reply, table); // else another page has come, or is about to
      }
    } catch (error) {
      this.say(`The page could not follow (${error.message}): open the sheet again.`, "bad");
    } finally {
      this.busy = false;
    }
    writeLink(this);
  }

  followed(reply, table) {
    clearTimeout(this.blame);
    if (reply.error) {
      this.blame = setTimeout(() => this.refuse(reply.error), PAUSE);
      return;
    }
    this.accept();
    this.worked = table;
    if (reply.html) this.replace(reply, differences(table, this.table));
    else reply.anew = patch(this.view, reply);
    this.dispatchEvent(new CustomEvent("worked", { detail: reply }));
    this.settle(reply);
  }

  // Many changes in a row, as of a drag, are told once, when they are over.
  settle({ cells, html }) {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      if (document.body.classList.contains("dragging")) return this.settle({ cells, html });
      this.dispatchEvent(new CustomEvent("settled"));
      this.said.textContent = html ? "The page is new." : `${cells.length} entries changed.`;
    }, QUIET);
  }

  // What cannot be worked: every cell that is to blame says why, and the last good numbers stay.
  refuse(error) {
    this.accept();
    for (const { where, message } of error.cells ?? []) {
      const input = findCell(this.view, where);
      if (!input) continue;
      input.setAttribute("aria-invalid", "true");
      input.title = message;
    }
    this.view.classList.add("stale");
    this.say(`${error.message.replace(/\.$/, "")}. The numbers below are still the last good ones.`, "bad");
  }

  accept() {
    for (const input of this.view.querySelectorAll("[aria-invalid]")) {
      input.removeAttribute("aria-invalid");
      input.title = "";
    }
    this.view.classList.remove("stale");
    if (this.status.classList.contains("bad")) this.say("");
  }

  // Changes of the sheet as it is when the one before them has come: two in a row are both made. `make` makes the
  // request; where another sheet was asked for meanwhile there is nothing to change any more.
  inTurn(make) {
    const { opened } = this;
    const after = () => opened === this.opened ? this.whole(make(), true) : { late: true };
    this.turns = (this.turns ?? Promise.resolve()).then(after);
    return this.turns;
  }

  // Anything that changes more than numbers: the whole page comes anew. A reply that something newer has overtaken is
  // { late }.
  async whole(request, remember = false) {
    if (ANOTHER.has(request.do)) this.opened++;
    const before = this.table && structuredClone(this.table);
    const since = request.table === this.worked ? this.worked : before;
    const turn = ++this.asked;
    const reply = await this.ask({ exact: this.exact, ...request });
    if (turn !== this.asked) return { late: true };
    if (reply.error) {
      this.say(reply.error.message, "bad");
      if (this.table && JSON.stringify(this.table) !== JSON.stringify(this.worked)) this.follow(); // typed meanwhile
      return reply;
    }
    this.asked++; // what was asked about the page before this one comes too late
    clearTimeout(this.blame);
    if (remember && before) this.remember(before);
    const typed = ANOTHER.has(request.do) ? [] : differences(since, this.table);
    this.table = reply.table;
    this.worked = structuredClone(reply.table);
    if (request.exact !== undefined) this.setExact(request.exact);
    this.accept();
    this.replace(reply, typed);
    this.dispatchEvent(new CustomEvent("worked", { detail: reply }));
    writeLink(this);
    return reply;
  }

  // The page anew; what was typed while it was made is typed again, and the caret stays where it was.
  replace(reply, typed) {
    const open = [...this.view.querySelectorAll("details.settings")].map((one) => one.open);
    const at = document.activeElement?.closest?.("#view") ? place(document.activeElement) : null;
    this.view.innerHTML = reply.html; // made by headwork, where every text of a sheet is escaped
    [...this.view.querySelectorAll("details.settings")].forEach((one, i) => { one.open = open[i] ?? false; });
    this.dispatchEvent(new CustomEvent("replaced"));
    const again = at && (at.id ? document.getElementById(at.id) : findCell(this.view, at));
    again?.focus();
    for (const [where, text] of typed) {
      const input = findCell(this.view, where);
      if (!input) continue;
      fill([[input, text]]);
      if (input === again) input.setSelectionRange(at.caret, at.caret);
    }
  }

  // What a link asks for; one that was handed in opens with its answers.
  async arrive({ answers = null, ...asked }) {
    const reply = await this.whole(asked);
    if (reply.late) return;
    this.handedIn = reply.error ? null : answers;
    if (this.handedIn) this.dispatchEvent(new CustomEvent("handed-in"));
    if (reply.error && !this.view.querySelector(".problem")) this.dispatchEvent(new CustomEvent("replaced"));
  }

  async start() {
    const first = JSON.parse(document.getElementById("first")?.textContent ?? "null");
    if (first) {
      this.table = first.table;
      this.worked = structuredClone(first.table);
      this.name = first.name;
    }
    const asked = await readLink(location.hash, this);
    if (asked) await this.arrive(asked);
    else this.dispatchEvent(new CustomEvent("replaced"));
    const { sheets = [] } = await this.ask({ do: "sheets" });
    this.dispatchEvent(new CustomEvent("sheets", { detail: sheets }));
    document.body.dataset.ready = "true";
  }
}

// Where the reader is, to go back there when the page comes anew.
function place(element) {
  if (element.id) return { id: element.id };
  const grid = element.closest("table.cells");
  if (!grid) return null;
  const { problem, part, name } = grid.dataset;
  const { row, column } = element.dataset;
  return { problem, part: part || null, name, row, column, caret: element.selectionEnd };
}

const bench = new Bench();
for (const listen of [listenToGrids, listenToPointing, listenToFigure, listenToSwitches, listenToModes, listenToOut]) {
  listen(bench);
}
document.getElementById("undo").addEventListener("click", () => bench.undo());
document.getElementById("redo").addEventListener("click", () => bench.redo());
window.addEventListener("hashchange", async () => {
  const { hash } = location;
  const asked = await readLink(hash, bench);
  if (asked && hash === location.hash) bench.arrive(asked);
});
bench.start();
