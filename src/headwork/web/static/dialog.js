// A question to the reader: a few fields, answered with an object, or with nothing when it is closed.

const dialog = document.getElementById("dialog");

function field({ key, label, value = "", type = "text", options, says = {}, min, max, rows }) {
  const made = document.createElement("label");
  made.append(`${label} `);
  let input;
  if (options) {
    input = document.createElement("select");
    for (const option of options) input.append(new Option(says[option] ?? option, option));
  } else if (type === "file" || rows) {
    input = document.createElement("textarea");
    input.rows = rows ?? 8;
    made.classList.add("tall");
  } else {
    input = document.createElement("input");
    input.type = type;
    if (min !== undefined) [input.min, input.max] = [min, max];
  }
  input.name = key;
  input.value = value;
  made.append(input);
  return type === "file" ? [made, chooser(input)] : [made];
}

const LARGEST = 1_000_000; // bytes of a file

function chooser(text) {
  const made = document.createElement("label");
  const input = document.createElement("input");
  input.type = "file";
  input.accept = ".toml";
  made.append("file ", input);
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (file && file.size <= LARGEST) text.value = await file.text();
    else if (file) text.value = `# ${file.name} has more than 1,000,000 bytes; a sheet has fewer`;
  });
  return made;
}

// `more` are elements that stand under the fields.
export function ask(title, fields, act = "OK", more = []) {
  const form = document.createElement("form");
  form.method = "dialog";
  const head = document.createElement("h2");
  head.textContent = title;
  const buttons = document.createElement("p");
  buttons.className = "buttons";
  for (const [value, text] of act ? [["", "Cancel"], ["yes", act]] : [["", "Close"]]) {
    const button = document.createElement("button");
    button.value = value;
    button.textContent = text;
    if (value) button.className = "chief";
    buttons.append(button);
  }
  form.append(head, ...fields.flatMap(field), ...more, buttons);
  // Enter means yes; the first button of a form would be the one that cancels.
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target instanceof HTMLInputElement && act) {
      event.preventDefault();
      form.requestSubmit(form.querySelector("button.chief"));
    }
  });
  dialog.replaceChildren(form);
  dialog.setAttribute("aria-label", title);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue ? Object.fromEntries(new FormData(form)) : undefined);
      dialog.replaceChildren();
    }, { once: true });
  });
}
