// Start Pyodide under node and let pack.py do what the job says: node pack.mjs JOB, where JOB is a JSON file.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { pyodide, lock, program, jobs } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: pyodide, lockFileContents: lock });
python.runPython(readFileSync(program, "utf8"));
for (const { call, source, options, archive, names } of jobs) {
  const bytes = python.toPy(new Uint8Array(readFileSync(source))).tobytes();
  const made = python.globals.get(call).callKwargs(bytes, options);
  writeFileSync(archive, made.get(0).toJs());
  writeFileSync(names, JSON.stringify(made.get(1).toJs()));
  console.log(archive);
}
