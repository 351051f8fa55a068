// Reads and writes JSON with exact 64-bit integers and a limit on nesting.
//
// Integers beyond 2^53 are bigint, so that lamports, slots and callers' ids are not rounded. Hostile text
// costs time proportional to its length and at most `depthMax` stack frames.

import { quote, ShredwayError } from "../errors.ts";

export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;
/** Parameters of a call: by position or by name. */
export type CallParams = readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

export function isJsonArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const jsonDepthMax = 16;

/**
 * Maximum number of values in one text: 25 calls with 256 signatures each. Bounds the memory for
 * hostile text.
 */
const callValuesMax = 8192;

const spaces = /[ \t\n\r]*/y;
const numbers = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const literals = /true|false|null/y;
/**
 * An id of up to these digits is returned unchanged. Longer ones lose digits, because BigInt() of n digits
 * costs more than n.
 */
const integerDigitsMax = 80;

class JsonReader {
  readonly #text: string;
  readonly #depthMax: number;
  readonly #valuesMax: number;
  readonly #isCall: boolean;
  /** Depth of the calls: an array of calls has them one level deeper. */
  readonly #callDepth: number;
  #at = 0;
  #values = 0;

  /** `callValues`: maximum number of values in a text with calls (readCallJson); null: another text. */
  constructor(text: string, depthMax: number, callValues: number | null) {
    this.#text = text;
    this.#depthMax = depthMax;
    this.#valuesMax = callValues ?? Number.POSITIVE_INFINITY;
    this.#isCall = callValues !== null;
    this.#callDepth = /^[ \t\n\r]*\[/.test(text) ? 2 : 1;
  }

  read(): Json {
    const value = this.#value(0);
    this.#skipSpaces();
    if (this.#at < this.#text.length) throw this.#unexpected("the end");
    return value;
  }

  #value(depth: number): Json {
    if (++this.#values > this.#valuesMax) {
      throw new ShredwayError(
        "json_invalid",
        `JSON: expected at most ${this.#valuesMax} values, got more at ${this.#at}`,
      );
    }
    this.#skipSpaces();
    switch (this.#text.charAt(this.#at)) {
      case "{":
        return this.#object(depth + 1);
      case "[":
        return this.#array(depth + 1);
      case '"':
        return this.#string();
      default:
        return this.#scalar();
    }
  }

