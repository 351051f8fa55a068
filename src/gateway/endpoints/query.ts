// The query of a URL: read once, percent signs decoded, and its parameters, which describe themselves.
//
// Called for every request, so it splits by hand: URLSearchParams takes five times as long. Never
// part of a message: it may hold a key.

import type { ShredwayError } from "../../core/errors.ts";
import type { JsonSchema } from "../schema/json-schema.ts";
import { invalid } from "../schema/shapes.ts";

/** More are not looked at. */
const fieldsMax = 64;

function decode(text: string): string {
  if (!text.includes("%") && !text.includes("+")) return text;
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text; // a lone percent sign stands for itself
  }
}

export class Query {
  readonly #names: string[] = [];
  readonly #values: string[] = [];

  constructor(query: string) {
    let begin = 0;
    while (begin < query.length && this.#names.length < fieldsMax) {
      const next = query.indexOf("&", begin);
      const end = next < 0 ? query.length : next;
      const equals = query.indexOf("=", begin);
      const nameEnd = equals < 0 || equals > end ? end : equals;
      this.#names.push(decode(query.slice(begin, nameEnd)));
      this.#values.push(decode(query.slice(Math.min(nameEnd + 1, end), end)));
      begin = end + 1;
    }
  }

  get names(): readonly string[] {
    return this.#names;
  }

  /** Every value of `name` that is not empty. */
  all(name: string): string[] {
    return this.#values.filter((value, i) => value !== "" && this.#names[i] === name);
  }

  text(name: string): string | undefined {
    const at = this.#names.indexOf(name);
    return at < 0 ? undefined : this.#values[at];
  }
}

// ---- parameters of URLs ---------------------------------------------------------------------

/** Reads itself from a query and says what it takes, as the shapes of parameters do. */
export interface UriParameter<T> {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
  /** Throws ShredwayError "value_invalid" and nothing else. */
  read(query: Query): T;
}

function refused(name: string, expected: string, value: string | undefined): ShredwayError {
  return invalid(`URI parameter ${name}`, expected, value);
}

/** Strict: true, false or absent. */
export function uriFlag(name: string, description: string): UriParameter<boolean> {
  return {
    name,
    description,
    schema: { type: "boolean", default: false },
    read: (query) => {
      const value = query.text(name);
      if (value === undefined || value === "false") return false;
      if (value === "true") return true;
      throw refused(name, "true or false", value);
    },
  };
}

/** undefined when it is absent. */
export function uriCount(
  name: string,
  max: bigint,
  description: string,
): UriParameter<bigint | undefined> {
  return {
    name,
    description,
    schema: { type: "integer", minimum: 0, maximum: max },
    read: (query) => {
      const value = query.text(name);
      if (value === undefined) return undefined;
      if (/^[0-9]{1,20}$/.test(value) && BigInt(value) <= max) return BigInt(value);
      throw refused(name, `an integer from 0 to ${max}`, value);
    },
  };
}

/** The first choice when it is absent. */
export function uriChoice<const T extends string>(
  name: string,
  choices: readonly [T, ...T[]],
  description: string,
): UriParameter<T> {
  const [first] = choices;
  return {
    name,
    description,
    schema: { type: "string", enum: choices, default: first },
    read: (query) => {
      const value = query.text(name) ?? first;
      const found = choices.find((choice) => choice === value);
      if (found !== undefined) return found;
      throw refused(name, choices.join(" or "), value);
    },
  };
}
