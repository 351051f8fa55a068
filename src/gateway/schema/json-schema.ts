// JSON Schema of what goes in and out of the gateway, and the words that come up again and again in it.
//
// Called by shapes.ts for parameters, by methods/* for results and by description/* for the documents.
// Of the keywords only those that draft 7 (OpenRPC) and draft 2020-12 (OpenAPI 3.1) read alike. What is
// answered is described closed: a field that is not described is a fault that a test finds.

import { u64Max } from "../../core/primitives.ts";

type TypeName = "array" | "boolean" | "integer" | "null" | "number" | "object" | "string";

/** What a schema may be the default or an example of. */
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
  readonly format?: "date-time";
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

/** The same, or null. */
export function orNull(schema: JsonSchema): JsonSchema {
  if (typeof schema.type !== "string") return { anyOf: [schema, { type: "null" }] };
  const { type, ...more } = schema;
  return { ...more, type: [type, "null"], ...(schema.enum && { enum: [...schema.enum, null] }) };
}

export function described(description: string, schema: JsonSchema): JsonSchema {
  return { ...schema, description };
}

/** With these fields and no others; all of them are there but for `optional`. */
export function closed(
  title: string,
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { title, type: "object", properties, required, additionalProperties: false };
}

export function listOf(
  items: JsonSchema,
  bounds: Pick<JsonSchema, "minItems" | "maxItems"> = {},
): JsonSchema {
  return { type: "array", items, ...bounds };
}

export function enumOf(values: readonly string[]): JsonSchema {
  return { type: "string", enum: values };
}

/** Of a word that programs compare. */
export function word(value: string): JsonSchema {
  return { type: "string", const: value };
}

export function wholeNumber(minimum: number | bigint, maximum: number | bigint): JsonSchema {
  return { type: "integer", minimum, maximum };
}

export const string: JsonSchema = { type: "string" };
export const number: JsonSchema = { type: "number" };
export const boolean: JsonSchema = { type: "boolean" };
export const u64 = wholeNumber(0, u64Max);
export const slot = described("a slot", u64);
export const lamports = described("lamports", u64);

const base58 = "[1-9A-HJ-NP-Za-km-z]";

export const signatureText: JsonSchema = {
  type: "string",
  pattern: `^${base58}{64,88}$`,
  description: "a signature: 64 bytes in base58",
};
export const publicKey: JsonSchema = {
  type: "string",
  pattern: `^${base58}{32,44}$`,
  description: "a public key: 32 bytes in base58",
};
export const bundleId = {
  type: "string",
  pattern: "^[0-9a-f]{64}$",
  description: "SHA-256 in hex of the signatures joined by commas",
} as const satisfies JsonSchema;
/** Milliseconds always: texts of times sort as the times do. */
export const time: JsonSchema = {
  type: "string",
  format: "date-time",
  pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$",
  description: "UTC",
};
