// JSON Schema types and common schemas of the gateway.
//
// Used by shapes.ts for parameters, methods/* for results and description/* for documents. It uses
// only keywords that draft 7 (OpenRPC) and draft 2020-12 (OpenAPI 3.1) interpret alike. Response
// schemas are closed: tests report any field that is not described. A response schema has the
// response's type of src/client/responses.ts, so both have the same fields.

import type { WrittenInteger } from "../../client/responses.ts";
import { u64Max } from "../../core/primitives.ts";

type TypeName = "array" | "boolean" | "integer" | "null" | "number" | "object" | "string";

/** A value of `default` or `examples`. */
export type Sample = null | boolean | number | bigint | string | readonly Sample[] | SampleObject;
interface SampleObject {
  readonly [name: string]: Sample;
}

export interface JsonSchema {
  readonly title?: string;
  readonly description?: string;
  readonly type?: TypeName | readonly [TypeName, "null"];
  readonly enum?: readonly Sample[];
  readonly const?: Sample;
  readonly pattern?: string;
  readonly format?: "date-time" | "binary";
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number | bigint;
  readonly maximum?: number | bigint;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly default?: Sample;
  readonly examples?: readonly Sample[];
}

declare const describedType: unique symbol;

/** The schema of a `T`. The compiler uses `T` to keep a result and its schema equal. */
export interface SchemaOf<T> extends JsonSchema {
  readonly [describedType]: T;
}

/**
 * Declares `schema` as the schema of a `T` without a check; for what the functions below cannot
 * express.
 */
export function schemaOf<T>(schema: JsonSchema): SchemaOf<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller guarantees the type
  return schema as SchemaOf<T>;
}

/** The same schema, or null. */
export function orNull<T>(schema: SchemaOf<T>): SchemaOf<T | null>;
export function orNull(schema: JsonSchema): JsonSchema;
export function orNull(schema: JsonSchema): JsonSchema {
  if (typeof schema.type !== "string") return { anyOf: [schema, { type: "null" }] };
  const { type, ...more } = schema;
  return { ...more, type: [type, "null"], ...(schema.enum && { enum: [...schema.enum, null] }) };
}

export function described<S extends JsonSchema>(description: string, schema: S): S {
  return { ...schema, description };
}

export function anyOf<T>(schemas: readonly SchemaOf<T>[]): SchemaOf<T> {
  return schemaOf({ anyOf: schemas });
}

/** A schema for each field of `T`, including optional fields. */
export type FieldSchemas<T> = {
  readonly [Name in keyof T]-?: SchemaOf<Exclude<T[Name], undefined>>;
};

/** An object with exactly the fields of `T`; all are required except `optional`. */
export function closed<T>(
  title: string,
  properties: FieldSchemas<T>,
  optional: readonly (keyof T)[] = [],
): SchemaOf<T> {
  return schemaOf(closedOver(title, properties, new Set<PropertyKey>(optional)));
}

/** Like `closed`, for fields that are known only at run time. */
export function closedOver(
  title: string,
  properties: Readonly<Record<string, JsonSchema>>,
  optional: ReadonlySet<PropertyKey>,
): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.has(name));
  return { title, type: "object", properties, required, additionalProperties: false };
}

type ListBounds = Pick<JsonSchema, "minItems" | "maxItems">;

export function listOf<T>(items: SchemaOf<T>, bounds?: ListBounds): SchemaOf<readonly T[]>;
export function listOf(items: JsonSchema, bounds?: ListBounds): JsonSchema;
export function listOf(items: JsonSchema, bounds: ListBounds = {}): JsonSchema {
  return { type: "array", items, ...bounds };
}

export function enumOf<const T extends string>(values: readonly T[]): SchemaOf<T> {
  return schemaOf({ type: "string", enum: values });
}

/** A constant string. */
export function word<const T extends string>(value: T): SchemaOf<T> {
  return schemaOf({ type: "string", const: value });
}

/** A whole number that a JavaScript number can represent; with a bigint bound, any u64. */
export function wholeNumber(minimum: number, maximum: number): SchemaOf<number>;
export function wholeNumber(
  minimum: number | bigint,
  maximum: number | bigint,
): SchemaOf<WrittenInteger>;
export function wholeNumber(minimum: number | bigint, maximum: number | bigint): JsonSchema {
  return { type: "integer", minimum, maximum };
}

export const string = schemaOf<string>({ type: "string" });
export const number = schemaOf<number>({ type: "number" });
export const boolean = schemaOf<boolean>({ type: "boolean" });
/** Any JSON value. */
export const anyJson = schemaOf<unknown>({});
export const u64 = wholeNumber(0, u64Max);
export const slot = described("a slot", u64);
export const lamports = described("lamports", u64);

const base58 = "[1-9A-HJ-NP-Za-km-z]";

export const signatureText = schemaOf<string>({
  type: "string",
  pattern: `^${base58}{64,88}$`,
  description: "a signature: 64 bytes in base58",
});
export const publicKey = schemaOf<string>({
  type: "string",
  pattern: `^${base58}{32,44}$`,
  description: "a public key: 32 bytes in base58",
});
export const bundleIdPattern = "^[0-9a-f]{64}$";
export const bundleId = schemaOf<string>({
  type: "string",
  pattern: bundleIdPattern,
  description: "SHA-256 in hex of the signatures joined by commas",
});
/** Always with milliseconds, so that times sort as text. */
export const time = schemaOf<string>({
  type: "string",
  format: "date-time",
  pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$",
  description: "UTC",
});
