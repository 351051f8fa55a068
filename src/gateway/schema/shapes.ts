// Shapes of parameters: each parses a value, refuses invalid ones and documents itself.
//
// Declared by methods/* and used for every call and in description/*. Null counts as absent.
// Unknown option fields are ignored, as nodes do. Parsing throws only ShredwayError
// "value_invalid", or the error of a method's own shape.

import { quote, ShredwayError } from "../../core/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
} from "../../core/json-rpc/json-text.ts";
import { type JsonSchema, orNull, type Sample } from "./json-schema.ts";

export function invalid(what: string, expected: string, actual: unknown): ShredwayError {
  const problem = actual === undefined ? "missing value" : `invalid value ${quote(actual)}`;
  return new ShredwayError("value_invalid", `${what}: ${problem}; expected ${expected}`);
}

/** An array with a wrong number of elements. */
export function miscounted(what: string, expected: string, got: number): ShredwayError {
  const elements = got === 1 ? "element" : "elements";
  return new ShredwayError(
    "value_invalid",
    `${what}: got ${got} ${elements}; expected ${expected}`,
  );
}

export interface Shape<T> {
  readonly schema: JsonSchema;
  /** Creates the parser for one position; `what` names the position in messages. */
  readonly reader: (what: string) => (json: Json | undefined) => T;
  /** Check that runs for every parameter of a call before any is parsed. */
  readonly check?: (what: string, json: Json | undefined) => void;
}

export type ValueOf<S> = S extends Shape<infer T> ? T : never;

// ---- values ---------------------------------------------------------------------------------

export function readText(what: string, json: Json | undefined): string {
  if (typeof json === "string") return json;
  throw invalid(what, "a string", json);
}

/** Parses an array of 1 to `max` strings. `elsewhere`: another limit, at the end of messages. */
export function readTexts(
  what: string,
  json: Json | undefined,
  max: number,
  elsewhere = "",
): string[] {
  if (!isJsonArray(json)) throw invalid(what, `an array of 1 to ${max} strings${elsewhere}`, json);
  if (json.length === 0 || json.length > max) {
    throw miscounted(what, `1 to ${max}${elsewhere}`, json.length);
  }
  return json.map((element, i) => readText(`${what}[${i}]`, element));
}

/** A string; the method checks further conditions, which `schema` documents. */
export function text(schema: JsonSchema = {}): Shape<string> {
  return {
    schema: { type: "string", ...schema },
    reader: (what) => (json) => readText(what, json),
  };
}

export function texts(max: number, items: JsonSchema): Shape<string[]> {
  return {
    schema: { type: "array", minItems: 1, maxItems: max, items },
    reader: (what) => (json) => readTexts(what, json, max),
  };
}

/** An unparsed value, for methods that check it themselves. */
export function anything(schema: JsonSchema): Shape<Json | undefined> {
  return { schema, reader: () => (json) => json };
}

export const flag: Shape<boolean> = {
  schema: { type: "boolean" },
  reader: (what) => (json) => {
    if (typeof json === "boolean") return json;
    throw invalid(what, "true or false", json);
  },
};

export function oneOf<const T extends string>(choices: readonly T[]): Shape<T> {
  return {
    schema: { type: "string", enum: choices },
    reader: (what) => (json) => {
      const found = choices.find((choice) => choice === json);
      if (found !== undefined) return found;
      throw invalid(what, `one of ${choices.join(", ")}`, json);
    },
  };
}

export function integer(max: bigint): Shape<bigint> {
  return {
    schema: { type: "integer", minimum: 0, maximum: max },
    reader: (what) => (json) => {
      if (typeof json === "bigint" || (typeof json === "number" && Number.isInteger(json))) {
        const value = BigInt(json);
        if (value >= 0n && value <= max) return value;
      }
      throw invalid(what, `an integer from 0 to ${max}`, json);
    },
  };
}

function countFrom(minimum: number, max: number): Shape<number> {
  return {
    schema: { type: "integer", minimum, maximum: max },
    reader: (what) => (json) => {
      if (typeof json === "number" && Number.isInteger(json) && json >= minimum && json <= max) {
        return json;
      }
      throw invalid(what, `an integer from ${minimum} to ${max}`, json);
    },
  };
}

export function count(max: number): Shape<number> {
  return countFrom(0, max);
}

/** A count from 1. */
export function positive(max: number): Shape<number> {
  return countFrom(1, max);
}

// ---- options --------------------------------------------------------------------------------

/** One field of an options object. Its name must not be a property of Object.prototype. */
export interface Field<T> {
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
  /** An alternative name, read if the field itself is absent. */
  readonly alias?: string;
  readerOf(what: string, name: string): (options: JsonObject) => T;
}

function isAbsent(json: Json | undefined): json is null | undefined {
  return json === undefined || json === null;
}

interface FieldOptions<A> {
  readonly description: string;
  /** The value if the field is absent. */
  readonly absent: A;
  /** The documented default value. */
  readonly fallback?: Sample;
  readonly alias?: string;
}

