// Parameters of a call: each is read and checked, with an error that states the expected value.
//
// Called by every method and subscription. As in the node, null counts as absent, and unknown
// fields of a configuration are ignored. For any input, it throws only ShredwayError
// "value_invalid" (JSON-RPC code -32602).

import { quote, ShredwayError } from "../../core/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
} from "../../core/json-rpc/json-text.ts";
import { type Pubkey, parsePubkey, u64Max } from "../../core/primitives.ts";
import type { Commitment } from "../chain/types.ts";
import { decodeBase58 } from "./bytes.ts";

export function invalidParams(what: string, expected: string, actual: unknown): ShredwayError {
  return new ShredwayError(
    "value_invalid",
    `Invalid params: ${what}: ${quote(actual)}; expected ${expected}`,
  );
}

interface Range {
  readonly min: bigint;
  readonly max: bigint;
}
const u64Range: Range = { min: 0n, max: u64Max };

/** One parameter or one field of a configuration, with its name for messages. */
export class Value {
  readonly what: string;
  readonly json: Json | undefined;

  constructor(what: string, json: Json | undefined) {
    this.what = what;
    this.json = json;
  }

  get isAbsent(): boolean {
    return this.json === undefined || this.json === null;
  }

  /** The result of `read`, or `fallback` if the value is absent. */
  or<T>(fallback: T, read: (value: Value) => T): T {
    return this.isAbsent ? fallback : read(this);
  }

  text(): string {
    if (typeof this.json === "string") return this.json;
    throw this.refuse("a string");
  }

  boolean(): boolean {
    if (typeof this.json === "boolean") return this.json;
    throw this.refuse("true or false");
  }

  integer(range: Range = u64Range): bigint {
    const { json } = this;
    if (typeof json === "bigint" || (typeof json === "number" && Number.isInteger(json))) {
      const value = BigInt(json);
      if (value >= range.min && value <= range.max) return value;
    }
    throw this.refuse(`an integer from ${range.min} to ${range.max}`);
  }

  count(max: number, min = 0): number {
    return Number(this.integer({ min: BigInt(min), max: BigInt(max) }));
  }

  oneOf<const T extends string>(choices: readonly T[]): T {
    const found = choices.find((choice) => choice === this.json);
    if (found !== undefined) return found;
    throw this.refuse(`one of ${choices.join(", ")}`);
  }

  pubkey(): Pubkey {
    try {
      return parsePubkey(this.text());
    } catch {
      throw this.refuse("a public key: 32 bytes in base58");
    }
  }

  signature(): string {
    const text = this.text();
    if (decodeBase58(text, 88)?.length === 64) return text;
    throw this.refuse("a signature: 64 bytes in base58");
  }

  blockhash(): string {
    const text = this.text();
    if (decodeBase58(text, 44)?.length === 32) return text;
    throw this.refuse("a blockhash: 32 bytes in base58");
  }

  array(max: number): Value[] {
    if (!isJsonArray(this.json)) throw this.refuse("an array");
    if (this.json.length > max) {
      throw invalidParams(this.what, `at most ${max} elements`, this.json.length);
    }
    return this.json.map((json, index) => new Value(`${this.what}[${index}]`, json));
  }

  object(): Config {
    if (isJsonObject(this.json)) return new Config(this.what, this.json);
    throw this.refuse("an object");
  }

  refuse(expected: string): ShredwayError {
    return invalidParams(this.what, expected, this.json);
  }
}

const noFields: JsonObject = Object.freeze(Object.create(null));
const commitments = ["processed", "confirmed", "finalized"] as const;

/** The configuration object, the last parameter of most methods. */
export class Config {
  readonly #what: string;
  readonly #fields: JsonObject;

  constructor(what: string, fields: JsonObject) {
    this.#what = what;
    this.#fields = fields;
  }

  field(name: string): Value {
    const json = Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined;
    return new Value(`${this.#what}.${name}`, json);
  }

  boolean(name: string, fallback = false): boolean {
    return this.field(name).or(fallback, (value) => value.boolean());
  }

  /** Default: finalized, as in the node. */
  commitment(name = "commitment"): Commitment {
    return this.field(name).or<Commitment>("finalized", (value) => value.oneOf(commitments));
  }

  minContextSlot(): bigint {
    return this.field("minContextSlot").or(0n, (value) => value.integer());
  }

  encoding<const T extends string>(choices: readonly T[], fallback: T): T {
    return this.field("encoding").or(fallback, (value) => value.oneOf(choices));
  }

  get names(): string[] {
    return Object.keys(this.#fields);
  }
}

export class Params {
  readonly #values: readonly Json[];

  constructor(values: readonly Json[]) {
    this.#values = values;
  }

  at(index: number, what: string): Value {
    return new Value(what, this.#values[index]);
  }

  config(index: number): Config {
    const value = this.at(index, "configuration");
    return value.or(new Config(value.what, noFields), (given) => given.object());
  }

  /** Throws for more than `max` elements. */
  atMost(max: number): void {
    if (this.#values.length > max) {
      throw invalidParams("parameters", `at most ${max}`, this.#values.length);
    }
  }
}
