// What if: a mistake planted from a list; right and mistaken stand side by side and follow every edit.

const side = document.getElementById("side");
let chosen = null; // { problem, tag, way }
let offers = 0; // of which only the last is shown

function labelled(text, input) {
  const label = document.createElement("label");
  label.append(`${text} `, input);
  return label;
}

async function list(bench, problem) {
  const { mistakes = [] } = await bench.askAbout({ do: "mistakes", problem });
  return mistakes;
}

async function offer(bench, problem) {
  const turn = ++offers;
  const mistakes = await list(bench, problem);
  if (turn !== offers) return; // another problem was chosen, or another mode
  const which = document.createElement("select");
  which.name = "problem";
  bench.table.problem.forEach((one, i) => which.append(new Option(`${i + 1}. ${one.title}`, i)));
  which.value = problem;
  const tag = document.createElement("select");
  tag.name = "tag";
  tag.append(new Option("choose a mistake …", ""));
  for (const mistake of mistakes) tag.append(new Option(mistake.tag, mistake.tag));
  const way = document.createElement("select");
  way.name = "way";
  const form = document.createElement("form");
  form.className = "whatif";
  if (bench.table.problem.length > 1) form.append(labelled("problem", which));
  const where = labelled("made", way);
  where.hidden = true;
  const shown = document.createElement("div");
  shown.className = "shown";
  shown.setAttribute("role", "status");
  form.append(labelled("What if somebody made this mistake:", tag), where);
  side.replaceChildren(form, shown);
  side.hidden = false;
  if (!mistakes.length) shown.textContent = "This problem has no numbers in which a mistake could be planted.";
  const offerWays = (ways) => {
    way.replaceChildren(...ways.map((text, i) => new Option(text, i)));
    where.hidden = ways.length < 2;
  };
  which.addEventListener("change", () => { chosen = null; offer(bench, Number(which.value)); });
  tag.addEventListener("change", () => {
    offerWays(mistakes.find((one) => one.tag === tag.value)?.ways ?? []);
    plant(bench, problem, tag.value, 0);
  });
  way.addEventListener("change", () => plant(bench, problem, tag.value, Number(way.value)));
  const again = mistakes.find((one) => one.tag === chosen?.tag);
  if (again && chosen.problem === problem) {
    tag.value = again.tag;
    offerWays(again.ways);
    way.value = Math.min(chosen.way, again.ways.length - 1);
    await plant(bench, problem, again.tag, Number(way.value));
  } else {
    chosen = null;
  }
}

async function plant(bench, problem, tag, way) {
  const asked = chosen = tag ? { problem, tag, way } : null;
  const shown = side.querySelector(".shown");
  if (!chosen) return shown.replaceChildren();
  shown.setAttribute("aria-live", document.body.classList.contains("dragging") ? "off" : "polite");
  const reply = await bench.askAbout({ do: "whatif", ...chosen });
  if (asked !== chosen) return; // another mistake was chosen
  if (reply.error) shown.textContent = reply.error.message;
  else shown.innerHTML = reply.html; // made by headwork: formulas, numbers and its own advice
}

export async function enter(bench) {
  chosen = null;
  const last = bench.table.problem.length - 1;
  await offer(bench, last);
}

export function leave() {
  chosen = null;
  offers++;
  side.hidden = true;
  side.replaceChildren();
}

export function listen(bench) {
  bench.addEventListener("worked", ({ detail }) => {
    if (bench.mode() !== "whatif") return;
    if (detail.html) offer(bench, Math.min(chosen?.problem ?? Infinity, bench.table.problem.length - 1));
    else if (chosen) plant(bench, chosen.problem, chosen.tag, chosen.way);
  });
  bench.addEventListener("settled", () => { // a drag is told once, at its end
    const silent = side.querySelector(".shown[aria-live='off']");
    if (silent && chosen) plant(bench, chosen.problem, chosen.tag, chosen.way);
  });
}
