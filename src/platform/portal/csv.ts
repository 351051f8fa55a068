// CSV after RFC 4180: lines that end with CRLF, quoted fields, and no formulas.
//
// Pure; used by month-export.ts. Spreadsheets execute a field that begins with a formula character, so such
// a text gets an apostrophe in front.

type Cell = string | bigint | null;

const formula = /^[=+\-@\t\r\n]/;
const quoted = /[",\r\n]/;

/** Null is an empty field; integers are written in full. */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(fieldOf).join(",")}\r\n`;
}

function fieldOf(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "bigint") return String(cell);
  const text = formula.test(cell) ? `'${cell}` : cell;
  return quoted.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
