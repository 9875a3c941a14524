"use strict";
// Everything is drawn from the data beside this script; text goes in as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("heads").textContent);
  const n = data.tokens.length;
  const at = (id) => document.getElementById(id);
  const element = (tag, text = "", attributes = {}) => {
    const made = document.createElement(tag);
    made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const unpacked = (text, Kind) => new Kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const chosen = { layer: 0, head: 0, row: 0, column: 0 };
  const layer = () => data.layers[chosen.layer];
  const weightsOf = (head) => (head.numbers ??= unpacked(head.weights, Uint16Array));
  const weight = (i, j) => weightsOf(layer().heads[chosen.head])[i * n + j] / 65535;
  // A token that stands more than once is told apart by its place.
  const named = data.tokens.map((token, i) => `“${token}”${data.tokens.indexOf(token) === data.tokens.lastIndexOf(token) ? "" : ` (${i})`}`);
  const figures = (x, places = 3) => x.toFixed(places).replace("-", "−");
  const ink = () => getComputedStyle(document.documentElement).getPropertyValue("--role-weights").trim();

  function small(head, number) {
    const button = element("button", "", { type: "button", "aria-pressed": String(number === chosen.head), "data-head": number });
    const canvas = element("canvas", "", { width: n, height: n, "aria-hidden": "true" });
    const brush = canvas.getContext("2d");
    const weights = weightsOf(head);
    brush.fillStyle = ink();
    for (let i = 0; i < n; i++)
      for (let j = 0; j < n; j++) {
        brush.globalAlpha = Math.sqrt(weights[i * n + j] / 65535);
        brush.fillRect(j, i, 1, 1);
      }
    button.append(canvas, element("span", `Head ${number}`));
    button.onclick = () => choose({ head: number });
    return button;
  }

  function large() {
    const table = element("table", "", { class: n <= 16 ? "numbered" : "" });
    const top = table.createTHead().insertRow();
    top.append(element("td"));
    data.tokens.forEach((token) => top.append(element("th", token, { scope: "col" })));
    const body = table.createTBody();
    data.tokens.forEach((token, i) => {
      const row = body.insertRow();
      row.append(element("th", token, { scope: "row" }));
      for (let j = 0; j < n; j++) {
        const cell = row.insertCell();
        const share = weight(i, j);
        cell.dataset.row = i;
        cell.dataset.column = j;
        cell.title = `${named[i]} reads ${named[j]}: ${figures(share)}`;
        if (n <= 16) cell.textContent = figures(share, 2).replace(/^0/, "");
        cell.style.background = share > 0 ? `color-mix(in srgb, var(--role-weights) ${Math.round(55 * Math.sqrt(share))}%, transparent)` : "";
        if (share === 0) cell.className = "hidden";
      }
    });
    table.onclick = (event) => {
      const cell = event.target.closest("td[data-row]");
      if (cell) choose({ row: Number(cell.dataset.row), column: Number(cell.dataset.column) }, false);
    };
    table.onmouseover = table.onclick;
    at("one").replaceChildren(table);
    at("one-title").textContent = `Layer ${layer().number}, head ${chosen.head}`;
  }

  function apart() {
    const { row: i, column: j } = chosen;
    const of = layer(), group = of.heads.length / of.k.each.length;
    const q = unpacked(of.q.each[chosen.head], Int16Array), k = unpacked(of.k.each[Math.floor(chosen.head / group)], Int16Array);
    const parts = Array.from({ length: of.d }, (_, d) => [d, q[i * of.d + d] * of.q.unit * k[j * of.d + d] * of.k.unit * of.scale]);
    const score = parts.reduce((sum, [, x]) => sum + x, 0);
    parts.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const shown = parts.slice(0, 12), rest = score - shown.reduce((sum, [, x]) => sum + x, 0);
    const largest = Math.max(...shown.map(([, x]) => Math.abs(x)), Math.abs(rest), 1e-9);
    const grid = element("div", "", { class: "parts" });
    const line = (name, x) => {
      const track = element("span", "", { class: "track" });
      const bar = element("i", "", { class: x < 0 ? "minus" : "plus" });
      bar.style.width = `${(50 * Math.abs(x)) / largest}%`;
      track.append(bar);
      grid.append(element("span", name), track, element("span", figures(x), { class: "number" }));
    };
    shown.forEach(([d, x]) => line(`dimension ${d}`, x));
    if (parts.length > shown.length) line(`${parts.length - shown.length} others`, rest);
    at("pair").replaceChildren(
      element("p", `${named[i]} reads ${named[j]} with weight ${figures(weight(i, j))}. Their score, before any mask, is ${figures(score)}: the sum of q·k·scale over ${of.d} dimensions.`),
      grid);
    document.querySelectorAll("#one .chosen").forEach((cell) => cell.classList.remove("chosen"));
    const cell = document.querySelector(`#one td[data-row="${i}"][data-column="${j}"]`);
    cell.classList.add("chosen");
    cell.parentNode.firstChild.classList.add("chosen");
    document.querySelectorAll("#one thead th")[j].classList.add("chosen");
  }

  // The map of a long text is scrolled to the pair, unless somebody points at it there.
  function uncovered() {
    const box = at("one"), cell = box.querySelector("td.chosen");
    const moved = (from, size, start, length, covered) =>
      start < from + covered ? start - covered : start + length > from + size ? start + length - size : from;
    box.scrollTop = moved(box.scrollTop, box.clientHeight, cell.offsetTop, cell.offsetHeight, box.querySelector("thead").offsetHeight);
    box.scrollLeft = moved(box.scrollLeft, box.clientWidth, cell.offsetLeft, cell.offsetWidth, cell.parentNode.firstChild.offsetWidth);
  }

  function pairs() {
    at("strongest").replaceChildren(...layer().heads[chosen.head].strongest.map(([i, j]) => {
      const item = element("li");
      const button = element("button", `${named[i]} reads ${named[j]}: ${figures(weight(i, j))}`, { type: "button" });
      button.onclick = () => choose({ row: i, column: j });
      item.append(button);
      return item;
    }));
    document.querySelector("#by-hand code").textContent = `headwork look MODEL TEXT --layer ${layer().number} --head ${chosen.head} --sheet head.toml`;
  }

  function measured() {
    const names = { entropy: "entropy", distance: "distance", first: "first token", itself: "itself", before: "the one before" };
    const table = element("table");
    const top = table.createTHead().insertRow();
    ["head", ...Object.values(names)].forEach((name) => top.append(element("th", name, { scope: "col" })));
    layer().heads.forEach((head, number) => {
      const row = table.insertRow();
      row.className = number === chosen.head ? "chosen" : "";
      row.append(element("th", number, { scope: "row" }));
      Object.keys(names).forEach((name) => row.append(element("td", figures(head.measures[name], 2))));
    });
    at("measures").replaceChildren(table);
  }

  function options(id, labels, now) {
    at(id).replaceChildren(...labels.map((label, i) => element("option", label, { value: i, ...(i === now ? { selected: "" } : {}) })));
  }

  function choose(change, scrolled = true) {
    const before = { ...chosen };
    Object.assign(chosen, change);
    chosen.head = Math.min(chosen.head, layer().heads.length - 1);
    if (change.row === undefined && (before.layer !== chosen.layer || before.head !== chosen.head || change.first))
      [chosen.row, chosen.column] = layer().heads[chosen.head].strongest[0] ?? [0, 0];
    if (change.row === undefined) {
      options("layer", data.layers.map((each) => each.number), chosen.layer);
      options("head", layer().heads.map((_, i) => i), chosen.head);
      at("all").replaceChildren(...layer().heads.map(small));
      large();
      pairs();
      measured();
    }
    apart();
    if (scrolled) uncovered();
  }

  at("layer").onchange = (event) => choose({ layer: Number(event.target.value) });
  at("head").onchange = (event) => choose({ head: Number(event.target.value) });
  at("one").onkeydown = (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    const inside = (x) => Math.max(0, Math.min(n - 1, x));
    choose({ row: inside(chosen.row + down), column: inside(chosen.column + right) });
  };
  matchMedia("(prefers-color-scheme: dark)").onchange = () => choose({});
  choose({ first: true });
})();
