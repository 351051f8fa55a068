// Fields: reads the fields of a response object with a type check for each.
//
// Called by answers.ts and the streams. A response that does not match docs/gateway.md throws
// ShredwayCallError "answer_invalid" with the field's name. Unknown fields are ignored, because a
// newer service may add some.

import { ShredwayCallError } from "./error.ts";

function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 80));
  if (typeof value === "object" && value !== null)
    return Array.isArray(value) ? "an array" : "an object";
  return String(value);
}

function answerInvalid(where: string, expected: string, got: unknown): ShredwayCallError {
  return new ShredwayCallError(
    `answer_invalid: ${where}: invalid value ${shown(got)}; expected ${expected}`,
    {
      reason: "answer_invalid",
    },
  );
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function textOf(value: unknown, where: string): string {
  if (typeof value === "string") return value;
  throw answerInvalid(where, "a string", value);
}

function integerOf(value: unknown, where: string): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  throw answerInvalid(where, "an integer", value);
}

type Reader<T> = (value: unknown, where: string) => T;

export function listOf<T>(value: unknown, where: string, read: Reader<T>): T[] {
  if (!Array.isArray(value)) throw answerInvalid(where, "an array", value);
  return value.map((each: unknown, i) => read(each, `${where}[${i}]`));
}

type Name<T> = keyof T & string;

/** Reads fields of a `T` of responses.ts. The name of an unknown field does not compile. */
export class Fields<T extends object> {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #where: string;

  constructor(value: unknown, where: string) {
    if (!isObject(value)) throw answerInvalid(where, "an object", value);
    this.#fields = value;
    this.#where = where;
  }

  has(name: Name<T>): boolean {
    return Object.hasOwn(this.#fields, name);
  }

  value(name: Name<T>): unknown {
    return this.has(name) ? this.#fields[name] : undefined;
  }

  text(name: Name<T>): string {
    return textOf(this.value(name), this.#at(name));
  }

  number(name: Name<T>): number {
    const value = this.value(name);
    if (typeof value === "number") return value;
    throw answerInvalid(this.#at(name), "a number", value);
  }

  flag(name: Name<T>): boolean {
    const value = this.value(name);
    if (typeof value === "boolean") return value;
    throw answerInvalid(this.#at(name), "true or false", value);
  }

  /** Unsigned 64-bit integer. */
  integer(name: Name<T>): bigint {
    return integerOf(this.value(name), this.#at(name));
  }

  oneOf<const C extends string>(name: Name<T>, choices: readonly C[]): C {
    const value = this.value(name);
    const found = choices.find((choice) => choice === value);
    if (found !== undefined) return found;
    throw answerInvalid(this.#at(name), `one of ${choices.join(", ")}`, value);
  }

  orNull<V>(name: Name<T>, read: (fields: this) => V): V | null {
    const value = this.value(name);
    return value === null || value === undefined ? null : read(this);
  }

  textOrNull(name: Name<T>): string | null {
    return this.orNull(name, () => this.text(name));
  }

  integerOrNull(name: Name<T>): bigint | null {
    return this.orNull(name, () => this.integer(name));
  }

  list<V>(name: Name<T>, read: Reader<V>): V[] {
    return listOf(this.value(name), this.#at(name), read);
  }

  texts(name: Name<T>): string[] {
    return this.list(name, textOf);
  }

  #at(name: Name<T>): string {
    return `${this.#where}.${name}`;
  }
}
