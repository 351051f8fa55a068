// Formatting of numbers and tables for the command line, and JSON. Pure.
//
// Used by every command that prints data. JSON contains a bigint as a number up to 2^53 - 1,
// above as a string of digits.

/** One line of JSON. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) => {
    if (typeof member !== "bigint") return member;
    const asNumber = Number(member);
    return Number.isSafeInteger(asNumber) ? asNumber : member.toString();
  });
}

/** "12,345"; from a hundred million on, "123.4 M". */
export function formatCount(count: bigint | number): string {
  const value = typeof count === "bigint" ? count : BigInt(Math.round(count));
  if (value >= 10n ** 11n) return `${(Number(value) / 1e9).toFixed(1)} G`;
  if (value >= 10n ** 8n) return `${(Number(value) / 1e6).toFixed(1)} M`;
  return grouped(value);
}

function grouped(value: bigint): string {
  return value.toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A rate per second: "4,961/s", below 10 with one digit: "2.5/s". */
export function formatRate(perSecond: number): string {
  if (!Number.isFinite(perSecond)) return "-";
  if (perSecond !== 0 && perSecond < 10) return `${perSecond.toFixed(1)}/s`;
  return `${formatCount(perSecond)}/s`;
}

/** A duration with three digits and its unit: "812 ns", "26.4 µs", "1.53 ms", "2.10 s". */
export function formatNs(ns: bigint | number): string {
  const value = Number(ns);
  if (value < 1e3) return `${Math.round(value)} ns`;
  const [scaled, unit] =
    value < 1e6 ? [value / 1e3, "µs"] : value < 1e9 ? [value / 1e6, "ms"] : [value / 1e9, "s"];
  const digits = scaled < 10 ? 2 : scaled < 100 ? 1 : 0;
  return `${scaled.toFixed(digits)} ${unit}`;
}

/** Formats a share as per cent: "99.8 %". "100.0 %" only if it is exactly 1. */
export function formatShare(share: number): string {
  if (!Number.isFinite(share)) return "-";
  if (share >= 1) return "100 %";
  return `${(Math.floor(share * 1000) / 10).toFixed(1)} %`;
}

export function formatBytes(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${units[unit]}`;
}

/** 754 -> "12:34", 3723 -> "1:02:03". */
export function formatClock(seconds: number): string {
  const whole = Math.floor(seconds);
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = `${hours ? two(minutes) : minutes}:${two(whole % 60)}`;
  return hours ? `${hours}:${rest}` : rest;
}

interface Column {
  readonly title: string;
  /** Whether to align right, for numbers. */
  readonly right?: boolean;
  /** Minimum width, so that the columns of a live table do not move. */
  readonly width?: number;
}

/** Returns the lines of a table: titles, then rows. Cells may contain colour codes. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const widths = columns.map((column, i) =>
    Math.max(
      column.title.length,
      column.width ?? 0,
      ...rows.map((row) => visibleLength(row[i] ?? "")),
    ),
  );
  const line = (cells: readonly string[]) =>
    columns
      .map((column, i) => {
        const cell = cells[i] ?? "";
        const space = " ".repeat(Math.max(0, (widths[i] ?? 0) - visibleLength(cell)));
        return column.right ? space + cell : cell + space;
      })
      .join("  ")
      .trimEnd();
  return [line(columns.map((column) => column.title)), ...rows.map(line)];
}

const escapeCode = "\u001b";
const colourCodes = new RegExp(`(${escapeCode}\\[[0-9;]*m)`, "g");

export function visibleLength(text: string): number {
  return text.replace(colourCodes, "").length;
}

/** Truncates a line to `width` visible characters. Colour codes have no width and are closed. */
export function cutLine(text: string, width: number): string {
  if (visibleLength(text) <= width) return text;
  let result = "";
  let room = width - 1;
  for (const part of text.split(colourCodes)) {
    if (part.startsWith(`${escapeCode}[`)) {
      result += part;
    } else {
      result += part.slice(0, Math.max(0, room));
      room -= part.length;
    }
  }
  return result.includes(escapeCode) ? `${result}…\u001b[0m` : `${result}…`;
}

export interface Paint {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly note: (text: string) => string;
}

const plain = (text: string) => text;
const code = (number: number) => (text: string) => `\u001b[${number}m${text}\u001b[0m`;

/** Returns colour functions, or functions without effect. */
export function paint(colours: boolean): Paint {
  if (!colours) return { bold: plain, dim: plain, good: plain, bad: plain, note: plain };
  return { bold: code(1), dim: code(2), good: code(32), bad: code(31), note: code(33) };
}

/** Lines of at most `width` characters, except for a longer word. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    const longer = last === undefined ? word : `${last} ${word}`;
    if (last === undefined || longer.length > width) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

/** Wraps paragraphs, which end at an empty line. Indented lines are commands and stay as they are. */
export function wrappedParagraphs(text: string, width: number): string[] {
  const blocks = text.split("\n").reduce<string[][]>((found, line) => {
    const isText = line !== "" && !line.startsWith("  ");
    const last = found.at(-1);
    if (isText && last) last.push(line);
    else if (isText) found.push([line]);
    else found.push([line], []);
    return found;
  }, []);
  return blocks.flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    return first === "" || first.startsWith("  ")
      ? [first]
      : wrapped([first, ...others].join(" "), width);
  });
}
