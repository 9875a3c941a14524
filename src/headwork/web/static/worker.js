// Python in a worker. `headwork site` puts Pyodide before this, as `loadPyodide`, `createPyodideModule`
// and `LOCK`, and headwork's own `VERSION`.

const NOWHERE = "https://bench.invalid/"; // Pyodide wants an address; every file is looked up by its name
const SYMBOLS = 60_000; // milliseconds for SymPy, which comes when symbols are first asked for
const START = `
import sys
from importlib.machinery import PathFinder

def add(name, archive):
    import lzma
    path = f"/lib/{name}.zip"
    with open(path, "wb") as file:
        file.write(lzma.decompress(archive.to_bytes()))
    sys.path.append(path)

class Later:
    def find_spec(self, name, path=None, target=None):
        if name != "sympy" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        add("sympy", symbols())
        return PathFinder.find_spec(name)

for name, archive in archives:
    add(name, archive)
sys.meta_path.append(Later())
import headwork
headwork.__version__ = version
from headwork.web.ask import answer
answer
`;

let held = null; // name → bytes, where the page is one file
const network = self.fetch;

function fetched(name) {
  return held ? Promise.resolve(new Response(held[name])) : network(new URL(name, self.location));
}

// Bytes of an archive, now: Python waits for them inside an import.
function archiveNow(name) {
  self.postMessage({ slow: SYMBOLS });
  if (held) return held[name];
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

async function bytes(name) {
  const response = await fetched(name);
  if (!response.ok) throw new Error(`${name} cannot be loaded`);
  return new Uint8Array(await response.arrayBuffer());
}

async function start() {
  self.fetch = async (address) => {
    const name = String(address).slice(NOWHERE.length);
    const response = await fetched(name);
    if (!response.ok) throw new Error(`${name} cannot be loaded`);
    if (name.endsWith(".wasm")) return asWasm(response);
    return held ? response : new Response(response.body.pipeThrough(new DecompressionStream("gzip")));
  };
  const archives = Promise.all(["mpmath", "headwork"].map(async (name) => [name, await bytes(`${name}.bin`)]));
  const python = await loadPyodide({
    indexURL: NOWHERE, stdLibURL: `${NOWHERE}python.bin`, lockFileContents: LOCK, createPyodideModule,
  });
  const given = { archives: await archives, version: VERSION, symbols: () => archiveNow("sympy.bin") };
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
