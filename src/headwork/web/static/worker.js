// Python in a worker. `headwork site` puts Pyodide before this, as `loadPyodide`, `createPyodideModule`
// and `LOCK`, and headwork's own `VERSION`.

const NOWHERE = "https://bench.invalid/"; // Pyodide wants an address; every file is looked up by its name
const LATER = 60_000; // milliseconds for SymPy and mpmath, which come when they are first needed
let patience = 2500; // and again for the answer, when mpmath is there; importing SymPy takes longer
const START = `
import sys
from importlib.machinery import PathFinder

def add(name, content):
    path = f"/lib/{name}.zip"
    with open(path, "wb") as file:
        file.write(content)
    sys.path.append(path)

class Later:
    packed = {"mpmath", "sympy"}
    def find_spec(self, name, path=None, target=None):
        if name not in self.packed:
            return None
        self.packed.remove(name)
        import lzma
        add(name, lzma.decompress(later(f"{name}.bin").to_bytes()))
        return PathFinder.find_spec(name)

add("headwork", archive.to_bytes())
sys.meta_path.append(Later())
import headwork
headwork.__version__ = version
from headwork.web.ask import answer
import gc
gc.freeze()
answer
`;

let held = null; // name → bytes, where the page is one file
const network = self.fetch;

async function fetched(name) {
  const response = held ? new Response(held[name]) : await network(new URL(name, self.location));
  if (!response.ok) throw new Error(`${name} cannot be loaded`);
  return response;
}

// The browser undoes gzip while Python starts, and faster; what is in the page itself has been undone already.
async function unzipped(name) {
  const response = await fetched(name);
  return held ? response : new Response(response.body.pipeThrough(new DecompressionStream("gzip")));
}

// Bytes of an archive, now: Python waits for them inside an import.
function archiveNow(name) {
  self.postMessage({ slow: LATER });
  const content = held ? held[name] : loadedNow(name);
  if (name === "sympy.bin") patience = LATER; // which imports mpmath itself
  self.postMessage({ slow: patience });
  return content;
}

function loadedNow(name) {
  const request = new XMLHttpRequest();
  request.open("GET", new URL(name, self.location), false);
  request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error(`${name} cannot be loaded`);
  return new Uint8Array(request.response);
}

// A host that does not know wasm, or a page that is one file: the type is what the browser looks at.
async function asWasm(response) {
  if (response.headers.get("content-type") === "application/wasm") return response;
  return new Response(response.body, { headers: { "content-type": "application/wasm" } });
}

async function start() {
  self.fetch = async (address) => {
    const name = String(address).slice(NOWHERE.length);
    return name.endsWith(".wasm") ? asWasm(await fetched(name)) : unzipped(name);
  };
  const ours = unzipped("headwork.bin").then((response) => response.arrayBuffer());
  const python = await loadPyodide({
    indexURL: NOWHERE, stdLibURL: `${NOWHERE}python.bin`, lockFileContents: LOCK, createPyodideModule,
  });
  const given = { archive: new Uint8Array(await ours), version: VERSION, later: archiveNow };
  return python.runPython(START, { globals: python.toPy(given, { depth: 1 }) });
}

let answer;
self.onmessage = async ({ data }) => {
  try {
    if (answer) {
      self.postMessage({ reply: answer(data.request) });
    } else {
      held = data.files;
      answer = await start();
      self.postMessage({ ready: true });
    }
  } catch (error) {
    const said = String(error.message ?? error).trim().split("\n");
    self.postMessage({ failed: said.findLast((line) => /^\w+(\.\w+)*(Error|Exception)\b/.test(line)) ?? said.at(-1) });
  }
};
