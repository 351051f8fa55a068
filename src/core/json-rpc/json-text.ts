// JSON text in and out, with whole 64-bit integers and a bound on nesting.
//
// Called by handle.ts for what callers sent and for what they are answered. Integers beyond 2^53
// come and go as bigint: lamports, slots and ids of callers must not be rounded. Hostile text costs
// time proportional to its length and a stack of `depthMax` frames, whatever is in it.

import { quote, ShredwayError } from "../errors.ts";

export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;
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

/** 25 calls with 256 signatures each; what is built of hostile text is bounded by it. */
const callValuesMax = 8192;

const spaces = /[ \t\n\r]*/y;
const numbers = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const literals = /true|false|null/y;
/** Every u64. Longer ones are read as JSON.parse does: BigInt() of n digits costs more than n. */
const integerDigitsMax = 20;

class JsonReader {
  readonly #text: string;
  readonly #depthMax: number;
  readonly #valuesMax: number;
  #at = 0;
  #values = 0;

  constructor(text: string, depthMax: number, valuesMax = Number.POSITIVE_INFINITY) {
    this.#text = text;
    this.#depthMax = depthMax;
    this.#valuesMax = valuesMax;
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
    // Without a prototype: a key named "__proto__" is a key like every other.
    const object: Record<string, Json> = Object.create(null);
    if (this.#take("}")) return object;
    do {
      this.#skipSpaces();
      if (this.#text[this.#at] !== '"') throw this.#unexpected("a key");
      const key = this.#string();
      if (!this.#take(":")) throw this.#unexpected('":"');
      object[key] = this.#value(depth);
    } while (this.#take(","));
    if (!this.#take("}")) throw this.#unexpected('"," or "}"');
    return object;
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
      if (end < 0) throw this.#unexpected("a string that ends");
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
      // Control characters and unknown escapes: refused below with their place.
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

/** The value of `text`. Throws ShredwayError "json_invalid". Objects have no prototype. */
export function readJson(text: string, depthMax = jsonDepthMax): Json {
  return new JsonReader(text, depthMax).read();
}

/** Integers that may be rounded, and exponents that may end in Infinity. */
const uncertainNumbers = /[0-9]{16}|[0-9][eE]\+?[0-9]{3}/;

function opensAtMost(text: string, max: number): boolean {
  let count = 0;
  for (const open of ["{", "["]) {
    for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, at + 1)) {
      if (++count > max) return false;
    }
  }
  return true;
}

/**
 * The same in a third of the time for texts with few brackets, as most calls are. Objects may have
 * a prototype: for those who look for known fields only.
 */
export function readCallJson(text: string, depthMax = jsonDepthMax): Json {
  const read = (): Json => new JsonReader(text, depthMax, callValuesMax).read();
  if (!opensAtMost(text, depthMax) || uncertainNumbers.test(text)) return read();
  try {
    const value: Json = JSON.parse(text);
    return value;
  } catch {
    return read(); // says what is wrong, and where
  }
}

/** A value that is JSON text already, e.g. a node's answer: writeJson writes it as it stands. */
export class JsonText {
  readonly text: string;

  /** `text` must be one JSON value and nothing else: it is not checked here. */
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * `value` as JSON text; bigints as integers, absent fields left out. For values of our own making
 * and for what readJson returned: nesting is not bounded here.
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
