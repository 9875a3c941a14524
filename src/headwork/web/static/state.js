// The whole state in the link's fragment: JSON, deflated, in base64url. `#sheet=two-heads` opens a built-in sheet.

const LONGEST = 200_000; // characters of a fragment
const LARGEST = 2_000_000; // characters that it may unpack to
const PAUSE = 300;

export async function pack(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const packed = new Uint8Array(await new Response(stream).arrayBuffer());
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// Read piece by piece, so that a small link cannot unpack to more than memory holds.
export async function unpack(text) {
  if (text.length > LONGEST) throw new Error("the link is too long");
  const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let found = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    found += decoder.decode(value, { stream: true });
    if (found.length > LARGEST) {
      await reader.cancel();
      throw new Error("the link unpacks to too much");
    }
  }
  return JSON.parse(found);
}

// What a link asks for, as a request; nothing where it asks for nothing new.
export async function readLink(hash, bench) {
  const fields = new URLSearchParams(hash.slice(1));
  if (hash === bench.link) return null;
  if (fields.has("sheet")) return { do: "open", name: fields.get("sheet") };
  const packed = fields.get("state") ?? fields.get("answers");
  if (packed === null) return null;
  try {
    const state = await unpack(packed);
    const answers = fields.has("answers") ? state.answers : null;
    return { do: "open", table: state.table, exact: state.exact === true, answers };
  } catch (error) {
    bench.say(`This link cannot be read: ${error.message || "it is cut short"}. Here is a sheet to start from.`, "bad");
    return null;
  }
}

let timer;
export function writeLink(bench) {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const { worked } = bench;
    const link = `#state=${await pack({ table: worked, exact: bench.exact })}`;
    if (worked !== bench.worked) return; // another is on its way
    bench.link = link;
    history.replaceState(null, "", link);
  }, PAUSE);
}