function fieldSchema(shape: Shape<unknown>, options: FieldOptions<unknown>): JsonSchema {
  const { description, fallback } = options;
  const known = { ...orNull(shape.schema), description };
  return fallback === undefined ? known : { ...known, default: fallback };
}

export function field<T, const A>(shape: Shape<T>, options: FieldOptions<A>): Field<T | A> {
  const { absent, alias } = options;
  const readerOf = (what: string, name: string) => {
    const read = shape.reader(`${what}.${name}`);
    const readOther = alias === undefined ? null : shape.reader(`${what}.${alias}`);
    return (given: JsonObject): T | A => {
      const json = given[name];
      if (!isAbsent(json)) return read(json);
      if (readOther === null || alias === undefined) return absent;
      const other = given[alias];
      return isAbsent(other) ? absent : readOther(other);
    };
  };
  const schema = fieldSchema(shape, options);
  return { schema, isRequired: false, ...(alias !== undefined && { alias }), readerOf };
}

/** A field where null means `ofNull` instead of absence. */
export function nullableField<T, const A, const N>(
  shape: Shape<T>,
  options: FieldOptions<A> & { readonly ofNull: N; readonly alias: string },
): Field<T | A | N> {
  const { absent, ofNull, alias } = options;
  const readerOf = (what: string, name: string) => {
    const readers = [name, alias].map((each) => ({
      each,
      read: shape.reader(`${what}.${each}`),
    }));
    return (given: JsonObject): T | A | N => {
      for (const { each, read } of readers) {
        const json = given[each];
        if (json !== undefined) return json === null ? ofNull : read(json);
      }
      return absent;
    };
  };
  return { ...field(shape, options), readerOf };
}

export function requiredField<T>(shape: Shape<T>, description: string): Field<T> {
  return {
    schema: { ...shape.schema, description },
    isRequired: true,
    readerOf: (what, name) => {
      const read = shape.reader(`${what}.${name}`);
      return (given) => read(given[name]);
    },
  };
}

export const switchField = (description: string): Field<boolean> =>
  field(flag, { description, absent: false, fallback: false });

type Fields = Readonly<Record<string, Field<unknown>>>;
type FieldValues<F extends Fields> = {
  readonly [Name in keyof F]: F[Name] extends Field<infer T> ? T : never;
};

function optionsSchema(
  title: string,
  fields: Fields,
  readElsewhere: Readonly<Record<string, JsonSchema>>,
): JsonSchema {
  const properties: Record<string, JsonSchema> = { ...readElsewhere };
  for (const [name, { schema, alias }] of Object.entries(fields)) {
    properties[name] = schema;
    if (alias !== undefined) {
      properties[alias] = { ...schema, description: `alias of ${name}, which takes precedence` };
    }
  }
  const required = Object.keys(fields).filter((name) => fields[name]?.isRequired);
  const isNeeded = required.length > 0;
  return { title, type: "object", properties, ...(isNeeded && { required }) };
}

const noFields: JsonObject = Object.freeze(Object.create(null));

/** A parser for each field. */
type FieldReaders<F extends Fields> = {
  readonly [Name in keyof F]: ReturnType<F[Name]["readerOf"]>;
};

function readersOf<F extends Fields>(what: string, fields: F): FieldReaders<F> {
  const readers: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(fields)) readers[name] = each.readerOf(what, name);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every field of F has a reader
  return readers as FieldReaders<F>;
}

function valuesByLoop<F extends Fields>(
  readers: FieldReaders<F>,
  given: JsonObject,
): FieldValues<F> {
  const values: Record<string, unknown> = {};
  for (const [name, read] of Object.entries(readers)) values[name] = read(given);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every field of F was read above
  return values as FieldValues<F>;
}

interface OptionsChoice<F extends Fields> {
  /** Fields that the method parses by other means; only documented here. */
  readonly readElsewhere?: Readonly<Record<string, JsonSchema>>;
  /** The values written field by field, for frequent calls: a loop takes twice as long. */
  readonly values?: (read: FieldReaders<F>, given: JsonObject) => FieldValues<F>;
}

/** An options object. Fields are parsed in the order of `fields`. */
export function optionsOf<const F extends Fields>(
  title: string,
  fields: F,
  choice: OptionsChoice<F> = {},
): Shape<FieldValues<F>> {
  const { readElsewhere = {}, values = valuesByLoop } = choice;
  const schema = optionsSchema(title, fields, readElsewhere);
  const hasRequired = schema.required !== undefined;
  const check = (what: string, json: Json | undefined): void => {
    if (isJsonObject(json) || isAbsent(json)) return;
    throw invalid(what, "an object", json);
  };
  return {
    schema: hasRequired ? schema : orNull(schema),
    check,
    reader: (what) => {
      const readers = readersOf(what, fields);
      const defaults = hasRequired ? null : Object.freeze(values(readers, noFields));
      return (json) => {
        if (isJsonObject(json)) return values(readers, json);
        check(what, json);
        return defaults ?? values(readers, noFields);
      };
    },
  };
}
