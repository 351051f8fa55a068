// Parses the query of a URL, refuses parameters that its path does not have, and declares self-describing
// URI parameters.
//
// Called for every request. It splits by hand because URLSearchParams takes five times as long. A
// query may contain a key, so messages quote only the value of the invalid parameter.

import { quote, ShredwayError } from "../../core/errors.ts";
import type { JsonSchema } from "../schema/json-schema.ts";
import { invalid } from "../schema/shapes.ts";

/** A query with more fields is refused: one of them could ask for protection. */
const fieldsMax = 64;

function decode(text: string): string {
  if (!text.includes("%") && !text.includes("+")) return text;
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text; // an invalid percent sequence stays as it is
  }
}

export class Query {
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  readonly #isCut: boolean;

  /** `query`: without its "?". Most are empty, and share one object. */
  static of(query: string): Query {
    return query === "" ? noQuery : new Query(query);
  }

  constructor(query: string) {
    let begin = 0;
    while (begin < query.length && this.#names.length < fieldsMax) {
      const next = query.indexOf("&", begin);
      const end = next < 0 ? query.length : next;
      const equals = query.indexOf("=", begin);
      const nameEnd = equals < 0 || equals > end ? end : equals;
      if (end > begin) {
        this.#names.push(decode(query.slice(begin, nameEnd)));
        this.#values.push(decode(query.slice(Math.min(nameEnd + 1, end), end)));
      }
      begin = end + 1;
    }
    this.#isCut = begin < query.length;
  }

  /** It has more fields than are read. */
  get isCut(): boolean {
    return this.#isCut;
  }

  get names(): readonly string[] {
    return this.#names;
  }

  /** Every value of `name` that is not empty. */
  all(name: string): string[] {
    return this.texts(name).filter((value) => value !== "");
  }

  /** Every value of `name`. */
  texts(name: string): string[] {
    return this.#values.filter((_, i) => this.#names[i] === name);
  }

  text(name: string): string | undefined {
    const at = this.#names.indexOf(name);
    return at < 0 ? undefined : this.#values[at];
  }
}

const noQuery = new Query("");

/** An API key, which every path accepts: a client may use one URL for all. */
export const keyName = "api-key";
/** Names that contain an API key: `find` of callers.ts requires that all keys of a request are equal. */
const keyNames: ReadonlySet<string> = new Set([keyName, "api_key", "uuid"]);

/** Without the key of a URL such as "/relay?sw_…". */
function quotedName(name: string): string {
  return quote(name.replaceAll(/sw_\w+/g, "sw_…"));
}

/**
 * Throws ShredwayError "value_invalid" unless `known` contains each parameter and no parameter is
 * repeated: one that is ignored would surprise the caller.
 */
export function checkNames(query: Query, known: readonly string[]): void {
  const { names } = query;
  if (query.isCut) {
    throw new ShredwayError(
      "value_invalid",
      `URI parameters: expected at most ${fieldsMax}, got more`,
    );
  }
  for (const [i, name] of names.entries()) {
    if (!known.includes(name)) {
      throw new ShredwayError(
        "value_invalid",
        `unknown URI parameter ${quotedName(name)}; expected one of ${known.join(", ")}`,
      );
    }
    if (names.indexOf(name) < i && !keyNames.has(name)) {
      const values = query.texts(name).map(quote).join(", ");
      throw new ShredwayError(
        "value_invalid",
        `URI parameter ${name}: expected one value, got ${values}`,
      );
    }
  }
}

// ---- parameters of URLs ---------------------------------------------------------------------

/**
 * A parameter that parses itself from a query and describes its values, like the shapes of params.
 */
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

/** Accepts only true, false or absence. */
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

/** Like uriFlag; also accepts 1 and 0. */
export function uriSwitch(name: string, description: string): UriParameter<boolean> {
  const flag = uriFlag(name, description);
  return {
    name,
    description,
    schema: { type: "string", enum: ["1", "true", "0", "false"], default: "false" },
    read: (query) => {
      const value = query.text(name);
      if (value === "1" || value === "0") return value === "1";
      return flag.read(query);
    },
  };
}

/** Reads undefined if absent. */
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

/** Reads the first choice if absent. */
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