  #object(depth: number): JsonObject {
    this.#enter(depth);
    // No prototype: "__proto__" is an ordinary key.
    const object: Record<string, Json> = Object.create(null);
    if (this.#take("}")) return object;
    do {
      this.#skipSpaces();
      if (this.#text[this.#at] !== '"') throw this.#unexpected("a key");
      const keyAt = this.#at;
      const key = this.#string();
      if (this.#isCall && key in object) throw repeatedMember(key, keyAt);
      if (!this.#take(":")) throw this.#unexpected('":"');
      const isId = this.#isCall && key === "id" && depth === this.#callDepth;
      object[key] = isId ? this.#id(depth) : this.#value(depth);
    } while (this.#take(","));
    if (!this.#take("}")) throw this.#unexpected('"," or "}"');
    return object;
  }

  /** A number that would be written in another way keeps its text. */
  #id(depth: number): Json {
    this.#skipSpaces();
    const begin = this.#at;
    const value = this.#value(depth);
    if (typeof value !== "number" && typeof value !== "bigint") return value;
    const text = this.#text.slice(begin, this.#at);
    return text === writeJson(value) ? value : new JsonText(text);
  }

  #array(depth: number): Json[] {
    this.#enter(depth);
    const array: Json[] = [];
    if (this.#take("]")) return array;
    do array.push(this.#value(depth));
    while (this.#take(","));
    if (!this.#take("]")) throw this.#unexpected('"," or "]"');
    return array;
  }

  #enter(depth: number): void {
    if (depth > this.#depthMax) {
      throw new ShredwayError(
        "json_invalid",
        `JSON: expected at most ${this.#depthMax} levels of nesting, got more at ${this.#at}`,
      );
    }
    this.#at++;
  }

  #string(): string {
    const start = this.#at;
    let end = start;
    let isEscaped = true;
    while (isEscaped) {
      end = this.#text.indexOf('"', end + 1);
      if (end < 0) throw this.#unexpected("the end of the string");
      let backslashes = 0;
      while (this.#text[end - 1 - backslashes] === "\\") backslashes++;
      isEscaped = backslashes % 2 === 1;
    }
    try {
      const value: unknown = JSON.parse(this.#text.slice(start, end + 1));
      if (typeof value === "string") {
        this.#at = end + 1;
        return value;
      }
    } catch {
      // Control characters and unknown escapes are rejected below, with their position.
    }
    throw this.#unexpected("a string");
  }

  #scalar(): Json {
    const literal = this.#match(literals);
    if (literal !== undefined) return literal === "null" ? null : literal === "true";
    const number = this.#match(numbers);
    if (number === undefined) throw this.#unexpected("a value");
    const value = Number(number);
    const isInteger = /^-?[0-9]+$/.test(number);
    const digits = number.length - (number.startsWith("-") ? 1 : 0);
    if (isInteger && !Number.isSafeInteger(value) && digits <= integerDigitsMax) {
      return BigInt(number);
    }
    if (Number.isFinite(value)) return value;
    throw new ShredwayError("json_invalid", `JSON: expected a number, got ${quote(number)}`);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #take(character: string): boolean {
    this.#skipSpaces();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #skipSpaces(): void {
    this.#match(spaces);
  }

  #unexpected(expected: string): ShredwayError {
    const found = this.#text.slice(this.#at, this.#at + 20);
    return new ShredwayError(
      "json_invalid",
      `JSON: expected ${expected} at ${this.#at}, got ${found === "" ? "the end" : quote(found)}`,
    );
  }
}

function repeatedMember(key: string, at: number): ShredwayError {
  return new ShredwayError(
    "request_invalid",
    `JSON: expected each member of an object once, got ${quote(key)} again at ${at}`,
  );
}

/** Parses `text`. Objects have no prototype. Throws ShredwayError "json_invalid". */
export function readJson(text: string, depthMax = jsonDepthMax): Json {
  return new JsonReader(text, depthMax, null).read();
}

/**
 * Numbers that JSON.parse may round or turn into Infinity, and ids that may be written in another way
 * than they came: 1e2, 1.0, -0. The name of an id may be escaped.
 */
const uncertainNumbers =
  /[0-9]{16}|[0-9][eE]\+?[0-9]{3}|"(?:i|\\u0069)(?:d|\\u0064)"\s*:\s*(?:-0|-?[0-9]+[.eE])/;

function isDepthBounded(text: string, max: number): boolean {
  let count = 0;
  for (const open of ["{", "["]) {
    for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, at + 1)) {
      if (++count > max) return false;
    }
  }
  return true;
}

/** At least the number of members in `text`. */
function colonsIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf(":"); at >= 0; at = text.indexOf(":", at + 1)) count++;
  return count;
}

/** Members of all objects in `value`, whose depth is bounded. */
function membersIn(value: Json): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (isJsonArray(value)) {
    for (const each of value) count += membersIn(each);
    return count;
  }
  for (const key of Object.keys(value)) count += 1 + membersIn(value[key] ?? null);
  return count;
}

/**
 * Like readJson, in less than half of the time for texts with few brackets, as in most calls. Objects may
 * have a prototype: read only known fields. A repeated member is refused ("request_invalid"): the
 * sender may have meant either value. The id of a call that is a number is a JsonText if it would
 * otherwise be written in another way.
 */
export function readCallJson(
  text: string,
  depthMax = jsonDepthMax,
  valuesMax = callValuesMax,
): Json {
  const read = (): Json => new JsonReader(text, depthMax, valuesMax).read();
  if (!isDepthBounded(text, depthMax) || uncertainNumbers.test(text)) return read();
  try {
    const value: Json = JSON.parse(text);
    // More colons: a string has some, or JSON.parse dropped a repeated member.
    return colonsIn(text) === membersIn(value) ? value : read();
  } catch {
    return read(); // throws an error with the problem and its position
  }
}

/** A value that is JSON text, for example a node's answer: writeJson writes it unchanged. */
export class JsonText implements JsonObject {
  readonly [member: string]: Json;
  readonly text: string;

  /** `text` must be exactly one JSON value; it is not checked here. */
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Writes `value` as JSON: bigints as integers, absent fields omitted. Nesting is not limited, so use it for
 * values of this program and results of readJson only.
 */
export function writeJson(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (value instanceof JsonText) return value.text;
  if (Array.isArray(value)) return `[${value.map(writeJson).join(",")}]`;
  const fields: string[] = [];
  for (const [key, field] of Object.entries(value)) {
    if (field !== undefined) fields.push(`${JSON.stringify(key)}:${writeJson(field)}`);
  }
  return `{${fields.join(",")}}`;
}
