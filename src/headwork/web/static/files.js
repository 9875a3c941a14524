// The files beside this page: fetched from where it came from, or, where the page is one file, out of itself.

const held = (name) => document.querySelector(`script[data-file="${name}"]`);

export const inOneFile = () => Boolean(held("worker.js"));

// A file as bytes; nothing where there is none.
export async function file(name) {
  const own = held(name);
  if (own) return new Uint8Array(await unzipped(own).arrayBuffer());
  if (inOneFile()) return null;
  const found = await fetch(new URL(name, document.baseURI));
  return found.ok ? new Uint8Array(await found.arrayBuffer()) : null;
}

export async function json(name) {
  const bytes = await file(name);
  return bytes && JSON.parse(new TextDecoder().decode(bytes));
}

function unzipped(script) {
  const bytes = decoded(script.textContent);
  if (script.dataset.plain !== undefined) return new Response(bytes);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

// Base 85 as Python's base64.b85encode writes it, but for "<", which is a comma here: five characters for four bytes.
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
const VALUE = new Uint8Array(128);
for (let i = 0; i < DIGITS.length; i++) VALUE[DIGITS.charCodeAt(i)] = i;

export function decoded(text) {
  const groups = Math.ceil(text.length / 5);
  const bytes = new DataView(new ArrayBuffer(groups * 4));
  for (let g = 0; g < groups; g++) {
    let number = 0;
    for (let i = 5 * g; i < 5 * g + 5; i++) number = number * 85 + (i < text.length ? VALUE[text.charCodeAt(i)] : 84);
    bytes.setUint32(4 * g, number);
  }
  return new Uint8Array(bytes.buffer, 0, groups * 4 - (groups * 5 - text.length));
}
