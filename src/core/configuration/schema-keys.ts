// Configuration keys: the words that a schema of the configuration is written in.
//
// Used by the files of the sections (schema.ts puts them together). Every key carries what
// people read about it, in errors and in docs/configuration.md.

import { z } from "zod";
import { parseEndpoint } from "../addresses/addresses.ts";
import { messageOf, ShredwayError } from "../errors.ts";
import { postgresHosts } from "./postgres-url.ts";

/** What people read about a key, in errors and in the documentation. */
interface KeyDocument {
  /** Completes "expected …". */
  readonly expects: string;
  readonly meaning: string;
  readonly unit?: string;
  /** What holds when the key is absent and there is no default value. */
  readonly absent?: string;
}

export const keyDocuments = z.registry<KeyDocument>();

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** A string that `parse` accepts; the text that `parse` throws is the error of the key. */
export function parsed(parse: (text: string) => unknown) {
  return z.string().superRefine((text, context) => {
    try {
      parse(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: messageOf(error) });
    }
  });
}

export function parseHttpUrl(text: string): void {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return;
  // Not quoted: it may hold a key.
  throw new ShredwayError("config_invalid", "expected a URL of http or https, got another text");
}

/** A URL that is published, so it must not contain credentials. */
export function parseOpenHttpUrl(text: string): void {
  parseHttpUrl(text);
  const { username, password } = new URL(text);
  if (username === "" && password === "") return;
  throw new ShredwayError("config_invalid", "expected a URL without user and password, got one");
}

export function parseWebSocketUrl(text: string): void {
  if (URL.canParse(text) && /^wss?:$/.test(new URL(text).protocol)) return;
  throw new ShredwayError("config_invalid", "expected a URL of ws or wss, got another text");
}

/** Accepts one server or several. */
export function parsePostgresUrl(text: string): void {
  postgresHosts(text);
}

export const parseEndpointOrPortZero = (text: string) =>
  parseEndpoint(text, { allowPortZero: true });

export function integer(min: number, max: number) {
  return z.int().min(min).max(max);
}

/** Lamports in a file: whole numbers up to 2^53 - 1, far more than there are. */
export function lamports() {
  return z.int().min(0).max(Number.MAX_SAFE_INTEGER);
}

export function key<T extends z.ZodType>(schema: T, document: KeyDocument): T {
  if (keyDocuments.has(schema)) throw new Error(`one schema for two keys: ${document.meaning}`);
  keyDocuments.add(schema, document);
  return schema;
}

// A schema can have one document only, so every key needs an instance of its own.
export const name = () => z.string().regex(namePattern);
export const nameExpects = (what: string) =>
  `a ${what} of 1 to 64 letters, digits, ".", "_" or "-"`;
