// Tables of the report: the same rows for the terminal (aligned) and for documents (Markdown).

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

function widths(table: Table): number[] {
  return table.columns.map((column, i) =>
    Math.max(column.length, ...table.rows.map((row) => (row[i] ?? "").length)),
  );
}

/** First column aligned left, numbers aligned right. */
function align(text: string, width: number, column: number): string {
  return column === 0 ? text.padEnd(width) : text.padStart(width);
}

export function renderText(table: Table): string {
  const size = widths(table);
  const line = (cells: readonly string[]) =>
    `  ${size.map((width, i) => align(cells[i] ?? "", width, i)).join("  ")}`.trimEnd();
  return [
    table.title,
    line(table.columns),
    line(size.map((width) => "-".repeat(width))),
    ...table.rows.map(line),
  ].join("\n");
}

export function renderMarkdown(table: Table): string {
  const line = (cells: readonly string[]) =>
    `| ${table.columns.map((_, i) => (cells[i] ?? "").replaceAll("|", "\\|")).join(" | ")} |`;
  const rule = `|${table.columns.map((_, i) => (i === 0 ? "---" : "---:")).join("|")}|`;
  return [`**${table.title}**`, "", line(table.columns), rule, ...table.rows.map(line)].join("\n");
}

/** 1234.5 → "1,235", 12.34 → "12.3", 0.1234 → "0.123". */
export function number(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

export function percent(part: number): string {
  return Number.isFinite(part) ? `${(part * 100).toFixed(1)} %` : "–";
}

/** Nanoseconds as microseconds. */
export function micros(ns: number): string {
  return number(ns / 1000);
}
