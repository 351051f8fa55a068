// Recent warnings: the last warnings and errors of the log, for the portal's operator view.
//
// log.ts adds lines as they were written, so keys and secrets are masked. The list is bounded;
// consecutive equal lines are one entry with a count.

import { isObject } from "./values.ts";

const problemLevels = ["warn", "error", "fatal"] as const;
type ProblemLevel = (typeof problemLevels)[number];

export interface Problem {
  /** Time of the newest occurrence, ISO 8601. */
  readonly time: string;
  readonly level: ProblemLevel;
  readonly text: string;
  /** Number of consecutive lines with this text. */
  readonly count: number;
}

export const problemsMax = 100;
const textMax = 500;
const fieldMax = 160;
/** Longer lines are cut. */
const lineMax = 16_384;

const ownFields = new Set(["level", "time", "msg"]);

function fieldText(name: string, value: unknown): string[] {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean")
    return [];
  const [line = ""] = String(value).split("\n", 1);
  return line === "" ? [] : [`${name} ${line.slice(0, fieldMax)}`];
}

/** null: the line is not a warning or an error. */
function problemOf(line: string): Problem | null {
  if (line.length > lineMax || !/^\{"level":"(warn|error|fatal)"/.test(line)) return null;
  let fields: unknown;
  try {
    fields = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isObject(fields)) return null;
  const { level: given, time, msg } = fields;
  const level = problemLevels.find((one) => one === given);
  if (level === undefined || typeof time !== "string") return null;
  const others = Object.entries(fields)
    .filter(([name]) => !ownFields.has(name))
    .flatMap(([name, value]) => fieldText(name, value));
  const message = typeof msg === "string" ? msg : "";
  // Omits fields whose text is part of the message.
  const more = others.filter((other) => !message.includes(other.slice(other.indexOf(" ") + 1)));
  const text = more.length > 0 ? `${message} (${more.join(", ")})` : message;
  return { time, level, text: text.slice(0, textMax), count: 1 };
}

export class RecentWarnings {
  /** Entries, oldest first. */
  readonly #problems: Problem[] = [];

  /** Adds one line of the log. */
  add(line: string): void {
    const problem = problemOf(line);
    if (!problem) return;
    const last = this.#problems.at(-1);
    if (last && last.text === problem.text && last.level === problem.level) {
      this.#problems[this.#problems.length - 1] = { ...problem, count: last.count + 1 };
      return;
    }
    this.#problems.push(problem);
    if (this.#problems.length > problemsMax) this.#problems.shift();
  }

  /** The entries, newest first. */
  get list(): readonly Problem[] {
    return this.#problems.toReversed();
  }
}
