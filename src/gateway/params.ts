// Parameters of the gateway's own methods: each checked in type and range, null counts as absent.
//
// Called by methods/*. Unknown fields of a configuration are ignored, as nodes do. Throws
// ShredwayError "value_invalid" and nothing else, whatever the caller sent.

import { quote, ShredwayError } from "../core/errors.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../json-rpc/json-text.ts";

export function invalid(what: string, expected: string, actual: unknown): ShredwayError {
  return new ShredwayError("value_invalid", `${what}: expected ${expected}, got ${quote(actual)}`);
}

export function text(what: string, json: Json | undefined): string {
  if (typeof json === "string") return json;
  throw invalid(what, "a string", json);
}

/** 1 to `max` texts. */
export function texts(what: string, json: Json | undefined, max: number): string[] {
  if (!isJsonArray(json)) throw invalid(what, `an array of 1 to ${max} strings`, json);
  if (json.length === 0 || json.length > max) {
    throw invalid(what, `1 to ${max} elements`, json.length);
  }
  return json.map((element, i) => text(`${what}[${i}]`, element));
}

const noFields: JsonObject = Object.freeze(Object.create(null));

/** The configuration that most methods take behind their first parameter. */
export class Config {
  readonly #what: string;
  readonly #fields: JsonObject;

  constructor(what: string, json: Json | undefined) {
    if (json !== undefined && json !== null && !isJsonObject(json)) {
      throw invalid(what, "an object", json);
    }
    this.#what = what;
    this.#fields = json ?? noFields;
  }

  field(name: string): Json | undefined {
    return this.#at(name);
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#fields, name);
  }

  flag(name: string): boolean {
    const json = this.#at(name);
    if (json === undefined || json === null) return false;
    if (typeof json === "boolean") return json;
    throw invalid(this.#whatOf(name), "true or false", json);
  }

  /** null when it is absent. */
  oneOf<const T extends string>(name: string, choices: readonly T[]): T | null {
    const json = this.#at(name);
    if (json === undefined || json === null) return null;
    const found = choices.find((choice) => choice === json);
    if (found !== undefined) return found;
    throw invalid(this.#whatOf(name), `one of ${choices.join(", ")}`, json);
  }

  /** null when it is absent. */
  integer(name: string, max: bigint): bigint | null {
    const json = this.#at(name);
    if (json === undefined || json === null) return null;
    if (typeof json === "bigint" || (typeof json === "number" && Number.isInteger(json))) {
      const value = BigInt(json);
      if (value >= 0n && value <= max) return value;
    }
    throw invalid(this.#whatOf(name), `an integer from 0 to ${max}`, json);
  }

  /** null when it is absent. */
  count(name: string, max: number): number | null {
    const json = this.#at(name);
    if (json === undefined || json === null) return null;
    if (typeof json === "number" && Number.isInteger(json) && json >= 0 && json <= max) return json;
    throw invalid(this.#whatOf(name), `an integer from 0 to ${max}`, json);
  }

  #at(name: string): Json | undefined {
    return this.has(name) ? this.#fields[name] : undefined;
  }

  #whatOf(name: string): string {
    return `${this.#what}.${name}`;
  }
}
