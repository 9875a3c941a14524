// What is pasted: one number goes into its cell; a matrix, however it was written, is read by Python and laid out
// from the cell on, with rows and columns added where it is larger than the grid.

import { at, fill, findCell } from "./grid.js";

const LONGEST = 20_000; // characters

export async function paste(event, bench) {
  const text = event.clipboardData.getData("text/plain");
  if (!/[\s;,&[\\]/.test(text.trim()) && text.length < 80) return; // one number: the browser's own way
  event.preventDefault();
  const input = event.target;
  if (text.length > LONGEST) {
    bench.say(`What was pasted has ${text.length.toLocaleString("en")} characters; at most 20,000 are read.`, "bad");
    return;
  }
  const { rows, error } = await bench.ask({ do: "paste", text });
  if (error) return bench.say(`What was pasted ${error.message}`, "bad");
  const grid = input.closest("table.cells").dataset, { row, column } = input.dataset;
  const there = input.isConnected ? input : findCell(bench.view, { ...grid, row, column }); // the page may be new
  if (there) await lay(rows, there, bench);
}

async function lay(rows, input, bench) {
  const grid = input.closest("table.cells");
  const [top, left] = [Number(input.dataset.row), Number(input.dataset.column)];
  const fits = at(grid, top + rows.length - 1, left + rows[0].length - 1);
  if (fits || grid.dataset.practice) {
    const cells = rows.flatMap((row, i) => row.map((text, j) => [at(grid, top + i, left + j), text]));
    fill(cells.filter(([cell]) => cell));
    return;
  }
  const { problem, part, name } = grid.dataset;
  const where = { problem: Number(problem), part: part || null, name, row: top, column: left };
  await bench.inTurn(() => ({ do: "lay", table: bench.table, rows, where }));
}
